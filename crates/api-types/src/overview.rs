//! How things are, on one page.

use crate::event::Counts;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Overview {
    pub at: String,
    pub fleet: Counts,
    /// Jobs that want a person's approval, up to 100.
    pub approvals: usize,
    /// Results that are held back, up to 100.
    pub quarantined: usize,
    pub dead_letters: u64,
    /// Why jobs that wait do so; of the newest that wait.
    pub waits: Vec<Wait>,
    /// What this server has counted since it started; for operators.
    pub throughput: Option<Throughput>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Wait {
    /// Such as `no_workers`.
    pub code: String,
    /// How many of those that were looked at.
    pub jobs: u32,
    /// There are more that wait than were looked at.
    pub more: bool,
    pub examples: Vec<WaitingJob>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WaitingJob {
    pub job_id: String,
    pub topic: String,
    pub tenant: String,
    /// One sentence.
    pub explanation: String,
    /// What would let it go on.
    pub unblock: Option<String>,
    pub since: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Throughput {
    pub received: u64,
    pub succeeded: u64,
    /// Ended in any other way.
    pub failed: u64,
    pub live: u64,
}
