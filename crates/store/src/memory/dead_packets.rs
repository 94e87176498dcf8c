//! Packets that could not be processed, in the order in which they were stored.

use crate::dead_packets::{DEAD_PACKETS_MAX, DeadPacket};
use crate::{Page, page_len};
use reveille_core::time::Millis;
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Buried {
    packets: BTreeMap<u64, DeadPacket>,
    last: u64,
}

impl Buried {
    pub fn add(&mut self, packet: DeadPacket) {
        self.packets.retain(|_, other| other.key != packet.key);
        self.last += 1;
        self.packets.insert(self.last, packet);
        if self.packets.len() > DEAD_PACKETS_MAX {
            self.packets.pop_first();
        }
    }

    pub fn list(&self, cursor: Option<u64>, limit: usize, now: Millis) -> Page<DeadPacket> {
        let older = self.packets.range(..cursor.unwrap_or(u64::MAX)).rev();
        let kept = older.filter(|(_, packet)| packet.is_kept_at(now));
        Page::take(page_len(limit), kept.map(|(place, packet)| (*place, packet.clone())))
    }

    pub fn prune(&mut self, now: Millis) -> u64 {
        let before = self.packets.len();
        self.packets.retain(|_, packet| packet.is_kept_at(now));
        (before - self.packets.len()) as u64
    }
}
