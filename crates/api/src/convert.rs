//! The API's shapes (`reveille-api-types`), made of what the engine knows, and what is asked for, read into what the engine
//! takes; one file a noun. A function that makes a shape has the shape's name.

mod approval;
mod audit;
mod compensation;
mod dead_letter;
mod dead_packet;
mod drain;
mod dry_run;
mod event;
mod graph;
mod job;
mod key;
mod overview;
mod policy;
mod quarantine;
mod submit;
mod system;
pub mod text;
mod worker;
mod workflow;

pub use approval::{
    approval, approval_answer, approvals_limit, approved_before, approved_now, blast_radius,
    include_resolved, prior_approval, rejected_before, rejected_now, rollback_hint, snapshot_summary,
};
pub use audit::{audit_event, audit_query, chain_link, checkpoint_line, given, signing_key, verified};
pub use dead_letter::{dead_letter, dead_letter_stats, letter_query, retried_job, retried_many, retry_query};
pub use dead_packet::{dead_packet, packet_query};
pub use drain::{drain_seconds, drained};
pub use dry_run::dry_run_reply;
pub use event::counts;
pub use graph::graph_detail;
pub use job::{explained, job_detail, job_record};
pub use key::{key, new_key, new_worker_key, overlap_ms, public_key, rotated_key, rotated_worker_key};
pub use overview::{throughput, waiting_job};
pub use policy::{decision_record, named_tenant, policy_answer, policy_request, replay_reply};
pub use quarantine::{held, output_safety};
pub use submit::{job_request, submit_reply};
pub use system::{circuit_state, lock_held, timers};
pub use worker::{pool, worker};
pub use workflow::{run_detail, run_record, timeline_line, workflow_detail};

use serde::Serialize;
use serde_json::Value;

/// What the API shows as it is kept.
fn json(kept: &impl Serialize) -> Value {
    serde_json::to_value(kept).unwrap_or_default()
}
