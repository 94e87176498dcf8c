//! What a step depends on beside its job, and what is settled together with it.
//!
//! Replicas share a store, and each sees only its own part of the fleet. Whatever must be exact over all of them
//! is therefore decided in the commit itself.

use crate::Lock;
use reveille_core::job::Job;
use std::fmt;
use std::sync::Arc;

/// Everything here may be left out; then it is not asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preconditions {
    pub quota: Quota,
    /// The step counts only while this lock is held, and gives it back.
    pub under: Option<Lock>,
    /// The message that the step answers. When it comes again it is known, and the step does not count.
    pub answers: Option<Receipt>,
}

/// How many there may be at most, this one included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quota {
    /// Jobs at the worker that the step gives the job to.
    pub worker_max: Option<u32>,
    /// Jobs of the tenant at workers.
    pub tenant_max: Option<u32>,
    /// Jobs of the topic at workers.
    pub topic_max: Option<u32>,
    /// Jobs of the tenant that have not ended; asked of new jobs.
    pub queue_max: Option<u64>,
}

/// Which part of the [`Quota`] a step would exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExceededQuota {
    Worker,
    Tenant,
    Topic,
    Queue,
}

/// Names one message of a durable stream, for whoever must not act on it twice.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Receipt(String);

impl Receipt {
    /// A stream that is made anew counts from one again; the time tells its messages from the old ones.
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
        /// For [`Preconditions::under`]; nothing where nobody else could be in the way.
        lock: Option<Lock>,
    },
}
