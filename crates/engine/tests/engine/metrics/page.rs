//! The page of a real engine after a few jobs, and what it says.

use bytes::Bytes;
use reveille_a2a::{AddressRules, HttpA2aClient};
use reveille_bus::{Bus, LocalBus, Message};
use reveille_core::fleet::{Beat, Load};
use reveille_core::id::{JobId, TenantId, Topic, WorkerId};
use reveille_core::job::State;
use reveille_core::policy::{Document, Policy};
use reveille_core::request::Request;
use reveille_core::time::Millis;
use reveille_engine::{Clock, Engine, Parts, Rules, SeededRng, Settings, Submission, Submitter};
use reveille_roster::MemoryRoster;
use reveille_store::{BlobKey, Blobs, MemoryStore, PutMode};
use reveille_traces::Nowhere;
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::cap::{JobResult, JobStatus};
use reveille_wire::convert::Introduction;
use reveille_wire::{packet, subject};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
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

struct PausedClock(tokio::time::Instant);

impl Clock for PausedClock {
    fn now(&self) -> Millis {
        Millis(1_000_000_000) + self.0.elapsed().as_millis() as i64
    }
}

/// The page after one job was denied and the results of two were looked at: one before it ended, one afterwards.
pub async fn scraped() -> String {
    let clock: Arc<dyn Clock> = Arc::new(PausedClock(tokio::time::Instant::now()));
    let (bus, now) = (LocalBus::default(), clock.clone());
    let store = MemoryStore::new(Arc::new(move || now.now()));
    let engine = Engine::start(Parts {
        store: Arc::new(store.clone()),
        roster: Arc::new(MemoryRoster::new()),
        workflows: Arc::new(reveille_store::workflows::MemoryWorkflows::default()),
        bus: Arc::new(bus.clone()),
        courier: Arc::new(HttpA2aClient::new(AddressRules::default())),
        kernel: None,
        traces: Arc::new(Nowhere),
        clock: clock.clone(),
        rng: Arc::new(SeededRng::new(1)),
        rules: Rules { policy: policy(), ..Rules::default() },
        settings: Settings::default(),
    })
    .await
    .unwrap();
    let _jobs = bus.subscribe("worker.w.jobs", None).await.unwrap();
    employ(&engine);
    for (id, topic, output) in
        [("a", "job.plain", "fine"), ("b", "job.echo", "a secret"), ("c", "job.no", "")]
    {
        let (request, context) = (Request::plain(id, topic), Some(Bytes::from_static(b"{}")));
        engine.jobs().submit(Submission { request, context, submitter: Submitter::Listens }).await.unwrap();
        let (key, until) = (BlobKey::result_of(&JobId::known(id)), clock.now() + 60_000);
        store.put_blob(key, Bytes::from_static(output.as_bytes()), until, PutMode::Always).await.unwrap();
        bus.publish(Message::new(subject::JOB_RESULT, report(id))).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    for (id, ended) in [("a", State::Succeeded), ("b", State::OutputQuarantined), ("c", State::Denied)] {
        assert_eq!(engine.jobs().job(&JobId::known(id)).await.unwrap().unwrap().state(), ended, "{id}");
    }
    engine.metrics_page()
}

fn policy() -> Policy {
    let document = json!({
        "rules": [
            { "id": "no", "match": { "topics": ["job.no"] }, "decision": "deny" },
            { "id": "rest", "match": { "topics": ["job.*"] }, "decision": "allow" },
        ],
        "output_policy": { "enabled": true },
        "output_rules": [{ "id": "leak", "match": { "topics": ["job.echo"], "keywords": ["secret"] }, "decision": "quarantine" }],
    });
    let document: Document = serde_json::from_value(document).unwrap();
    Policy::new(document, b"a policy").unwrap()
}

fn employ(engine: &Engine) {
    let (worker, tenant) = (WorkerId::known("w"), TenantId::known("default"));
    let topics = vec![Topic::known("job.echo"), Topic::known("job.plain")];
    engine.fleet().introduce(&tenant, Introduction { worker: worker.clone(), topics });
    let load = Load { max_parallel_jobs: 4, ..Load::default() };
    engine.fleet().beat(&worker, &tenant, &Beat { load, ..Beat::default() });
}

fn report(id: &str) -> Bytes {
    let result = JobResult {
        job_id: id.to_owned(),
        worker_id: "w".to_owned(),
        status: JobStatus::Succeeded.into(),
        result_ptr: format!("redis://res:{id}"),
        ..JobResult::default()
    };
    packet::encode(&packet::envelope("w", "trace", Millis(1), Payload::JobResult(result)))
}
