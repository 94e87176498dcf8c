//! The safety kernel that is asked instead of the policy file, behind a circuit breaker.
//!
//! The breakers are the servers' together: they are in the store, and each question looks there first.
//! While the store is away a server goes by what it knows itself.

use crate::observe::metrics::Circuit;
use crate::observe::{Observe, Trouble};
use crate::runtime::Runtime;
use reveille_core::breaker::{Breaker, TIMEOUT_MS};
use reveille_core::time::Millis;
use reveille_kernel::{Kernel, NoAnswer};
use reveille_store::{Store, StoreError};
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Questions that are under way at once.
const QUESTIONS_MAX: usize = 256;
const TIMEOUT: Duration = Duration::from_millis(TIMEOUT_MS as u64);

/// The seed's name for it.
fn key_of(circuit: Circuit) -> &'static str {
    match circuit {
        Circuit::Input => "cordum:cb:safety:failures",
        Circuit::Output => "cordum:cb:safety:output:failures",
    }
}

pub struct SafetyKernel {
    runtime: Runtime,
    observe: Observe,
    store: Arc<dyn Store>,
    kernel: Option<Arc<dyn Kernel>>,
    /// How many may be asked at once.
    permits: Semaphore,
    /// As they were last seen or, while the store is away, as they are.
    seen: [Mutex<Breaker>; 2],
}

impl SafetyKernel {
    pub fn new(
        runtime: Runtime,
        observe: Observe,
        store: Arc<dyn Store>,
        kernel: Option<Arc<dyn Kernel>>,
    ) -> Self {
        let permits = Semaphore::new(QUESTIONS_MAX);
        Self { runtime, observe, store, kernel, permits, seen: Default::default() }
    }

    /// Nothing where the policy file decides.
    pub fn kernel(&self) -> Option<&Arc<dyn Kernel>> {
        self.kernel.as_ref()
    }

    fn seen(&self, circuit: Circuit) -> Breaker {
        *self.seen[circuit as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn see(&self, circuit: Circuit, breaker: Breaker) {
        *self.seen[circuit as usize].lock().unwrap_or_else(PoisonError::into_inner) = breaker;
    }

    /// How the circuit stands, as far as this server has seen.
    pub fn circuit(&self, circuit: Circuit) -> Breaker {
        self.seen(circuit)
    }

    /// Asks the kernel, if the circuit lets the question through and the answer comes in time.
    pub async fn ask<T>(
        &self,
        circuit: Circuit,
        question: impl Future<Output = Result<T, NoAnswer>> + Send,
    ) -> Result<T, NoAnswer> {
        // The two seconds are the kernel's, not the queue's.
        let _permit = self.permits.acquire().await;
        if self.change_breaker(circuit, Breaker::admit).await.is_none() {
            return Err(NoAnswer::Down("safety kernel circuit open".to_owned()));
        }
        let hung = || NoAnswer::Down("the safety kernel did not answer within 2 s".to_owned());
        let answer = tokio::time::timeout(TIMEOUT, question).await.unwrap_or_else(|_| Err(hung()));
        // Whoever says no is there.
        let is_down = matches!(answer, Err(NoAnswer::Down(_)));
        let after =
            |breaker: Breaker, now| Some(if is_down { breaker.failed(now) } else { breaker.answered() });
        self.change_breaker(circuit, after).await;
        answer
    }

    /// Changes the breaker that all servers share; nothing if the change does not allow itself.
    async fn change_breaker(
        &self,
        circuit: Circuit,
        change: impl Fn(Breaker, Millis) -> Option<Breaker> + Send,
    ) -> Option<Breaker> {
        let known = self.seen(circuit);
        let changed = match self.change_shared(circuit, &change).await {
            Ok(changed) => changed,
            Err(error) => {
                self.observe.log(
                    Trouble::Store,
                    "circuit breaker not shared; using the local copy",
                    &circuit.name(),
                    &error,
                );
                change(known, self.runtime.now())
            }
        };
        if let Some(after) = changed {
            self.see(circuit, after);
            if after.name() != known.name() {
                tracing::warn!(
                    circuit = circuit.name(),
                    from = known.name(),
                    to = after.name(),
                    "safety kernel circuit"
                );
                self.observe.metrics().safety().turned(circuit.name(), after.name());
            }
        }
        changed
    }

    async fn change_shared(
        &self,
        circuit: Circuit,
        change: &(impl Fn(Breaker, Millis) -> Option<Breaker> + Send),
    ) -> Result<Option<Breaker>, StoreError> {
        loop {
            let before = self.store.breaker(key_of(circuit)).await?;
            let Some(after) = change(before, self.runtime.now()) else {
                self.see(circuit, before);
                return Ok(None);
            };
            if after == before || self.store.swap_breaker(key_of(circuit), before, after).await? {
                return Ok(Some(after));
            }
        }
    }
}
