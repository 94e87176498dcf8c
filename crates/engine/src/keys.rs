//! Keys: who is calling, from which tenant, and what they may do.
//!
//! A secret is `vk_` and 160 random bits. Only its hash is stored, and all hashes are held in memory,
//! so that a request costs one hash and one lookup.

use crate::Engine;
use reveille_core::id::{KeyId, TenantId};
use reveille_core::time::Millis;
use reveille_store::{KeyHash, KeyRecord, Scope, Store, StoreError};
use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::sync::{PoisonError, RwLock};

pub const KEY_PREFIX: &str = "vk_";
pub const KEYS_MAX: usize = 100_000;
/// The longest secret that is looked at.
pub const SECRET_LEN_MAX: usize = 512;

/// Whoever made a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
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
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum KeyError {
    #[error("there are {KEYS_MAX} keys already")]
    TooMany,
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[derive(Default)]
pub struct Keys(RwLock<FxHashMap<KeyHash, KeyRecord>>);

impl Keys {
    pub async fn load(store: &dyn Store) -> Result<Self, StoreError> {
        let keys = store.keys().await?.into_iter();
        Ok(Self(RwLock::new(keys.map(|key| (key.hash, key)).collect())))
    }

    fn insert(&self, key: KeyRecord) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(key.hash, key);
    }

    fn find(&self, secret: &str, now: Millis) -> Option<Caller> {
        let hash: KeyHash = Sha256::digest(secret.as_bytes()).into();
        let keys = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let key = keys.get(&hash).filter(|key| key.is_valid(now))?;
        Some(Caller { name: key.name.clone(), tenant: key.tenant.clone(), scopes: key.scopes.clone() })
    }
}

impl Engine {
    /// Who has this secret, if anyone who may still use it.
    pub fn authenticate(&self, secret: &str) -> Option<Caller> {
        if secret.len() > SECRET_LEN_MAX {
            return None;
        }
        self.keys.find(secret, self.now())
    }

    /// Makes a key. The secret is returned here and nowhere else.
    pub async fn create_key(&self, new: NewKey) -> Result<(KeyRecord, String), KeyError> {
        let mut secret = String::from(KEY_PREFIX);
        for _ in 0..3 {
            let _ = write!(secret, "{:016x}", self.dice.roll());
        }
        secret.truncate(KEY_PREFIX.len() + 40);
        let key = self.keep_key(&secret, new).await?;
        Ok((key, secret))
    }

    /// Keeps a key whose secret somebody else chose: the operator's, from the environment.
    pub async fn keep_key(&self, secret: &str, new: NewKey) -> Result<KeyRecord, KeyError> {
        if self.keys.0.read().unwrap_or_else(PoisonError::into_inner).len() >= KEYS_MAX {
            return Err(KeyError::TooMany);
        }
        let hash: KeyHash = Sha256::digest(secret.as_bytes()).into();
        let mut id = String::from("key_");
        for byte in &hash[..6] {
            let _ = write!(id, "{byte:02x}");
        }
        let key = KeyRecord {
            id: KeyId::known(id),
            hash,
            name: new.name,
            tenant: new.tenant,
            scopes: new.scopes,
            created_at: self.now(),
            expires_at: new.expires_at,
            revoked_at: None,
        };
        self.store.put_key(key.clone()).await?;
        self.keys.insert(key.clone());
        Ok(key)
    }

    pub async fn list_keys(&self) -> Result<Vec<KeyRecord>, StoreError> {
        self.store.keys().await
    }

    /// From now on the key opens nothing. Says whether there was one.
    pub async fn revoke_key(&self, id: &KeyId) -> Result<bool, StoreError> {
        let now = self.now();
        let found = self.store.revoke_key(id, now).await?;
        let mut keys = self.keys.0.write().unwrap_or_else(PoisonError::into_inner);
        keys.values_mut().filter(|key| key.id == *id).for_each(|key| key.revoked_at = Some(now));
        Ok(found)
    }
}
