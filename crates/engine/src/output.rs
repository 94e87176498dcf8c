//! Output policy: what a job has made is looked at before anybody reads it, and again when there is time
//! to read it through.
//!
//! The second look is owed by the job itself, so a restart finds it again. Whoever may not read a result
//! may not read it through any surface.

use crate::Engine;
use crate::drive::DriveError;
use bytes::Bytes;
use reveille_core::id::JobId;
use reveille_core::job::{Job, Refusal, State};
use reveille_core::life::{self, Report, Status};
use reveille_core::output::{OutputDecision, OutputVerdict, Stage};
use reveille_core::policy::{FailMode, Outcome, Policy, Sheet};
use reveille_core::time::Millis;
use reveille_store::{BlobKey, Blobs, PutMode, StoreError};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long the second look may take.
pub(crate) const LOOK_WITHIN: Duration = Duration::from_secs(30);
/// A result that is read through in less time than it takes to hand it over.
const SMALL: u64 = 64 * 1024;
const PAUSE: Duration = Duration::from_secs(1);

impl Engine {
    /// A worker says how a job went. If it went well, output policy has the last word.
    pub(crate) async fn finish(&self, id: &JobId, report: &Report) -> Result<Arc<Job>, DriveError> {
        self.finish_as(id, report, |_| report.status).await
    }

    /// The same, where what the report comes to depends on the job.
    pub(crate) async fn finish_as(
        &self,
        id: &JobId,
        report: &Report,
        status: impl Fn(&Job) -> Status + Send + Sync,
    ) -> Result<Arc<Job>, DriveError> {
        let sheet = match report.status {
            Status::Succeeded if self.looks_at_output() => self.sheet(&report.result_ptr).await,
            _ => None,
        };
        let dice = self.dice.roll();
        self.drive_on(id, |job, now| {
            let report = Report { status: status(job), ..report.clone() };
            let done = life::finish(job, &report, &self.rules().limits(job), now, dice)?;
            self.first_look(done, sheet, now)
        })
        .await
    }

    fn first_look(&self, done: Job, sheet: Option<Sheet>, now: Millis) -> Result<Job, Refusal> {
        if done.state() != State::Succeeded || !self.looks_at_output() {
            return Ok(done);
        }
        let rules = self.rules();
        let topic = &done.request.topic;
        // What could not even be measured is read through.
        match sheet.and_then(|sheet| rules.policy.output().check_sheet(&done.request, sheet)) {
            Some(verdict) => {
                self.metrics.output.checked(topic, Stage::Sync, verdict.decision, 0.0);
                life::check_output(&done, verdict, None, now)
            }
            None => Ok(life::await_scan(&done)),
        }
    }

    pub(crate) fn looks_at_output(&self) -> bool {
        let rules = self.rules();
        let output = rules.policy.output();
        output.has_rules() && self.settings.output.enabled.or(output.enabled).unwrap_or(false)
    }

    fn output_fail_mode(&self, policy: &Policy) -> FailMode {
        self.settings.output.fail_mode.or(policy.output().fail_mode).unwrap_or(FailMode::Open)
    }

    async fn sheet(&self, pointer: &str) -> Option<Sheet> {
        let content = self.content(pointer).await.ok()?;
        Some(Sheet { len: content.map_or(0, |content| content.len() as u64), has_error: false })
    }

    /// What a pointer points at, if it is ours.
    pub(crate) async fn content(&self, pointer: &str) -> Result<Option<Bytes>, StoreError> {
        match BlobKey::from_pointer(pointer) {
            Ok(key) => self.store.blob(&key).await,
            Err(_) => Ok(None),
        }
    }

    /// Reads a result through. Called for every job that owes it; twice does no harm.
    pub(crate) async fn second_look(self, job: Arc<Job>) {
        let began = Instant::now();
        let rules = self.rules();
        let fail_mode = self.output_fail_mode(&rules.policy);
        let looked =
            tokio::time::timeout(LOOK_WITHIN, self.read_through(&job, &rules.policy, fail_mode)).await;
        let (outcome, copy) = looked.unwrap_or_else(|_| {
            self.metrics.output.skipped(&job.request.topic);
            let words = "it took longer than 30 s";
            (rules.policy.output().unchecked(fail_mode, words), None)
        });
        let took = began.elapsed().as_secs_f64();
        self.metrics.output.checked(&job.request.topic, Stage::Async, outcome.decision, took);
        let done = self
            .drive_on(job.id(), |job, now| {
                if !job.owed.output_scan {
                    return Err(Refusal::TooEarly);
                }
                life::check_output(job, outcome.clone(), copy.clone(), now)
            })
            .await;
        if let Err(error) = done {
            tracing::debug!(job = %job.id(), %error, "the second look changed nothing");
        }
    }

    /// The verdict, and where the redacted copy is, if there is one.
    async fn read_through(
        &self,
        job: &Arc<Job>,
        policy: &Policy,
        fail_mode: FailMode,
    ) -> (OutputVerdict, Option<String>) {
        let pointer = job.ending().map_or("", |ending| ending.result_ptr.as_str());
        loop {
            match self.content(pointer).await {
                Ok(content) => {
                    let content = content.unwrap_or_default();
                    let outcome = look(policy.clone(), job.clone(), content, fail_mode).await;
                    let Some(redacted) = outcome.redacted else { return (outcome.verdict, None) };
                    if let Some(copy) = self.put_copy(job, redacted).await {
                        return (outcome.verdict, Some(copy));
                    }
                }
                Err(error) => self.trouble.store.tell(
                    self.now(),
                    "a result could not be read; trying again",
                    job.id(),
                    &error,
                ),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// `res:<job>:redacted:<hash>`, so that a second look writes the same copy.
    async fn put_copy(&self, job: &Job, redacted: Vec<u8>) -> Option<String> {
        let digest = Sha256::digest(&redacted);
        let hash = digest.iter().take(8).fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
        let key = BlobKey::redacted_result_of(job.id(), &hash);
        let expires_at = self.now() + self.settings.blob_ttl_ms;
        let put = self.store.put_blob(key.clone(), redacted.into(), expires_at, PutMode::Always).await;
        put.ok().map(|_| key.pointer())
    }

    // What people may read, and what they decide.

    /// Whether nobody may read the job's result, now or at all.
    pub fn holds_result(&self, job: &Job) -> bool {
        match job.state() {
            State::OutputQuarantined => true,
            State::Succeeded => {
                job.owed.output_scan && self.settings.output.hold.unwrap_or(self.rules().policy.output().hold)
            }
            _ => false,
        }
    }

    /// Somebody takes a result that was readable out of sight.
    pub async fn quarantine(&self, id: &JobId, words: &str) -> Result<Arc<Job>, DriveError> {
        let verdict = OutputVerdict {
            decision: OutputDecision::Quarantine,
            stage: Stage::Async,
            rule_id: "operator".to_owned(),
            reason: words.to_owned(),
            snapshot: self.rules().policy.snapshot().to_owned(),
            findings: Vec::new(),
        };
        self.decided(id, move |job, now| life::check_output(job, verdict.clone(), None, now)).await
    }

    /// The result becomes readable. The job is not run again.
    pub async fn release(&self, id: &JobId, by: &str, note: &str) -> Result<Arc<Job>, DriveError> {
        let (by, note) = (by.to_owned(), note.to_owned());
        self.decided(id, move |job, now| life::release(job, &by, &note, now)).await
    }

    /// The result is gone for good.
    pub async fn discard(&self, id: &JobId, by: &str, note: &str) -> Result<Arc<Job>, DriveError> {
        let before = self.store.job(id).await?.ok_or(DriveError::Unknown)?;
        let (by, note) = (by.to_owned(), note.to_owned());
        let job = self.decided(id, move |job, now| life::discard(job, &by, &note, now)).await?;
        let pointer = before.output.as_ref().map_or("", |check| check.original_ptr.as_str());
        if let Ok(key) = BlobKey::from_pointer(pointer) {
            self.store.delete_blobs(vec![key]).await?;
        }
        Ok(job)
    }

    /// The blobs, as clients of the doors may read them: a result that is held back is not there.
    pub fn readable_blobs(&self) -> Arc<dyn Blobs> {
        Arc::new(Readable(self.clone()))
    }
}

/// Scanning takes its time, so it is done where it holds nobody up.
async fn look(policy: Policy, job: Arc<Job>, content: Bytes, fail_mode: FailMode) -> Outcome {
    let sheet = Sheet { len: content.len() as u64, has_error: false };
    let check = move || policy.output().check_content(&job.request, sheet, &content, fail_mode);
    if sheet.len <= SMALL {
        return check();
    }
    match tokio::task::spawn_blocking(check).await {
        Ok(outcome) => outcome,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}

/// A redacted copy has taken its place.
fn is_hidden(job: &Job, key: &BlobKey) -> bool {
    job.output.as_ref().is_some_and(|check| check.original_ptr == key.pointer())
}

struct Readable(Engine);

#[async_trait::async_trait]
impl Blobs for Readable {
    async fn blob(&self, key: &BlobKey) -> Result<Option<Bytes>, StoreError> {
        if let Some(id) = key.job_of_result()
            && let Some(job) = self.0.store.job(&id).await?
            && (self.0.holds_result(&job) || is_hidden(&job, key))
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
        let Some(id) = key.job_of_result() else {
            return self.0.store.put_blob(key, value, expires_at, mode).await;
        };
        // Nobody changes a result behind the back of those who have looked at it.
        let _turn = self.0.turn(&id).await;
        if self.0.store.job(&id).await?.is_some_and(|job| job.state().is_terminal()) {
            return Ok(false);
        }
        self.0.store.put_blob(key, value, expires_at, mode).await
    }

    async fn delete_blobs(&self, keys: Vec<BlobKey>) -> Result<u64, StoreError> {
        self.0.store.delete_blobs(keys).await
    }

    async fn blob_expiry(&self, key: &BlobKey) -> Result<Option<Millis>, StoreError> {
        self.0.store.blob_expiry(key).await
    }
}
