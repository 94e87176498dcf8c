//! Whether a Redis is fit to keep jobs, reported for operators.

mod cluster;

use super::RedisStore;
use crate::StoreError;
use redis::Pipeline;
use reveille_core::finding::Finding;
use std::collections::HashMap;

/// The version of the names and shapes that are kept here.
const SCHEMA: &str = "2";
/// Redis's clock may be this far from ours.
const SKEW_MS_MAX: i64 = 1_000;
/// Sealing takes a tenth of a second; more than this means that PostgreSQL is unavailable.
const UNSEALED_MAX: u64 = 100_000;

impl RedisStore {
    /// Checks version, eviction, persistence and clock, and claims an empty database if all is well.
    pub async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        let mut found = self.look().await?;
        if !found.iter().any(Finding::is_bad) {
            found.push(self.claim().await?);
        }
        Ok(found)
    }

    /// The same without claiming anything, plus how much is stored.
    pub async fn examine(&self) -> Result<Vec<Finding>, StoreError> {
        let mut found = self.look().await?;
        let mut count = Pipeline::new();
        count.cmd("DBSIZE");
        for index in ["job:recent", "dlq:index"] {
            count.cmd("ZCARD").arg(self.keys.of(index));
        }
        count.cmd("XLEN").arg(self.keys.of("audit:outbox"));
        let (keys, jobs, dead, unsealed): (u64, u64, u64, u64) = self.link.pipeline(&count).await?;
        let mut live = 0;
        for index in self.owners_jobs().await? {
            live += self.link.command::<u64>(redis::cmd("ZCARD").arg(index)).await?;
        }
        found.push(Finding::Good(format!(
            "{keys} keys: {jobs} jobs, {live} of them live, {dead} dead letters"
        )));
        let words = format!("{unsealed} entries of the audit trail wait to be sealed");
        found.push(if unsealed > UNSEALED_MAX { Finding::Risky(words) } else { Finding::Good(words) });
        Ok(found)
    }

    /// On a cluster, at the node that has our keys.
    async fn look(&self) -> Result<Vec<Finding>, StoreError> {
        let mut found = vec![self.version().await?];
        found.extend(self.cluster().await?);
        found.extend(self.settings().await);
        found.push(self.skew().await?);
        Ok(found)
    }

    async fn version(&self) -> Result<Finding, StoreError> {
        let about: String = self.link.command(redis::cmd("INFO").arg("server")).await?;
        let version = about.lines().find_map(|line| line.strip_prefix("redis_version:")).unwrap_or("0");
        let major: u32 = version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(0);
        let words = format!("version {version}");
        Ok(if major >= 7 {
            Finding::Good(words)
        } else {
            Finding::Bad(format!("{words}: at least 7 is needed"))
        })
    }

    /// A setting that cannot be read is not judged: a user may lack the right to ask.
    async fn settings(&self) -> Vec<Finding> {
        let mut ask = redis::cmd("CONFIG");
        ask.arg("GET").arg("maxmemory-policy").arg("maxmemory").arg("appendonly").arg("appendfsync");
        let settings: HashMap<String, String> = match self.link.command(&ask).await {
            Ok(settings) => settings,
            Err(error) => {
                let words =
                    format!("its settings cannot be read ({error}); look at maxmemory-policy and appendonly");
                return vec![Finding::Risky(words)];
            }
        };
        let is = |name: &str| settings.get(name).map_or("", String::as_str);
        vec![
            eviction(is("maxmemory-policy"), is("maxmemory")),
            persistence(is("appendonly"), is("appendfsync")),
        ]
    }

    async fn skew(&self) -> Result<Finding, StoreError> {
        let (seconds, micros): (i64, i64) = self.link.command(&redis::cmd("TIME")).await?;
        let skew = self.now().0 - (seconds * 1000 + micros / 1000);
        let words = format!("its clock is {} ms from ours", skew.abs());
        Ok(if skew.abs() > SKEW_MS_MAX { Finding::Risky(words) } else { Finding::Good(words) })
    }

    /// A database with someone else's jobs in it is left alone.
    async fn claim(&self) -> Result<Finding, StoreError> {
        let key = self.keys.of("reveille:schema");
        let schema: Option<String> = self.link.command(redis::cmd("GET").arg(&key)).await?;
        match schema.as_deref() {
            Some(SCHEMA) => return Ok(Finding::Good(format!("schema {SCHEMA}"))),
            Some(other) => {
                return Ok(Finding::Bad(format!(
                    "schema {other} was written by another version; this one knows {SCHEMA}"
                )));
            }
            None => {}
        }
        let foreign: Option<String> = self
            .link
            .command(redis::cmd("ZRANGE").arg(self.keys.of("job:recent")).arg(0).arg(0))
            .await
            .map(|ids: Vec<String>| ids.into_iter().next())?;
        if let Some(id) = foreign {
            return Ok(Finding::Bad(format!(
                "the database has jobs of another control plane ({id}); choose an empty one, such as redis://host:port/1"
            )));
        }
        let mut set = redis::cmd("SET");
        set.arg(&key).arg(SCHEMA);
        let () = self.link.command(&set).await?;
        Ok(Finding::Good(format!("schema {SCHEMA}, new")))
    }
}

fn eviction(policy: &str, memory: &str) -> Finding {
    let words = format!("maxmemory-policy {policy}");
    if policy.starts_with("allkeys-") {
        return Finding::Bad(format!("{words} throws jobs away when memory is short; set noeviction"));
    }
    // Locks and inputs have a TTL.
    if policy.starts_with("volatile-") && memory != "0" {
        return Finding::Risky(format!(
            "{words} throws inputs and locks away when memory is short; set noeviction"
        ));
    }
    Finding::Good(words)
}

fn persistence(append_only: &str, fsync: &str) -> Finding {
    match (append_only, fsync) {
        ("yes", "always") => Finding::Good("appendfsync always: what was answered is on disk".to_owned()),
        ("yes", "everysec") => {
            Finding::Good("appendfsync everysec: a machine that dies loses its last second".to_owned())
        }
        ("yes", other) => {
            Finding::Risky(format!("appendfsync {other}: the system decides when jobs reach the disk"))
        }
        _ => Finding::Risky("appendonly no: a restart of Redis loses jobs that were answered".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_throws_jobs_away_is_refused() {
        assert!(matches!(eviction("allkeys-lru", "0"), Finding::Bad(_)));
        assert!(matches!(eviction("volatile-ttl", "100"), Finding::Risky(_)));
        assert!(matches!(eviction("noeviction", "100"), Finding::Good(_)));
        assert!(matches!(persistence("no", "everysec"), Finding::Risky(_)));
        assert!(matches!(persistence("yes", "no"), Finding::Risky(_)));
        assert!(matches!(persistence("yes", "always"), Finding::Good(_)));
    }
}
