//! A new secret, or public key, for a key: another key of the same name, tenant, scopes and grants takes its place, and the old one goes
//! on for as long as it takes to hand the new one out.
//!
//! Approvals and the trail know keys by their names, so to them the two are one. Both are written in one batch: whatever
//! happens meanwhile, there is the old key alone, or both.

use super::keys::{ENVIRONMENT_KEY, KEYS_MAX, new_secret, record_of_secret};
use super::{Access, KeyError, NewKey, NewPublicKey};
use crate::observe::audit_writer;
use crate::roster::RosterBatch;
use reveille_core::id::KeyId;
use reveille_core::time::Millis;
use reveille_roster::{Change, KeyRecord};
use reveille_wire::key::VerifyingKey;

/// For how long both secrets are good, unless somebody says otherwise.
pub const ROTATION_OVERLAP_MS: i64 = 3600 * 1000;
/// A key that was given away is not good for long.
pub const ROTATION_OVERLAP_MS_MAX: i64 = 7 * 24 * 3600 * 1000;

#[derive(Debug, Clone, thiserror::Error)]
pub enum RotateError {
    #[error("there is no such key")]
    Unknown,
    #[error("this key is revoked or has expired; create another")]
    Ended,
    #[error("this key has been replaced by {0}; rotate that one")]
    Replaced(KeyId),
    #[error("this key comes from the environment; set another secret there and restart the server")]
    FromEnvironment,
    #[error("must be 0 to {} seconds", ROTATION_OVERLAP_MS_MAX / 1000)]
    Overlap,
    #[error("this is a worker's public key; send the one that takes its place")]
    PublicKeyNeeded,
    #[error("this key has a secret, and no public key can take its place")]
    NoPublicKey,
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// A key that has taken the place of another.
pub struct Rotation {
    pub key: KeyRecord,
    /// When the old key ends; it is revoked already if both secrets were not to be good at once.
    pub old_expires_at: Millis,
}

impl Access {
    /// Makes a key that takes the place of this one, which ends after the overlap; without one, at once. A key that was
    /// made for some time is followed by one for as long. The secret is returned here and nowhere else.
    pub async fn rotate_key(
        &self,
        id: &KeyId,
        overlap_ms: i64,
        by: &str,
    ) -> Result<(Rotation, String), RotateError> {
        let old = self.replaceable(id, overlap_ms)?;
        if old.public_key.is_some() {
            return Err(RotateError::PublicKeyNeeded);
        }
        let secret = new_secret(&self.runtime);
        let key = record_of_secret(&secret, self.like(&old, by), self.runtime.now());
        Ok((self.replace(old, key, overlap_ms, by).await?, secret))
    }

    /// The same of a worker's public key, by the next one.
    pub async fn rotate_worker_key(
        &self,
        id: &KeyId,
        next: &VerifyingKey,
        overlap_ms: i64,
        by: &str,
    ) -> Result<Rotation, RotateError> {
        let old = self.replaceable(id, overlap_ms)?;
        let Some(public) = &old.public_key else { return Err(RotateError::NoPublicKey) };
        let public = NewPublicKey {
            worker: public.worker.clone(),
            agent: Some(public.agent.clone()),
            proof_key_id: None,
            key: *next,
        };
        let key = self.worker_key_record(self.like(&old, by), public)?;
        self.replace(old, key, overlap_ms, by).await
    }

    fn replaceable(&self, id: &KeyId, overlap_ms: i64) -> Result<KeyRecord, RotateError> {
        if !(0..=ROTATION_OVERLAP_MS_MAX).contains(&overlap_ms) {
            return Err(RotateError::Overlap);
        }
        let old = self.keys.get(id).ok_or(RotateError::Unknown)?;
        match old.replaced_by {
            Some(next) => Err(RotateError::Replaced(next)),
            None if old.name == ENVIRONMENT_KEY => Err(RotateError::FromEnvironment),
            None if !old.is_valid(self.runtime.now()) => Err(RotateError::Ended),
            None if self.keys.len() >= KEYS_MAX => Err(KeyError::TooMany.into()),
            None => Ok(old),
        }
    }

    fn like(&self, old: &KeyRecord, by: &str) -> NewKey {
        let now = self.runtime.now();
        NewKey {
            name: old.name.clone(),
            tenant: old.tenant.clone(),
            scopes: old.scopes.clone(),
            worker: old.worker.clone(),
            expires_at: old.expires_at.map(|end| now + (end.0 - old.created_at.0).max(0)),
            created_by: by.to_owned(),
            issued_by: old.issued_by.clone(),
            project_ids: old.project_ids.clone(),
        }
    }

    async fn replace(
        &self,
        old: KeyRecord,
        next: KeyRecord,
        overlap_ms: i64,
        by: &str,
    ) -> Result<Rotation, RotateError> {
        let now = self.runtime.now();
        let key = KeyRecord { replaces: Some(old.id.clone()), ..next };
        let end = old.expires_at.map_or(now + overlap_ms, |end| end.min(now + overlap_ms));
        let replaced = Change::ReplaceKey { id: old.id.clone(), by: key.id.clone(), expires_at: end };
        let mut changes = vec![Change::Key(key.clone()), replaced];
        if overlap_ms == 0 {
            changes.push(Change::RevokeKey { id: old.id.clone(), at: now, by: by.to_owned() });
        }
        let (access, by) = (self.clone(), by.to_owned());
        self.runtime
            .run_detached(async move {
                let written = access.writer.write(RosterBatch { changes, events: Vec::new() }).await;
                written.map_err(KeyError::from)?;
                access.keys.insert(key.clone());
                access.keys.mark_replaced(&old.id, &key.id, end);
                access.audit.record(audit_writer::created(&key)).await;
                if overlap_ms == 0 {
                    access.note_revoked(&old.id, now, by).await;
                }
                Ok(Rotation { key, old_expires_at: end })
            })
            .await
    }
}
