//! A lock that is held for longer than a moment: a task of its own renews it every third of its TTL.
//!
//! A lease can be lost: somebody else has the lock, three renewals in a row have failed, or the time ran out
//! before one went through. The holder is told, and stops. It may have been stopped itself for a while and not
//! know yet, so what must not be written by a holder of yesterday carries the fence ([`Lease::lock`]), and the
//! store refuses it.

use reveille_store::{Lock, Store, StoreError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Renewals that may fail in a row: seed 004, section 8, `maxRenewalFailures`.
pub const STRIKES_MAX: u32 = 3;
/// The part of the TTL after which a lock is renewed.
const RENEWED_AFTER: u32 = 3;
/// And after which one that failed is tried again: sooner, so that the third try still finds the lock.
const TRIED_AFTER: u32 = 4;

/// Dropped, it is renewed no more, and the lock lapses by itself.
pub struct Lease {
    lock: Lock,
    store: Arc<dyn Store>,
    /// Until when it is surely ours; nothing once it is lost.
    ours_until: watch::Receiver<Option<Instant>>,
    stop: CancellationToken,
    renewing: JoinHandle<()>,
}

impl Lease {
    /// Takes the lock, unless somebody has it. It is renewed until `end`, if it is still there by then.
    pub async fn take(
        store: &Arc<dyn Store>,
        name: &str,
        ttl_ms: i64,
        end: &CancellationToken,
    ) -> Result<Option<Self>, StoreError> {
        let asked = Instant::now();
        let Some(lock) = store.lock(name, ttl_ms).await? else { return Ok(None) };
        let ttl = Duration::from_millis(ttl_ms.unsigned_abs());
        let (until, ours_until) = watch::channel(Some(asked + ttl));
        let stop = end.child_token();
        let renewal = Renewal { lock: lock.clone(), store: store.clone(), ttl, ttl_ms, until };
        let renewing = tokio::spawn(renewal.run(asked, stop.clone()));
        Ok(Some(Self { lock, store: store.clone(), ours_until, stop, renewing }))
    }

    /// For what is written under the lease.
    pub fn lock(&self) -> &Lock {
        &self.lock
    }

    pub fn is_held(&self) -> bool {
        self.ours_until.borrow().is_some_and(|until| Instant::now() < until)
    }

    /// Returns when the lease is lost.
    pub async fn lost(&self) {
        let mut ours_until = self.ours_until.clone();
        loop {
            let Some(until) = *ours_until.borrow_and_update() else { return };
            tokio::select! {
                renewed = ours_until.changed() => if renewed.is_err() { return },
                () = tokio::time::sleep_until(until) => return,
            }
        }
    }

    /// Gives the lock back, after the last renewal is over: one that came later would look like a new holder. One
    /// that is lost is nobody's to give back.
    pub async fn release(mut self) {
        self.stop.cancel();
        // It ends by itself; if it panicked, there is no renewal to wait for either.
        let _ = (&mut self.renewing).await;
        if !self.is_held() {
            return;
        }
        if let Err(error) = self.store.unlock(&self.lock).await {
            tracing::debug!(lock = %self.lock.name, %error, "lock not released; it will expire");
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.renewing.abort();
    }
}

struct Renewal {
    lock: Lock,
    store: Arc<dyn Store>,
    ttl: Duration,
    ttl_ms: i64,
    until: watch::Sender<Option<Instant>>,
}

impl Renewal {
    async fn run(self, taken: Instant, stop: CancellationToken) {
        let mut ours_until = taken + self.ttl;
        let mut strikes = 0;
        let mut next = taken + self.ttl / RENEWED_AFTER;
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = tokio::time::sleep_until(next) => {}
            }
            let asked = Instant::now();
            // Whoever gives the lock back waits for this: it is not broken off.
            let renewed =
                tokio::time::timeout_at(ours_until, self.store.renew(&self.lock, self.ttl_ms)).await;
            match renewed {
                Ok(Ok(true)) => {
                    strikes = 0;
                    ours_until = asked + self.ttl;
                    next = asked + self.ttl / RENEWED_AFTER;
                    self.until.send_replace(Some(ours_until));
                }
                Ok(Ok(false)) => return self.lose("it has lapsed, or somebody else has it"),
                Err(_) => return self.lose("it could not be renewed in time"),
                Ok(Err(error)) => {
                    strikes += 1;
                    next = asked + self.ttl / TRIED_AFTER;
                    tracing::debug!(lock = %self.lock.name, %error, strikes, "lock not renewed");
                    if strikes == STRIKES_MAX {
                        return self.lose("three renewals in a row have failed");
                    }
                }
            }
        }
    }

    fn lose(&self, why: &str) {
        tracing::warn!(lock = %self.lock.name, why, "lock lost");
        self.until.send_replace(None);
    }
}

/// A place that one server has for as long as it lives. It is kept between the times that it is needed, so that
/// nobody else does the same a moment later; when its holder dies, another has it one TTL later at most.
pub struct LeaderLease {
    name: &'static str,
    ttl_ms: i64,
    end: CancellationToken,
    lease: Option<Lease>,
}

impl LeaderLease {
    pub fn new(name: &'static str, ttl_ms: i64, end: CancellationToken) -> Self {
        Self { name, ttl_ms, end, lease: None }
    }

    /// The lock, if the place is ours or can be had.
    pub async fn hold(&mut self, store: &Arc<dyn Store>) -> Result<Option<&Lock>, StoreError> {
        if !self.lease.as_ref().is_some_and(Lease::is_held) {
            self.lease = None;
            self.lease = Lease::take(store, self.name, self.ttl_ms, &self.end).await?;
        }
        Ok(self.lease.as_ref().map(Lease::lock))
    }

    /// Leaves the place to others at once.
    pub async fn leave(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.release().await;
        }
    }
}
