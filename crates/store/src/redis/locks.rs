//! Locks by the clock of Redis, the same for all servers. A lock's value is `<fence>|<holder>|<until>`.

use super::RedisStore;
use super::errors::unreadable;
use super::listing::read_job;
use super::script::{Invocation, ScriptCall, call};
use super::scripts::{ListLocks, RenewLock, TakeLock};
use crate::locks::JOB_LOCK_MS;
use crate::query::page_len;
use crate::{HeldLock, Lock, Locks, Opened, Receipt, StoreError};
use reveille_core::id::JobId;
use reveille_core::time::Millis;
use std::sync::Arc;

/// With a test's frozen clock, locks must not expire by Redis's own.
const STILL_MS: i64 = 600_000;

#[async_trait::async_trait]
impl Locks for RedisStore {
    async fn lock(&self, name: &str, ttl_ms: i64) -> Result<Option<Lock>, StoreError> {
        let name = self.keys.of(name);
        let take = call!(TakeLock {
            record: &name,
            prefix: &self.keys.prefix,
            lock: &name,
            ttl_ms: ttl_ms,
            now: self.script_now(),
            holder: &self.options.replica,
            grace_ms: self.grace_ms(),
            processed: "",
            in_flight: "",
            what: "",
        });
        match self.took(&take.of(&self.scripts)).await? {
            Took::Yours { fence, .. } => Ok(fence.map(|fence| Lock { name, fence })),
            Took::Seen | Took::Busy => Ok(None),
        }
    }

    async fn renew(&self, lock: &Lock, ttl_ms: i64) -> Result<bool, StoreError> {
        self.renew_for(lock, Some(ttl_ms)).await
    }

    async fn unlock(&self, lock: &Lock) -> Result<bool, StoreError> {
        self.renew_for(lock, None).await
    }

    async fn locks_held(&self, limit: usize) -> Result<Vec<HeldLock>, StoreError> {
        let list = call!(ListLocks {
            locks: self.keys.of("cordum:locks"),
            prefix: &self.keys.prefix,
            limit: page_len(limit),
            now: self.script_now(),
        });
        let held: Vec<(String, String, i64)> = self.link.run_surely(&list.of(&self.scripts)).await?;
        let read = |(key, holder, until): (String, String, i64)| {
            let name = key.strip_prefix(&self.keys.prefix).unwrap_or(&key).to_owned();
            HeldLock { name, holder, until: Millis(until) }
        };
        Ok(held.into_iter().map(read).collect())
    }
}

/// The answer of `lock.lua`.
enum Took {
    Seen,
    Busy,
    Yours { fence: Option<u64>, record: Option<Vec<u8>> },
}

impl RedisStore {
    pub(super) async fn open_job(&self, id: &JobId, message: &Receipt) -> Result<Opened, StoreError> {
        self.open_with_lock(id, message, Some(self.keys.job_lock(id))).await
    }

    pub(super) async fn open_new_job(&self, id: &JobId, message: &Receipt) -> Result<Opened, StoreError> {
        self.open_with_lock(id, message, None).await
    }

    async fn open_with_lock(
        &self,
        id: &JobId,
        message: &Receipt,
        lock: Option<String>,
    ) -> Result<Opened, StoreError> {
        let open = call!(TakeLock {
            record: self.keys.record(id),
            prefix: &self.keys.prefix,
            lock: lock.as_deref(),
            ttl_ms: JOB_LOCK_MS,
            now: self.script_now(),
            holder: &self.options.replica,
            grace_ms: self.grace_ms(),
            processed: self.keys.processed(message),
            in_flight: self.keys.in_flight(message),
            what: "job",
        });
        Ok(match self.took(&open.of(&self.scripts)).await? {
            Took::Seen => Opened::Seen,
            Took::Busy => Opened::Busy,
            Took::Yours { fence, record } => {
                let job = record.map(|record| read_job(&record)).transpose()?.map(Arc::new);
                Opened::Job { job, lock: lock.zip(fence).map(|(name, fence)| Lock { name, fence }) }
            }
        })
    }

    /// Renews a lock, or releases it.
    async fn renew_for(&self, lock: &Lock, ttl_ms: Option<i64>) -> Result<bool, StoreError> {
        let renew = call!(RenewLock {
            lock: &lock.name,
            prefix: &self.keys.prefix,
            fence: lock.fence,
            ttl_ms: ttl_ms,
            now: self.script_now(),
            grace_ms: self.grace_ms(),
        });
        Ok(self.link.run(&renew.of(&self.scripts)).await?)
    }

    async fn took(&self, call: &Invocation<'_>) -> Result<Took, StoreError> {
        let reply: Vec<Option<Vec<u8>>> = self.link.run(call).await?;
        let mut parts = reply.into_iter().map(Option::unwrap_or_default);
        match parts.next().as_deref() {
            Some(b"seen") => Ok(Took::Seen),
            Some(b"busy") => Ok(Took::Busy),
            Some(b"yours") => {
                let fence = parts.next().and_then(|fence| String::from_utf8(fence).ok()).unwrap_or_default();
                let fence = match fence.as_str() {
                    // No lock was asked for.
                    "" => None,
                    fence => Some(fence.parse().map_err(|error| unreadable("the fence of a lock", &error))?),
                };
                Ok(Took::Yours { fence, record: parts.next().filter(|record| !record.is_empty()) })
            }
            other => Err(StoreError::Corrupt(format!("Redis answered a lock with {other:?}"))),
        }
    }

    /// How much longer than a lock or a beat its key lasts.
    pub(super) fn grace_ms(&self) -> i64 {
        if self.options.uses_our_clock { STILL_MS } else { 0 }
    }
}
