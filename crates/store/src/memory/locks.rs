//! Who holds which lock.

use crate::locks::until_max;
use crate::{HeldLock, Lock};
use reveille_core::time::Millis;
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct HeldLocks {
    held: BTreeMap<String, MemoryLock>,
    /// Numbers are used once, whatever the name.
    fence_last: u64,
}

struct MemoryLock {
    fence: u64,
    until: Millis,
    holder: String,
    /// A job was opened with it.
    is_of_job: bool,
}

impl HeldLocks {
    pub fn take(&mut self, name: &str, holder: &str, now: Millis, ttl_ms: i64) -> Option<Lock> {
        if self.held.get(name).is_some_and(|held| now < held.until && held.until <= until_max(now, ttl_ms)) {
            return None;
        }
        self.fence_last += 1;
        let (fence, until, holder) = (self.fence_last, now + ttl_ms, holder.to_owned());
        let held = MemoryLock { fence, until, holder, is_of_job: false };
        self.held.insert(name.to_owned(), held);
        Some(Lock { name: name.to_owned(), fence: self.fence_last })
    }

    /// Within one replica a job is handled one thing at a time: a lock that it left behind it may take again.
    pub fn open(&mut self, name: &str, replica: &str, now: Millis, ttl_ms: i64) -> Option<Lock> {
        if self.held.get(name).is_some_and(|held| held.is_of_job && held.holder == replica) {
            self.held.remove(name);
        }
        let lock = self.take(name, replica, now, ttl_ms)?;
        self.held.get_mut(name)?.is_of_job = true;
        Some(lock)
    }

    pub fn renew(&mut self, lock: &Lock, now: Millis, ttl_ms: i64) -> bool {
        let held = self.held.get_mut(&lock.name).filter(|held| held.is_by(lock, now));
        held.map(|held| held.until = now + ttl_ms).is_some()
    }

    pub fn give_back(&mut self, lock: &Lock, now: Millis) -> bool {
        self.is_held(lock, now) && self.held.remove(&lock.name).is_some()
    }

    pub fn is_held(&self, lock: &Lock, now: Millis) -> bool {
        self.held.get(&lock.name).is_some_and(|held| held.is_by(lock, now))
    }

    pub fn list(&self, now: Millis, limit: usize) -> Vec<HeldLock> {
        let held = self.held.iter().filter(|(_, held)| now < held.until && !held.is_of_job);
        let mut list: Vec<HeldLock> = held
            .map(|(name, held)| HeldLock {
                name: name.clone(),
                holder: held.holder.clone(),
                until: held.until,
            })
            .collect();
        list.sort_by_key(|lock| lock.until);
        list.truncate(limit);
        list
    }

    pub fn prune(&mut self, now: Millis, limit: usize) -> u64 {
        let lapsed = self.held.iter().filter(|(_, held)| held.until <= now).take(limit);
        let lapsed: Vec<_> = lapsed.map(|(name, _)| name.clone()).collect();
        for name in &lapsed {
            self.held.remove(name);
        }
        lapsed.len() as u64
    }
}

impl MemoryLock {
    fn is_by(&self, lock: &Lock, now: Millis) -> bool {
        self.fence == lock.fence && now < self.until
    }
}
