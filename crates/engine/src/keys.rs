//! Keys: who is calling, from which tenant, and what they may do.
//!
//! A secret is `vk_` and 160 random bits. Only its hash is stored, and all hashes are held in memory,
//! so that a request costs one hash and one lookup.

use crate::Engine;
use crate::clerk;
use crate::scribe::Note;
use reveille_core::id::{KeyId, TenantId};
use reveille_core::time::Millis;
use reveille_roster::{Change, KeyHash, KeyRecord, Roster, RosterError, Scope};
use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

pub const KEY_PREFIX: &str = "vk_";
pub const KEYS_MAX: usize = 100_000;
/// Whoever shows no key, where that is allowed.
const ANONYMOUS: &str = "anonymous";
/// The longest secret that is looked at.
pub const SECRET_LEN_MAX: usize = 512;

/// Whoever made a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Of the key it showed; `anonymous` for those who were let in without one.
    pub key: KeyId,
    pub name: String,
    pub tenant: TenantId,
    scopes: Vec<Scope>,
}

impl Caller {
    pub fn may(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope) || self.scopes.contains(&Scope::Admin)
    }

    /// Operators see every tenant.
    pub fn sees(&self, tenant: &TenantId) -> bool {
        self.may(Scope::Admin) || self.tenant == *tenant
    }
}

pub struct NewKey {
    pub name: String,
    pub tenant: TenantId,
    pub scopes: Vec<Scope>,
    pub expires_at: Option<Millis>,
    /// Who makes it, as far as we know ourselves.
    pub created_by: String,
    /// On whose behalf, in their words.
    pub issued_by: Option<String>,
    pub project_ids: Option<Vec<String>>,
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum KeyError {
    #[error("there are {KEYS_MAX} keys already")]
    TooMany,
    #[error(transparent)]
    Roster(#[from] RosterError),
}

#[derive(Default)]
pub struct Keys {
    by_hash: RwLock<FxHashMap<KeyHash, Known>>,
    by_id: RwLock<FxHashMap<KeyId, KeyHash>>,
    /// How often a key was changed here.
    changes: AtomicU64,
}

struct Known {
    key: KeyRecord,
    /// What the key allows, made once and shared by its requests.
    caller: Arc<Caller>,
    used_at: AtomicI64,
}

impl Known {
    fn new(key: KeyRecord) -> Self {
        let caller = Caller {
            key: key.id.clone(),
            name: key.name.clone(),
            tenant: key.tenant.clone(),
            scopes: key.scopes.clone(),
        };
        let used_at = AtomicI64::new(key.last_used_at.map_or(0, |at| at.0));
        Self { key, caller: Arc::new(caller), used_at }
    }
}

impl Keys {
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
        drop(by_hash);
        *self.by_id.write().unwrap_or_else(PoisonError::into_inner) =
            read.by_id.into_inner().unwrap_or_else(PoisonError::into_inner);
        true
    }

    fn insert(&self, key: KeyRecord) {
        let mut by_id = self.by_id.write().unwrap_or_else(PoisonError::into_inner);
        by_id.insert(key.id.clone(), key.hash);
        drop(by_id);
        let mut by_hash = self.by_hash.write().unwrap_or_else(PoisonError::into_inner);
        by_hash.insert(key.hash, Known::new(key));
        self.changes.fetch_add(1, Ordering::SeqCst);
    }

    fn find(&self, secret: &str, now: Millis) -> Option<Arc<Caller>> {
        let keys = self.by_hash.read().unwrap_or_else(PoisonError::into_inner);
        let known = keys.get(&hash(secret)).filter(|known| known.key.is_valid(now))?;
        known.used_at.store(now.0, Ordering::Relaxed);
        Some(known.caller.clone())
    }

    /// The hash of a key that still opens something, and for whom.
    pub fn of_id(&self, id: &KeyId, now: Millis) -> Option<(KeyHash, Arc<Caller>)> {
        let hash = *self.by_id.read().unwrap_or_else(PoisonError::into_inner).get(id)?;
        let keys = self.by_hash.read().unwrap_or_else(PoisonError::into_inner);
        let known = keys.get(&hash).filter(|known| known.key.is_valid(now))?;
        known.used_at.store(now.0, Ordering::Relaxed);
        Some((hash, known.caller.clone()))
    }

    /// The key with this hash, if it is good and like this one.
    fn kept(&self, hash: &KeyHash, new: &NewKey) -> Option<KeyRecord> {
        let keys = self.by_hash.read().unwrap_or_else(PoisonError::into_inner);
        let key = &keys.get(hash)?.key;
        let is_like_it = key.revoked_at.is_none()
            && key.expires_at == new.expires_at
            && (&key.name, &key.tenant, &key.scopes) == (&new.name, &new.tenant, &new.scopes);
        is_like_it.then(|| key.clone())
    }

    /// The key as it is now, if nobody had revoked it before.
    fn revoke(&self, id: &KeyId, at: Millis, by: String) -> Option<KeyRecord> {
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

    /// Keys that were used since it was last written down, and when.
    fn take_used(&self) -> Vec<(KeyId, Millis)> {
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
}

/// Secrets are random, so a fast hash is enough.
pub(crate) fn hash(secret: &str) -> KeyHash {
    Sha256::digest(secret.as_bytes()).into()
}

/// Base64 for URLs, without padding.
pub(crate) fn base64url(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0u32, |word, byte| (word << 8) | u32::from(*byte));
        let word = word << (8 * (3 - chunk.len()));
        for place in 0..=chunk.len() {
            text.push(char::from(ALPHABET[(word >> (18 - 6 * place)) as usize & 63]));
        }
    }
    text
}

impl Engine {
    /// Who has this secret, if anyone who may still use it.
    pub fn authenticate(&self, secret: &str) -> Option<Arc<Caller>> {
        if secret.len() > SECRET_LEN_MAX {
            return None;
        }
        self.keys.find(secret, self.now())
    }

    /// Who somebody without a secret is, where that is allowed at all: a tenant of their own, and no
    /// operator.
    pub fn anonymous(&self) -> Option<Arc<Caller>> {
        let tenant = self.settings.open_tenant.clone()?;
        let scopes = vec![Scope::Ingest, Scope::Read, Scope::Write];
        Some(Arc::new(Caller { key: KeyId::known(ANONYMOUS), name: ANONYMOUS.to_owned(), tenant, scopes }))
    }

    /// Makes a key. The secret is returned here and nowhere else.
    pub async fn create_key(&self, new: NewKey) -> Result<(KeyRecord, String), KeyError> {
        let mut secret = String::from(KEY_PREFIX);
        for _ in 0..3 {
            let _ = write!(secret, "{:016x}", self.rng.next_u64());
        }
        secret.truncate(KEY_PREFIX.len() + 40);
        let key = self.keep_key(&secret, new).await?;
        Ok((key, secret))
    }

    /// Keeps a key whose secret somebody else chose: the operator's, from the environment. One that is
    /// there already, just as it is to be, is left as it is.
    pub async fn keep_key(&self, secret: &str, new: NewKey) -> Result<KeyRecord, KeyError> {
        if let Some(kept) = self.keys.kept(&hash(secret), &new) {
            return Ok(kept);
        }
        if self.keys.by_hash.read().unwrap_or_else(PoisonError::into_inner).len() >= KEYS_MAX {
            return Err(KeyError::TooMany);
        }
        let hash = hash(secret);
        let mut id = String::from("key_");
        for byte in &hash[..6] {
            let _ = write!(id, "{byte:02x}");
        }
        let key = KeyRecord {
            id: KeyId::known(id),
            hash,
            // Eight characters tell keys apart and give 20 of 160 bits away.
            prefix: secret.chars().take(8).collect(),
            name: new.name,
            tenant: new.tenant,
            scopes: new.scopes,
            created_by: new.created_by,
            issued_by: new.issued_by,
            project_ids: new.project_ids,
            created_at: self.now(),
            expires_at: new.expires_at,
            revoked_at: None,
            revoked_by: String::new(),
            last_used_at: None,
        };
        let engine = self.clone();
        self.run_detached(async move {
            engine.write_down(Note { changes: vec![Change::Key(key.clone())], told: Vec::new() }).await?;
            engine.keys.insert(key.clone());
            engine.record(clerk::created(&key)).await;
            Ok(key)
        })
        .await
    }

    /// What a key is called, also when it is revoked.
    pub(crate) fn name_of_key(&self, id: &KeyId) -> Option<String> {
        let hash = *self.keys.by_id.read().unwrap_or_else(PoisonError::into_inner).get(id)?;
        let keys = self.keys.by_hash.read().unwrap_or_else(PoisonError::into_inner);
        keys.get(&hash).map(|known| known.key.name.clone())
    }

    /// Everybody who has a key.
    pub fn tenants(&self) -> BTreeSet<TenantId> {
        let keys = self.keys.by_hash.read().unwrap_or_else(PoisonError::into_inner);
        keys.values().map(|known| known.key.tenant.clone()).collect()
    }

    /// Every key, by id.
    pub fn list_keys(&self) -> Vec<KeyRecord> {
        let keys = self.keys.by_hash.read().unwrap_or_else(PoisonError::into_inner);
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

    /// From now on the key opens nothing. Says whether there was one.
    pub async fn revoke_key(&self, id: &KeyId, by: &str) -> Result<bool, RosterError> {
        match self.list_keys().iter().find(|key| key.id == *id) {
            None => return Ok(false),
            Some(key) if key.revoked_at.is_some() => return Ok(true),
            Some(_) => {}
        }
        let (engine, id, at, by) = (self.clone(), id.clone(), self.now(), by.to_owned());
        self.run_detached(async move {
            let change = Change::RevokeKey { id: id.clone(), at, by: by.clone() };
            engine.write_down(Note { changes: vec![change], told: Vec::new() }).await?;
            if let Some(draft) = engine.keys.revoke(&id, at, by).as_ref().and_then(clerk::revoked) {
                engine.record(draft).await;
            }
            Ok(true)
        })
        .await
    }

    /// Notes when keys were last used.
    pub(crate) async fn note_key_use(&self) {
        let used = self.keys.take_used().into_iter();
        let changes: Vec<Change> = used.map(|(id, at)| Change::KeyUsed { id, at }).collect();
        if !changes.is_empty() {
            self.jot_down(Note { changes, told: Vec::new() }).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: &str) -> KeyRecord {
        KeyRecord {
            id: KeyId::known(id),
            hash: hash(id),
            prefix: String::new(),
            name: id.to_owned(),
            tenant: TenantId::known("t"),
            scopes: vec![Scope::Read],
            created_by: String::new(),
            issued_by: None,
            project_ids: None,
            created_at: Millis(1),
            expires_at: None,
            revoked_at: None,
            revoked_by: String::new(),
            last_used_at: None,
        }
    }

    #[test]
    fn what_was_read_before_a_change_does_not_undo_it() {
        let read = || {
            let read = Keys::default();
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

    #[test]
    fn base64_is_for_urls_and_has_no_padding() {
        assert_eq!(base64url(b""), "");
        assert_eq!(base64url(b"f"), "Zg");
        assert_eq!(base64url(b"fo"), "Zm8");
        assert_eq!(base64url(b"foo"), "Zm9v");
        assert_eq!(base64url(&[0xfb, 0xff]), "-_8");
        assert_eq!(base64url(&[7; 32]).len(), 43);
    }
}
