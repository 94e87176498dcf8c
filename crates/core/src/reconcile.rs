//! Reconciliation: which jobs a timer should have acted on and did not.
//!
//! Every live job has a timer in memory, which acts within milliseconds. A job can be missed all the same:
//! its replica died, or there is a bug. So the store is scanned now and then. The reconciler ends jobs whose
//! time is over; the replayer moves on jobs that are stuck. The numbers are the
//! reference's; only the margin is ours, because there the loop is the timer and here it comes after one.

use crate::job::{Job, Phase};
use crate::life::{self, Due, Limits};
use crate::time::Millis;

/// How often the store is scanned.
pub const POLL_MS: i64 = 30_000;
/// How long a replica that scans keeps the others from doing the same. The lock is not released after a pass:
/// the next holder would scan the same jobs within the same moment.
pub const LOCK_TTL_MS: i64 = 2 * POLL_MS;
/// Jobs read in one batch.
pub const BATCH: usize = 200;
/// Batches in one pass; the next pass begins where it stopped.
pub const ITERATIONS_MAX: usize = 100;
/// How often one job is tried in one pass.
pub const TRIES_MAX: u32 = 3;
/// How long a job may be stuck before it is moved on.
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
/// waits for a worker is stuck only if it has no reservation, which placement must be asked. One at a
/// worker is that worker's, until its time is over. One that was last changed later than now would be stuck
/// until our clock has caught up.
pub fn is_stuck(job: &Job, now: Millis) -> bool {
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
