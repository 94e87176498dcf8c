//! The page of a real engine after a few jobs, and what it says.

use bytes::Bytes;
use reveille_core::id::JobId;
use reveille_core::job::State;
use reveille_core::request::Request;
use reveille_engine::Clock;
use reveille_store::{BlobKey, Blobs, PutMode};
use reveille_test_kit::{TestWorld, state, submit, succeeded};
use reveille_wire::cap::JobResult;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const PREFIX: &str = "cordum_scheduler_";

/// A metric as the page tells of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told {
    pub kind: String,
    pub help: String,
    pub labels: BTreeSet<String>,
    /// The names of its series, as a query must spell them.
    pub series: BTreeSet<String>,
}

/// Every metric by its name, without the prefix.
pub fn read(page: &str) -> BTreeMap<String, Told> {
    let mut metrics = BTreeMap::<String, Told>::new();
    let mut current = String::new();
    for line in page.lines().filter(|line| *line != "# EOF") {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words[..2] {
            ["#", "HELP"] => {
                words[2].strip_prefix(PREFIX).unwrap().clone_into(&mut current);
                let help = words[3].trim_end_matches('.').to_owned();
                metrics.entry(current.clone()).or_default().help = help;
            }
            ["#", "TYPE"] => words[3].clone_into(&mut metrics.get_mut(&current).unwrap().kind),
            _ => {
                let (series, labels) = line.split_once(['{', ' ']).unwrap();
                let told = metrics.get_mut(&current).unwrap();
                told.series.insert(series.to_owned());
                if line.starts_with(&format!("{series}{{")) {
                    let labels = labels.split_once('}').unwrap().0.split(',');
                    let names = labels.map(|label| label.split_once('=').unwrap().0.to_owned());
                    told.labels.extend(names.filter(|name| name != "le"));
                }
            }
        }
    }
    metrics
}

/// The page after one job was denied and the results of two were looked at: one before it ended, one afterwards.
pub async fn scraped() -> String {
    let world = TestWorld::new();
    let engine = world.engine().policy_of(policy()).start().await;
    let worker = engine.hire("w", &["job.echo", "job.plain"], 4).await;
    for (id, topic, output) in
        [("a", "job.plain", "fine"), ("b", "job.echo", "a secret"), ("c", "job.no", "")]
    {
        submit(&engine, Request::plain(id, topic)).await.unwrap();
        let (key, until) = (BlobKey::result_of(&JobId::known(id)), world.clock.now() + 60_000);
        let (output, result_ptr) = (Bytes::from_static(output.as_bytes()), key.pointer());
        world.store.put_blob(key, output, until, PutMode::Always).await.unwrap();
        worker.report(JobResult { result_ptr, ..succeeded(id) }).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    for (id, ended) in [("a", State::Succeeded), ("b", State::OutputQuarantined), ("c", State::Denied)] {
        assert_eq!(state(&engine, id).await, ended, "{id}");
    }
    engine.metrics_page()
}

fn policy() -> Value {
    json!({
        "rules": [
            { "id": "no", "match": { "topics": ["job.no"] }, "decision": "deny" },
            { "id": "rest", "match": { "topics": ["job.*"] }, "decision": "allow" },
        ],
        "output_policy": { "enabled": true },
        "output_rules": [{ "id": "leak", "match": { "topics": ["job.echo"], "keywords": ["secret"] }, "decision": "quarantine" }],
    })
}
