//! Which letters are under way: one for a job at a time, so that nobody is asked twice while it still thinks.
//!
//! A workspace that thinks hard may forget to beat and count as dead. As long as a letter is under way it has
//! the job all the same. Only a workspace that starts anew has lost its letters; then they are recalled.

use reveille_core::id::{JobId, WorkspaceId};
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

#[derive(Default, Clone)]
pub struct Letters(Arc<Mutex<FxHashMap<JobId, Sent>>>);

struct Sent {
    attempt: u32,
    to: WorkspaceId,
    recalled: CancellationToken,
}

/// Whether a letter is to be sent.
pub enum Begun {
    Send(UnderWay),
    /// This very letter is under way.
    IsUnderWay,
    /// One of an earlier attempt is, and the workspace has it.
    EarlierIs,
}

/// A letter that is under way until this is dropped.
pub struct UnderWay {
    letters: Letters,
    job: JobId,
    attempt: u32,
    recalled: CancellationToken,
}

impl Letters {
    pub fn begin(&self, job: &JobId, attempt: u32, to: &WorkspaceId) -> Begun {
        let mut letters = self.lock();
        match letters.get(job) {
            Some(sent) if sent.attempt == attempt => Begun::IsUnderWay,
            Some(_) => Begun::EarlierIs,
            None => {
                let recalled = CancellationToken::new();
                let sent = Sent { attempt, to: to.clone(), recalled: recalled.clone() };
                letters.insert(job.clone(), sent);
                Begun::Send(UnderWay { letters: self.clone(), job: job.clone(), attempt, recalled })
            }
        }
    }

    pub fn is_under_way(&self, job: &JobId) -> bool {
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

    fn lock(&self) -> MutexGuard<'_, FxHashMap<JobId, Sent>> {
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
        let mut letters = self.letters.lock();
        if letters.get(&self.job).is_some_and(|sent| sent.attempt == self.attempt) {
            letters.remove(&self.job);
        }
    }
}
