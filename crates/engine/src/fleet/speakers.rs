//! Who may speak for a worker: whoever came first with its name, for as long as they are heard.
//!
//! Workers without a credential of their own (through an open door, with an operator's key, over NATS without
//! signatures) may all speak for each other, as nobody can tell them apart.

use super::Fleet;
use crate::observe::Trouble;
use crate::observe::events::WorkerChange;
use reveille_core::fleet::WorkerCredential;
use reveille_core::id::{KeyId, TenantId, WorkerId};
use reveille_core::placement::ClaimRefused;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Fleet {
    /// Somebody is about to speak as this worker.
    pub fn claim(
        &self,
        worker: &WorkerId,
        tenant: &TenantId,
        credential: Option<&Arc<WorkerCredential>>,
    ) -> Result<(), ClaimRefused> {
        if !self.has_credentials(credential.is_some()) {
            return Ok(());
        }
        let now = self.runtime.now();
        let claim = self.placement.lock().claim(worker, tenant, credential, self.same_holder(), now);
        let claim = claim.inspect_err(|taken| {
            self.observe.log(Trouble::Packets, "worker name refused to another credential", worker, taken);
        })?;
        if claim.joined {
            tracing::info!(%worker, "worker joined");
            self.publish_worker(worker, tenant, WorkerChange::Joined);
            self.serves_what_it_hears(worker, tenant);
        }
        for job in claim.unserved {
            tracing::warn!(%worker, %job, "job taken from a worker whose new credential does not serve it");
            self.runtime.spawn(self.jobs.clone().worker_gone(job, worker.clone()));
        }
        Ok(())
    }

    /// Whether somebody may report what became of this worker's jobs.
    pub(crate) fn may_report(
        &self,
        worker: &WorkerId,
        credential: Option<&Arc<WorkerCredential>>,
    ) -> Result<(), ClaimRefused> {
        if !self.has_credentials(credential.is_some()) {
            return Ok(());
        }
        self.placement.lock().may_report(worker, credential, self.same_holder())
    }

    /// Whether any worker ever came with a credential. Where none did, nobody has to be told apart.
    pub(super) fn has_credentials(&self, comes_now: bool) -> bool {
        if comes_now {
            self.any_credential.store(true, Ordering::Relaxed);
        }
        comes_now || self.any_credential.load(Ordering::Relaxed)
    }

    fn same_holder(&self) -> impl Fn(&KeyId, &KeyId) -> bool {
        |one, other| self.keys.is_same_holder(one, other)
    }
}
