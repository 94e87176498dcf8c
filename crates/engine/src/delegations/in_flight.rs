//! Which requests are in flight: one for a job at a time, so that nobody is asked twice while it still thinks.
//!
//! A workspace that thinks hard may forget to beat and count as dead. As long as a request is under way it has
//! the job all the same. Only a workspace that starts anew has lost its requests; then they are recalled.

use reveille_core::id::{JobId, WorkspaceId};
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

#[derive(Default, Clone)]
pub struct InFlight(Arc<Mutex<FxHashMap<JobId, InFlightRequest>>>);

struct InFlightRequest {
    attempt: u32,
    to: WorkspaceId,
    recalled: CancellationToken,
}

/// Whether a request is to be sent.
pub enum SendPermit {
    Send(UnderWay),
    /// This very request is under way.
    IsUnderWay,
    /// One of an earlier attempt is, and the workspace has it.
    EarlierIs,
}

/// A request that is under way until this is dropped.
pub struct UnderWay {
    in_flight: InFlight,
    job: JobId,
    attempt: u32,
    recalled: CancellationToken,
}

impl InFlight {
    pub fn begin(&self, job: &JobId, attempt: u32, to: &WorkspaceId) -> SendPermit {
        let mut in_flight = self.lock();
        match in_flight.get(job) {
            Some(sent) if sent.attempt == attempt => SendPermit::IsUnderWay,
            Some(_) => SendPermit::EarlierIs,
            None => {
                let recalled = CancellationToken::new();
                let sent = InFlightRequest { attempt, to: to.clone(), recalled: recalled.clone() };
                in_flight.insert(job.clone(), sent);
                SendPermit::Send(UnderWay { in_flight: self.clone(), job: job.clone(), attempt, recalled })
            }
        }
    }

    pub fn has(&self, job: &JobId) -> bool {
        self.lock().contains_key(job)
    }

    /// The workspace has started anew and knows of none of them.
    pub fn recall(&self, to: &WorkspaceId) {
        self.lock().retain(|_, sent| {
            let is_lost = sent.to == *to;
            if is_lost {
                sent.recalled.cancel();
            }
            !is_lost
        });
    }

    fn lock(&self) -> MutexGuard<'_, FxHashMap<JobId, InFlightRequest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UnderWay {
    pub async fn recalled(&self) {
        self.recalled.cancelled().await;
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut in_flight = self.in_flight.lock();
        if in_flight.get(&self.job).is_some_and(|sent| sent.attempt == self.attempt) {
            in_flight.remove(&self.job);
        }
    }
}
