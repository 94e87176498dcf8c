//! A new secret for a key: another key of the same name, tenant, scopes and grants takes its place, and the old one goes
//! on for as long as it takes to hand the new one out.
//!
//! Approvals and the trail know keys by their names, so to them the two are one. Both are written in one batch: whatever
//! happens meanwhile, there is the old key alone, or both.

use super::keys::{ENVIRONMENT_KEY, KEYS_MAX, new_secret, record_of};
use super::{Access, KeyError, NewKey};
use crate::observe::audit_writer;
use crate::roster::RosterBatch;
use reveille_core::id::KeyId;
use reveille_core::time::Millis;
use reveille_roster::{Change, KeyRecord};

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
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// A key that has taken the place of another. The secret is here and nowhere else.
pub struct Rotation {
    pub key: KeyRecord,
    pub secret: String,
    /// When the old key ends; it is revoked already if both secrets were not to be good at once.
    pub old_expires_at: Millis,
}

impl Access {
    /// Makes a key that takes the place of this one, which ends after the overlap; without one, at once. A key that was
    /// made for some time is followed by one for as long.
    pub async fn rotate_key(&self, id: &KeyId, overlap_ms: i64, by: &str) -> Result<Rotation, RotateError> {
        if !(0..=ROTATION_OVERLAP_MS_MAX).contains(&overlap_ms) {
            return Err(RotateError::Overlap);
        }
        let now = self.runtime.now();
        let old = self.keys.get(id).ok_or(RotateError::Unknown)?;
        let old = match old.replaced_by {
            Some(next) => return Err(RotateError::Replaced(next)),
            None if old.name == ENVIRONMENT_KEY => return Err(RotateError::FromEnvironment),
            None if !old.is_valid(now) => return Err(RotateError::Ended),
            None if self.keys.len() >= KEYS_MAX => return Err(KeyError::TooMany.into()),
            None => old,
        };
        let secret = new_secret(&self.runtime);
        let new = NewKey {
            name: old.name,
            tenant: old.tenant,
            scopes: old.scopes,
            worker: old.worker,
            expires_at: old.expires_at.map(|end| now + (end.0 - old.created_at.0).max(0)),
            created_by: by.to_owned(),
            issued_by: old.issued_by,
            project_ids: old.project_ids,
        };
        let key = KeyRecord { replaces: Some(old.id.clone()), ..record_of(&secret, new, now) };
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
                Ok(Rotation { key, secret, old_expires_at: end })
            })
            .await
    }
}
