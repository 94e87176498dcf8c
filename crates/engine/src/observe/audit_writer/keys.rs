//! Entries about keys. They are made from the key's record alone, so that a start can make up for those
//! that are missing, with the same words.

use super::AuditWriter;
use reveille_core::audit::{Draft, EventType, Severity};
use reveille_core::id::KeyId;
use reveille_core::time::Millis;
use reveille_roster::{KeyRecord, Scope};
use reveille_store::{AuditOrder, AuditQuery, PAGE_LEN_MAX, StoreError};
use std::collections::BTreeMap;

const CREATED: &str = "key_created";
const ROTATED: &str = "key_rotated";
const REVOKED: &str = "key_revoked";
const KEY_ID: &str = "key_id";

/// A key was made, perhaps in the place of another.
pub fn created(key: &KeyRecord) -> Draft {
    let action = if key.replaces.is_some() { ROTATED } else { CREATED };
    let mut draft = Draft { identity: key.created_by.clone(), ..draft(key, key.created_at, action) };
    draft.extra.extend(key.replaces.as_ref().map(|old| ("replaces".to_owned(), old.to_string())));
    draft
}

/// Nothing while the key is not revoked.
pub fn revoked(key: &KeyRecord) -> Option<Draft> {
    Some(Draft { identity: key.revoked_by.clone(), ..draft(key, key.revoked_at?, REVOKED) })
}

fn draft(key: &KeyRecord, at: Millis, action: &str) -> Draft {
    let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.as_str()).collect();
    let extra = [(KEY_ID, key.id.to_string()), ("name", key.name.clone()), ("scopes", scopes.join(","))];
    let mut extra: BTreeMap<String, String> = extra.map(|(name, value)| (name.to_owned(), value)).into();
    if let Some(grant) = &key.worker {
        extra.insert("serves".to_owned(), grant.tenants.to_string());
    }
    Draft {
        // An operator's key opens every tenant.
        severity: if key.allows(Scope::Admin) { Severity::Medium } else { Severity::Low },
        extra,
        ..Draft::new(key.tenant.clone(), at, EventType::Auth, action)
    }
}

impl AuditWriter {
    /// Changes of these keys that have no entry, except those whose entry may have been pruned. Only
    /// whoever changed a key last is in its record, so an entry that is not older is the one.
    pub(super) async fn unrecorded_keys(&self, keys: &[KeyRecord]) -> Result<Vec<Draft>, StoreError> {
        let oldest = self.0.runtime.now() - self.0.runtime.settings().keep_audit_ms;
        let recorded = self.recorded_keys(oldest).await?;
        let is_owed = |draft: &Draft, key: &KeyRecord| {
            let newest = recorded.get(&(key.id.clone(), draft.action.clone()));
            draft.at >= oldest && newest.is_none_or(|newest| *newest < key.created_at)
        };
        let mut owed: Vec<Draft> = keys
            .iter()
            .flat_map(|key| [Some(created(key)), revoked(key)].into_iter().flatten().map(move |it| (it, key)))
            .filter_map(|(draft, key)| is_owed(&draft, key).then_some(draft))
            .collect();
        owed.sort_by_key(|draft| draft.at);
        Ok(owed)
    }

    /// When each thing was last recorded of each key.
    async fn recorded_keys(&self, from: Millis) -> Result<BTreeMap<(KeyId, String), Millis>, StoreError> {
        let mut query = AuditQuery {
            order: AuditOrder::OldestFirst,
            event_type: Some(EventType::Auth),
            from: Some(from),
            limit: PAGE_LEN_MAX,
            ..AuditQuery::default()
        };
        let mut recorded = BTreeMap::new();
        loop {
            let page = self.0.store.audit(&query).await?;
            for draft in page.items.into_iter().map(|entry| entry.draft) {
                let Some(id) = draft.extra.get(KEY_ID).and_then(|id| KeyId::parse(id).ok()) else { continue };
                let newest = recorded.entry((id, draft.action)).or_insert(draft.at);
                *newest = draft.at.max(*newest);
            }
            query.cursor = page.next;
            if query.cursor.is_none() {
                return Ok(recorded);
            }
        }
    }
}
