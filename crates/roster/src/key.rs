//! Keys as they are stored: by hash, never in the clear.

use reveille_core::fleet::WorkerGrant;
use reveille_core::id::{KeyId, TenantId, WorkerId};
use reveille_core::time::Millis;
use serde::{Deserialize, Serialize};

/// SHA-256 of the secret. Secrets are random (160 bits), so a fast hash is enough.
pub type KeyHash = [u8; 32];

/// What a key may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Heartbeats and results: what a worker needs.
    Ingest,
    Read,
    Write,
    /// Being a CAP worker, for what its [grant](KeyRecord::worker) says.
    Worker,
    /// Everything, in every tenant.
    Admin,
}

impl Scope {
    pub const ALL: [Self; 5] = [Self::Ingest, Self::Read, Self::Write, Self::Worker, Self::Admin];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ingest => "ingest",
            Self::Read => "read",
            Self::Write => "write",
            Self::Worker => "worker",
            Self::Admin => "admin",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == word)
    }
}

/// The public half of a key pair whose private half a worker has: it signs what it says and shows no secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublicKey {
    /// The worker that signs with it.
    pub worker: WorkerId,
    /// What that worker takes itself for as an agent.
    pub agent: String,
    /// What that worker calls the key, its `proof_key_id`.
    pub proof_key_id: String,
    /// P-256, as PEM.
    pub pem: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRecord {
    pub id: KeyId,
    pub hash: KeyHash,
    /// The first characters of the secret, to tell keys apart in a list.
    #[serde(default)]
    pub prefix: String,
    pub name: String,
    pub tenant: TenantId,
    pub scopes: Vec<Scope>,
    /// What it may serve as a worker. Where nobody said, every topic and pool of its own tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerGrant>,
    /// For a key that has no secret. Its hash is then that of the public key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_key: Option<Box<PublicKey>>,
    /// Who made it.
    #[serde(default)]
    pub created_by: String,
    /// Who asked for it, in their own words.
    #[serde(default)]
    pub issued_by: Option<String>,
    /// What its owner uses it for; nothing here depends on it.
    #[serde(default)]
    pub project_ids: Option<Vec<String>>,
    pub created_at: Millis,
    pub expires_at: Option<Millis>,
    /// The key whose place it takes.
    #[serde(default)]
    pub replaces: Option<KeyId>,
    /// The key that takes its place.
    #[serde(default)]
    pub replaced_by: Option<KeyId>,
    pub revoked_at: Option<Millis>,
    #[serde(default)]
    pub revoked_by: String,
    /// To about a minute.
    #[serde(default)]
    pub last_used_at: Option<Millis>,
}

impl KeyRecord {
    pub fn is_valid(&self, now: Millis) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }

    pub fn allows(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope) || self.scopes.contains(&Scope::Admin)
    }
}
