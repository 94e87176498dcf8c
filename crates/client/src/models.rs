//! What a server answers, named as in `docs/openapi.json`. Fields that this version does not know are passed over.
//!
//! Times are as they come: of jobs and approvals microseconds since the epoch, of everything else RFC 3339.

pub use crate::presence::Heard;
pub use reveille_api_types::approval::{Approval, Approved, Rejected};
pub use reveille_api_types::drain::{Drained, Undrained};
pub use reveille_api_types::job::{
    Cancelled, Decision, Explained, JobDetail, JobRecord, Progress, TimelineEntry,
};
pub use reveille_api_types::json::Json;
pub use reveille_api_types::presence::{Refused, Taken};
pub use reveille_api_types::quarantine::{OutputFinding, OutputSafety};
pub use reveille_api_types::run::{Rounds, RunDetail, RunRecord, StartedReply, StepRecord};
pub use reveille_api_types::submit::SubmitReply;
pub use reveille_api_types::worker::Worker;
