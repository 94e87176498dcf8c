//! The two loops against a platform that says what the test tells it to.

mod beats;
mod results;

use std::fs;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::*;
use crate::beat_schedule::Pace;
use crate::http::stub::{Stub, StubReply, StubRequest};

const REGISTER: &str = "POST /registry/register";
const BEAT: &str = "POST /registry/heartbeat";
const LIST: &str = "GET /workspaces/w-1/delegations";
const WAKE: &str = "POST /workspaces/w-1/a2a";
const NOTIFY: &str = "POST /workspaces/w-1/notify";

/// So long that what happens before its time is seen.
const NEVER: Duration = Duration::from_hours(1);
const QUICK: WorkspaceSettings = WorkspaceSettings {
    pace: Pace {
        beat_every: Duration::from_millis(40),
        beat_gap_min: Duration::from_millis(10),
        pause_min: Duration::from_millis(10),
        pause_max: Duration::from_millis(40),
    },
    call_wait_max: Duration::from_millis(500),
    wake_wait_max: Duration::from_secs(5),
    wake_every: Duration::from_millis(300),
};

type Running = JoinHandle<Result<(), Error>>;

struct Home {
    folder: TempDir,
}

impl Home {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn start(&self, stub: &Stub, settings: WorkspaceSettings) -> (WorkspaceHandle, Running) {
        let enrolment = Enrolment {
            platform_url: stub.url(),
            id: "w-1".to_owned(),
            url: "http://agent:8000".to_owned(),
            agent_card: json!({ "name": "n", "skills": ["x"] }),
        };
        let workspace =
            Workspace::new(enrolment).configs_dir(self.folder.path()).results_file(self.results_file());
        let workspace = Workspace { settings, ..workspace };
        let handle = workspace.handle();
        (handle, tokio::spawn(workspace.run(std::future::pending())))
    }

    fn results_file(&self) -> PathBuf {
        self.folder.path().join("results.jsonl")
    }

    fn results(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.results_file()).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// What a platform says on an ordinary day.
fn ordinary(asked: &StubRequest, listed: &Value) -> StubReply {
    let body = match asked.what.as_str() {
        REGISTER if asked.bearer.is_none() => json!({ "status": "registered", "auth_token": "t-1" }),
        REGISTER => json!({ "status": "registered" }),
        LIST => listed.clone(),
        _ => json!({ "status": "ok" }),
    };
    StubReply::new(200, body)
}

fn ended(id: &str) -> Value {
    json!({ "delegation_id": id, "source_id": "w-1", "target_id": "w-2", "status": "completed", "summary": id })
}

/// A listing that the test adds to while the platform runs.
#[derive(Clone, Default)]
struct Listing(Arc<Mutex<Vec<Value>>>);

impl Listing {
    fn add(&self, id: &str) {
        self.0.lock().unwrap().insert(0, ended(id));
    }

    fn rows(&self) -> Value {
        Value::Array(self.0.lock().unwrap().clone())
    }
}
