//! Who holds which lock.

use crate::Lock;
use crate::lock::until_max;
use reveille_core::time::Millis;
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Locks {
    held: BTreeMap<String, Held>,
    /// Numbers are given out once, whatever the name.
    fence_last: u64,
}

struct Held {
    fence: u64,
    until: Millis,
    /// The replica that opened a job with it.
    opened_by: Option<String>,
}

impl Locks {
    pub fn take(&mut self, name: &str, now: Millis, ttl_ms: i64) -> Option<Lock> {
        if self.held.get(name).is_some_and(|held| now < held.until && held.until <= until_max(now, ttl_ms)) {
            return None;
        }
        self.fence_last += 1;
        let held = Held { fence: self.fence_last, until: now + ttl_ms, opened_by: None };
        self.held.insert(name.to_owned(), held);
        Some(Lock { name: name.to_owned(), fence: self.fence_last })
    }

    /// Within one replica a job has one turn at a time: what it has left locked it may open again.
    pub fn open(&mut self, name: &str, replica: &str, now: Millis, ttl_ms: i64) -> Option<Lock> {
        if self.held.get(name).is_some_and(|held| held.opened_by.as_deref() == Some(replica)) {
            self.held.remove(name);
        }
        let lock = self.take(name, now, ttl_ms)?;
        self.held.get_mut(name)?.opened_by = Some(replica.to_owned());
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

    pub fn prune(&mut self, now: Millis, limit: usize) -> u64 {
        let lapsed = self.held.iter().filter(|(_, held)| held.until <= now).take(limit);
        let lapsed: Vec<_> = lapsed.map(|(name, _)| name.clone()).collect();
        for name in &lapsed {
            self.held.remove(name);
        }
        lapsed.len() as u64
    }
}

impl Held {
    fn is_by(&self, lock: &Lock, now: Millis) -> bool {
        self.fence == lock.fence && now < self.until
    }
}
