//! Every key, in memory: all hashes are held here, so that a request costs one hash and one lookup.

use super::keys::{Caller, KeyStanding, NewKey};
use crate::secret::hash;
use reveille_core::fleet::WorkerCredential;
use reveille_core::id::{KeyId, TenantId, WorkerId};
use reveille_core::time::Millis;
use reveille_roster::{KeyHash, KeyRecord, PublicKey, Roster, RosterError};
use reveille_wire::key::{VerifyingKey, verifying_key};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// People whose names are remembered.
const PEOPLE_NAMED_MAX: usize = 100_000;

#[derive(Default)]
pub struct KeyIndex {
    by_hash: RwLock<FxHashMap<KeyHash, KnownKey>>,
    by_id: RwLock<FxHashMap<KeyId, KeyHash>>,
    /// Public keys, by the worker that signs with them.
    by_worker: RwLock<FxHashMap<WorkerId, Vec<KeyHash>>>,
    /// What people who came lately are called.
    people: RwLock<FxHashMap<KeyId, String>>,
    /// How often a key was changed here.
    changes: AtomicU64,
}

struct KnownKey {
    key: KeyRecord,
    /// What the key allows, made once and shared by its requests.
    caller: Arc<Caller>,
    /// What its signatures are checked with, if it is a public key.
    verifying: Option<VerifyingKey>,
    used_at: AtomicI64,
}

impl KnownKey {
    fn new(key: KeyRecord) -> Self {
        let caller = Caller::of(&key);
        let used_at = AtomicI64::new(key.last_used_at.map_or(0, |at| at.0));
        // It was read when it was registered. One that cannot be read now verifies nothing.
        let verifying = key.public_key.as_ref().and_then(|public| verifying_key(&public.pem).ok());
        Self { key, caller: Arc::new(caller), verifying, used_at }
    }
}

/// A public key with which a worker may sign now.
pub struct Signer {
    pub id: KeyId,
    pub public: Box<PublicKey>,
    pub verifying: VerifyingKey,
    pub tenant: TenantId,
    pub expires_at: Option<Millis>,
    pub credential: Option<Arc<WorkerCredential>>,
}

impl KeyIndex {
    pub async fn load(roster: &dyn Roster) -> Result<Self, RosterError> {
        let keys = Self::default();
        for key in roster.keys().await? {
            keys.insert(key);
        }
        Ok(keys)
    }

    /// How often a key was changed here, for whoever is about to read them anew.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }

    /// What was read anew takes the place of what was known, unless something was changed here after `changes`:
    /// then what was read may be older, and this says no.
    pub fn replace(&self, read: Self, changes: u64) -> bool {
        let mut by_hash = self.by_hash.write().unwrap_or_else(PoisonError::into_inner);
        if self.changes() != changes {
            return false;
        }
        *by_hash = read.by_hash.into_inner().unwrap_or_else(PoisonError::into_inner);
        // Both change under one lock: a key that is known by its hash and not by its id would look revoked.
        *self.by_id.write().unwrap_or_else(PoisonError::into_inner) =
            read.by_id.into_inner().unwrap_or_else(PoisonError::into_inner);
        *self.by_worker.write().unwrap_or_else(PoisonError::into_inner) =
            read.by_worker.into_inner().unwrap_or_else(PoisonError::into_inner);
        true
    }

    pub fn insert(&self, key: KeyRecord) {
        let mut by_hash = self.by_hash.write().unwrap_or_else(PoisonError::into_inner);
        let mut by_id = self.by_id.write().unwrap_or_else(PoisonError::into_inner);
        by_id.insert(key.id.clone(), key.hash);
        drop(by_id);
        if let Some(public) = &key.public_key {
            let mut by_worker = self.by_worker.write().unwrap_or_else(PoisonError::into_inner);
            let hashes = by_worker.entry(public.worker.clone()).or_default();
            if !hashes.contains(&key.hash) {
                hashes.push(key.hash);
            }
        }
        by_hash.insert(key.hash, KnownKey::new(key));
        self.changes.fetch_add(1, Ordering::SeqCst);
    }

    pub fn find(&self, secret: &str, now: Millis) -> Option<Arc<Caller>> {
        let keys = self.by_hash.read().unwrap_or_else(PoisonError::into_inner);
        // Anybody may have a public key, which is no secret.
        let is_secret = |known: &&KnownKey| known.key.public_key.is_none() && known.key.is_valid(now);
        let known = keys.get(&hash(secret)).filter(is_secret)?;
        known.used_at.store(now.0, Ordering::Relaxed);
        Some(known.caller.clone())
    }

    /// With which keys this worker may sign now.
    pub fn signers(&self, worker: &WorkerId, now: Millis) -> Vec<Signer> {
        let by_worker = self.by_worker.read().unwrap_or_else(PoisonError::into_inner);
        let Some(hashes) = by_worker.get(worker).cloned() else { return Vec::new() };
        drop(by_worker);
        let keys = self.by_hash.read().unwrap_or_else(PoisonError::into_inner);
        let known = hashes.iter().filter_map(|hash| keys.get(hash)).filter(|known| known.key.is_valid(now));
        let signer = |known: &KnownKey| {
            Some(Signer {
                id: known.key.id.clone(),
                public: known.key.public_key.clone()?,
                verifying: known.verifying?,
                tenant: known.key.tenant.clone(),
                expires_at: known.key.expires_at,
                credential: known.caller.worker.clone(),
            })
        };
        known.filter_map(signer).collect()
    }

    /// The key with this hash, whatever has become of it.
    pub fn id_of(&self, hash: &KeyHash) -> Option<KeyId> {
        let keys = self.by_hash.read().unwrap_or_else(PoisonError::into_inner);
        keys.get(hash).map(|known| known.key.id.clone())
    }

    /// A key was used in a way that shows no secret.
    pub fn mark_used(&self, id: &KeyId, now: Millis) {
        let hash = self.by_id.read().unwrap_or_else(PoisonError::into_inner).get(id).copied();
        let keys = self.by_hash.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = hash.and_then(|hash| keys.get(&hash)) {
            known.used_at.store(now.0, Ordering::Relaxed);
        }
    }

    /// The hash of a key that still opens something, and for whom.
    pub fn of_id(&self, id: &KeyId, now: Millis) -> Option<(KeyHash, Arc<Caller>)> {
        let hash = *self.by_id.read().unwrap_or_else(PoisonError::into_inner).get(id)?;
        let keys = self.by_hash.read().unwrap_or_else(PoisonError::into_inner);
        let known = keys.get(&hash).filter(|known| known.key.is_valid(now))?;
        known.used_at.store(now.0, Ordering::Relaxed);
        Some((hash, known.caller.clone()))
    }

    /// What has become of a key. Unlike [`Self::of_id`] this does not count as use: open connections ask every second.
    pub fn standing(&self, id: &KeyId, now: Millis) -> KeyStanding {
        let hash = self.by_id.read().unwrap_or_else(PoisonError::into_inner).get(id).copied();
        let keys = self.by_hash.read().unwrap_or_else(PoisonError::into_inner);
        match hash.and_then(|hash| keys.get(&hash)) {
            Some(known) if known.key.is_valid(now) => KeyStanding::Valid(known.caller.clone()),
            Some(known) if known.key.revoked_at.is_none() => KeyStanding::Expired,
            _ => KeyStanding::Revoked,
        }
    }

    /// What whoever has this key may serve as a worker. Nothing if it is no worker's, or opens nothing any more.
    pub fn worker_credential(&self, id: &KeyId, now: Millis) -> Option<Arc<WorkerCredential>> {
        match self.standing(id, now) {
            KeyStanding::Valid(caller) => caller.worker.clone(),
            KeyStanding::Expired | KeyStanding::Revoked => None,
        }
    }

    /// The key with this hash, if it is good and like this one.
    pub fn kept(&self, hash: &KeyHash, new: &NewKey) -> Option<KeyRecord> {
        let keys = self.by_hash.read().unwrap_or_else(PoisonError::into_inner);
        let key = &keys.get(hash)?.key;
        let is_like_it = key.revoked_at.is_none()
            && key.expires_at == new.expires_at
            && (&key.name, &key.tenant, &key.scopes) == (&new.name, &new.tenant, &new.scopes)
            && key.worker == new.worker;
        is_like_it.then(|| key.clone())
    }

    /// The key as it is now, if nobody had revoked it before.
    pub fn revoke(&self, id: &KeyId, at: Millis, by: String) -> Option<KeyRecord> {
        let mut keys = self.by_hash.write().unwrap_or_else(PoisonError::into_inner);
        let key = keys.values_mut().map(|known| &mut known.key).find(|key| key.id == *id)?;
        // What was written a moment ago may have been read back already.
        if key.revoked_at.is_some() && (key.revoked_at, &key.revoked_by) != (Some(at), &by) {
            return None;
        }
        (key.revoked_at, key.revoked_by) = (Some(at), by);
        let revoked = key.clone();
        self.changes.fetch_add(1, Ordering::SeqCst);
        Some(revoked)
    }

    /// Another key takes its place, and it ends then if it does not before. The first time counts.
    pub fn mark_replaced(&self, id: &KeyId, by: &KeyId, expires_at: Millis) {
        let mut keys = self.by_hash.write().unwrap_or_else(PoisonError::into_inner);
        let mut keys = keys.values_mut().map(|known| &mut known.key);
        if let Some(key) = keys.find(|key| key.id == *id && key.replaced_by.is_none()) {
            key.expires_at = Some(key.expires_at.map_or(expires_at, |end| end.min(expires_at)));
            key.replaced_by = Some(by.clone());
        }
        self.changes.fetch_add(1, Ordering::SeqCst);
    }

    pub fn get(&self, id: &KeyId) -> Option<KeyRecord> {
        let hash = *self.by_id.read().unwrap_or_else(PoisonError::into_inner).get(id)?;
        let keys = self.by_hash.read().unwrap_or_else(PoisonError::into_inner);
        keys.get(&hash).map(|known| known.key.clone())
    }

    /// Keys that were used since it was last written down, and when.
    pub fn take_used(&self) -> Vec<(KeyId, Millis)> {
        let mut keys = self.by_hash.write().unwrap_or_else(PoisonError::into_inner);
        let mut used = Vec::new();
        for known in keys.values_mut() {
            let at = Millis(known.used_at.load(Ordering::Relaxed));
            if at.0 > 0 && known.key.last_used_at != Some(at) {
                known.key.last_used_at = Some(at);
                used.push((known.key.id.clone(), at));
            }
        }
        used
    }

    pub fn len(&self) -> usize {
        self.by_hash.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether two keys are one holder's: the same name in the same tenant, as a key and its successor have.
    pub fn is_same_holder(&self, one: &KeyId, other: &KeyId) -> bool {
        let by_id = self.by_id.read().unwrap_or_else(PoisonError::into_inner);
        let hashes = by_id.get(one).copied().zip(by_id.get(other).copied());
        drop(by_id);
        let keys = self.by_hash.read().unwrap_or_else(PoisonError::into_inner);
        let holders = hashes.and_then(|(one, other)| Some((&keys.get(&one)?.key, &keys.get(&other)?.key)));
        holders.is_some_and(|(one, other)| (&one.tenant, &one.name) == (&other.tenant, &other.name))
    }

    /// What a key is called, also when it is revoked, or a person. Of a person who has not come since the start it is
    /// known only what the issuer calls them.
    pub fn name_of(&self, id: &KeyId) -> Option<String> {
        let Some(subject) = id.subject() else { return self.get(id).map(|key| key.name) };
        let people = self.people.read().unwrap_or_else(PoisonError::into_inner);
        Some(people.get(id).map_or(subject, String::as_str).to_owned())
    }

    /// A person is here, by this name.
    pub fn note_person(&self, id: &KeyId, name: &str) {
        let people = self.people.read().unwrap_or_else(PoisonError::into_inner);
        if people.get(id).is_some_and(|known| known == name) || people.len() >= PEOPLE_NAMED_MAX {
            return;
        }
        drop(people);
        self.people.write().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), name.to_owned());
    }

    /// Everybody who has a key.
    pub fn tenants(&self) -> BTreeSet<TenantId> {
        let keys = self.by_hash.read().unwrap_or_else(PoisonError::into_inner);
        keys.values().map(|known| known.key.tenant.clone()).collect()
    }

    /// Every key, by id.
    pub fn list(&self) -> Vec<KeyRecord> {
        let keys = self.by_hash.read().unwrap_or_else(PoisonError::into_inner);
        let mut list: Vec<KeyRecord> = keys
            .values()
            .map(|known| {
                let used_at = known.used_at.load(Ordering::Relaxed);
                KeyRecord { last_used_at: (used_at > 0).then_some(Millis(used_at)), ..known.key.clone() }
            })
            .collect();
        list.sort_by(|a, b| a.id.cmp(&b.id));
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::hash;
    use reveille_roster::Scope;

    fn key(id: &str) -> KeyRecord {
        KeyRecord {
            id: KeyId::known(id),
            hash: hash(id),
            prefix: String::new(),
            name: id.to_owned(),
            tenant: TenantId::known("t"),
            scopes: vec![Scope::Read],
            worker: None,
            public_key: None,
            created_by: String::new(),
            issued_by: None,
            project_ids: None,
            created_at: Millis(1),
            expires_at: None,
            replaces: None,
            replaced_by: None,
            revoked_at: None,
            revoked_by: String::new(),
            last_used_at: None,
        }
    }

    #[test]
    fn a_key_that_was_shown_is_followed_without_being_used() {
        let (keys, id) = (KeyIndex::default(), KeyId::known("a"));
        keys.insert(KeyRecord { expires_at: Some(Millis(5)), ..key("a") });
        let KeyStanding::Valid(caller) = keys.standing(&id, Millis(4)) else { panic!("it is valid") };
        assert!(caller.may(Scope::Read) && !caller.may(Scope::Write));
        assert_eq!(keys.standing(&id, Millis(5)), KeyStanding::Expired);
        assert!(keys.take_used().is_empty());

        keys.insert(KeyRecord { scopes: vec![Scope::Write], ..key("a") });
        let KeyStanding::Valid(caller) = keys.standing(&id, Millis(6)) else { panic!("it is valid again") };
        assert!(caller.may(Scope::Write), "it tells what the key opens now");

        keys.revoke(&id, Millis(7), "ann".to_owned()).unwrap();
        assert_eq!(keys.standing(&id, Millis(8)), KeyStanding::Revoked);
        assert_eq!(keys.standing(&KeyId::known("never"), Millis(8)), KeyStanding::Revoked);
    }

    #[test]
    fn what_was_read_before_a_change_does_not_undo_it() {
        let read = || {
            let read = KeyIndex::default();
            read.insert(key("a"));
            read
        };
        let keys = read();
        let before = keys.changes();
        keys.revoke(&KeyId::known("a"), Millis(2), "ann".to_owned()).unwrap();
        assert!(!keys.replace(read(), before), "it was read before the key was revoked");
        assert!(keys.find("a", Millis(3)).is_none());
        let before = keys.changes();
        keys.insert(key("b"));
        assert!(!keys.replace(read(), before));
        assert!(keys.find("b", Millis(3)).is_some());
        assert!(keys.replace(read(), keys.changes()));
        assert!(keys.find("a", Millis(3)).is_some() && keys.find("b", Millis(3)).is_none());
    }
}
