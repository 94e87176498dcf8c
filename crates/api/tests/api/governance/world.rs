//! A real engine behind a router and a bus, with two workers, and a story that happens to it.

use super::draw::{Act, Asked, Behaviour, Story, TENANTS, TOPICS};
use super::ledger::{GRPC_PACK, Met};
use super::spy::Spy;
use reveille_bus::{Bus, LocalBus, Message, MessageOrigin, MessageSender};
use reveille_core::fleet::Beat;
use reveille_core::id::{JobId, PoolId, TenantId, WorkerId};
use reveille_core::job::{Job, State};
use reveille_core::placement::routing::Routing;
use reveille_core::policy::Policy;
use reveille_engine::{Clock, Engine, Rules, Settings};
use reveille_kernel::cordum::cordum_api_client::CordumApiClient;
use reveille_roster::Scope;
use reveille_store::suite::hooked::HookedStore;
use reveille_store::{DeadLetterQuery, JobQuery};
use reveille_test_kit::{TestHttp, create_key, idle, packet, policy, succeeded};
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::cap::{JobMetadata, JobProgress, JobRequest, JobResult, JobStatus};
use reveille_wire::cordum::SubmitJobRequest;
use reveille_wire::subject;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const WORKERS: [&str; 2] = ["w1", "w2"];

/// What was seen in one story.
pub struct Found {
    pub met: Met,
    pub broken: Vec<String>,
}

pub struct World {
    pub store: HookedStore<Spy>,
    pub bus: LocalBus,
    pub engine: Engine,
    settings: Settings,
    kept: reveille_test_kit::TestWorld,
    policies: Vec<Policy>,
    workers: Vec<Arc<Worker>>,
    /// One for each tenant, and the operator's.
    pub keys: Vec<String>,
    pub operator: String,
    packets: u64,
    redriven: Vec<JobId>,
}

struct Worker {
    name: &'static str,
    behaviour: Mutex<Behaviour>,
    is_alive: AtomicBool,
}

impl World {
    pub async fn live_through(story: &Story) -> Found {
        let mut world = Self::start(&story.policies, Settings::default()).await;
        for act in &story.acts {
            world.act(act).await;
            settle(1).await;
        }
        settle(60_000).await;
        let mut ledger = world.store.hook.ledger.lock().unwrap();
        ledger.redriven(&world.redriven);
        Found { met: ledger.met.clone(), broken: ledger.broken.clone() }
    }

    /// The first of these policies is in force.
    pub async fn start(policies: &[Value], settings: Settings) -> Self {
        let kept = reveille_test_kit::TestWorld::new();
        let now = kept.clock.clone();
        let clock: reveille_store::ClockFn = Arc::new(move || now.now());
        let spy = Spy { ledger: Mutex::default(), clock, is_blind: AtomicBool::new(false) };
        let store = HookedStore::new(kept.store.clone(), spy);
        let policies: Vec<Policy> = policies.iter().cloned().map(policy).collect();
        let bus = LocalBus::default();
        let engine = start(&kept, &store, &bus, &policies[0], settings.clone()).await;
        let mut world = Self {
            settings,
            kept,
            store,
            bus,
            engine,
            policies,
            workers: Vec::new(),
            keys: Vec::new(),
            operator: String::new(),
            packets: 0,
            redriven: Vec::new(),
        };
        for tenant in TENANTS {
            let key = world.key(tenant, &[Scope::Read, Scope::Write]).await;
            world.keys.push(key);
        }
        world.operator = world.key("ops", &[Scope::Admin]).await;
        world.save_workflows().await;
        for name in WORKERS {
            world.hire(name).await;
        }
        world.beat();
        world
    }

    async fn key(&self, tenant: &str, scopes: &[Scope]) -> String {
        create_key(&self.engine, tenant, tenant, scopes).await
    }

    fn key_of(&self, tenant: &str) -> &str {
        &self.keys[TENANTS.iter().position(|known| *known == tenant).unwrap()]
    }

    /// For each topic a workflow that does a job of it, fails, and has it undone by another.
    async fn save_workflows(&self) {
        for (key, topic) in self.keys.iter().flat_map(|key| TOPICS.map(|topic| (key, topic))) {
            let steps = json!({
                "do": {"topic": topic, "compensation": {"topic": topic}},
                "fail": {"type": "transform", "depends_on": ["do"], "input": "${steps.do.output.missing.part}"},
            });
            let id = workflow_of(topic);
            let saved =
                self.call(key, "POST", "/api/v1/workflows", json!({"id": id, "name": id, "steps": steps}));
            assert_eq!(saved.await["id"], id);
        }
    }

    async fn act(&mut self, act: &Act) {
        match act {
            Act::SubmitOverHttp(asked) => {
                let body = json!({
                    "topic": asked.topic, "context": {}, "labels": labels(asked),
                    "risk_tags": if asked.is_risky { vec!["money"] } else { vec![] },
                });
                self.call(self.key_of(asked.tenant), "POST", "/api/v1/jobs", body).await;
            }
            Act::SubmitOverGrpc(asked) => self.submit_over_grpc(asked).await,
            Act::SubmitOverBus(asked) => {
                self.packets += 1;
                let id = format!("bus-{}", self.packets);
                self.submit_packet(&id, asked).await;
            }
            Act::StartRun { tenant, topic } => {
                let path = format!("/api/v1/workflows/{}/runs", workflow_of(topic));
                self.call(self.key_of(tenant), "POST", &path, json!({"input": {}})).await;
            }
            Act::ForgeApproval(which) => self.forge_approval(*which).await,
            Act::Approve(which) => self.decide(*which, "approve").await,
            Act::Reject(which) => self.decide(*which, "reject").await,
            Act::Cancel(which) => {
                if let Some(job) = self.any_job(*which, None).await {
                    self.call(
                        &self.operator,
                        "POST",
                        &format!("/api/v1/jobs/{}/cancel", job.id()),
                        json!({}),
                    )
                    .await;
                }
            }
            Act::RetryLetter(which) => {
                let query = DeadLetterQuery { limit: 100, ..DeadLetterQuery::default() };
                let letters = self.store.inner.dead_letters(&query).await.unwrap().items;
                if !letters.is_empty() {
                    let id = &letters[which % letters.len()].job_id;
                    self.call(&self.operator, "POST", &format!("/api/v1/dlq/{id}/retry"), json!({})).await;
                }
            }
            Act::RedriveAll => {
                let reply = self.call(&self.operator, "POST", "/api/v1/dlq/retry", json!({"limit": 5})).await;
                let made = reply["retried"].as_array().into_iter().flatten();
                self.redriven.extend(made.map(|job| JobId::known(job["job_id"].as_str().unwrap())));
            }
            Act::Remediate(which) => {
                let state = if which % 2 == 0 { State::Denied } else { State::ApprovalRequired };
                if let Some(job) = self.any_job(*which, Some(state)).await {
                    let path = format!("/api/v1/jobs/{}/remediate", job.id());
                    self.call(&self.operator, "POST", &path, json!({"remediation_id": "way-out"})).await;
                }
            }
            Act::Reload(which) => self.reload(*which),
            Act::Behave(which, behaviour) => self.behave(*which, *behaviour),
            Act::WorkerDies(which) => {
                let worker = self.workers[which % WORKERS.len()].clone();
                worker.is_alive.store(false, Ordering::Relaxed);
                for _ in 0..8 {
                    settle(4_500).await;
                    self.beat();
                }
                worker.is_alive.store(true, Ordering::Relaxed);
                self.beat();
            }
            Act::FalseReport(which) => self.false_report(*which).await,
            Act::Restart => self.restart().await,
            Act::Wait(ms) => {
                settle(*ms).await;
                self.beat();
            }
        }
    }

    async fn submit_over_grpc(&self, asked: &Asked) {
        let labels = labels(asked).as_object().unwrap().clone();
        let labels = labels.into_iter().map(|(key, value)| (key, value.as_str().unwrap().to_owned()));
        let mut job = tonic::Request::new(SubmitJobRequest {
            prompt: "over gRPC".to_owned(),
            topic: asked.topic.to_owned(),
            labels: labels.collect(),
            risk_tags: if asked.is_risky { vec!["money".to_owned()] } else { Vec::new() },
            pack_id: GRPC_PACK.to_owned(),
            ..SubmitJobRequest::default()
        });
        job.metadata_mut().insert("x-api-key", self.key_of(asked.tenant).parse().unwrap());
        // Policy may deny it, which is an error to whoever asked.
        let _ = CordumApiClient::new(reveille_api::grpc::services(self.engine.clone())).submit_job(job).await;
    }

    async fn submit_packet(&self, id: &str, asked: &Asked) {
        let labels = labels(asked).as_object().unwrap().clone();
        let labels = labels.into_iter().map(|(key, value)| (key, value.as_str().unwrap().to_owned()));
        let risk_tags = if asked.is_risky { vec!["money".to_owned()] } else { Vec::new() };
        let job = JobRequest {
            job_id: id.to_owned(),
            topic: asked.topic.to_owned(),
            labels: labels.collect(),
            meta: Some(JobMetadata { risk_tags, ..JobMetadata::default() }),
            ..JobRequest::default()
        };
        self.publish(asked.tenant, subject::JOB_SUBMIT, Payload::JobRequest(job)).await;
    }

    async fn publish(&self, tenant: &str, to: &str, payload: Payload) {
        let sender = match &payload {
            Payload::JobResult(result) => result.worker_id.clone(),
            _ => "client".to_owned(),
        };
        let origin = MessageOrigin::Client(MessageSender { tenant: TenantId::known(tenant), key: None });
        let packet = packet(&sender, payload);
        self.bus.publish(Message { origin, ..Message::new(to, packet) }).await.unwrap();
    }

    /// As the reference's scheduler would take it: the same job, and a label that says it is approved.
    async fn forge_approval(&self, which: usize) {
        let Some(job) = self.any_job(which, Some(State::ApprovalRequired)).await else { return };
        let job = &job.request;
        let tenant = TENANTS.into_iter().find(|tenant| *tenant == job.tenant.as_str()).unwrap();
        let topic = TOPICS.into_iter().find(|topic| *topic == job.topic.as_str()).unwrap();
        let asked = Asked {
            tenant,
            topic,
            env: None,
            is_risky: false,
            claims_approval: true,
            claims_compensation: false,
        };
        self.submit_packet(job.id.as_str(), &asked).await;
    }

    async fn decide(&self, which: usize, verb: &str) {
        let Some(job) = self.any_job(which, Some(State::ApprovalRequired)).await else { return };
        let path = format!("/api/v1/approvals/{}/{verb}", job.id());
        self.call(&self.operator, "POST", &path, json!({})).await;
    }

    fn reload(&self, which: usize) {
        let policy = &self.policies[which % self.policies.len()];
        self.store.hook.ledger.lock().unwrap().put_in_force(policy, self.kept.clock.now());
        self.engine.use_rules(rules(policy));
    }

    /// Success and progress of a job that the speaker was never given.
    async fn false_report(&self, which: usize) {
        let Some(job) = self.any_job(which, None).await else { return };
        let (job_id, worker_id) = (job.id().to_string(), "stranger".to_owned());
        let status = JobStatus::Succeeded as i32;
        let result = JobResult { job_id: job_id.clone(), worker_id, status, ..JobResult::default() };
        self.publish(TENANTS[0], subject::JOB_RESULT, Payload::JobResult(result)).await;
        let progress = JobProgress { job_id, percent: 50, ..JobProgress::default() };
        self.publish(TENANTS[0], subject::JOB_PROGRESS, Payload::JobProgress(progress)).await;
    }

    /// As kill -9 would; the next life has the policy that was in force.
    pub async fn restart(&mut self) {
        self.engine.kill();
        settle(10).await;
        let policy = {
            let mut ledger = self.store.hook.ledger.lock().unwrap();
            ledger.restarted();
            ledger.latest()
        };
        self.engine = start(&self.kept, &self.store, &self.bus, &policy, self.settings.clone()).await;
        self.beat();
    }

    async fn hire(&mut self, name: &'static str) {
        let (behaviour, is_alive) = (Mutex::new(Behaviour::Succeeds), AtomicBool::new(true));
        let worker = Arc::new(Worker { name, behaviour, is_alive });
        self.workers.push(worker.clone());
        let store = self.store.clone();
        let work = move |job| work(worker.clone(), store.clone(), job);
        reveille_test_kit::TestWorker::listen(&self.bus, name).await.work(work);
    }

    pub fn behave(&self, which: usize, behaviour: Behaviour) {
        *self.workers[which % WORKERS.len()].behaviour.lock().unwrap() = behaviour;
    }

    pub async fn job(&self, id: &str) -> Arc<Job> {
        self.store.inner.job(&JobId::known(id)).await.unwrap().unwrap()
    }

    pub fn beat(&self) {
        let beat = Beat { pool: Some(PoolId::known("default")), load: idle(10), ..Beat::default() };
        for worker in self.workers.iter().filter(|worker| worker.is_alive.load(Ordering::Relaxed)) {
            self.engine.fleet().beat(&WorkerId::known(worker.name), &TenantId::known("default"), &beat);
        }
    }

    async fn any_job(&self, which: usize, state: Option<State>) -> Option<Arc<Job>> {
        let query = JobQuery { state, limit: 100, ..JobQuery::default() };
        let jobs = self.store.inner.jobs(&query).await.unwrap().items;
        if jobs.is_empty() { None } else { Some(jobs[which % jobs.len()].clone()) }
    }

    pub async fn call(&self, key: &str, method: &str, path: &str, body: Value) -> Value {
        let http = TestHttp::new(reveille_api::router(self.engine.clone()));
        http.call(key, method, path, &body.to_string()).await.1
    }
}

/// Does with a job what it was told to do.
async fn work(worker: Arc<Worker>, store: HookedStore<Spy>, job: JobRequest) -> Option<JobResult> {
    let stored = store.inner.job(&JobId::known(job.job_id.as_str())).await.unwrap();
    let now = (store.hook.clock)();
    store.hook.ledger.lock().unwrap().delivered(&job.job_id, stored.as_deref(), now);
    let status = match *worker.behaviour.lock().unwrap() {
        _ if !worker.is_alive.load(Ordering::Relaxed) => return None,
        Behaviour::Forgets => return None,
        Behaviour::Succeeds => JobStatus::Succeeded,
        Behaviour::Fails => JobStatus::FailedFatal,
        Behaviour::AsksForAnotherTry => JobStatus::FailedRetryable,
    };
    let result_ptr = format!("redis://res:{}", job.job_id);
    Some(JobResult { result_ptr, status: status as i32, ..succeeded(&job.job_id) })
}

async fn start(
    kept: &reveille_test_kit::TestWorld,
    store: &HookedStore<Spy>,
    bus: &LocalBus,
    policy: &Policy,
    settings: Settings,
) -> Engine {
    let now = kept.clock.now();
    store.hook.ledger.lock().unwrap().put_in_force(policy, now);
    let engine = kept.engine().store(Arc::new(store.clone())).local_bus(bus).seed(now.0 as u64);
    engine.rules(rules(policy)).settings(settings).start().await.engine
}

fn workflow_of(topic: &str) -> &str {
    topic.trim_start_matches("job.")
}

fn rules(policy: &Policy) -> Rules {
    let topics = TOPICS.map(|topic| (topic, vec!["default"]));
    let routing = Arc::new(Routing::mapped(topics, [("default", vec![])]));
    Rules { policy: policy.clone(), routing, ..Rules::default() }
}

fn labels(asked: &Asked) -> Value {
    let mut labels = json!({});
    if let Some(env) = asked.env {
        labels["env"] = json!(env);
    }
    if asked.claims_approval {
        labels["approval_granted"] = json!("true");
    }
    if asked.claims_compensation {
        labels["saga_compensation"] = json!("true");
        labels["is_compensation"] = json!("true");
    }
    labels
}

/// Lets time pass, and with it everything that is due.
pub async fn settle(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}
