//! Keys: who is calling, from which tenant, and what they may do.
//!
//! A secret is `vk_` and 160 random bits. Only its hash is stored.

use super::Access;
use super::key_index::KeyIndex;
use super::people::Person;
use crate::observe::audit_writer;
use crate::roster::{RosterBatch, RosterCopy};
use crate::runtime::Runtime;
use crate::secret::{SECRET_LEN_MAX, hash};
use reveille_core::fleet::{WorkerCredential, WorkerGrant};
use reveille_core::id::{KeyId, TenantId};
use reveille_core::identity::Identity;
use reveille_core::time::Millis;
use reveille_roster::{Change, KeyHash, KeyRecord, RosterError, Scope};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

pub const KEY_PREFIX: &str = "vk_";
pub const KEYS_MAX: usize = 100_000;
/// The name of a key whose secret came from the environment.
pub const ENVIRONMENT_KEY: &str = "operator (environment)";

/// Whoever made a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Of the key it showed; `anonymous` for those who were let in without one.
    pub key: KeyId,
    pub name: String,
    pub tenant: TenantId,
    pub(super) scopes: Vec<Scope>,
    /// Whether they hold in every tenant, and not only in its own.
    pub(super) everywhere: bool,
    /// What it serves, if it is a worker's and not an operator's.
    pub worker: Option<Arc<WorkerCredential>>,
    /// Who it is, if it is a person and no key.
    pub(super) person: Option<Arc<Person>>,
}

impl Caller {
    pub(super) fn of(key: &KeyRecord) -> Self {
        Self {
            key: key.id.clone(),
            name: key.name.clone(),
            tenant: key.tenant.clone(),
            scopes: key.scopes.clone(),
            everywhere: key.allows(Scope::Admin),
            worker: worker_credential(key),
            person: None,
        }
    }

    pub fn may(&self, scope: Scope) -> bool {
        Scope::any_implies(&self.scopes, scope)
    }

    /// In every tenant, and where no tenant can be named.
    pub fn may_everywhere(&self, scope: Scope) -> bool {
        self.everywhere && self.may(scope)
    }

    /// Operators see every tenant.
    pub fn sees(&self, tenant: &TenantId) -> bool {
        self.everywhere || self.tenant == *tenant
    }

    pub fn is_everywhere(&self) -> bool {
        self.everywhere
    }

    pub fn is_person(&self) -> bool {
        self.person.is_some()
    }
}

impl From<&Caller> for Identity {
    fn from(caller: &Caller) -> Self {
        Self::of_key(&caller.name, &caller.key)
    }
}

/// What has become of a key that somebody showed earlier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyStanding {
    /// It opens what this caller may do, which need not be what it was.
    Valid(Arc<Caller>),
    Expired,
    /// Or nobody knows it any more.
    Revoked,
}

pub struct NewKey {
    pub name: String,
    pub tenant: TenantId,
    pub scopes: Vec<Scope>,
    /// What it may serve as a worker; every topic and pool of its tenant unless told.
    pub worker: Option<WorkerGrant>,
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
    #[error("this public key is registered as {0}")]
    Registered(KeyId),
    #[error("this public key cannot be written down: {0}")]
    Unwritable(String),
    #[error(transparent)]
    Roster(#[from] RosterError),
}

impl Access {
    /// Who has this secret, if anyone who may still use it.
    pub fn authenticate(&self, secret: &str) -> Option<Arc<Caller>> {
        if secret.len() > SECRET_LEN_MAX {
            return None;
        }
        self.keys.find(secret, self.runtime.now())
    }

    /// What has become of a key, for whoever holds a connection open that it has opened. This is no use of the key.
    pub fn key_standing(&self, id: &KeyId) -> KeyStanding {
        self.keys.standing(id, self.runtime.now())
    }

    /// Who somebody without a secret is, where that is allowed at all: a tenant of their own, and no
    /// operator.
    pub fn anonymous(&self) -> Option<Arc<Caller>> {
        let tenant = self.runtime.settings().open_tenant.clone()?;
        let scopes = vec![Scope::Ingest, Scope::Read, Scope::Write];
        let key = KeyId::anonymous();
        let name = key.to_string();
        Some(Arc::new(Caller { key, name, tenant, scopes, everywhere: false, worker: None, person: None }))
    }

    /// What whoever has this key may serve as a worker. Nothing if the key is no worker's, or opens nothing any more.
    pub fn worker_credential(&self, id: &KeyId) -> Option<Arc<WorkerCredential>> {
        self.keys.worker_credential(id, self.runtime.now())
    }

    /// Makes a key. The secret is returned here and nowhere else.
    pub async fn create_key(&self, new: NewKey) -> Result<(KeyRecord, String), KeyError> {
        let secret = new_secret(&self.runtime);
        let key = self.keep_key(&secret, new).await?;
        Ok((key, secret))
    }

    /// Keeps a key whose secret somebody else chose: the operator's, from the environment. One that is
    /// there already, just as it is to be, is left as it is.
    pub async fn keep_key(&self, secret: &str, new: NewKey) -> Result<KeyRecord, KeyError> {
        if let Some(kept) = self.keys.kept(&hash(secret), &new) {
            return Ok(kept);
        }
        if self.keys.len() >= KEYS_MAX {
            return Err(KeyError::TooMany);
        }
        self.write_key(record_of_secret(secret, new, self.runtime.now())).await
    }

    pub(super) async fn write_key(&self, key: KeyRecord) -> Result<KeyRecord, KeyError> {
        let access = self.clone();
        self.runtime
            .run_detached(async move {
                access.writer.write(Change::Key(key.clone())).await?;
                access.keys.insert(key.clone());
                access.audit.record(audit_writer::created(&key)).await;
                Ok(key)
            })
            .await
    }

    /// From now on the key opens nothing. Says whether there was one.
    pub async fn revoke_key(&self, id: &KeyId, by: &str) -> Result<bool, RosterError> {
        match self.list_keys().iter().find(|key| key.id == *id) {
            None => return Ok(false),
            Some(key) if key.revoked_at.is_some() => return Ok(true),
            Some(_) => {}
        }
        let (access, id, at, by) = (self.clone(), id.clone(), self.runtime.now(), by.to_owned());
        self.runtime
            .run_detached(async move {
                let change = Change::RevokeKey { id: id.clone(), at, by: by.clone() };
                access.writer.write(change).await?;
                access.note_revoked(&id, at, by).await;
                Ok(true)
            })
            .await
    }

    /// A key was revoked in the roster; the copy and the trail follow.
    pub(super) async fn note_revoked(&self, id: &KeyId, at: Millis, by: String) {
        if let Some(draft) = self.keys.revoke(id, at, by).as_ref().and_then(audit_writer::revoked) {
            self.audit.record(draft).await;
        }
    }

    /// Notes when keys were last used.
    pub(crate) async fn note_key_use(&self) {
        let used = self.keys.take_used().into_iter();
        let changes: Vec<Change> = used.map(|(id, at)| Change::KeyUsed { id, at }).collect();
        if !changes.is_empty() {
            self.writer.write_later(RosterBatch { changes, events: Vec::new() }).await;
        }
    }

    /// Every tenant that has a key.
    pub fn tenants(&self) -> BTreeSet<TenantId> {
        self.keys.tenants()
    }

    /// Every key, by id.
    pub fn list_keys(&self) -> Vec<KeyRecord> {
        self.keys.list()
    }
}

/// Hard to guess: 160 bits.
pub(super) fn new_secret(runtime: &Runtime) -> String {
    let mut secret = String::from(KEY_PREFIX);
    for _ in 0..3 {
        let _ = write!(secret, "{:016x}", runtime.random());
    }
    secret.truncate(KEY_PREFIX.len() + 40);
    secret
}

/// What is kept of a key with this secret that is made now. Eight characters tell keys apart and give 20 of 160 bits
/// away.
pub(super) fn record_of_secret(secret: &str, new: NewKey, now: Millis) -> KeyRecord {
    let prefix = secret.chars().take(8).collect();
    KeyRecord { prefix, ..record_of(hash(secret), new, now) }
}

/// The same of any key, by its hash.
pub(super) fn record_of(hash: KeyHash, new: NewKey, now: Millis) -> KeyRecord {
    let mut id = String::from("key_");
    for byte in &hash[..6] {
        let _ = write!(id, "{byte:02x}");
    }
    KeyRecord {
        id: KeyId::known(id),
        hash,
        prefix: String::new(),
        name: new.name,
        tenant: new.tenant,
        scopes: new.scopes,
        worker: new.worker,
        public_key: None,
        created_by: new.created_by,
        issued_by: new.issued_by,
        project_ids: new.project_ids,
        created_at: now,
        expires_at: new.expires_at,
        replaces: None,
        replaced_by: None,
        revoked_at: None,
        revoked_by: String::new(),
        last_used_at: None,
    }
}

#[async_trait::async_trait]
impl RosterCopy for Access {
    async fn reload(&self) -> Result<bool, RosterError> {
        let changes = self.keys.changes();
        Ok(self.keys.replace(KeyIndex::load(&*self.roster).await?, changes))
    }
}

/// An operator's key makes a worker that serves everybody.
fn worker_credential(key: &KeyRecord) -> Option<Arc<WorkerCredential>> {
    if !key.scopes.contains(&Scope::Worker) || key.scopes.contains(&Scope::Admin) {
        return None;
    }
    let grant = key.worker.clone().unwrap_or_else(|| WorkerGrant::of_tenant(&key.tenant));
    let signs_as = key.public_key.as_ref().map(|public| public.worker.clone());
    Some(Arc::new(WorkerCredential { key: key.id.clone(), grant, signs_as }))
}
