//! Checkpoints of the audit trail, signed with a key that is not in the database.
//!
//! A chain has no secret in it: whoever can write the whole store can write a chain that holds. A checkpoint that is
//! kept elsewhere says what the chain was; its signature says that this server said so. Nothing is stored here, and
//! what somebody does with a checkpoint is theirs.

mod keys;

pub use keys::VerifyingKey;

use crate::runtime::Runtime;
use crate::settings::SigningSeed;
use reveille_core::audit::{Checkpoint, Hash, Link};
use reveille_core::id::TenantId;
use reveille_core::time::Millis;
use reveille_store::{Store, StoreError};
use ring::signature::{Ed25519KeyPair, KeyPair};
use std::sync::Arc;

pub struct Checkpoints {
    runtime: Runtime,
    store: Arc<dyn Store>,
    key: Ed25519KeyPair,
    public: VerifyingKey,
}

/// The signing key cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the audit trail's signing key cannot be used: {0}")]
pub struct BadSigningKey(String);

/// A checkpoint as it is handed out.
#[derive(Debug, Clone)]
pub struct SignedCheckpoint {
    /// The text that is signed.
    pub payload: String,
    /// Ed25519, in base64.
    pub signature: String,
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum CheckpointError {
    #[error("the chain of {tenant} does not end with the entry that it should ({seq}): check it first")]
    Broken { tenant: TenantId, seq: u64 },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What is at a place of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkState {
    /// An entry with this hash; before the first entry, all zeros.
    Kept(Hash),
    /// It is said to have gone when its time was over. Of the last that went, the hash is known.
    Pruned(Option<Hash>),
    /// An entry that does not say what it said when it was written.
    Altered,
    /// Nothing: the chain ends before it, or has a hole there.
    Missing,
}

/// A place of a chain, and where the chain begins and ends.
#[derive(Debug, Clone, Copy)]
pub struct FoundLink {
    pub state: LinkState,
    /// The oldest entry that must still be there.
    pub boundary_seq: u64,
    pub last_seq: u64,
    /// What was recorded after this is not pruned yet.
    pub kept_since: Millis,
}

impl Checkpoints {
    pub fn new(runtime: Runtime, store: Arc<dyn Store>, seed: &SigningSeed) -> Result<Self, BadSigningKey> {
        let key =
            Ed25519KeyPair::from_seed_unchecked(&seed.0).map_err(|error| BadSigningKey(error.to_string()))?;
        let public = key.public_key().as_ref().try_into();
        let public = public.map_err(|_| BadSigningKey("its public half has another length".to_owned()))?;
        Ok(Self { runtime, store, key, public: VerifyingKey::new(public) })
    }

    /// The key with which these checkpoints are verified.
    pub fn public_key(&self) -> &VerifyingKey {
        &self.public
    }

    /// What a tenant's chain is now.
    pub async fn of(&self, tenant: &TenantId) -> Result<SignedCheckpoint, CheckpointError> {
        let bounds = self.store.chain(tenant, u64::MAX, 1).await?.bounds;
        let Link { seq, hash } = bounds.head;
        let mut newest = None;
        if seq > bounds.boundary.seq {
            let page = self.store.chain(tenant, seq - 1, 1).await?;
            newest = page.entries.into_iter().next().filter(|entry| entry.seq == seq);
            let is_as_said =
                newest.as_ref().is_some_and(|entry| entry.is_sound() && entry.event_hash == hash);
            // It may have been pruned in between.
            if !is_as_said && page.bounds.boundary.seq < seq {
                return Err(CheckpointError::Broken { tenant: tenant.clone(), seq });
            }
        }
        let now = self.runtime.now();
        Ok(self.sign(&Checkpoint::of(tenant.clone(), &bounds, newest.as_ref(), now, &self.public.id())))
    }

    /// The same of every tenant after `after` that has a chain, at most `limit` of them, and the last of these.
    pub async fn of_all(
        &self,
        after: Option<&TenantId>,
        limit: usize,
    ) -> Result<(Vec<SignedCheckpoint>, Option<TenantId>), CheckpointError> {
        let tenants = self.store.chains(after, limit).await?;
        let mut signed = Vec::with_capacity(tenants.len());
        for tenant in &tenants {
            signed.push(self.of(tenant).await?);
        }
        Ok((signed, tenants.into_iter().last()))
    }

    fn sign(&self, checkpoint: &Checkpoint) -> SignedCheckpoint {
        let payload = checkpoint.payload();
        let signature = keys::base64(self.key.sign(payload.as_bytes()).as_ref());
        SignedCheckpoint { payload, signature }
    }

    /// What a tenant's chain has at a place, for whoever knows what was there.
    pub async fn link(&self, tenant: &TenantId, seq: u64) -> Result<FoundLink, StoreError> {
        let page = self.store.chain(tenant, seq.saturating_sub(1), 1).await?;
        let boundary = page.bounds.boundary;
        let entry = page.entries.first().filter(|entry| entry.seq == seq);
        let state = match entry {
            _ if seq == 0 => LinkState::Kept(Hash::default()),
            _ if seq <= boundary.seq => LinkState::Pruned((seq == boundary.seq).then_some(boundary.hash)),
            Some(entry) if entry.is_sound() => LinkState::Kept(entry.event_hash),
            Some(_) => LinkState::Altered,
            None => LinkState::Missing,
        };
        Ok(FoundLink {
            state,
            boundary_seq: boundary.seq + 1,
            last_seq: page.bounds.head.seq,
            kept_since: self.runtime.now() - self.runtime.settings().keep_audit_ms,
        })
    }
}
