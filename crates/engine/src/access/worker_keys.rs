//! Public keys of workers: what a worker signs with its private half is its own, whichever way it came.
//!
//! A public key is kept as any other key is: it has a tenant, a grant, an expiry and a revocation, and is rotated with an
//! overlap. It has no secret, so it opens no door; and since the public half is no secret either, its hash is taken in a
//! way in which no secret's is.

use super::keys::{KEYS_MAX, record_of};
use super::{Access, KeyError, NewKey, Signer};
use crate::settings::SignatureMode;
use reveille_core::digest::sha256_hex;
use reveille_core::id::WorkerId;
use reveille_roster::{KeyHash, KeyRecord, PublicKey};
use reveille_wire::key::{VerifyingKey, public_pem};
use sha2::{Digest, Sha256};

/// What is hashed before a public key.
const PURPOSE: &[u8] = b"reveille worker public key\0";

/// Hexadecimal digits of a public key's hash that name it.
const KEY_ID_LEN: usize = 16;

/// The public half of the key that the servers sign with.
pub struct ServerKey {
    pub signatures: SignatureMode,
    pub id: String,
    pub pem: String,
}

pub struct NewPublicKey {
    /// The worker that signs with it.
    pub worker: WorkerId,
    /// What that worker takes itself for as an agent; itself unless told.
    pub agent: Option<String>,
    /// What that worker calls the key; our id of it unless told.
    pub proof_key_id: Option<String>,
    pub key: VerifyingKey,
}

impl Access {
    /// Registers a key that a worker signs with.
    pub async fn register_worker_key(
        &self,
        new: NewKey,
        public: NewPublicKey,
    ) -> Result<KeyRecord, KeyError> {
        if self.keys.len() >= KEYS_MAX {
            return Err(KeyError::TooMany);
        }
        let key = self.worker_key_record(new, public)?;
        self.write_key(key).await
    }

    /// One that was ever registered is not registered again: it may have been revoked for a reason.
    pub(super) fn worker_key_record(&self, new: NewKey, public: NewPublicKey) -> Result<KeyRecord, KeyError> {
        let hash = hash_of(&public.key);
        if let Some(id) = self.keys.id_of(&hash) {
            return Err(KeyError::Registered(id));
        }
        let record = record_of(hash, new, self.runtime.now());
        let public_key = PublicKey {
            agent: public.agent.unwrap_or_else(|| public.worker.to_string()),
            worker: public.worker,
            proof_key_id: public.proof_key_id.unwrap_or_else(|| record.id.to_string()),
            pem: public_pem(&public.key).map_err(|error| KeyError::Unwritable(error.to_string()))?,
        };
        Ok(KeyRecord { public_key: Some(Box::new(public_key)), ..record })
    }

    /// With which keys this worker may sign now.
    pub fn signers(&self, worker: &WorkerId) -> Vec<Signer> {
        self.keys.signers(worker, self.runtime.now())
    }

    /// What packets to workers are signed with; nothing where signatures are off.
    pub fn server_key(&self) -> Option<ServerKey> {
        let settings = self.runtime.settings();
        let key = settings.packet_key.0.as_ref()?.verifying_key();
        let pem = public_pem(key).ok()?;
        Some(ServerKey { signatures: settings.signatures, id: packet_key_id(key), pem })
    }

    /// A worker has shown that it has the other half.
    pub(crate) fn note_signed(&self, signer: &Signer) {
        self.keys.mark_used(&signer.id, self.runtime.now());
    }
}

/// What workers call the key that the servers sign with.
pub(crate) fn packet_key_id(key: &VerifyingKey) -> String {
    format!("p256:{}", &sha256_hex(&key.to_sec1_bytes())[..KEY_ID_LEN])
}

fn hash_of(key: &VerifyingKey) -> KeyHash {
    Sha256::new().chain_update(PURPOSE).chain_update(key.to_sec1_bytes()).finalize().into()
}
