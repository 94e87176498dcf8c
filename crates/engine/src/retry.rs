//! Asking again: the loop around a store or a roster that is away for a while, for whoever only asks. Those that hold a
//! lock while they ask, or decide anew each time, have a loop of their own with the same pause.

use crate::observe::{Observe, Trouble};
use crate::runtime::RETRY_PAUSE;
use reveille_roster::RosterError;
use reveille_store::StoreError;
use std::fmt::Display;
use std::future::Future;

/// An error that may be gone when the same is asked again.
pub trait Transient: Display {
    /// Where it is reported.
    const TROUBLE: Trouble;

    fn is_transient(&self) -> bool;
}

impl Transient for StoreError {
    const TROUBLE: Trouble = Trouble::Store;

    fn is_transient(&self) -> bool {
        Self::is_transient(self)
    }
}

impl Transient for RosterError {
    const TROUBLE: Trouble = Trouble::Store;

    fn is_transient(&self) -> bool {
        Self::is_transient(self)
    }
}

/// Asks until there is an answer, or an error that stays. `what` is what the log says while it fails, `whom` what it
/// is about.
pub async fn until_answered<T, E: Transient, F: Future<Output = Result<T, E>>>(
    observe: &Observe,
    what: &str,
    whom: &(dyn Display + Sync),
    mut ask: impl FnMut() -> F,
) -> Result<T, E> {
    loop {
        match ask().await {
            Err(error) if error.is_transient() => observe.log(E::TROUBLE, what, whom, &error),
            done => return done,
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}
