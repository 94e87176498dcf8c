//! Shows every commit to the ledger, and can make results unreadable.

use super::ledger::Ledger;
use reveille_store::suite::hooked::StoreHook;
use reveille_store::{BlobKey, Commit, Step, Store, StoreError};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

pub struct Spy {
    pub ledger: Mutex<Ledger>,
    pub clock: reveille_store::ClockFn,
    /// Results cannot be read.
    pub is_blind: AtomicBool,
}

#[async_trait::async_trait]
impl StoreHook for Spy {
    async fn commit(&self, store: &dyn Store, step: Step) -> Result<Commit, StoreError> {
        let job = step.job.clone();
        let done = store.commit(step).await?;
        if done == Commit::Done {
            self.ledger.lock().unwrap().committed(&job, (self.clock)());
        }
        Ok(done)
    }

    fn before_blob(&self, key: &BlobKey) -> Result<(), StoreError> {
        if self.is_blind.load(Ordering::Relaxed) && key.job_of_result().is_some() {
            return Err(StoreError::Unavailable("on purpose".to_owned()));
        }
        Ok(())
    }
}
