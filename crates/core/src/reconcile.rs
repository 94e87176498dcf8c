//! The safety net: which jobs a timer should have seen to and did not.
//!
//! Every live job has a moment in memory, and its timer acts on it within milliseconds. A job can be passed
//! by all the same: its replica died, or there is a bug. So the store is gone through now and then. The
//! reconciler ends what has had its time; the replayer moves on what stands still. The numbers are the
//! reference's; only the margin is ours, because there the loop is the timer and here it comes after one.

use crate::job::{Job, Phase};
use crate::life::{self, Due, Limits};
use crate::time::Millis;

/// How often the store is gone through.
pub const POLL_MS: i64 = 30_000;
/// How long a replica that goes through it keeps the others from doing the same. The lock is not given back
/// after a pass: whoever had it next would go through the same jobs within the same moment.
pub const LOCK_TTL_MS: i64 = 2 * POLL_MS;
/// Jobs looked at in one go.
pub const BATCH: usize = 200;
/// How many goes one pass has; the next pass begins where it stopped.
pub const ITERATIONS_MAX: usize = 100;
/// How often one job is tried in one pass.
pub const TRIES_MAX: u32 = 3;
/// How long a job may stand still before it is moved on.
pub const PENDING_AGE_MS: i64 = 120_000;
/// How late a timer may be, with a store that is slow and replicas whose clocks are a little apart.
pub const MARGIN_MS: i64 = 10_000;

pub const RECONCILER_LOCK: &str = "cordum:reconciler:default";
pub const REPLAYER_LOCK: &str = "cordum:replayer:pending";

/// For the reconciler: time is over for the job, and so long ago that its timer must have missed it.
pub fn is_overdue(job: &Job, limits: &Limits, now: Millis) -> bool {
    matches!(life::pass_time(job, limits, None, now - MARGIN_MS), Ok(Due::Change(_)))
}

/// For the replayer: nothing has happened to the job for a while, although it could go on by itself. One that
/// waits for a worker stands still only if placement does not know it, which placement must be asked. One at a
/// worker is that worker's, until its time is over. One that was last changed later than now would stand still
/// until our clock has caught up.
pub fn is_stranded(job: &Job, now: Millis) -> bool {
    let could_go_on = match &job.phase {
        Phase::Pending { judge_at, .. } => *judge_at <= now,
        Phase::ApprovalRequired => job.approved_by().is_some(),
        Phase::Scheduled { not_before, .. } => *not_before <= now,
        Phase::Dispatched(_) | Phase::Running(_) => false,
        Phase::Ended(_) => job.is_live(),
    };
    let is_ahead = job.is_live() && job.updated_at > now + MARGIN_MS;
    is_ahead || could_go_on && now.since(job.updated_at) >= PENDING_AGE_MS
}

#[cfg(test)]
mod tests;
