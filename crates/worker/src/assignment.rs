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
    errand: Mutex<Errand>,
}

/// One attempt: which it is, and where it stands in the job's trace.
#[derive(Clone)]
pub struct Errand {
    pub dispatch: Option<DispatchIdentity>,
    pub context: Option<TraceContext>,
}

impl Errand {
    /// Schedulers that do not number attempts send no dispatch identity; all theirs are attempt 0.
    pub fn attempt(&self) -> u64 {
        attempt_of(self.dispatch.as_ref())
    }
}

impl Assignment {
    pub fn new(id: JobId, trace_id: String, mut request: JobRequest, context: Option<TraceContext>) -> Self {
        let errand = Mutex::new(Errand { dispatch: request.dispatch.take(), context });
        let (cancelled, arrived_at) = (CancellationToken::new(), Instant::now());
        Self { id, trace_id, request, cancelled, arrived_at, errand }
    }

    /// When the job's time is up; it runs from the job's arrival, so waiting for a slot counts.
    pub fn deadline(&self) -> Option<Instant> {
        let deadline_ms = self.request.budget.as_ref().map_or(0, |budget| budget.deadline_ms);
        let deadline = Duration::from_millis(u64::try_from(deadline_ms).ok()?);
        if deadline.is_zero() { None } else { self.arrived_at.checked_add(deadline) }
    }

    pub fn errand(&self) -> Errand {
        self.errand.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn attempt(&self) -> u64 {
        self.errand.lock().unwrap_or_else(PoisonError::into_inner).attempt()
    }

    /// From now on this run answers for a newer attempt.
    pub fn take_over(&self, newer: Errand) {
        *self.errand.lock().unwrap_or_else(PoisonError::into_inner) = newer;
    }
}

pub fn attempt_of(dispatch: Option<&DispatchIdentity>) -> u64 {
    dispatch.map_or(0, |dispatch| dispatch.attempt)
}
