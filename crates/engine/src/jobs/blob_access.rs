//! Who may read a blob. A pointer is only a name, and whoever submits or reports can name anything, so whatever shows,
//! copies or scans what a job points at asks here ([`Jobs::owned`], [`Jobs::read`]) whether it is the job's to show.
//!
//! Workers fetch blobs by themselves, through the doors: what policy has looked at stays as it was there, and what
//! nobody may read is not there. A worker serves every tenant, so the doors do not ask whose a blob is.

use super::Jobs;
use crate::Caller;
use crate::observe::audit_writer::Unrecorded;
use bytes::Bytes;
use reveille_core::audit::{Action, Draft};
use reveille_core::id::TenantId;
use reveille_core::job::{Job, State};
use reveille_core::request::Request;
use reveille_core::time::Millis;
use reveille_store::{BlobKey, Blobs, PutMode, Store, StoreError};
use std::sync::Arc;

struct GuardedBlobs(Jobs);

/// What a job points at, and who named it.
#[derive(Debug, Clone, Copy)]
pub enum Named<'a> {
    /// Whoever asked for the job says that this is what it works on.
    Input(&'a str),
    /// The worker that did the job says that it made this.
    Output(&'a str),
}

impl<'a> Named<'a> {
    fn pointer(self) -> &'a str {
        match self {
            Self::Input(pointer) | Self::Output(pointer) => pointer,
        }
    }
}

/// What whoever may see a job gets of a blob that it points at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlobRead {
    Here(Bytes),
    /// The job points at nothing.
    Nothing,
    /// It has expired, or was never stored.
    Gone,
    /// It is the job's, and nobody may read it, now or at all.
    Held,
    /// It is another's, or is not kept here: it is not to be had through this job.
    Elsewhere,
}

impl BlobRead {
    pub fn bytes(&self) -> Option<&Bytes> {
        match self {
            Self::Here(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// As answers say it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Here(_) => "available",
            Self::Nothing => "none",
            Self::Gone => "gone",
            Self::Held => "held",
            Self::Elsewhere => "elsewhere",
        }
    }
}

/// Why nobody gets to see what is held back.
#[derive(Debug, Clone, thiserror::Error)]
pub enum HeldReadError {
    #[error(transparent)]
    Unrecorded(#[from] Unrecorded),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Jobs {
    pub fn readable_blobs(&self) -> Arc<dyn Blobs> {
        Arc::new(GuardedBlobs(self.clone()))
    }

    /// What whoever may see this job may read of what it points at.
    pub async fn read(&self, job: &Job, named: Named<'_>) -> Result<BlobRead, StoreError> {
        if matches!(named, Named::Output(_)) && self.holds_result(job) {
            return Ok(BlobRead::Held);
        }
        if named.pointer().is_empty() {
            return Ok(BlobRead::Nothing);
        }
        let Some(key) = self.owned(job, named).await? else { return Ok(BlobRead::Elsewhere) };
        if key.job_of_result().as_ref() == Some(job.id()) && self.hides(job, &key) {
            return Ok(BlobRead::Held);
        }
        Ok(self.store.blob(&key).await?.map_or(BlobRead::Gone, BlobRead::Here))
    }

    /// The result of a job, as above. What a job leaves behind that did not succeed is none.
    pub async fn read_result(&self, job: &Job) -> Result<BlobRead, StoreError> {
        let ending = job.ending().filter(|ending| ending.state == State::Succeeded);
        self.read(job, Named::Output(ending.map_or("", |ending| &ending.result_ptr))).await
    }

    /// A result that is held back, for somebody who decides about it. Who read it is recorded first.
    pub async fn held_result(&self, job: &Job, reader: &Caller) -> Result<Option<Bytes>, HeldReadError> {
        let Some(check) = job.output.as_ref().filter(|_| job.state() == State::OutputQuarantined) else {
            return Ok(None);
        };
        let Some(bytes) = self.owned_content(job, Named::Output(&check.original_ptr)).await? else {
            return Ok(None);
        };
        let entry = self.audit.act(&job.request.tenant, Action::HeldResultRead, &reader.into());
        let entry = Draft {
            job_id: Some(job.id().clone()),
            matched_rule: check.verdict.rule_id.clone(),
            ..entry.about("topic", job.request.topic.as_str())
        };
        self.audit.record_read(entry).await?;
        Ok(Some(bytes))
    }

    /// The same without asking whether anybody may read it: for looking it through.
    pub(super) async fn owned_content(
        &self,
        job: &Job,
        named: Named<'_>,
    ) -> Result<Option<Bytes>, StoreError> {
        match self.owned(job, named).await? {
            Some(key) => self.store.blob(&key).await,
            None => Ok(None),
        }
    }

    /// The one decision whose a blob is: the blob that a job points at, if it is the job's own, or that of another
    /// job of its tenant which whoever sees this job may read as well (what undoes a job works on that job's input).
    ///
    /// A blob of a job that nobody knows is nobody's: its job may be another tenant's, pruned or still to come.
    /// Artifacts have no job in their names. The worker that made one vouches for it; a submitter does not.
    pub(super) async fn owned(&self, job: &Job, named: Named<'_>) -> Result<Option<BlobKey>, StoreError> {
        let Ok(key) = BlobKey::from_pointer(named.pointer()) else { return Ok(None) };
        let is_owned =
            match key.job_of_context().or_else(|| key.job_of_result()) {
                None => matches!(named, Named::Output(_)),
                Some(id) if id == *job.id() => true,
                Some(id) => self.store.job(&id).await?.is_some_and(|other| {
                    other.request.tenant == job.request.tenant && !self.hides(&other, &key)
                }),
            };
        Ok(is_owned.then_some(key))
    }

    /// Whether nobody may read this of a job: it is held back, a redacted copy has taken its place, or nobody
    /// has looked at it yet and somebody must.
    fn hides(&self, job: &Job, key: &BlobKey) -> bool {
        if key.job_of_result().is_none() {
            return false;
        }
        let is_unseen = job.state() != State::Succeeded && self.holds_unseen();
        self.holds_result(job) || is_hidden(job, key) || is_unseen
    }
}

/// The input that policy may rest a verdict on: the job's own and nothing else, since any other could be changed after
/// it was looked at.
pub(super) fn own_input(request: &Request) -> Option<BlobKey> {
    let key = BlobKey::from_pointer(&request.context_ptr).ok()?;
    (key.job_of_context().as_ref() == Some(&request.id)).then_some(key)
}

/// How long it is what a pointer names, whosever it is: a limit is not evaded by naming another's.
pub(super) async fn stored_len(store: &dyn Store, pointer: &str) -> Result<u64, StoreError> {
    let blob = match BlobKey::from_pointer(pointer) {
        Ok(key) => store.blob(&key).await?,
        Err(_) => None,
    };
    Ok(blob.map_or(0, |blob| blob.len() as u64))
}

impl GuardedBlobs {
    async fn put_charged(
        &self,
        tenant: &TenantId,
        key: BlobKey,
        value: Bytes,
        expires_at: Millis,
        mode: PutMode,
    ) -> Result<bool, StoreError> {
        let charge = self.0.charge_at_door(tenant, value.len(), expires_at)?;
        let put = self.0.store.put_blob(key, value, expires_at, mode).await;
        if let Ok(false) = put {
            self.0.refund_blob(&charge);
        }
        put
    }

    /// Whether it is what somebody may still have to look at.
    async fn is_evidence(&self, key: &BlobKey) -> Result<bool, StoreError> {
        let Some(id) = key.job_of_result() else { return Ok(false) };
        let job = self.0.store.job(&id).await?;
        Ok(job.is_some_and(|job| job.state() == State::OutputQuarantined || is_hidden(&job, key)))
    }
}

/// A redacted copy has taken its place: of a result that was looked at, only what the job ended with is there.
fn is_hidden(job: &Job, key: &BlobKey) -> bool {
    let result = job.ending().filter(|ending| ending.state == State::Succeeded && job.output.is_some());
    result.is_some_and(|ending| ending.result_ptr != key.pointer())
}

#[async_trait::async_trait]
impl Blobs for GuardedBlobs {
    async fn blob(&self, key: &BlobKey) -> Result<Option<Bytes>, StoreError> {
        if let Some(id) = key.job_of_result()
            && let Some(job) = self.0.store.job(&id).await?
            && self.0.hides(&job, key)
        {
            return Ok(None);
        }
        self.0.store.blob(key).await
    }

    async fn put_blob(
        &self,
        key: BlobKey,
        value: Bytes,
        expires_at: Millis,
        mode: PutMode,
    ) -> Result<bool, StoreError> {
        let of_context = key.job_of_context();
        let is_context = of_context.is_some();
        // An artifact, and an input that comes before its job, are of whoever owns the door.
        let owner = &self.0.runtime.settings().default_tenant;
        let Some(id) = of_context.or_else(|| key.job_of_result()) else {
            return self.put_charged(owner, key, value, expires_at, mode).await;
        };
        // A verdict reads first and commits later; its lock keeps us out in between.
        let _lock = self.0.lock(&id).await;
        // An input is fixed from the moment its job exists, a result from the moment it has ended.
        let job = self.0.store.job(&id).await?;
        if job.as_ref().is_some_and(|job| is_context || job.state().is_terminal()) {
            return Ok(false);
        }
        let owner = job.as_ref().map_or(owner, |job| &job.request.tenant);
        self.put_charged(owner, key, value, expires_at, mode).await
    }

    async fn delete_blobs(&self, keys: Vec<BlobKey>) -> Result<u64, StoreError> {
        let mut deletable = Vec::with_capacity(keys.len());
        for key in keys {
            if !self.is_evidence(&key).await? {
                deletable.push(key);
            }
        }
        self.0.store.delete_blobs(deletable).await
    }

    async fn blob_expiry(&self, key: &BlobKey) -> Result<Option<Millis>, StoreError> {
        self.0.store.blob_expiry(key).await
    }
}
