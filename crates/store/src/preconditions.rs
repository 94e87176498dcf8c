//! What a step depends on beyond its job, and what is settled together with it.
//!
//! Replicas share a store, and each sees only its own part of the fleet. Whatever must be exact across all of them is
//! therefore checked in the commit itself.

use crate::Lock;
use reveille_core::job::Job;
use std::fmt;
use std::sync::Arc;

/// Each of these is optional; what is absent is not checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preconditions {
    pub quota: Quota,
    /// The step counts only while this lock is held, and releases it.
    pub under: Option<Lock>,
    /// The message that the step answers. When it is redelivered it is recognized, and the step does not count.
    pub answers: Option<Receipt>,
}

/// Maximum counts, including this job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quota {
    /// Jobs at the worker that the step gives the job to.
    pub worker_max: Option<u32>,
    /// Jobs of the tenant at workers.
    pub tenant_max: Option<u32>,
    /// Jobs of the topic at workers.
    pub topic_max: Option<u32>,
    /// Jobs of the tenant that have not ended; checked for new jobs.
    pub queue_max: Option<u64>,
    /// Jobs of the tenant that wait for a person; checked for jobs that begin to.
    pub approvals_max: Option<u32>,
}

/// Which part of the [`Quota`] a step would exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExceededQuota {
    Worker,
    Tenant,
    Topic,
    Queue,
    Approvals,
}

/// Identifies one message of a durable stream, so that it is not acted on twice.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Receipt(String);

impl Receipt {
    /// A recreated stream counts from one again; the time distinguishes its messages from the old ones.
    pub fn new(stream: &str, consumer: &str, sequence: u64, kept_at: i64) -> Self {
        Self(format!("{stream}:{consumer}:{sequence}:{kept_at}"))
    }
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A job that was opened to act on a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Opened {
    /// The message was acted on before.
    Seen,
    /// Another replica is about to change the job.
    Busy,
    Job {
        job: Option<Arc<Job>>,
        /// For [`Preconditions::under`]; nothing where there can be no contention.
        lock: Option<Lock>,
    },
}
