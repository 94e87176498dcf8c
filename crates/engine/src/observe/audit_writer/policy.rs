//! Entries about policy: which one came after which, and which files were refused. They are in the
//! chain of the default tenant, although a policy is everybody's.

use super::AuditWriter;
use crate::rules::BadFile;
use reveille_core::audit::{Draft, EventType, Severity};
use reveille_store::{AuditQuery, PAGE_LEN_MAX, StoreError};
use std::sync::PoisonError;

const CHANGED: &str = "policy_changed";
/// Snapshots that are listed.
const SNAPSHOTS_MAX: usize = 10;
const REFUSED: &str = "policy_refused";
/// Refused files that are remembered; beyond that no more are recorded before the next start.
const REFUSED_MAX: usize = 10_000;
/// Servers that watch the same file refuse it within this time.
const REFUSED_TOGETHER_MS: i64 = 60_000;
/// Characters of what is wrong with a file.
const REASON_CHARS_MAX: usize = 2_000;

impl AuditWriter {
    /// Another policy came into force while the server ran.
    pub(crate) fn record_reload(&self, old: &str, new: &str) {
        if old != new {
            self.record_later(self.policy_changed(old, new, "reload"));
        }
    }

    /// Says that a file was read again and is not used. The same text of a file is recorded once, until
    /// the next start, which it would stop.
    pub fn refuse_rules(&self, bad: &BadFile) {
        let name = format!("{} {}", bad.file, bad.sha256.as_ref().unwrap_or(&bad.problem));
        let mut refused = self.0.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = refused.len() < REFUSED_MAX && refused.insert(name);
        drop(refused);
        if !is_new {
            return;
        }
        let mut draft = self.of_policy(REFUSED);
        draft.reason = bad.problem.chars().take(REASON_CHARS_MAX).collect();
        self.0.runtime.rules().policy.snapshot().clone_into(&mut draft.policy_version);
        draft.extra = [("file".to_owned(), bad.file.clone()), cause("reload")].into();
        draft.extra.extend(bad.sha256.clone().map(|digest| ("sha256".to_owned(), digest)));
        self.record_later(draft);
    }

    /// What is to be said at a start: nothing if the policy is the one that was recorded last.
    pub(super) async fn unrecorded_policy(&self, snapshot: &str) -> Result<Option<Draft>, StoreError> {
        let last = self.recorded_policy().await?.unwrap_or_default();
        Ok((last != snapshot).then(|| self.policy_changed(&last, snapshot, "start")))
    }

    async fn recorded_policy(&self) -> Result<Option<String>, StoreError> {
        Ok(self.recorded_policies(1).await?.pop())
    }

    /// The policies that held lately, the last one first.
    pub async fn snapshots(&self) -> Result<Vec<String>, StoreError> {
        self.recorded_policies(SNAPSHOTS_MAX).await
    }

    async fn recorded_policies(&self, count: usize) -> Result<Vec<String>, StoreError> {
        let mut found = Vec::new();
        let mut query = AuditQuery {
            tenant: Some(self.0.runtime.settings().default_tenant.clone()),
            event_type: Some(EventType::PolicyChange),
            limit: PAGE_LEN_MAX,
            ..AuditQuery::default()
        };
        loop {
            let page = self.0.store.audit(&query).await?;
            let drafts = page.items.into_iter().map(|entry| entry.draft);
            let changes = drafts.filter(|draft| draft.action == CHANGED);
            found.extend(changes.map(|draft| draft.policy_version).take(count - found.len()));
            query.cursor = page.next;
            if query.cursor.is_none() || found.len() == count {
                return Ok(found);
            }
        }
    }

    fn policy_changed(&self, old: &str, new: &str, by: &str) -> Draft {
        let snapshots = [("old_snapshot", old), ("new_snapshot", new)];
        let snapshots = snapshots.map(|(name, snapshot)| (name.to_owned(), snapshot.to_owned()));
        Draft {
            policy_version: new.to_owned(),
            extra: snapshots.into_iter().chain([cause(by)]).collect(),
            ..self.of_policy(CHANGED)
        }
    }

    fn of_policy(&self, action: &str) -> Draft {
        let tenant = self.0.runtime.settings().default_tenant.clone();
        Draft {
            severity: Severity::Medium,
            ..Draft::new(tenant, self.0.runtime.now(), EventType::PolicyChange, action)
        }
    }
}

/// Whether another server has recorded the same: the policy that came into force last is this one, or the file was
/// refused a moment ago. The newest entry comes first.
pub(super) fn is_recorded<'a>(recorded: &mut impl Iterator<Item = &'a Draft>, draft: &Draft) -> bool {
    let is_same_file = |entry: &&Draft| {
        (&entry.action, &entry.reason, &entry.extra) == (&draft.action, &draft.reason, &draft.extra)
    };
    match draft.action.as_str() {
        CHANGED => {
            let last = recorded.find(|entry| entry.action == CHANGED);
            last.is_some_and(|last| last.policy_version == draft.policy_version)
        }
        REFUSED => recorded.filter(is_same_file).any(|entry| draft.at.0 - entry.at.0 < REFUSED_TOGETHER_MS),
        _ => false,
    }
}

fn cause(word: &str) -> (String, String) {
    ("cause".to_owned(), word.to_owned())
}
