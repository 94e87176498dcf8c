//! What a server answers, named as in `docs/openapi.json`. Fields that this version does not know are passed over.
//!
//! Times are as they come: of jobs and approvals microseconds since the epoch, of everything else RFC 3339.

mod approval;
mod job;
mod presence;
mod run;
mod worker;

pub use approval::{Approval, Approved, Rejected};
pub use job::{
    Cancelled, Decision, Explained, JobDetail, JobRecord, OutputSafety, Progress, SubmitReply, TimelineEntry,
};
pub use presence::{Heard, Refused, Taken};
pub use run::{Rounds, RunDetail, RunRecord, StartedReply, StepRecord};
pub use worker::{Drained, Undrained, Worker};
