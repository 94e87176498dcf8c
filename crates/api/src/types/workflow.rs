//! Workflows and runs over HTTP, in the reference's shapes.

use reveille_core::flow::{Node, NodeKey, Run, RunHead, RunOrigin, TimelineEntry};
use reveille_core::time::Millis;
use reveille_store::workflows::Saved;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

#[derive(Serialize, ToSchema)]
pub struct SavedReply {
    pub id: String,
    /// Counts the versions of this workflow.
    pub version: u32,
}

/// A workflow as it was saved: its document, and which version of it this is.
#[derive(Serialize, ToSchema)]
pub struct WorkflowDetail {
    /// The fields of the document, `version` being the one the server counts.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    pub document: Json,
    pub saved_at: String,
    pub saved_by: String,
}

impl WorkflowDetail {
    pub fn of(saved: &Saved) -> Self {
        let mut document = serde_json::to_value(&saved.document).unwrap_or_default();
        document["version"] = saved.version.into();
        document["org_id"] = saved.tenant.as_str().into();
        Self { document, saved_at: saved.saved_at.rfc3339(), saved_by: saved.saved_by.clone() }
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct WorkflowQuery {
    /// 50 unless told, at most 500.
    pub limit: Option<String>,
    /// The id that the page before ended with.
    pub after: Option<String>,
    /// Operators only.
    pub tenant: Option<String>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct VersionQuery {
    /// The last one unless told.
    pub version: Option<u32>,
    /// Operators only.
    pub tenant: Option<String>,
}

#[derive(Deserialize, Default, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StartBody {
    #[schema(value_type = Value)]
    pub input: Option<Json>,
    pub idempotency_key: Option<String>,
}

#[derive(Deserialize, IntoParams, Default)]
#[into_params(parameter_in = Query)]
pub struct StartQuery {
    pub idempotency_key: Option<String>,
    pub org_id: Option<String>,
    pub team_id: Option<String>,
    pub dry_run: Option<bool>,
}

#[derive(Serialize, ToSchema)]
pub struct StartedReply {
    pub run_id: String,
    /// Whether the same idempotency key had started it before.
    pub existing: bool,
}

#[derive(Deserialize, IntoParams, Default)]
#[into_params(parameter_in = Query)]
pub struct RunListQuery {
    /// 50 unless told, at most 500.
    pub limit: Option<String>,
    /// The `next_cursor` of the page before.
    pub cursor: Option<String>,
    pub status: Option<String>,
    pub workflow_id: Option<String>,
    /// Operators only.
    pub org_id: Option<String>,
    pub team_id: Option<String>,
    /// Microseconds since the epoch.
    pub updated_after: Option<i64>,
    pub updated_before: Option<i64>,
}

#[derive(Serialize, ToSchema)]
pub struct RunPage {
    pub items: Vec<RunRecord>,
    /// Nothing on the last page.
    pub next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct RunRecord {
    pub id: String,
    pub workflow_id: String,
    pub workflow_version: u32,
    pub org_id: String,
    pub status: String,
    pub created_at: String,
    pub updated_at: String,
    pub started_at: String,
    pub completed_at: Option<String>,
    pub error: String,
    /// `started`, `step`, `rerun`, `rollback`, or `client`: it keeps what undoes the jobs of a workflow that a
    /// client drives itself.
    pub origin: &'static str,
    /// The run that this one is a step of, repeats or undoes.
    pub parent_run_id: Option<String>,
    /// Steps under way, and steps that wait.
    pub running: u32,
    pub waiting: u32,
    /// How much of it can be undone.
    pub compensations: u32,
}

impl RunRecord {
    pub fn of(head: &RunHead) -> Self {
        let (origin, parent) = match &head.origin {
            RunOrigin::Started => ("started", None),
            RunOrigin::Step { run, .. } => ("step", Some(run)),
            RunOrigin::Rerun { of, .. } => ("rerun", Some(of)),
            RunOrigin::Rollback { of } => ("rollback", Some(of)),
            RunOrigin::Client => ("client", None),
        };
        Self {
            id: head.id.to_string(),
            workflow_id: head.workflow.to_string(),
            workflow_version: head.version,
            org_id: head.tenant.to_string(),
            status: head.state.to_string(),
            created_at: head.created_at.rfc3339(),
            updated_at: head.updated_at.rfc3339(),
            started_at: head.created_at.rfc3339(),
            completed_at: head.ended_at.map(Millis::rfc3339),
            error: head.error.clone(),
            origin,
            parent_run_id: parent.map(ToString::to_string),
            running: head.running,
            waiting: head.waiting,
            compensations: head.compensations,
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct RunDetail {
    #[serde(flatten)]
    pub run: RunRecord,
    #[schema(value_type = Value)]
    pub input: Json,
    #[schema(value_type = Value)]
    pub output: Option<Json>,
    /// The run that undoes this one, if there is one; the last, if there are several.
    pub rollback_run_id: Option<String>,
    /// By the step's id; rounds as `step[0]`.
    pub steps: BTreeMap<String, StepRecord>,
    #[schema(value_type = Object)]
    pub context: BTreeMap<String, Json>,
}

#[derive(Serialize, ToSchema)]
pub struct StepRecord {
    pub status: String,
    pub attempt: u32,
    pub since: String,
    pub started_at: Option<String>,
    pub job_id: Option<String>,
    /// When time alone moves it on.
    pub due_at: Option<String>,
    /// Why it is where it is.
    pub message: String,
    #[schema(value_type = Value)]
    pub output: Option<Json>,
    /// Of a step that goes through a list: how many rounds there are, were begun, succeeded and failed.
    pub rounds: Option<Rounds>,
}

#[derive(Serialize, ToSchema)]
pub struct Rounds {
    pub count: u32,
    pub begun: u32,
    pub succeeded: u32,
    pub failed: u32,
}

impl StepRecord {
    fn of(node: &Node) -> Self {
        Self {
            status: node.state.to_string(),
            attempt: node.attempt,
            since: node.since.rfc3339(),
            started_at: node.started_at.map(Millis::rfc3339),
            job_id: node.job().map(ToString::to_string),
            due_at: node.due.map(|due| due.at().rfc3339()),
            message: node.words.clone(),
            output: node.output.as_deref().cloned(),
            rounds: node.fan.map(|fan| Rounds {
                count: fan.count,
                begun: fan.begun,
                succeeded: fan.succeeded,
                failed: fan.failed,
            }),
        }
    }
}

impl RunDetail {
    pub fn of(run: &Run, rollback_run_id: Option<String>) -> Self {
        let step = |(key, node): (&NodeKey, &Node)| (key.to_string(), StepRecord::of(node));
        Self {
            run: RunRecord::of(&run.head),
            input: (*run.input).clone(),
            output: run.output.as_deref().cloned(),
            rollback_run_id,
            steps: run.nodes.iter().map(step).collect(),
            context: run.context.iter().map(|(name, value)| (name.clone(), (**value).clone())).collect(),
        }
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct TimelineQuery {
    /// 50 unless told, at most 500.
    pub limit: Option<String>,
    /// The number of the last line that is known.
    pub after: Option<u64>,
}

#[derive(Serialize, ToSchema)]
pub struct TimelineLine {
    /// Counts the lines of this run, from one.
    pub n: u64,
    pub time: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub run_id: String,
    pub workflow_id: String,
    pub step_id: Option<String>,
    pub job_id: Option<String>,
    pub status: String,
    pub message: String,
}

impl TimelineLine {
    pub fn of(head: &RunHead, n: u64, line: &TimelineEntry) -> Self {
        Self {
            n,
            time: line.at.rfc3339(),
            kind: line.kind.to_string(),
            run_id: head.id.to_string(),
            workflow_id: head.workflow.to_string(),
            step_id: line.node.as_ref().map(ToString::to_string),
            job_id: line.job.as_ref().map(ToString::to_string),
            status: line.status.clone(),
            message: line.message.clone(),
        }
    }
}

#[derive(Deserialize, Default, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RerunBody {
    /// The step to begin with; all of it unless told.
    pub from_step: Option<String>,
    pub dry_run: Option<bool>,
}

#[derive(Deserialize, Default, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CancelBody {
    pub reason: String,
}
