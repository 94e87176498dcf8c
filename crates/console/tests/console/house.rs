//! A server with one of everything that a page can show, all of tenant `acme`.

use crate::browser::Browser;
use bytes::Bytes;
use reveille_core::finding::Finding;
use reveille_core::fleet::Beat;
use reveille_core::id::{JobId, TenantId, WorkerId};
use reveille_core::job::State;
use reveille_core::time::Millis;
use reveille_engine::Rules;
use reveille_roster::Scope;
use reveille_store::{BlobKey, Blobs, PutMode};
use reveille_test_kit::{
    EngineBuilder, Reporter, TestHttp, TestServer, TestWorker, TestWorld, create_key, idle, introduce, rules,
    succeeded, wait_for_state,
};
use reveille_wire::cap::{JobResult, JobStatus};
use serde_json::{Value, json};

/// What somebody could write wherever text is taken.
pub const EVIL: &str = "<script>alert(1)</script>";
/// The same as text.
pub const ESCAPED: &str = "&lt;script&gt;alert(1)&lt;/script&gt;";
/// What the scanners know for a secret.
pub const SECRET: &str = "AKIAIOSFODNN7EXAMPLE";
/// What stands under a name that is known for secrets.
pub const PASSWORD: &str = "hunter2";
pub const WORKER: &str = "night-owl";
pub const USER: &[Scope] = &[Scope::Read, Scope::Write];

pub struct House {
    pub world: TestWorld,
    pub server: TestServer,
    pub http: TestHttp,
    /// Jobs, each in the state that it is named after.
    pub waiting: String,
    pub asked: String,
    pub held: String,
    pub failed: String,
    pub denied: String,
    pub run: String,
}

impl House {
    pub async fn full() -> Self {
        Self::over(|_, engine| engine).await
    }

    /// The same, over an engine that is made otherwise.
    pub async fn over(made: impl FnOnce(&TestWorld, EngineBuilder) -> EngineBuilder) -> Self {
        let world = TestWorld::new();
        let server = made(&world, world.engine().rules(policy())).start().await;
        let findings = vec![("Memory".to_owned(), vec![Finding::Risky("It forgets everything.".to_owned())])];
        let console = reveille_console::router(server.engine.clone(), findings);
        let http = TestHttp::new(reveille_api::router(server.engine.clone()).merge(console));
        let key = create_key(&server, "bob", "acme", USER).await;
        let worker = employ(&server).await;
        let labels = json!({"note": EVIL});
        let input = json!({"password": PASSWORD, "prompt": EVIL, "note": SECRET});
        let job = async |topic: &str| {
            let body = json!({"topic": topic, "context": input, "labels": labels}).to_string();
            // Policy may deny it, which is an error to whoever asked.
            let reply = http.call(&key, "POST", "/api/v1/jobs", &body).await.1;
            let id = reply["job_id"].as_str().or(reply["details"]["job_id"].as_str());
            id.unwrap_or_else(|| panic!("{reply}")).to_owned()
        };
        let (waiting, asked, denied) = (job("job.nobody").await, job("job.ask").await, job("job.no").await);
        let held = job("job.leak").await;
        wait_for_state(&server, &held, State::Running).await;
        finish_leaking(&world, &worker, &held).await;
        wait_for_state(&server, &held, State::OutputQuarantined).await;
        let failed = job("job.echo").await;
        wait_for_state(&server, &failed, State::Running).await;
        let (status, error_message) = (JobStatus::FailedFatal as i32, EVIL.to_owned());
        worker.report(JobResult { status, error_message, ..succeeded(&failed) }).await;
        wait_for_state(&server, &failed, State::Failed).await;
        let run = start_run(&http, &key, &input).await;
        Self { world, server, http, waiting, asked, held, failed, denied, run }
    }

    pub async fn browser(&self, name: &str, tenant: &str, scopes: &[Scope]) -> Browser {
        let key = create_key(&self.server, name, tenant, scopes).await;
        Browser::sign_in(self.http.clone(), &key).await
    }

    /// Somebody of the same tenant who asked for none of the jobs.
    pub async fn ann(&self) -> Browser {
        self.browser("ann", "acme", USER).await
    }

    pub async fn operator(&self) -> Browser {
        self.browser("root", "ops", &[Scope::Admin, Scope::Read, Scope::Write]).await
    }

    pub async fn state(&self, job: &str) -> State {
        reveille_test_kit::state(&self.server, job).await
    }
}

fn policy() -> Rules {
    rules(json!({
        "rules": [
            {"id": "ask", "match": {"topics": ["job.ask"]}, "decision": "require_approval", "reason": format!("it costs money {EVIL}")},
            {"id": "no", "match": {"topics": ["job.no"]}, "decision": "deny", "reason": format!("hands off {EVIL}")},
            {"id": "rest", "decision": "allow"},
        ],
        "output_policy": {"enabled": true, "hold": true},
        "output_rules": [{"id": "leak", "match": {"topics": ["job.leak"], "scanners": ["secret"]},
            "decision": "quarantine", "reason": "it says too much"}],
    }))
}

async fn employ(server: &TestServer) -> Reporter {
    let tenant = TenantId::known("acme");
    let worker = TestWorker::listen(&server.bus, WORKER).await;
    introduce(server, &tenant, WORKER, &["job.echo", "job.leak"]);
    let labels = [("colour".to_owned(), EVIL.to_owned())].into();
    let beat = Beat { agent_name: format!("owl {EVIL}"), labels, load: idle(4), ..Beat::default() };
    server.fleet().beat(&WorkerId::known(WORKER), &tenant, &beat);
    let reporter = worker.reporter();
    // What it is given it keeps until the test says what became of it.
    worker.work(|_| async { None });
    reporter
}

async fn finish_leaking(world: &TestWorld, worker: &Reporter, id: &str) {
    let key = BlobKey::result_of(&JobId::known(id));
    let content = Bytes::from(json!({"note": format!("use {SECRET} today {EVIL}")}).to_string());
    world.store.put_blob(key.clone(), content, Millis(i64::MAX), PutMode::Always).await.unwrap();
    worker.report(JobResult { result_ptr: key.pointer(), ..succeeded(id) }).await;
}

/// A run of workflow `story`, which waits.
async fn start_run(http: &TestHttp, key: &str, input: &Value) -> String {
    let steps = json!({"wait": {"type": "delay", "delay_sec": 600}});
    let body = json!({"id": "story", "name": format!("A story {EVIL}"), "steps": steps}).to_string();
    assert_eq!(http.call(key, "POST", "/api/v1/workflows", &body).await.0, 201);
    let body = json!({"input": input}).to_string();
    let (_, reply) = http.call(key, "POST", "/api/v1/workflows/story/runs", &body).await;
    reply["run_id"].as_str().unwrap_or_else(|| panic!("{reply}")).to_owned()
}
