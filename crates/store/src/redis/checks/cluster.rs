//! Whether a cluster is fit to keep jobs on one of its nodes.

use super::super::RedisStore;
use crate::StoreError;
use reveille_core::finding::Finding;
use std::collections::HashMap;

impl RedisStore {
    pub(super) async fn cluster(&self) -> Result<Vec<Finding>, StoreError> {
        if !self.keys.is_on_a_cluster() {
            return Ok(Vec::new());
        }
        let about: String = self.link.command(redis::cmd("CLUSTER").arg("INFO")).await?;
        let mut ask = redis::cmd("CONFIG");
        ask.arg("GET").arg("cluster-require-full-coverage");
        // A missing right to ask is reported where the other settings are checked.
        let settings: HashMap<String, String> = self.link.command(&ask).await.unwrap_or_default();
        let needs_all = settings.get("cluster-require-full-coverage").is_some_and(|word| word == "yes");
        let mut found = vec![state(&about)];
        if needs_all {
            found.push(Finding::Risky(
                "cluster-require-full-coverage yes: a node that is lost for good stops the others too; set no"
                    .to_owned(),
            ));
        }
        Ok(found)
    }
}

fn state(about: &str) -> Finding {
    let is =
        |name: &str| about.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap_or("?");
    if is("cluster_state") != "ok" {
        return Finding::Bad(format!(
            "cluster_state:{} with {} of 16384 slots served: the cluster answers nobody",
            is("cluster_state"),
            is("cluster_slots_ok")
        ));
    }
    let primaries = is("cluster_size");
    Finding::Good(format!("a cluster of {primaries} primaries; our keys are on one of them"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_that_is_down_is_refused() {
        let down = "cluster_state:fail\r\ncluster_slots_assigned:16384\r\ncluster_slots_ok:10923\r\ncluster_size:3\r\n";
        let finding = state(down);
        assert!(finding.is_bad() && finding.words().contains("10923 of 16384"), "{finding:?}");
        let up = "cluster_state:ok\r\ncluster_slots_ok:16384\r\ncluster_size:3\r\n";
        assert_eq!(state(up).words(), "a cluster of 3 primaries; our keys are on one of them");
        assert!(state("").is_bad());
    }
}
