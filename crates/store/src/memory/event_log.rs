//! The event log without a disk.

use crate::EventPage;
use crate::event_log::{EVENT_LOG_KEPT_MAX, EVENT_LOG_LEN_MAX};
use bytes::Bytes;
use reveille_core::time::Millis;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Notify;

#[derive(Default)]
pub(super) struct MemoryEvents {
    /// By place.
    events: BTreeMap<u64, Bytes>,
    /// The last batch of each server.
    last_batches: BTreeMap<String, u64>,
    pub appended: Arc<Notify>,
}

impl MemoryEvents {
    /// The place is the time in microseconds, or the one after the last.
    pub fn append(&mut self, event: Bytes, now: Millis) {
        let after_last = self.events.last_key_value().map_or(0, |(last, _)| last + 1);
        self.events.insert(after_last.max(now.0.unsigned_abs() * 1000), event);
        if self.events.len() > EVENT_LOG_KEPT_MAX {
            self.events.pop_first();
        }
        self.appended.notify_waiters();
    }

    pub fn append_batch(&mut self, me: &str, batch: u64, items: &[Bytes], now: Millis) {
        if self.last_batches.insert(me.to_owned(), batch) != Some(batch) {
            for item in items {
                self.append(item.clone(), now);
            }
        }
    }

    pub fn after(&self, place: u64) -> EventPage {
        let kept = self.events.first_key_value().zip(self.events.last_key_value());
        let items = self.events.range(place + 1..).take(EVENT_LOG_LEN_MAX);
        EventPage {
            items: items.map(|(place, item)| (*place, item.clone())).collect(),
            kept: kept.map(|((first, _), (last, _))| (*first, *last)),
        }
    }
}
