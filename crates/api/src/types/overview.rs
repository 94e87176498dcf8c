//! How things are, on one page.

use super::event::Counts;
use reveille_core::job::Job;
use reveille_engine::{Explanation, Figures};
use serde::Serialize;
use utoipa::ToSchema;

#[derive(Serialize, ToSchema)]
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

impl Overview {
    pub fn waiting(&self) -> Waiting {
        let (approvals, quarantined) = (self.approvals, self.quarantined);
        Waiting { approvals, quarantined, dead_letters: self.dead_letters }
    }
}

/// What waits for a person, as far as it is counted.
#[derive(Clone, Copy, Default)]
pub struct Waiting {
    pub approvals: usize,
    pub quarantined: usize,
    pub dead_letters: u64,
}

#[derive(Serialize, ToSchema)]
pub struct Wait {
    /// Such as `no_workers`.
    pub code: &'static str,
    /// How many of those that were looked at.
    pub jobs: u32,
    /// There are more that wait than were looked at.
    pub more: bool,
    pub examples: Vec<WaitingJob>,
}

impl Wait {
    pub fn new(code: &'static str) -> Self {
        Self { code, jobs: 0, more: false, examples: Vec::new() }
    }
}

#[derive(Serialize, ToSchema)]
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

impl WaitingJob {
    pub fn of(job: &Job, why: Explanation) -> Self {
        Self {
            job_id: job.id().to_string(),
            topic: job.request.topic.to_string(),
            tenant: job.request.tenant.to_string(),
            explanation: why.words,
            unblock: why.unblock,
            since: why.since.rfc3339(),
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct Throughput {
    pub received: u64,
    pub succeeded: u64,
    /// Ended in any other way.
    pub failed: u64,
    pub live: u64,
}

impl Throughput {
    pub fn of(figures: &Figures) -> Self {
        Self {
            received: figures.received,
            succeeded: figures.succeeded,
            failed: figures.failed,
            live: figures.live as u64,
        }
    }
}
