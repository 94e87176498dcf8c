//! Workflows and their runs.

use reveille_api_types::run::{Rounds, RunDetail, RunRecord, StepRecord, TimelineLine};
use reveille_api_types::workflow::WorkflowDetail;
use reveille_core::flow::{Node, NodeKey, Run, RunHead, RunOrigin, TimelineEntry};
use reveille_core::time::Millis;
use reveille_store::workflows::Saved;

pub fn workflow_detail(saved: &Saved) -> WorkflowDetail {
    let mut document = serde_json::to_value(&saved.document).unwrap_or_default();
    document["version"] = saved.version.into();
    document["org_id"] = saved.tenant.as_str().into();
    WorkflowDetail { document, saved_at: saved.saved_at.rfc3339(), saved_by: saved.saved_by.clone() }
}

pub fn run_record(head: &RunHead) -> RunRecord {
    let (origin, parent) = match &head.origin {
        RunOrigin::Started => ("started", None),
        RunOrigin::Step { run, .. } => ("step", Some(run)),
        RunOrigin::Rerun { of, .. } => ("rerun", Some(of)),
        RunOrigin::Rollback { of } => ("rollback", Some(of)),
        RunOrigin::Client => ("client", None),
    };
    RunRecord {
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
        origin: origin.to_owned(),
        parent_run_id: parent.map(ToString::to_string),
        running: head.running,
        waiting: head.waiting,
        compensations: head.compensations,
    }
}

fn step_record(node: &Node) -> StepRecord {
    StepRecord {
        status: node.state.to_string(),
        attempt: node.attempt,
        since: node.since.rfc3339(),
        started_at: node.started_at.map(Millis::rfc3339),
        job_id: node.job().map(ToString::to_string),
        due_at: node.due.map(|due| due.at().rfc3339()),
        message: node.words.clone(),
        output: node.output.as_deref().cloned().unwrap_or_default(),
        rounds: node.fan.map(|fan| Rounds {
            count: fan.count,
            begun: fan.begun,
            succeeded: fan.succeeded,
            failed: fan.failed,
        }),
    }
}

pub fn run_detail(run: &Run, rollback_run_id: Option<String>) -> RunDetail {
    let step = |(key, node): (&NodeKey, &Node)| (key.to_string(), step_record(node));
    RunDetail {
        record: run_record(&run.head),
        input: (*run.input).clone(),
        output: run.output.as_deref().cloned().unwrap_or_default(),
        rollback_run_id,
        steps: run.nodes.iter().map(step).collect(),
        context: run.context.iter().map(|(name, value)| (name.clone(), (**value).clone())).collect(),
    }
}

pub fn timeline_line(head: &RunHead, n: u64, line: &TimelineEntry) -> TimelineLine {
    TimelineLine {
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
