//! What happens, as it is sent to those who watch.

use super::worker::Worker;
use reveille_engine::Count;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use utoipa::{IntoParams, ToSchema};

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct EventQuery {
    /// Of worker, job, run and workspace, with commas between; all unless told.
    pub kinds: Option<String>,
    /// Only what is about this worker.
    pub worker: Option<String>,
    /// Only what is about this job.
    pub job: Option<String>,
    /// Only members of this contract: cap, voicegateway or molecule.
    pub contract: Option<String>,
    /// Operators only, or one's own.
    pub tenant: Option<String>,
    /// Reads on after this event, like the header Last-Event-ID.
    pub after: Option<String>,
}

/// The fleet as it is, with which a reader starts.
#[derive(Serialize, ToSchema)]
pub struct Fleet {
    pub at: String,
    pub workers: Vec<Worker>,
    pub counts: Counts,
    /// There are more workers than are listed here.
    pub truncated: bool,
}

#[derive(Serialize, ToSchema)]
pub struct Counts {
    pub total: u64,
    pub online: u64,
    pub busy: u64,
    pub degraded: u64,
    pub offline: u64,
}

impl Counts {
    pub fn of(count: Count) -> Self {
        Self {
            total: count.total,
            online: count.total - count.offline,
            busy: count.busy,
            degraded: count.degraded,
            offline: count.offline,
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct WorkerNews<'a> {
    pub at: String,
    pub tenant: &'a str,
    pub worker_id: &'a str,
    pub contract: &'static str,
    /// As it is now; nothing if it is known no longer.
    pub worker: Option<Worker>,
}

#[derive(Serialize, ToSchema)]
pub struct JobNews<'a> {
    pub at: String,
    pub tenant: &'a str,
    pub job_id: &'a str,
    pub topic: &'a str,
    pub state: &'static str,
    /// The state it was in before, if it was in another.
    pub before: Option<&'static str>,
    pub worker_id: Option<&'a str>,
}

#[derive(Serialize, ToSchema)]
pub struct RunNews<'a> {
    pub at: String,
    pub tenant: &'a str,
    pub run_id: &'a str,
    pub workflow_id: &'a str,
    pub state: &'static str,
    /// The state it was in before; nothing for a run that has just begun, and the same one if it is said again.
    pub before: Option<&'static str>,
    /// Counts the changes of the run: who knows a later one need not look at this.
    pub revision: u64,
}

#[derive(Serialize, ToSchema)]
pub struct WorkspaceNews<'a> {
    pub at: String,
    pub tenant: &'a str,
    pub workspace_id: &'a str,
    #[schema(value_type = Value)]
    pub payload: Cow<'a, Value>,
}
