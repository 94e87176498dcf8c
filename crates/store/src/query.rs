//! Which jobs to list, and pages that neither skip nor repeat.

use reveille_core::id::{TenantId, Topic};
use reveille_core::job::{Job, State};
use reveille_core::time::Millis;

pub const PAGE_LEN_MAX: usize = 500;

/// Filters are applied before the limit, so a page is short only when it is the last, or when the scan limit was
/// reached.
#[derive(Debug, Clone, Default)]
pub struct JobQuery {
    /// None means every tenant.
    pub tenant: Option<TenantId>,
    pub state: Option<State>,
    pub topic: Option<Topic>,
    pub team: Option<String>,
    pub trace_id: Option<String>,
    /// Only jobs that a person was ever asked to approve.
    pub asked: bool,
    /// Both ends are inclusive.
    pub updated_after: Option<Millis>,
    pub updated_before: Option<Millis>,
    /// Where the page before ended: only jobs created earlier.
    pub cursor: Option<u64>,
    pub limit: usize,
    /// How many jobs are scanned for one page, whether they belong on it or not; nothing for no limit. The next page
    /// continues where the scan stopped.
    pub look_through: Option<usize>,
}

impl JobQuery {
    /// Whether a job belongs on the list, regardless of the cursor.
    pub(crate) fn matches(&self, job: &Job) -> bool {
        let request = &job.request;
        self.tenant.as_ref().is_none_or(|tenant| *tenant == request.tenant)
            && self.state.is_none_or(|state| state == job.state())
            && self.topic.as_ref().is_none_or(|topic| *topic == request.topic)
            && self.team.as_ref().is_none_or(|team| *team == request.actor.team)
            && self.trace_id.as_ref().is_none_or(|trace_id| *trace_id == request.trace_id)
            && self.updated_after.is_none_or(|after| job.updated_at >= after)
            && self.updated_before.is_none_or(|before| job.updated_at <= before)
    }
}

/// How many items a page may have, given the requested number.
pub fn page_len(limit: usize) -> usize {
    limit.clamp(1, PAGE_LEN_MAX)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Pass this back to get the next page; nothing when this was the last.
    pub next: Option<u64>,
}

impl<T> Page<T> {
    /// The page of at most `len` out of items with their sequence numbers. Pass one more than `len`, if there is one:
    /// it distinguishes a full last page from one with a next.
    pub fn take(len: usize, items: impl Iterator<Item = (u64, T)>) -> Self {
        Self::look(len, None, items.map(|(sequence, item)| (sequence, Some(item))))
    }

    /// The same out of items of which some do not belong on the page, and of which `most` are looked at.
    pub fn look(len: usize, most: Option<usize>, items: impl Iterator<Item = (u64, Option<T>)>) -> Self {
        let mut page = Self { items: Vec::new(), next: None };
        let mut last = None;
        for (number, (sequence, item)) in items.enumerate() {
            if let Some(item) = item {
                if page.items.len() == len {
                    page.next = last;
                    break;
                }
                last = Some(sequence);
                page.items.push(item);
            }
            if most.is_some_and(|most| number + 1 >= most) {
                page.next = Some(sequence);
                break;
            }
        }
        page
    }
}
