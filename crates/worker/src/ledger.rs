//! Which jobs are here, and how the last ones ended: what makes a repeated delivery harmless.
//!
//! An attempt is known by its job and its number. While one runs, the same or an older attempt is
//! ignored and a newer one takes the run over. After it ended, the same or an older attempt is answered
//! with the result that was sent, and a newer one is a new run. Without attempt numbers a retry looks
//! like a repetition, so a result that asked for a retry is not kept for those.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reveille_core::id::JobId;
use reveille_wire::cap::JobCancel;

use crate::assignment::{Assignment, AttemptRef, attempt_of};
use crate::traced_packet::TracedPacket;

/// How many results are kept for repeated deliveries.
const FINISHED_MAX: usize = 10_000;

#[derive(Default)]
pub struct AssignmentLedger {
    state: Mutex<LedgerState>,
}

#[derive(Default)]
struct LedgerState {
    running: HashMap<JobId, Arc<Assignment>>,
    finished: HashMap<JobId, Finished>,
    /// The finished ones, oldest first.
    order: VecDeque<(JobId, u64)>,
}

struct Finished {
    attempt: u64,
    traced_packet: TracedPacket,
}

/// What to do about a job that arrived.
pub enum Arrival {
    Run(Arc<Assignment>),
    /// It has ended: send this result again.
    Answer(TracedPacket),
    /// It runs already.
    Ignore,
}

/// Whether a result may answer a later delivery of the same attempt.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Finality {
    Final,
    Retryable,
}

impl AssignmentLedger {
    pub fn arrive(&self, arrived: Assignment) -> Arrival {
        let (id, attempt) = (&arrived.id, arrived.attempt());
        let mut state = self.state();
        if let Some(running) = state.running.get(id) {
            if attempt > running.attempt() {
                running.take_over(arrived.attempt_ref());
            }
            return Arrival::Ignore;
        }
        if let Some(finished) = state.finished.get(id)
            && attempt <= finished.attempt
        {
            return Arrival::Answer(finished.traced_packet.clone());
        }
        let assignment = Arc::new(arrived);
        state.running.insert(assignment.id.clone(), Arc::clone(&assignment));
        Arrival::Run(assignment)
    }

    /// Ends a run. The result is made under the lock, so that no newer attempt slips in between the
    /// attempt that the result names and the end of the run.
    pub fn finish(
        &self,
        assignment: &Assignment,
        finality: Finality,
        result: impl FnOnce(AttemptRef) -> TracedPacket,
    ) -> TracedPacket {
        let mut state = self.state();
        state.running.remove(&assignment.id);
        let attempt_ref = assignment.attempt_ref();
        let (attempt, traced_packet) = (attempt_ref.attempt(), result(attempt_ref));
        if attempt > 0 || finality == Finality::Final {
            state.keep(assignment.id.clone(), Finished { attempt, traced_packet: traced_packet.clone() });
        }
        traced_packet
    }

    /// Cancels the job if it runs; a cancellation that names an older attempt is too late.
    pub fn cancel(&self, cancel: &JobCancel) {
        let named = attempt_of(cancel.dispatch.as_ref());
        let running = self.state().running.get(cancel.job_id.as_str()).cloned();
        if let Some(assignment) = running.filter(|running| named == 0 || named >= running.attempt()) {
            tracing::debug!(job_id = %assignment.id, by = cancel.requested_by, "job cancelled");
            assignment.cancelled.cancel();
        }
    }

    /// How many jobs are here, waiting ones included.
    pub fn active(&self) -> usize {
        self.state().running.len()
    }

    fn state(&self) -> MutexGuard<'_, LedgerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LedgerState {
    fn keep(&mut self, id: JobId, finished: Finished) {
        self.order.push_back((id.clone(), finished.attempt));
        self.finished.insert(id, finished);
        while self.order.len() > FINISHED_MAX {
            let Some((oldest, attempt)) = self.order.pop_front() else { break };
            // A newer attempt of the same job has its own place in the order.
            if self.finished.get(&oldest).is_some_and(|finished| finished.attempt == attempt) {
                self.finished.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_wire::cap::{DispatchIdentity, JobRequest};

    fn arrive(ledger: &AssignmentLedger, id: &str, attempt: u64) -> Arrival {
        let dispatch = DispatchIdentity { attempt, ..DispatchIdentity::default() };
        let request = JobRequest { dispatch: (attempt > 0).then_some(dispatch), ..JobRequest::default() };
        ledger.arrive(Assignment::new(JobId::known(id), "t".into(), request, None))
    }

    fn run(ledger: &AssignmentLedger, id: &str, attempt: u64) -> Arc<Assignment> {
        match arrive(ledger, id, attempt) {
            Arrival::Run(assignment) => assignment,
            _ => panic!("{id} at {attempt} is not run"),
        }
    }

    /// The result says which attempt it is for.
    fn finish(ledger: &AssignmentLedger, assignment: &Assignment, finality: Finality) -> bytes::Bytes {
        let result =
            |attempt_ref: AttemptRef| TracedPacket::new(attempt_ref.attempt().to_string().into(), None);
        ledger.finish(assignment, finality, result).packet
    }

    #[test]
    fn a_repeated_delivery_is_ignored_while_the_job_runs_and_answered_afterwards() {
        let ledger = AssignmentLedger::default();
        let assignment = run(&ledger, "j", 2);
        assert!(matches!(arrive(&ledger, "j", 2), Arrival::Ignore));
        assert!(matches!(arrive(&ledger, "j", 1), Arrival::Ignore));
        assert_eq!(finish(&ledger, &assignment, Finality::Final), "2");
        for attempt in [1, 2] {
            assert!(
                matches!(arrive(&ledger, "j", attempt), Arrival::Answer(traced_packet) if traced_packet.packet == "2")
            );
        }
        run(&ledger, "j", 3);
        assert_eq!(ledger.active(), 1);
    }

    #[test]
    fn a_newer_attempt_takes_the_run_over() {
        let ledger = AssignmentLedger::default();
        let assignment = run(&ledger, "j", 1);
        assert!(matches!(arrive(&ledger, "j", 4), Arrival::Ignore));
        assert_eq!(finish(&ledger, &assignment, Finality::Final), "4");
        assert!(matches!(arrive(&ledger, "j", 4), Arrival::Answer(_)));
    }

    #[test]
    fn a_retry_without_a_number_runs_again() {
        let ledger = AssignmentLedger::default();
        finish(&ledger, &run(&ledger, "j", 0), Finality::Retryable);
        finish(&ledger, &run(&ledger, "j", 0), Finality::Final);
        assert!(matches!(arrive(&ledger, "j", 0), Arrival::Answer(_)));
        finish(&ledger, &run(&ledger, "k", 1), Finality::Retryable);
        assert!(matches!(arrive(&ledger, "k", 1), Arrival::Answer(_)));
    }

    #[test]
    fn only_the_last_results_are_kept() {
        let ledger = AssignmentLedger::default();
        finish(&ledger, &run(&ledger, "old", 1), Finality::Final);
        finish(&ledger, &run(&ledger, "renewed", 1), Finality::Final);
        for number in 0..FINISHED_MAX - 2 {
            finish(&ledger, &run(&ledger, &format!("j{number}"), 1), Finality::Final);
        }
        assert!(matches!(arrive(&ledger, "old", 1), Arrival::Answer(_)));
        finish(&ledger, &run(&ledger, "renewed", 2), Finality::Final);
        finish(&ledger, &run(&ledger, "last", 1), Finality::Final);
        assert!(matches!(arrive(&ledger, "old", 1), Arrival::Run(_)));
        assert!(matches!(arrive(&ledger, "renewed", 2), Arrival::Answer(_)));
    }

    #[test]
    fn a_cancellation_reaches_the_attempt_it_names_or_any() {
        let ledger = AssignmentLedger::default();
        let assignment = run(&ledger, "j", 2);
        let cancel = |attempt: u64| JobCancel {
            job_id: "j".into(),
            dispatch: Some(DispatchIdentity { attempt, ..DispatchIdentity::default() }),
            ..JobCancel::default()
        };
        ledger.cancel(&cancel(1));
        assert!(!assignment.cancelled.is_cancelled());
        ledger.cancel(&cancel(0));
        assert!(assignment.cancelled.is_cancelled());
        ledger.cancel(&JobCancel { job_id: "other".into(), ..JobCancel::default() });
    }
}
