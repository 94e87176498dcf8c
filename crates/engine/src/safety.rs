//! The safety kernel that is asked instead of the policy file, behind a circuit breaker.
//!
//! The breakers are the replicas' together: they are in the store, and each question looks there first.
//! While the store is away a replica goes by what it knows itself.

use crate::Engine;
use reveille_core::breaker::{Breaker, TIMEOUT_MS};
use reveille_core::time::Millis;
use reveille_kernel::{Kernel, NoAnswer};
use reveille_store::StoreError;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Questions that are under way at once.
const QUESTIONS_MAX: usize = 256;
const TIMEOUT: Duration = Duration::from_millis(TIMEOUT_MS as u64);

/// Questions about jobs and about results fail apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Circuit {
    Input,
    Output,
}

impl Circuit {
    pub const ALL: [Self; 2] = [Self::Input, Self::Output];

    /// The seed's name for it.
    fn key(self) -> &'static str {
        match self {
            Self::Input => "cordum:cb:safety:failures",
            Self::Output => "cordum:cb:safety:output:failures",
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
        }
    }
}

pub struct Safety {
    kernel: Option<Arc<dyn Kernel>>,
    /// How many may be asked at once.
    room: Semaphore,
    /// As they were last seen or, while the store is away, as they are.
    seen: [Mutex<Breaker>; 2],
}

impl Safety {
    pub fn new(kernel: Option<Arc<dyn Kernel>>) -> Self {
        Self { kernel, room: Semaphore::new(QUESTIONS_MAX), seen: Default::default() }
    }

    pub fn kernel(&self) -> Option<&Arc<dyn Kernel>> {
        self.kernel.as_ref()
    }

    fn seen(&self, circuit: Circuit) -> Breaker {
        *self.seen[circuit as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn see(&self, circuit: Circuit, breaker: Breaker) {
        *self.seen[circuit as usize].lock().unwrap_or_else(PoisonError::into_inner) = breaker;
    }
}

impl Engine {
    /// How the circuit stands, as far as this replica has seen.
    pub fn circuit(&self, circuit: Circuit) -> Breaker {
        self.safety.seen(circuit)
    }

    /// Whether policy is somebody else's, and whose.
    pub fn kernel_address(&self) -> Option<&str> {
        self.safety.kernel().map(|kernel| kernel.address())
    }

    /// Asks the kernel, if the circuit lets the question through and the answer comes in time.
    pub(crate) async fn ask_kernel<T>(
        &self,
        circuit: Circuit,
        question: impl Future<Output = Result<T, NoAnswer>> + Send,
    ) -> Result<T, NoAnswer> {
        // The two seconds are the kernel's, not the queue's.
        let _room = self.safety.room.acquire().await;
        if self.change_breaker(circuit, Breaker::admit).await.is_none() {
            return Err(NoAnswer::Down("safety kernel circuit open".to_owned()));
        }
        let hung = || NoAnswer::Down("the safety kernel did not answer within 2 s".to_owned());
        let answer = tokio::time::timeout(TIMEOUT, question).await.unwrap_or_else(|_| Err(hung()));
        // Whoever says no is there.
        let is_down = matches!(answer, Err(NoAnswer::Down(_)));
        let told =
            |breaker: Breaker, now| Some(if is_down { breaker.failed(now) } else { breaker.answered() });
        self.change_breaker(circuit, told).await;
        answer
    }

    /// Changes the breaker that all replicas share; nothing if the change does not allow itself.
    async fn change_breaker(
        &self,
        circuit: Circuit,
        change: impl Fn(Breaker, Millis) -> Option<Breaker> + Send,
    ) -> Option<Breaker> {
        let known = self.safety.seen(circuit);
        let changed = match self.change_shared(circuit, &change).await {
            Ok(changed) => changed,
            Err(error) => {
                self.trouble.store.tell(
                    self.now(),
                    "the breaker could not be shared; this replica goes by its own",
                    &circuit.name(),
                    &error,
                );
                change(known, self.now())
            }
        };
        if let Some(after) = changed {
            self.safety.see(circuit, after);
            if after.name() != known.name() {
                tracing::warn!(
                    circuit = circuit.name(),
                    from = known.name(),
                    to = after.name(),
                    "safety kernel circuit"
                );
                self.metrics.safety.turned(circuit.name(), after.name());
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
            let before = self.store.breaker(circuit.key()).await?;
            let Some(after) = change(before, self.now()) else {
                self.safety.see(circuit, before);
                return Ok(None);
            };
            if after == before || self.store.swap_breaker(circuit.key(), before, after).await? {
                return Ok(Some(after));
            }
        }
    }
}
