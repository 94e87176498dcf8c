//! How much each tenant has stored: what is to be stored is counted first, and refused if it is too much.
//!
//! A server that is alone knows all of it: at a start it goes through what is stored and counts that to whom it belongs,
//! and from then on whatever it stores. One of several counts what comes in through it, so that the quota holds for each
//! of them by itself; what workers write into a Redis they share with us is not seen by anybody here.
//!
//! What must not be lost is counted and never refused: answers of workspaces, and redacted copies.

use super::Jobs;
use reveille_core::id::TenantId;
use reveille_core::job::Job;
use reveille_core::quota::{Charge, OverQuota, StoredBytes};
use reveille_core::time::Millis;
use reveille_store::{StoreError, StoredBlob};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Blobs looked at in one piece after a start.
const PAGE: usize = 1_000;
/// How often what has expired is forgotten of tenants that store nothing any more.
const FORGET_EVERY: Duration = Duration::from_hours(1);
/// What a client of a door is told.
const NO_ROOM: StoreError = StoreError::Full("the tenant has reached its quota of blob_bytes");

/// What tenants have stored, behind a lock.
#[derive(Default)]
pub struct BlobQuota(Mutex<StoredBytes>);

impl BlobQuota {
    fn lock(&self) -> MutexGuard<'_, StoredBytes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Jobs {
    /// Counts what a tenant is about to store, if it may.
    pub(super) fn charge_blob(
        &self,
        tenant: &TenantId,
        len: usize,
        expires_at: Millis,
    ) -> Result<Charge, OverQuota> {
        let charge = Charge { tenant: tenant.clone(), len: len as u64, expires_at };
        let max = self.runtime.settings().limits.blob_bytes_per_tenant;
        self.blob_quota.lock().charge(&charge, max, self.runtime.now()).map(|()| charge)
    }

    /// The same for a client of a door.
    pub(super) fn charge_at_door(
        &self,
        tenant: &TenantId,
        len: usize,
        expires_at: Millis,
    ) -> Result<Charge, StoreError> {
        self.charge_blob(tenant, len, expires_at).map_err(|over| {
            self.observe.metrics().over_quota(over);
            NO_ROOM
        })
    }

    /// It was not stored.
    pub(super) fn refund_blob(&self, charge: &Charge) {
        self.blob_quota.lock().take_back(charge);
    }

    /// Counts what is stored for a tenant whether or not it fits.
    pub(crate) fn count_blob(&self, tenant: &TenantId, len: usize, expires_at: Millis) {
        let charge = Charge { tenant: tenant.clone(), len: len as u64, expires_at };
        self.blob_quota.lock().count(&charge, self.runtime.now());
    }

    /// Counts what was stored before this start, and from then on forgets what has expired.
    pub(crate) async fn tend_blob_quota(self) {
        let started_at = self.runtime.now();
        let mut after = None;
        while !self.store.is_shared() {
            let words = "stored blobs not read; retrying";
            let read = || self.store.stored_blobs(after.clone(), PAGE);
            let Ok(page) = self.observe.until_answered(words, &"blobs", read).await else { break };
            for blob in &page {
                self.count_stored(blob, started_at).await;
            }
            let Some(last) = page.last() else { break };
            after = Some(last.key.clone());
        }
        loop {
            tokio::time::sleep(FORGET_EVERY).await;
            self.blob_quota.lock().forget_expired(self.runtime.now());
        }
    }

    /// What was stored since the start has been counted then.
    async fn count_stored(&self, blob: &StoredBlob, started_at: Millis) {
        let context_of = blob.key.job_of_context();
        let was_there = |job: &Job| {
            let since = if context_of.is_some() { job.created_at } else { job.updated_at };
            since < started_at
        };
        let job = match context_of.clone().or_else(|| blob.key.job_of_result()) {
            Some(id) => self.store.job(&id).await.ok().flatten(),
            None => None,
        };
        match job {
            Some(job) if was_there(&job) => self.count_blob(&job.request.tenant, blob.len, blob.expires_at),
            Some(_) => {}
            None => self.count_blob(&self.runtime.settings().default_tenant, blob.len, blob.expires_at),
        }
    }
}
