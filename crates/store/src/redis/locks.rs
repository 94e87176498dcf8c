//! Locks by the clock of Redis, which is one for all replicas. `<fence>|<holder>|<until>` is what a lock says.

use super::RedisStore;
use super::errors::unreadable;
use super::listing::read_job;
use crate::lock::JOB_LOCK_MS;
use crate::{HeldLock, Lock, Opened, Receipt, StoreError};
use redis::ScriptInvocation;
use reveille_core::id::JobId;
use reveille_core::time::Millis;
use std::sync::Arc;

/// A clock that stands still must not see its locks go by Redis's own.
const STILL_MS: i64 = 600_000;

/// The answer of `take.lua`.
enum Took {
    Seen,
    Busy,
    Yours { fence: Option<u64>, record: Option<Vec<u8>> },
}

impl RedisStore {
    pub(super) async fn take_lock(&self, name: &str, ttl_ms: i64) -> Result<Option<Lock>, StoreError> {
        let name = self.keys.of(name);
        let mut script = self.scripts.take.key(&name);
        self.lock_arguments(&mut script, &name, ttl_ms);
        script.arg("").arg("").arg("");
        match self.took(&script).await? {
            Took::Yours { fence, .. } => Ok(fence.map(|fence| Lock { name, fence })),
            Took::Seen | Took::Busy => Ok(None),
        }
    }

    pub(super) async fn open_job(&self, id: &JobId, message: &Receipt) -> Result<Opened, StoreError> {
        let name = self.keys.job_lock(id);
        let mut script = self.scripts.take.key(self.keys.record(id));
        self.lock_arguments(&mut script, &name, JOB_LOCK_MS);
        script.arg(self.keys.processed(message)).arg(self.keys.in_flight(message)).arg("job");
        Ok(match self.took(&script).await? {
            Took::Seen => Opened::Seen,
            Took::Busy => Opened::Busy,
            Took::Yours { fence, record } => {
                let job = record.map(|record| read_job(&record)).transpose()?.map(Arc::new);
                Opened::Job { job, lock: fence.map(|fence| Lock { name, fence }) }
            }
        })
    }

    pub(super) async fn open_new_job(&self, id: &JobId, message: &Receipt) -> Result<Opened, StoreError> {
        let mut script = self.scripts.take.key(self.keys.record(id));
        self.lock_arguments(&mut script, "", 0);
        script.arg(self.keys.processed(message)).arg(self.keys.in_flight(message)).arg("job");
        Ok(match self.took(&script).await? {
            Took::Seen => Opened::Seen,
            Took::Busy => Opened::Busy,
            Took::Yours { record, .. } => {
                let job = record.map(|record| read_job(&record)).transpose()?.map(Arc::new);
                Opened::Job { job, lock: None }
            }
        })
    }

    /// Holds on to a lock, or gives it back.
    pub(super) async fn renew_lock(&self, lock: &Lock, ttl_ms: Option<i64>) -> Result<bool, StoreError> {
        let mut script = self.scripts.renew.key(&lock.name);
        script.arg(lock.fence).arg(ttl_ms.map_or(String::new(), |ttl| ttl.to_string()));
        script.arg(self.script_now()).arg(self.grace_ms()).arg(&self.keys.prefix);
        Ok(self.link.run(&script).await?)
    }

    pub(super) async fn list_locks(&self, limit: usize) -> Result<Vec<HeldLock>, StoreError> {
        let mut script = self.scripts.held.key(self.keys.of("cordum:locks"));
        script.arg(&self.keys.prefix).arg(limit).arg(self.script_now());
        let held: Vec<(String, String, i64)> = self.link.run_surely(&script).await?;
        let read = |(key, holder, until): (String, String, i64)| {
            let name = key.strip_prefix(&self.keys.prefix).unwrap_or(&key).to_owned();
            HeldLock { name, holder, until: Millis(until) }
        };
        Ok(held.into_iter().map(read).collect())
    }

    fn lock_arguments(&self, script: &mut ScriptInvocation<'_>, name: &str, ttl_ms: i64) {
        script.arg(&self.keys.prefix).arg(name).arg(ttl_ms).arg(self.script_now());
        script.arg(&self.options.replica).arg(self.grace_ms());
    }

    async fn took(&self, script: &ScriptInvocation<'_>) -> Result<Took, StoreError> {
        let reply: Vec<Option<Vec<u8>>> = self.link.run(script).await?;
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
