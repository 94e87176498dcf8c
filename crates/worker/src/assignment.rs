//! One job that was sent to this worker and has not ended.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reveille_core::id::JobId;
use reveille_core::trace::TraceContext;
use reveille_wire::cap::{DispatchIdentity, JobRequest};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub struct Assignment {
    pub id: JobId,
    pub trace_id: String,
    pub request: JobRequest,
    pub cancelled: CancellationToken,
    arrived_at: Instant,
    /// The newest attempt that this run answers for; at first the one in `request`.
    attempt_ref: Mutex<AttemptRef>,
}

/// One attempt: which it is, and where it stands in the job's trace.
#[derive(Clone)]
pub struct AttemptRef {
    pub dispatch: Option<DispatchIdentity>,
    pub context: Option<TraceContext>,
}

impl AttemptRef {
    /// Schedulers that do not number attempts send no dispatch identity; all theirs are attempt 0.
    pub fn attempt(&self) -> u64 {
        attempt_of(self.dispatch.as_ref())
    }
}

impl Assignment {
    pub fn new(id: JobId, trace_id: String, mut request: JobRequest, context: Option<TraceContext>) -> Self {
        let attempt_ref = Mutex::new(AttemptRef { dispatch: request.dispatch.take(), context });
        let (cancelled, arrived_at) = (CancellationToken::new(), Instant::now());
        Self { id, trace_id, request, cancelled, arrived_at, attempt_ref }
    }

    /// When the job's time is up; it runs from the job's arrival, so waiting for a slot counts.
    pub fn deadline(&self) -> Option<Instant> {
        let deadline_ms = self.request.budget.as_ref().map_or(0, |budget| budget.deadline_ms);
        let deadline = Duration::from_millis(u64::try_from(deadline_ms).ok()?);
        if deadline.is_zero() { None } else { self.arrived_at.checked_add(deadline) }
    }

    pub fn attempt_ref(&self) -> AttemptRef {
        self.attempt_ref.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn attempt(&self) -> u64 {
        self.attempt_ref.lock().unwrap_or_else(PoisonError::into_inner).attempt()
    }

    /// From now on this run answers for a newer attempt.
    pub fn take_over(&self, newer: AttemptRef) {
        *self.attempt_ref.lock().unwrap_or_else(PoisonError::into_inner) = newer;
    }
}

pub fn attempt_of(dispatch: Option<&DispatchIdentity>) -> u64 {
    dispatch.map_or(0, |dispatch| dispatch.attempt)
}
