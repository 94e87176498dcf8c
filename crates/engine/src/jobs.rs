//! Jobs: load, decide, commit, act on what was committed.
//!
//! The one way in for every surface. What a job owes follows from the job itself; everything else in here can be
//! lost at any moment and is built again from the store.

mod approvals;
mod blob_access;
mod blob_quota;
mod change;
mod dead_letters;
mod dispatch;
mod explain;
mod hooks;
mod in_doubt;
mod locks;
mod notices;
mod on_committed;
mod output_scan;
mod peers;
mod policy_check;
mod queries;
mod reconciler;
mod recover;
mod replay;
mod safety_kernel;
mod submit;
mod timeouts;
mod waiters;
mod worker_blobs;

pub use approvals::ApprovalOutcome;
pub use blob_access::{BlobRead, HeldReadError, Named};
pub use change::DriveError;
pub use dead_letters::{Retried, RetryError};
pub use explain::{Explainer, Explanation};
pub use hooks::{DelegationHook, RunHook};
#[cfg(test)]
pub use output_scan::LOOK_WITHIN;
pub use replay::{Difference, REPLAY_MAX, Replay, ReplayError};
pub use submit::{Submission, SubmitError, Submitted, Submitter};
pub use waiters::Waiters;

use crate::access::KeyIndex;
use crate::base::Base;
use crate::cluster::Cluster;
use crate::hook::Hook;
use crate::observe::Observe;
use crate::observe::audit_writer::AuditWriter;
use crate::placement::PlacementTable;
use crate::runtime::Runtime;
use blob_quota::BlobQuota;
use in_doubt::InDoubt;
use locks::JobLocks;
use policy_check::PolicyChecker;
use reveille_bus::Bus;
use reveille_core::id::{JobId, KeyId};
use reveille_core::identity::Identity;
use reveille_kernel::Kernel;
use reveille_store::Store;
use rustc_hash::FxHashSet;
use std::ops::Deref;
use std::sync::{Arc, Mutex};

/// A handle; clones are the same room.
#[derive(Clone)]
pub struct Jobs(Arc<Inner>);

pub struct Inner {
    runtime: Runtime,
    observe: Observe,
    cluster: Arc<dyn Cluster>,
    placement: PlacementTable,
    keys: Arc<KeyIndex>,
    audit: AuditWriter,
    store: Arc<dyn Store>,
    bus: Arc<dyn Bus>,
    policy: PolicyChecker,
    blob_quota: BlobQuota,
    locks: JobLocks,
    in_doubt: InDoubt,
    waiters: Waiters<JobId>,
    /// Attempts that were sent before everything was picked up.
    sent_early: Mutex<FxHashSet<(JobId, u32)>>,
    runs: Hook<dyn RunHook>,
    delegations: Hook<dyn DelegationHook>,
}

impl Deref for Jobs {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Jobs {
    /// `kernel` decides instead of the policy file, if there is one.
    pub fn new(
        base: Base,
        keys: Arc<KeyIndex>,
        audit: AuditWriter,
        store: Arc<dyn Store>,
        bus: Arc<dyn Bus>,
        kernel: Option<Arc<dyn Kernel>>,
    ) -> Self {
        let policy = PolicyChecker::new(&base, store.clone(), kernel);
        let Base { runtime, observe, cluster, placement } = base;
        Self(Arc::new(Inner {
            runtime,
            observe,
            cluster,
            placement,
            keys,
            audit,
            store,
            bus,
            policy,
            blob_quota: BlobQuota::default(),
            locks: JobLocks::default(),
            in_doubt: InDoubt::default(),
            waiters: Waiters::default(),
            sent_early: Mutex::default(),
            runs: Hook::default(),
            delegations: Hook::default(),
        }))
    }

    /// Who is called back about steps of runs and about delegations. Set before anything runs.
    pub fn set_hooks(&self, runs: &Arc<dyn RunHook>, delegations: &Arc<dyn DelegationHook>) {
        self.runs.set(runs);
        self.delegations.set(delegations);
    }

    /// Who has this key, by the name that it was given.
    pub(crate) fn identity_of(&self, key: &KeyId) -> Identity {
        Identity::of_key(&self.keys.name_of(key).unwrap_or_default(), key)
    }

    /// How policy is asked.
    pub fn policy(&self) -> &PolicyChecker {
        &self.policy
    }
}
