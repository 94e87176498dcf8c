//! What people and programs do that changes no job, or reads what is held back, and what is said of it in the trail.
//!
//! The whole list stands here, so that a page can be compared with it. What is decided about a job is read off the job
//! ([`of_step`](super::of_step)); keys and policies have entries of their own.

use super::{Draft, EventType, Severity};
use crate::id::TenantId;
use crate::identity::Identity;
use crate::time::Millis;
use crate::words::words;

/// Where an entry says which credential was used.
pub const BY_KEY: &str = "by_key";
/// Where it says what somebody called themselves.
pub const CLAIMED: &str = "claimed_by";

words! {
    Action {
        /// A result that output policy holds back was shown.
        HeldResultRead = "held_result_read",
        /// Packets that nobody could deal with were shown; nobody knows whose they are.
        DeadPacketsRead = "dead_packets_read",
        DeadLetterRetried = "dead_letter_retried",
        DeadLetterDeleted = "dead_letter_deleted",
        WorkerDrained = "worker_drained",
        WorkerUndrained = "worker_undrained",
        PoolDrained = "pool_drained",
        PoolUndrained = "pool_undrained",
        WorkflowSaved = "workflow_saved",
        WorkflowDeleted = "workflow_deleted",
        RunStarted = "run_started",
        RunCancelled = "run_cancelled",
        RunDeleted = "run_deleted",
        WorkspaceCreated = "workspace_created",
        /// It came in under another address, or was given its token.
        WorkspaceRegistered = "workspace_registered",
        WorkspaceChanged = "workspace_changed",
        /// It was given a token in place of the one it had.
        WorkspaceTokenRotated = "workspace_token_rotated",
        WorkspaceRetired = "workspace_retired",
        WorkspacePurged = "workspace_purged",
        /// A browser was given a session.
        SignedIn = "signed_in",
        SignedOut = "signed_out",
    }
}

impl Action {
    pub fn event_type(self) -> EventType {
        match self {
            Self::HeldResultRead | Self::DeadPacketsRead => EventType::Read,
            Self::SignedIn | Self::SignedOut => EventType::Auth,
            _ => EventType::Act,
        }
    }

    fn severity(self) -> Severity {
        match self {
            Self::HeldResultRead | Self::WorkspaceTokenRotated => Severity::High,
            Self::DeadPacketsRead
            | Self::DeadLetterDeleted
            | Self::WorkerDrained
            | Self::PoolDrained
            | Self::WorkflowDeleted
            | Self::RunDeleted
            | Self::WorkspaceRegistered
            | Self::WorkspaceRetired
            | Self::WorkspacePurged => Severity::Medium,
            Self::RunStarted | Self::SignedIn | Self::SignedOut => Severity::Info,
            _ => Severity::Low,
        }
    }
}

impl Draft {
    /// Somebody did this.
    pub fn of_act(tenant: TenantId, at: Millis, action: Action, by: &Identity) -> Self {
        let draft = Self::new(tenant, at, action.event_type(), action.as_str());
        Self { severity: action.severity(), ..draft }.by(by)
    }

    /// The same with one fact more, if there is something to say.
    #[must_use]
    pub fn about(mut self, name: &str, value: &str) -> Self {
        if !value.is_empty() {
            self.extra.insert(name.to_owned(), value.to_owned());
        }
        self
    }

    /// The same, done by somebody: who they are is the entry's identity, and what they say of themselves is beside it.
    #[must_use]
    pub fn by(mut self, by: &Identity) -> Self {
        let key = by.key.as_ref().map_or("", |key| key.as_str());
        let who = if by.name.is_empty() { key } else { &by.name };
        who.clone_into(&mut self.identity);
        let claim = if by.claim == self.identity { "" } else { &by.claim };
        self.about(BY_KEY, key).about(CLAIMED, claim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::KeyId;

    fn draft(by: &Identity) -> Draft {
        Draft::of_act(TenantId::known("acme"), Millis(5), Action::WorkflowSaved, by)
    }

    #[test]
    fn an_act_names_whose_key_it_was_and_what_they_say_they_are_apart() {
        let ann = Identity::of_key("ann", &KeyId::known("key_1"));
        let draft_of_ann = draft(&ann);
        assert_eq!((draft_of_ann.identity.as_str(), draft_of_ann.extra[BY_KEY].as_str()), ("ann", "key_1"));
        assert!(!draft_of_ann.extra.contains_key(CLAIMED));
        let claimed = draft(&Identity { claim: "bob".to_owned(), ..ann });
        assert_eq!((claimed.identity.as_str(), claimed.extra[CLAIMED].as_str()), ("ann", "bob"));
        let nobody = draft(&Identity { claim: "bob".to_owned(), ..Identity::default() });
        assert_eq!((nobody.identity.as_str(), nobody.extra[CLAIMED].as_str()), ("", "bob"));
        let unnamed = draft(&Identity { key: Some(KeyId::known("key_2")), ..Identity::default() });
        assert_eq!(unnamed.identity, "key_2", "a key whose name nobody knows any more");
    }

    #[test]
    fn the_page_about_security_lists_every_action() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/security.md");
        let page = std::fs::read_to_string(page).unwrap();
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with('|')).collect();
        for action in Action::ALL {
            let entry = format!("`{}` `{action}`", action.event_type());
            assert!(rows.iter().any(|row| row.contains(&entry)), "docs/security.md has no row with {entry}");
        }
    }
}
