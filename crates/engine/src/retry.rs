//! Asking again: the two loops around a store, a roster or a bus that is away for a while. Those that hold a lock while
//! they ask, or decide anew each time, have a loop of their own.

use crate::observe::{Observe, Trouble};
use crate::runtime::{PUBLISH_PAUSE, RETRY_PAUSE};
use reveille_roster::RosterError;
use reveille_store::StoreError;
use std::fmt::Display;
use std::future::Future;

/// An error that may be gone when the same is asked again.
pub trait Transient: Display {
    fn is_transient(&self) -> bool;
}

impl Transient for StoreError {
    fn is_transient(&self) -> bool {
        Self::is_transient(self)
    }
}

impl Transient for RosterError {
    fn is_transient(&self) -> bool {
        Self::is_transient(self)
    }
}

impl Observe {
    /// Asks until there is an answer, or an error that stays. `what` is what the log says while it fails, `whom` what
    /// it is about.
    pub async fn until_answered<T, E: Transient, F: Future<Output = Result<T, E>>>(
        &self,
        what: &str,
        whom: &(dyn Display + Sync),
        mut ask: impl FnMut() -> F,
    ) -> Result<T, E> {
        loop {
            match ask().await {
                Err(error) if error.is_transient() => self.log(Trouble::Store, what, whom, &error),
                done => return done,
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }

    /// Asks until it works, whatever the error: for what must be done, and cannot be left to anybody else.
    pub async fn insist<T, E: Display, F: Future<Output = Result<T, E>>>(
        &self,
        with: Trouble,
        what: &str,
        whom: &(dyn Display + Sync),
        mut ask: impl FnMut() -> F,
    ) -> T {
        loop {
            match ask().await {
                Ok(answer) => return answer,
                Err(error) => self.log(with, what, whom, &error),
            }
            let pause = if with == Trouble::Bus { PUBLISH_PAUSE } else { RETRY_PAUSE };
            tokio::time::sleep(pause).await;
        }
    }
}
