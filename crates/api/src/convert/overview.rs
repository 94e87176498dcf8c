//! What waits, and how much is done.

use reveille_api_types::overview::{Throughput, WaitingJob};
use reveille_core::job::Job;
use reveille_engine::{Explanation, Figures};

pub fn waiting_job(job: &Job, why: Explanation) -> WaitingJob {
    WaitingJob {
        job_id: job.id().to_string(),
        topic: job.request.topic.to_string(),
        tenant: job.request.tenant.to_string(),
        explanation: why.words,
        unblock: why.unblock,
        since: why.since.rfc3339(),
    }
}

pub fn throughput(figures: &Figures) -> Throughput {
    Throughput {
        received: figures.received,
        succeeded: figures.succeeded,
        failed: figures.failed,
        live: figures.live as u64,
    }
}
