//! Whether a chain is what it was: nothing missing, nothing altered, everything in its order.
//!
//! A chain is read in pages while entries are added at one end and pruned at the other. So every page
//! comes with the chain's bounds at the moment it was read: what was pruned in the meantime is skipped,
//! and the end is judged by the bounds of the last page alone.

use super::{Bounds, Entry, Link};
use crate::words::words;

/// Gaps that are listed; one is enough to call a chain broken.
pub const GAPS_MAX: usize = 1000;

words! {
    Status {
        /// Every entry from the first to the newest was looked at and is sound.
        Ok = "ok",
        /// At least one entry is missing, altered or out of order.
        Broken = "broken",
        /// What was looked at is sound; older entries were pruned, or newer ones not looked at.
        Partial = "partial",
    }
}

words! {
    Fault {
        /// This entry, and maybe some after it, is not there.
        Missing = "missing",
        /// This entry does not say what it said when it was written.
        Altered = "altered",
        /// This entry came after a later one, or is there although the chain begins after it.
        Reordered = "reordered",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    pub at_seq: u64,
    pub fault: Fault,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    pub status: Status,
    /// Entries that were looked at.
    pub total_events: u64,
    /// Those of them that are sound and in their place.
    pub verified_events: u64,
    /// At most [`GAPS_MAX`].
    pub gaps: Vec<Gap>,
    /// The first and last entry that was looked at, if any was.
    pub first_seq: Option<u64>,
    pub last_seq: Option<u64>,
    /// The oldest entry that must still be there, if it was ever written.
    pub retention_boundary_seq: u64,
}

/// Looks at one tenant's chain, oldest entries first.
#[derive(Debug, Default)]
pub struct Verifier {
    bounds: Bounds,
    /// The last entry that was in its place, or the boundary.
    last: Link,
    standing: ChainState,
    is_at_end: bool,
    total: u64,
    verified: u64,
    gaps: Vec<Gap>,
    first_seq: Option<u64>,
    last_seq: Option<u64>,
}

/// What is known of [`Verifier::last`].
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum ChainState {
    /// It is not an entry that was looked at.
    #[default]
    Given,
    Sound,
    Faulty,
}

impl Verifier {
    /// The whole of a chain at once.
    pub fn check(bounds: &Bounds, entries: &[Entry]) -> Verification {
        let mut verifier = Self::default();
        verifier.page(bounds, entries);
        verifier.page(bounds, &[]);
        verifier.finish()
    }

    /// Looks at the entries that follow those before, with the chain's bounds at the same moment. A page
    /// that does not reach the head is not the last, unless it is empty.
    pub fn page(&mut self, bounds: &Bounds, entries: &[Entry]) {
        self.bounds = *bounds;
        if self.last.seq < bounds.boundary.seq {
            (self.last, self.standing) = (bounds.boundary, ChainState::Given);
        }
        for entry in entries {
            self.look_at(entry);
        }
        self.is_at_end = entries.is_empty() || self.last.seq >= bounds.head.seq;
    }

    /// The entry after which the next page begins; nothing when there is no more to look at.
    pub fn next_after(&self) -> Option<u64> {
        (!self.is_at_end).then_some(self.last.seq)
    }

    /// How many entries were looked at.
    pub fn looked_at(&self) -> u64 {
        self.total
    }

    pub fn finish(mut self) -> Verification {
        if self.is_at_end {
            self.meet_the_head();
        }
        let is_whole = self.is_at_end && self.bounds.boundary.seq == 0;
        let status = match (self.gaps.is_empty(), is_whole) {
            (false, _) => Status::Broken,
            (true, true) => Status::Ok,
            (true, false) => Status::Partial,
        };
        Verification {
            status,
            total_events: self.total,
            verified_events: self.verified,
            gaps: self.gaps,
            first_seq: self.first_seq,
            last_seq: self.last_seq,
            retention_boundary_seq: self.bounds.boundary.seq + 1,
        }
    }

    fn look_at(&mut self, entry: &Entry) {
        self.total += 1;
        self.first_seq.get_or_insert(entry.seq);
        self.last_seq = Some(entry.seq);
        if entry.seq <= self.last.seq {
            return self.gap(entry.seq, Fault::Reordered);
        }
        let next = self.last.seq + 1;
        let is_sound = entry.is_sound();
        if entry.seq > next {
            self.gap(next, Fault::Missing);
        } else if is_sound && entry.prev_hash != self.last.hash {
            // It is as it was, and it followed another one than stands there now.
            self.last_was_altered(entry.seq);
        }
        if is_sound {
            self.verified += 1;
        } else {
            self.gap(entry.seq, Fault::Altered);
        }
        self.last = entry.link();
        self.standing = if is_sound { ChainState::Sound } else { ChainState::Faulty };
    }

    /// The chain must end where its head says, with the entry that its head knows.
    fn meet_the_head(&mut self) {
        let (head, last) = (self.bounds.head, self.last);
        if last.seq < head.seq {
            self.gap(last.seq + 1, Fault::Missing);
        } else if last.seq > head.seq {
            self.gap(head.seq + 1, Fault::Altered);
        } else if last.hash != head.hash {
            self.last_was_altered(last.seq);
        }
    }

    /// Something that knows better says that the last entry was another one. `seen_at` is where that shows
    /// if the last one was pruned.
    fn last_was_altered(&mut self, seen_at: u64) {
        match self.standing {
            ChainState::Sound => {
                self.verified -= 1;
                self.gap(self.last.seq, Fault::Altered);
            }
            ChainState::Given => self.gap(seen_at, Fault::Altered),
            ChainState::Faulty => {}
        }
    }

    fn gap(&mut self, at_seq: u64, fault: Fault) {
        if self.gaps.len() < GAPS_MAX {
            self.gaps.push(Gap { at_seq, fault });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::{Draft, EventType, Hash};
    use crate::id::TenantId;
    use crate::time::Millis;

    fn draft(number: u64) -> Draft {
        Draft::new(TenantId::known("acme"), Millis(number as i64), EventType::Decision, "allow")
    }

    /// A chain of so many entries.
    fn chain(len: u64) -> (Bounds, Vec<Entry>) {
        let mut bounds = Bounds::default();
        let mut entries = Vec::new();
        for number in 1..=len {
            let entry = Entry::follow(draft(number), &bounds.head);
            bounds.head = entry.link();
            entries.push(entry);
        }
        (bounds, entries)
    }

    /// Does something to a chain of nine and compares what is then said of it.
    #[track_caller]
    fn check(
        spoil: impl Fn(&mut Bounds, &mut Vec<Entry>),
        status: Status,
        verified: u64,
        gaps: &[(u64, Fault)],
    ) {
        let (mut bounds, mut entries) = chain(9);
        spoil(&mut bounds, &mut entries);
        let found = Verifier::check(&bounds, &entries);
        let expected: Vec<_> =
            gaps.iter().map(|(at_seq, fault)| Gap { at_seq: *at_seq, fault: *fault }).collect();
        assert_eq!((found.status, found.gaps), (status, expected));
        assert_eq!((found.total_events, found.verified_events), (entries.len() as u64, verified));
    }

    /// Writes an entry anew, with a hash that is right for it.
    fn rewrite(entry: &mut Entry) {
        entry.draft.reason.push('x');
        let before = Link { seq: entry.seq - 1, hash: entry.prev_hash };
        *entry = Entry::follow(entry.draft.clone(), &before);
    }

    #[test]
    fn a_chain_that_nobody_touched_is_whole() {
        check(|_, _| (), Status::Ok, 9, &[]);
        let found = Verifier::check(&Bounds::default(), &[]);
        assert_eq!((found.status, found.first_seq, found.retention_boundary_seq), (Status::Ok, None, 1));
    }

    #[test]
    fn what_was_altered_is_found() {
        let altered = |at_seq| [(at_seq, Fault::Altered)];
        check(|_, entries| entries[4].draft.reason.push('x'), Status::Broken, 8, &altered(5));
        check(|_, entries| rewrite(&mut entries[4]), Status::Broken, 8, &altered(5));
        check(|_, entries| rewrite(&mut entries[8]), Status::Broken, 8, &altered(9));
        check(|_, entries| entries[4].prev_hash = Hash::default(), Status::Broken, 8, &altered(5));
        check(|_, entries| entries[4].event_hash = Hash::default(), Status::Broken, 8, &altered(5));
        check(|bounds, _| bounds.head.hash = Hash::default(), Status::Broken, 8, &altered(9));
        check(|bounds, _| bounds.head = Link::default(), Status::Broken, 9, &altered(1));
    }

    #[test]
    fn what_is_missing_is_found_at_either_end_and_in_the_middle() {
        let missing = |at_seq| [(at_seq, Fault::Missing)];
        check(|_, entries| drop(entries.drain(3..5)), Status::Broken, 7, &missing(4));
        check(|_, entries| drop(entries.remove(0)), Status::Broken, 8, &missing(1));
        check(|_, entries| entries.truncate(7), Status::Broken, 7, &missing(8));
        check(|_, entries| entries.clear(), Status::Broken, 0, &missing(1));
    }

    #[test]
    fn what_is_out_of_order_is_found() {
        let swapped = [(4, Fault::Missing), (4, Fault::Reordered)];
        check(|_, entries| entries.swap(3, 4), Status::Broken, 8, &swapped);
        check(
            |_, entries| entries.insert(5, entries[4].clone()),
            Status::Broken,
            9,
            &[(5, Fault::Reordered)],
        );
        let renumber = |_: &mut Bounds, entries: &mut Vec<Entry>| {
            (entries[3].seq, entries[4].seq) = (5, 4);
            entries.swap(3, 4);
        };
        check(renumber, Status::Broken, 7, &[(4, Fault::Altered), (5, Fault::Altered)]);
    }

    #[test]
    fn a_pruned_chain_holds_from_its_boundary_on() {
        let prune = |bounds: &mut Bounds, entries: &mut Vec<Entry>| {
            bounds.boundary = entries[3].link();
            entries.drain(..4);
        };
        check(prune, Status::Partial, 5, &[]);
        let (mut bounds, mut entries) = chain(9);
        prune(&mut bounds, &mut entries);
        let found = Verifier::check(&bounds, &entries);
        assert_eq!((found.first_seq, found.last_seq, found.retention_boundary_seq), (Some(5), Some(9), 5));
        let too_much = |bounds: &mut Bounds, entries: &mut Vec<Entry>| {
            prune(bounds, entries);
            entries.remove(0);
        };
        check(too_much, Status::Broken, 4, &[(5, Fault::Missing)]);
        let other_past = |bounds: &mut Bounds, entries: &mut Vec<Entry>| {
            prune(bounds, entries);
            bounds.boundary.hash = Hash::default();
        };
        check(other_past, Status::Broken, 5, &[(5, Fault::Altered)]);
    }

    #[test]
    fn a_chain_is_checked_page_by_page_while_both_ends_move() {
        let (whole, entries) = chain(9);
        let mut verifier = Verifier::default();
        let early = Bounds { head: entries[6].link(), ..whole };
        verifier.page(&early, &entries[..3]);
        assert_eq!(verifier.next_after(), Some(3));
        let later = Bounds { boundary: entries[4].link(), ..whole };
        verifier.page(&later, &entries[5..7]);
        assert_eq!(verifier.next_after(), Some(7));
        verifier.page(&later, &entries[7..]);
        assert_eq!(verifier.next_after(), None);
        let found = verifier.finish();
        assert_eq!((found.status, found.total_events, found.verified_events), (Status::Partial, 7, 7));
        assert_eq!((found.first_seq, found.last_seq), (Some(1), Some(9)));
    }

    #[test]
    fn a_chain_that_was_not_read_to_its_end_is_partly_checked() {
        let (bounds, entries) = chain(9);
        let mut verifier = Verifier::default();
        verifier.page(&bounds, &entries[..3]);
        assert_eq!(verifier.finish().status, Status::Partial);
    }
}
