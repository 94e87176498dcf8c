//! Entries about what somebody did that changes no job, and about what somebody read that is held back.
//!
//! What was done is recorded after it was done: the reverse order would leave entries about what never happened. What
//! is read is recorded before it is shown, and not shown if that cannot be. Whoever looks at the same again and again
//! leaves one entry in [`TOGETHER_MS`], so that nobody who may only read can fill the trail.

use super::AuditWriter;
use reveille_core::audit::{Action, BY_KEY, Draft};
use reveille_core::id::TenantId;
use reveille_core::identity::Identity;
use reveille_core::time::Millis;
use reveille_store::StoreError;
use rustc_hash::FxHashMap;
use std::sync::{Mutex, PoisonError};

/// Reads of the same thing by the same caller within this time are one entry, and so are sign-ins.
const TOGETHER_MS: i64 = 10 * 60 * 1000;
/// Of so many it is known when they were recorded; beyond that some are recorded anew.
const REMEMBERED_MAX: usize = 10_000;

/// The audit trail cannot be written, so what would have to be recorded is not done.
#[derive(Debug, Clone, thiserror::Error)]
#[error("reading this is recorded first, and the audit trail cannot be written now: {0}")]
pub struct Unrecorded(#[from] pub StoreError);

/// When what was recorded last.
#[derive(Default)]
pub struct RecentEntries(Mutex<FxHashMap<String, Millis>>);

impl RecentEntries {
    fn has(&self, name: &str, now: Millis) -> bool {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.get(name).is_some_and(|at| is_recent(*at, now))
    }

    fn put(&self, name: String, now: Millis) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= REMEMBERED_MAX {
            entries.retain(|_, at| is_recent(*at, now));
        }
        if entries.len() >= REMEMBERED_MAX {
            entries.clear();
        }
        entries.insert(name, now);
    }
}

/// A clock that was set back makes nothing recent for long.
fn is_recent(at: Millis, now: Millis) -> bool {
    (0..TOGETHER_MS).contains(&(now.0 - at.0))
}

/// What makes two entries the same but for their time.
fn name(draft: &Draft) -> String {
    let job = draft.job_id.as_ref().map_or("", |id| id.as_str());
    let key = draft.extra.get(BY_KEY).map_or("", String::as_str);
    [draft.action.as_str(), draft.tenant.as_str(), job, key, &draft.identity].join("\n")
}

impl AuditWriter {
    /// An entry about something that is done now.
    pub(crate) fn act(&self, tenant: &TenantId, action: Action, by: &Identity) -> Draft {
        Draft::of_act(tenant.clone(), self.0.runtime.now(), action, by)
    }

    /// The same about something that concerns every tenant.
    pub(crate) fn act_for_all(&self, action: Action, by: &Identity) -> Draft {
        self.act(&self.0.runtime.settings().default_tenant, action, by)
    }

    /// Records what was done to something whose name is new, so that no other entry is like it: programs do such things
    /// often, and need not wait for one another.
    pub(crate) async fn record_new(&self, draft: Draft) {
        // The task asks again until the store answers, and sees whether it had written the entry all the same.
        if self.0.store.record(vec![draft.clone()]).await.is_err() {
            self.record(draft).await;
        }
    }

    /// Records what was done, once for all that come within a while.
    pub(crate) async fn record_together(&self, draft: Draft) {
        let (name, now) = (name(&draft), self.0.runtime.now());
        if !self.0.recent.has(&name, now) {
            self.0.recent.put(name, now);
            self.record(draft).await;
        }
    }

    /// Records what is about to be shown. It must not be shown otherwise.
    pub(crate) async fn record_read(&self, draft: Draft) -> Result<(), Unrecorded> {
        let (name, now) = (name(&draft), self.0.runtime.now());
        if self.0.recent.has(&name, now) {
            return Ok(());
        }
        self.0.store.record(vec![draft]).await?;
        self.0.recent.put(name, now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_recorded_is_remembered_for_a_while_and_takes_bounded_room() {
        let recent = RecentEntries::default();
        recent.put("a".to_owned(), Millis(1_000));
        assert!(recent.has("a", Millis(1_000)) && recent.has("a", Millis(1_000 + TOGETHER_MS - 1)));
        assert!(!recent.has("a", Millis(1_000 + TOGETHER_MS)) && !recent.has("a", Millis(999)));
        assert!(!recent.has("b", Millis(1_000)));
        for number in 0..3 * REMEMBERED_MAX {
            recent.put(number.to_string(), Millis(2_000));
            assert!(recent.0.lock().unwrap().len() <= REMEMBERED_MAX);
        }
        assert!(recent.has(&(3 * REMEMBERED_MAX - 1).to_string(), Millis(2_000)));
    }
}
