//! The audit trail without a disk.

use crate::query::page_len;
use crate::{AuditOrder, AuditQuery, ChainPage, Page};
use reveille_core::audit::{Bounds, Draft, Entry};
use reveille_core::id::TenantId;
use reveille_core::time::Millis;
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct MemoryTrail {
    /// By the order in which they were recorded, whoever's they are.
    entries: BTreeMap<u64, Entry>,
    chains: BTreeMap<TenantId, Chain>,
    position_last: u64,
}

#[derive(Default)]
struct Chain {
    bounds: Bounds,
    /// Where an entry stands among all, by its own number.
    positions: BTreeMap<u64, u64>,
}

impl MemoryTrail {
    pub fn append(&mut self, drafts: Vec<Draft>) {
        for draft in drafts {
            self.position_last += 1;
            let chain = self.chains.entry(draft.tenant.clone()).or_default();
            let entry = Entry::follow(draft, &chain.bounds.head);
            chain.bounds.head = entry.link();
            chain.positions.insert(entry.seq, self.position_last);
            self.entries.insert(self.position_last, entry);
        }
    }

    pub fn list(&self, query: &AuditQuery) -> Page<Entry> {
        let numbered = self.entries.iter().map(|(position, entry)| {
            let number = if query.tenant.is_some() { entry.seq } else { *position };
            (number, entry)
        });
        let matching = numbered.filter(|(_, entry)| query.matches(entry));
        let len = page_len(query.limit);
        match query.order {
            AuditOrder::NewestFirst => {
                let before = query.cursor.unwrap_or(u64::MAX);
                let older = matching.rev().filter(|(number, _)| *number < before);
                Page::take(len, older.map(|(number, entry)| (number, entry.clone())))
            }
            AuditOrder::OldestFirst => {
                let after = query.cursor.unwrap_or(0);
                let newer = matching.filter(|(number, _)| *number > after);
                Page::take(len, newer.map(|(number, entry)| (number, entry.clone())))
            }
        }
    }

    pub fn chain(&self, tenant: &TenantId, after: u64, len: usize) -> ChainPage {
        let Some(chain) = self.chains.get(tenant) else { return ChainPage::default() };
        let newer = chain.positions.range(after.saturating_add(1)..).take(len);
        let entries = newer.map(|(_, position)| self.entries[position].clone()).collect();
        ChainPage { bounds: chain.bounds, entries }
    }

    pub fn chains(&self, after: Option<&TenantId>, len: usize) -> Vec<TenantId> {
        let is_later = |tenant: &&TenantId| after.is_none_or(|after| *tenant > after);
        self.chains.keys().filter(is_later).take(len).cloned().collect()
    }

    /// Where the oldest and the newest entry stand, of those that were ever appended and are kept.
    pub fn oldest(&self) -> Option<u64> {
        self.entries.keys().next().copied()
    }

    pub fn newest(&self) -> u64 {
        self.position_last
    }

    pub fn prune(&mut self, before: Millis, limit: usize) -> u64 {
        let mut oldest = self.entries.iter().take(limit);
        let Some(last) = oldest.rfind(|(_, entry)| entry.draft.at < before) else { return 0 };
        let kept = self.entries.split_off(&(last.0 + 1));
        let gone = std::mem::replace(&mut self.entries, kept);
        for entry in gone.values() {
            if let Some(chain) = self.chains.get_mut(&entry.draft.tenant) {
                chain.positions.remove(&entry.seq);
                chain.bounds.boundary = entry.link();
            }
        }
        gone.len() as u64
    }
}
