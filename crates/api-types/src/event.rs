//! What happens, as it is sent to those who watch.

use crate::worker::Worker;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Fleet {
    pub at: String,
    pub workers: Vec<Worker>,
    pub counts: Counts,
    /// There are more workers than are listed here.
    pub truncated: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Counts {
    pub total: u64,
    pub online: u64,
    pub busy: u64,
    pub degraded: u64,
    pub offline: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WorkerNews<'a> {
    pub at: String,
    pub tenant: Cow<'a, str>,
    pub worker_id: Cow<'a, str>,
    pub contract: Cow<'a, str>,
    /// As it is now; nothing if it is known no longer.
    pub worker: Option<Worker>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct JobNews<'a> {
    pub at: String,
    pub tenant: Cow<'a, str>,
    pub job_id: Cow<'a, str>,
    pub topic: Cow<'a, str>,
    pub state: Cow<'a, str>,
    /// The state it was in before, if it was in another.
    pub before: Option<Cow<'a, str>>,
    pub worker_id: Option<Cow<'a, str>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunNews<'a> {
    pub at: String,
    pub tenant: Cow<'a, str>,
    pub run_id: Cow<'a, str>,
    pub workflow_id: Cow<'a, str>,
    pub state: Cow<'a, str>,
    /// The state it was in before; nothing for a run that has just begun, and the same one if it is said again.
    pub before: Option<Cow<'a, str>>,
    /// Counts the changes of the run: who knows a later one need not look at this.
    pub revision: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WorkspaceNews<'a> {
    pub at: String,
    pub tenant: Cow<'a, str>,
    pub workspace_id: Cow<'a, str>,
    #[cfg_attr(feature = "schema", schema(value_type = Value))]
    pub payload: Cow<'a, Value>,
}
