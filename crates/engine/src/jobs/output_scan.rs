//! Output policy: what a job has made is looked at before anybody reads it, and again when there is time
//! to read it through.
//!
//! The content scan is owed by the job itself, so a restart finds it again. Whoever may not read a result
//! may not read it through any surface.

use super::DriveError;
use super::Jobs;
use super::blob_access::{Named, stored_len};
use crate::observe::Trouble;
use crate::observe::metrics::Circuit;
use bytes::Bytes;
use reveille_core::id::JobId;
use reveille_core::identity::Identity;
use reveille_core::job::{Job, Refusal, State};
use reveille_core::life::{self, Made, Report, Status};
use reveille_core::output::{OutputDecision, OutputVerdict, Stage};
use reveille_core::policy::{ContentMetadata, ContentScan, FailMode, Policy};
use reveille_core::reason::Reason;
use reveille_core::request::Request;
use reveille_core::time::Millis;
use reveille_kernel::{NoAnswer, OutputQuestion, OutputScan};
use reveille_store::{BlobKey, PutMode, Receipt, StoreError};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// How long the content scan may take.
pub const LOOK_WITHIN: Duration = Duration::from_secs(30);
/// A result that is read through in less time than it takes to hand it over.
const SMALL: usize = 64 * 1024;
const PAUSE: Duration = Duration::from_secs(1);

/// What is known of a result before its job ends.
enum MetadataScan {
    None,
    Own(ContentMetadata),
    /// The kernel has spoken already.
    Kernel(OutputScan),
}

impl Jobs {
    /// A worker says how a job went. If it went well, output policy has the last word.
    pub(crate) async fn finish(
        &self,
        id: &JobId,
        report: &Report,
        message: Option<&Receipt>,
    ) -> Result<Arc<Job>, DriveError> {
        self.finish_as(id, report, message, |_| report.status).await
    }

    /// The same, where what the report comes to depends on the job.
    pub(crate) async fn finish_as(
        &self,
        id: &JobId,
        report: &Report,
        message: Option<&Receipt>,
        status: impl Fn(&Job) -> Status + Send + Sync,
    ) -> Result<Arc<Job>, DriveError> {
        let began = Instant::now();
        let scan_metadata = match report.status {
            Status::Succeeded if self.scans_output() => Box::pin(self.scan_metadata(id, report)).await,
            _ => MetadataScan::None,
        };
        let random = self.runtime.random();
        let is_first_try = AtomicBool::new(true);
        let done = self.keep_driving(id, || async {
            let is_first_try = is_first_try.swap(false, Ordering::Relaxed);
            let taken = self.take_to_answer(id, message, is_first_try).await?;
            // A result that nobody has measured must not pass: a store that fails here is asked again too.
            let made = self.measured(&taken.job, report).await?;
            self.drive_taken(taken, |job, now| {
                let report = Report { status: status(job), made: made.clone(), ..report.clone() };
                let done = life::finish(job, &report, &self.runtime.rules().limits(job), now, random)?;
                self.check_metadata(done, &scan_metadata, began, now)
            })
            .await
        });
        let done = done.await?;
        self.learn_topic(&done, &report.worker);
        Ok(done)
    }

    fn check_metadata(
        &self,
        done: Job,
        scan_metadata: &MetadataScan,
        began: Instant,
        now: Millis,
    ) -> Result<Job, Refusal> {
        if done.state() != State::Succeeded || !self.scans_output() {
            return Ok(done);
        }
        let rules = self.runtime.rules();
        let (verdict, copy) = match scan_metadata {
            MetadataScan::None => (None, None),
            MetadataScan::Own(metadata) => {
                (rules.policy.output().check_metadata(&done.request, *metadata), None)
            }
            MetadataScan::Kernel(scan) => (Some(scan.verdict.clone()), scan.redacted_ptr.clone()),
        };
        // What could not even be measured is read through.
        let Some(verdict) = verdict else { return Ok(life::await_scan(&done)) };
        self.observe.metrics().output_checked(
            &done.request.topic,
            Stage::Sync,
            verdict.decision,
            began.elapsed().as_secs_f64(),
        );
        // A kernel that lets a result pass has not seen its content yet.
        if matches!(scan_metadata, MetadataScan::Kernel(_)) && verdict.decision == OutputDecision::Allow {
            return Ok(life::await_scan(&done));
        }
        life::check_output(&done, verdict, copy, now)
    }

    /// What can be known of a result without reading it.
    async fn scan_metadata(&self, id: &JobId, report: &Report) -> MetadataScan {
        let Some(metadata) = self.metadata_of(&report.result_ptr).await else { return MetadataScan::None };
        if self.policy.kernel().kernel().is_none() {
            return MetadataScan::Own(metadata);
        }
        let Ok(Some(job)) = self.store.job(id).await else { return MetadataScan::None };
        // Nobody is asked about what does not count.
        if life::finish(&job, report, &self.limits(&job), self.runtime.now(), 0).is_err() {
            return MetadataScan::None;
        }
        let question = OutputQuestion {
            id,
            request: &job.request,
            worker: Some(&report.worker),
            result_ptr: &report.result_ptr,
            len: metadata.len,
            execution_ms: report.execution_ms,
            content: None,
        };
        let rules = self.runtime.rules();
        match self.ask_about(&job, question).await {
            Ok(scan) => MetadataScan::Kernel(scan),
            Err(problem) => match self.output_fail_mode(&rules.policy) {
                FailMode::Open => MetadataScan::None,
                FailMode::Closed => {
                    let verdict =
                        rules.policy.output().unchecked(FailMode::Closed, Stage::Sync, &problem.to_string());
                    MetadataScan::Kernel(OutputScan { verdict, redacted_ptr: None })
                }
            },
        }
    }

    /// Asks the kernel about a result. A redacted copy that is not there, or is another's, is none.
    async fn ask_about(&self, job: &Job, question: OutputQuestion<'_>) -> Result<OutputScan, NoAnswer> {
        let Some(kernel) = self.policy.kernel().kernel() else {
            return Err(NoAnswer::Refused("there is no safety kernel".to_owned()));
        };
        let mut scan = self.policy.kernel().ask(Circuit::Output, kernel.scan_output(question)).await?;
        if let Some(pointer) = &scan.redacted_ptr {
            let read = self.owned_content(job, Named::Output(pointer)).await;
            let copy = read.map_err(|error| NoAnswer::Down(error.to_string()))?;
            scan.redacted_ptr = scan.redacted_ptr.filter(|_| copy.is_some());
        }
        Ok(scan)
    }

    pub(crate) fn scans_output(&self) -> bool {
        let rules = self.runtime.rules();
        let output = rules.policy.output();
        let has_rules = output.has_rules() || self.policy.kernel().kernel().is_some();
        has_rules && self.runtime.settings().output.enabled.or(output.enabled).unwrap_or(false)
    }

    fn output_fail_mode(&self, policy: &Policy) -> FailMode {
        self.runtime.settings().output.fail_mode.or(policy.output().fail_mode).unwrap_or(FailMode::Open)
    }

    async fn metadata_of(&self, pointer: &str) -> Option<ContentMetadata> {
        let len = stored_len(&*self.store, pointer).await.ok()?;
        Some(ContentMetadata { len, has_error: false })
    }

    /// What a job made, with the size of what is ours to measure, if its size matters. What is kept outside
    /// is as large as the worker says.
    async fn measured(&self, job: &Job, report: &Report) -> Result<Made, StoreError> {
        let mut made = report.made.clone();
        if report.status != Status::Succeeded || job.artifact_bytes_max().is_none() {
            return Ok(made);
        }
        for pointer in report.made.artifact_ptrs.iter().chain([&report.result_ptr]) {
            made.largest_bytes = made.largest_bytes.max(stored_len(&*self.store, pointer).await?);
        }
        Ok(made)
    }

    /// Reads a result through. Called for every job that owes it; twice does no harm.
    pub(crate) async fn scan_content(self, job: Arc<Job>) {
        let began = Instant::now();
        let rules = self.runtime.rules();
        let fail_mode = self.output_fail_mode(&rules.policy);
        let scanned =
            tokio::time::timeout(LOOK_WITHIN, self.read_through(&job, &rules.policy, fail_mode)).await;
        let (outcome, copy) = scanned.unwrap_or_else(|_| {
            self.observe.metrics().output_skipped(&job.request.topic);
            let words = "it took longer than 30 s";
            (rules.policy.output().unchecked(fail_mode, Stage::Async, words), None)
        });
        let took = began.elapsed().as_secs_f64();
        self.observe.metrics().output_checked(&job.request.topic, Stage::Async, outcome.decision, took);
        let done = self
            .drive_on(job.id(), |job, now| {
                if !job.owed.output_scan {
                    return Err(Refusal::TooEarly);
                }
                life::check_output(job, outcome.clone(), copy.clone(), now)
            })
            .await;
        if let Err(error) = done {
            tracing::debug!(job = %job.id(), %error, "content scan changed nothing");
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
            match self.owned_content(job, Named::Output(pointer)).await {
                Ok(content) if self.policy.kernel().kernel().is_some() => {
                    return self.ask_in_full(job, content.unwrap_or_default(), policy, fail_mode).await;
                }
                Ok(content) => {
                    let content = content.unwrap_or_default();
                    let metadata = ContentMetadata { len: content.len() as u64, has_error: false };
                    let outcome =
                        scan_output(policy.clone(), job.request.clone(), metadata, content, fail_mode).await;
                    let Some(redacted) = outcome.redacted else { return (outcome.verdict, None) };
                    if let Ok(copy) = self.put_copy(&job.request, redacted).await {
                        return (outcome.verdict, Some(copy));
                    }
                }
                Err(error) => self.observe.log(Trouble::Store, "result not read; retrying", job.id(), &error),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn ask_in_full(
        &self,
        job: &Job,
        content: Bytes,
        policy: &Policy,
        fail_mode: FailMode,
    ) -> (OutputVerdict, Option<String>) {
        let ending = job.ending();
        let question = OutputQuestion {
            id: job.id(),
            request: &job.request,
            worker: job.worker(),
            result_ptr: ending.map_or("", |ending| ending.result_ptr.as_str()),
            len: content.len() as u64,
            execution_ms: ending.map_or(0, |ending| ending.execution_ms),
            content: Some(content),
        };
        match self.ask_about(job, question).await {
            Ok(scan) => (scan.verdict, scan.redacted_ptr),
            Err(problem) => {
                self.observe.metrics().output_skipped(&job.request.topic);
                (policy.output().unchecked(fail_mode, Stage::Async, &problem.to_string()), None)
            }
        }
    }

    /// `res:<job>:redacted:<hash>`, so that a second scan writes the same copy.
    async fn put_copy(&self, request: &Request, redacted: Vec<u8>) -> Result<String, StoreError> {
        let digest = Sha256::digest(&redacted);
        let hash = digest.iter().take(8).fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
        let key = BlobKey::redacted_result_of(&request.id, &hash);
        let expires_at = self.runtime.now() + self.runtime.settings().blob_ttl_ms;
        self.count_blob(&request.tenant, redacted.len(), expires_at);
        self.store.put_blob(key.clone(), redacted.into(), expires_at, PutMode::Always).await?;
        Ok(key.pointer())
    }

    /// Looks at a result that is somebody else's, by our rules. Without its content, only what is known of
    /// it counts.
    pub async fn scan_for_others(
        &self,
        request: &Request,
        len: u64,
        has_error: bool,
        content: Bytes,
    ) -> Result<(OutputVerdict, Option<String>), StoreError> {
        let rules = self.runtime.rules();
        let (output, fail_mode) = (rules.policy.output(), self.output_fail_mode(&rules.policy));
        let metadata = ContentMetadata { len, has_error };
        if content.is_empty() {
            let unread = || output.unchecked(FailMode::Open, Stage::Sync, "its content was not sent");
            return Ok((output.check_metadata(request, metadata).unwrap_or_else(unread), None));
        }
        let outcome =
            scan_output(rules.policy.clone(), Arc::new(request.clone()), metadata, content, fail_mode).await;
        let Some(redacted) = outcome.redacted else { return Ok((outcome.verdict, None)) };
        let copy = self.put_copy(request, redacted).await?;
        Ok((outcome.verdict, Some(copy)))
    }

    // What people may read, and what they decide.

    /// Whether results are kept from everybody until they were looked at.
    pub(crate) fn holds_unseen(&self) -> bool {
        self.scans_output()
            && self.runtime.settings().output.hold.unwrap_or(self.runtime.rules().policy.output().hold)
    }

    /// Whether nobody may read the job's result, now or at all.
    pub fn holds_result(&self, job: &Job) -> bool {
        match job.state() {
            State::OutputQuarantined => true,
            State::Failed => {
                job.ending().is_some_and(|ending| ending.reason == Some(Reason::ArtifactTooLarge))
            }
            State::Succeeded => {
                job.owed.output_scan
                    && self
                        .runtime
                        .settings()
                        .output
                        .hold
                        .unwrap_or(self.runtime.rules().policy.output().hold)
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
            snapshot: self.runtime.rules().policy.snapshot().to_owned(),
            findings: Vec::new(),
        };
        self.decided(id, move |job, now| life::check_output(job, verdict.clone(), None, now)).await
    }

    /// The result becomes readable. The job is not run again.
    pub async fn release(
        &self,
        id: &JobId,
        by: impl Into<Identity>,
        note: &str,
    ) -> Result<Arc<Job>, DriveError> {
        let (by, note) = (by.into(), note.to_owned());
        self.decided(id, move |job, now| life::release(job, &by, &note, now)).await
    }

    /// The result is gone for good.
    pub async fn discard(
        &self,
        id: &JobId,
        by: impl Into<Identity>,
        note: &str,
    ) -> Result<Arc<Job>, DriveError> {
        let before = self.store.job(id).await?.ok_or(DriveError::Unknown)?;
        let (by, note) = (by.into(), note.to_owned());
        let job = self.decided(id, move |job, now| life::discard(job, &by, &note, now)).await?;
        let pointer = before.output.as_ref().map_or("", |check| check.original_ptr.as_str());
        if let Ok(key) = BlobKey::from_pointer(pointer) {
            self.store.delete_blobs(vec![key]).await?;
        }
        Ok(job)
    }
}

/// Scanning takes its time, so it is done where it holds nobody up.
async fn scan_output(
    policy: Policy,
    request: Arc<Request>,
    metadata: ContentMetadata,
    content: Bytes,
    fail_mode: FailMode,
) -> ContentScan {
    let len = content.len();
    let check = move || policy.output().check_content(&request, metadata, &content, fail_mode);
    if len <= SMALL {
        return check();
    }
    match tokio::task::spawn_blocking(check).await {
        Ok(outcome) => outcome,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}
