//! The policy check. First everything is gathered that has to be waited for (the input, a safety kernel), then the
//! verdict is a plain decision like any other, made on the job as it is at that moment.

use super::blob_access::own_input;
use super::safety_kernel::SafetyKernel;
use crate::base::Base;
use crate::cluster::{Cluster, PeerMessage};
use crate::observe::Observe;
use crate::observe::metrics::Circuit;
use crate::rules::Rules;
use crate::runtime::Runtime;
use bytes::Bytes;
use reveille_core::id::JobId;
use reveille_core::job::{Job, Refusal};
use reveille_core::life;
use reveille_core::policy::{
    Counted, Counting, Decision, FailMode, InputContent, InputVerdict, Policy, Question, RecordedVerdict,
    Trace, Verdict, Windows,
};
use reveille_core::request::Request;
use reveille_core::time::Millis;
use reveille_kernel::convert::SentInput;
use reveille_kernel::{Kernel, NoAnswer, Purpose};
use reveille_store::{Store, StoreError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An input that is looked through in less time than it takes to hand it over.
const SMALL: usize = 64 * 1024;
/// The rule that a job ran by when nobody could be asked.
const FAIL_OPEN: &str = "fail-open";

/// What a verdict rests on. A request never changes and neither does its input, so it holds for every
/// try to commit the verdict.
pub struct PolicyBasis {
    rules: Arc<Rules>,
    decided_by: DecidedBy,
    read: InputRead,
}

/// What was read of the input.
enum InputRead {
    /// Nothing, or what came along with the job.
    Nothing,
    /// This was stored, if anything was.
    Stored(Option<Bytes>),
}

enum DecidedBy {
    /// Our policy decides; this was found in the input.
    Policy(Option<InputVerdict>),
    /// The safety kernel has spoken.
    Kernel(Verdict),
    /// It has not, and new jobs run all the same.
    FailedOpen(Verdict),
    /// It has not, and the job waits until it does.
    Nobody(NoAnswer),
    /// The job was not to be checked.
    NotAsked,
}

impl PolicyBasis {
    /// Why nobody could be asked, if so. Who waits for a person goes on waiting then, whatever the fail mode.
    pub fn problem(&self) -> Option<String> {
        match &self.decided_by {
            DecidedBy::Nobody(problem) => Some(problem.to_string()),
            DecidedBy::FailedOpen(verdict) => Some(verdict.reason.clone()),
            DecidedBy::Policy(_) | DecidedBy::Kernel(_) | DecidedBy::NotAsked => None,
        }
    }
}

/// Decides about jobs: by the policy in force, or by a safety kernel that is asked instead.
pub struct PolicyChecker {
    runtime: Runtime,
    observe: Observe,
    cluster: Arc<dyn Cluster>,
    store: Arc<dyn Store>,
    kernel: SafetyKernel,
    /// How often things were asked lately, for rules that limit it.
    windows: Mutex<Windows>,
}

impl PolicyChecker {
    pub(super) fn new(base: &Base, store: Arc<dyn Store>, kernel: Option<Arc<dyn Kernel>>) -> Self {
        let Base { runtime, observe, cluster, .. } = base.clone();
        let windows = if cluster.others_may_act() { Windows::shared() } else { Windows::default() };
        let kernel = SafetyKernel::new(runtime.clone(), observe.clone(), store.clone(), kernel);
        Self { runtime, observe, cluster, store, kernel, windows: Mutex::new(windows) }
    }

    /// The safety kernel that is asked instead of the policy file, if there is one.
    pub fn kernel(&self) -> &SafetyKernel {
        &self.kernel
    }

    /// Whether policy is somebody else's, and whose.
    pub fn kernel_address(&self) -> Option<&str> {
        self.kernel.kernel().map(|kernel| kernel.address())
    }

    /// Checks a new job, as far as that takes time. `given` is its input if that came along.
    pub async fn check(&self, request: &Request, given: Option<&Bytes>) -> Result<PolicyBasis, StoreError> {
        let rules = self.runtime.rules();
        if self.kernel.kernel().is_none() && !rules.policy.reads_input(request) {
            return Ok(PolicyBasis { rules, decided_by: DecidedBy::Policy(None), read: InputRead::Nothing });
        }
        // Most jobs are judged without waiting for anything, and their futures stay small.
        Box::pin(self.check_in_full(request, given, rules)).await
    }

    async fn check_in_full(
        &self,
        request: &Request,
        given: Option<&Bytes>,
        rules: Arc<Rules>,
    ) -> Result<PolicyBasis, StoreError> {
        let (input, read) = if let Some(given) = given {
            (Some(given.clone()), InputRead::Nothing)
        } else {
            let input = self.input_of(request).await?;
            (input.clone(), InputRead::Stored(input))
        };
        let decided_by = match self.kernel.kernel() {
            None => DecidedBy::Policy(scan_input(&rules.policy, request, input).await),
            Some(kernel) => self.check_with_kernel(kernel, request, input.as_ref(), &rules).await,
        };
        Ok(PolicyBasis { rules, decided_by, read })
    }

    /// Checks a job that is stored, if `wants` says so.
    pub async fn recheck(
        &self,
        id: &JobId,
        wants: impl Fn(&Job) -> bool + Send,
    ) -> Result<PolicyBasis, StoreError> {
        match self.store.job(id).await? {
            Some(job) if wants(&job) => self.check(&job.request, None).await,
            _ => Ok(self.not_asked()),
        }
    }

    /// The same, for what has nobody to answer: a store that fails is asked again until it answers.
    pub async fn recheck_stored(
        &self,
        id: &JobId,
        wants: impl Fn(&Job) -> bool + Send + Sync,
    ) -> PolicyBasis {
        let words = "job not read for its policy check; retrying";
        let basis = self.observe.until_answered(words, id, || self.recheck(id, &wants)).await;
        basis.unwrap_or_else(|_| self.not_asked())
    }

    /// Whether the stored input is still the one that was checked. Asked with the lock of a job that does not
    /// exist yet: once it does, nobody changes its input.
    pub async fn is_unchanged(&self, request: &Request, basis: &PolicyBasis) -> Result<bool, StoreError> {
        match &basis.read {
            InputRead::Nothing => Ok(true),
            InputRead::Stored(before) => Ok(self.input_of(request).await? == *before),
        }
    }

    /// The job as judged, or as put off if nobody could be asked.
    pub fn judge(&self, job: &Job, basis: &PolicyBasis, now: Millis) -> Result<Job, Refusal> {
        match self.verdict_on(job, basis, now)? {
            Ok(recorded) => life::judge(job, recorded, now),
            Err(problem) => life::unjudged(job, &problem.to_string(), now, self.runtime.random()),
        }
    }

    /// What is said of the job, if somebody could be asked.
    pub fn verdict_on(
        &self,
        job: &Job,
        basis: &PolicyBasis,
        now: Millis,
    ) -> Result<Result<RecordedVerdict, NoAnswer>, Refusal> {
        let verdict = match &basis.decided_by {
            DecidedBy::NotAsked => return Err(Refusal::TooEarly),
            DecidedBy::Nobody(problem) => return Ok(Err(problem.clone())),
            DecidedBy::Kernel(verdict) | DecidedBy::FailedOpen(verdict) => verdict.clone(),
            DecidedBy::Policy(stop) => {
                let counting = if job.verdicts.is_empty() { Counting::New } else { Counting::AlreadyCounted };
                let question =
                    Question { request: &job.request, input_verdict: stop.as_ref(), counting, now };
                self.ask(&basis.rules.policy, &question)
            }
        };
        Ok(Ok(RecordedVerdict { verdict, checked_at: now }))
    }

    fn ask(&self, policy: &Policy, question: &Question<'_>) -> Verdict {
        if policy.has_velocity() {
            let mut windows = self.windows();
            let verdict = policy.judge(question, &mut windows);
            let counted = windows.take_counted();
            drop(windows);
            for counted in counted {
                self.cluster.publish(&|| PeerMessage::Counted(counted.clone()));
            }
            return verdict;
        }
        policy.judge(question, &mut Windows::default())
    }

    async fn check_with_kernel(
        &self,
        kernel: &Arc<dyn Kernel>,
        request: &Request,
        input: Option<&Bytes>,
        rules: &Rules,
    ) -> DecidedBy {
        let question = kernel.judge(request, input, Purpose::Check);
        match self.kernel.ask(Circuit::Input, question).await {
            Ok(verdict) => DecidedBy::Kernel(rules.policy.refusal(request).unwrap_or(verdict)),
            Err(problem) => self.unanswered(request, problem, rules),
        }
    }

    /// The kernel gave no answer, and the fail mode says what that means.
    fn unanswered(&self, request: &Request, problem: NoAnswer, rules: &Rules) -> DecidedBy {
        self.observe.metrics().safety_unavailable(&request.topic);
        let fail_mode = self.runtime.settings().policy_fail_mode.unwrap_or(rules.policy.input_fail_mode());
        // What was done stays done while nobody can be asked: that is worse than undoing it unasked.
        if fail_mode == FailMode::Closed && !request.is_compensation() {
            return DecidedBy::Nobody(problem);
        }
        tracing::warn!(job = %request.id, topic = %request.topic, %problem, "input policy fail-open: safety kernel unreachable");
        self.observe.metrics().failed_open(&request.topic);
        let verdict = Verdict {
            decision: Decision::Allow,
            reason: format!("input policy fail-open: safety kernel unreachable ({problem})"),
            rule_id: FAIL_OPEN.to_owned(),
            snapshot: String::new(),
            constraints: None,
            remediations: Vec::new(),
        };
        DecidedBy::FailedOpen(rules.policy.refusal(request).unwrap_or(verdict))
    }

    /// What a job is to work on; nothing if that is not to be had here.
    async fn input_of(&self, request: &Request) -> Result<Option<Bytes>, StoreError> {
        if request.context_ptr.is_empty() {
            return Ok(Some(Bytes::new()));
        }
        let Some(key) = own_input(request) else { return Ok(None) };
        match self.store.blob(&key).await {
            Err(error) if !error.is_transient() => Ok(None),
            read => read,
        }
    }

    /// For what is no verdict.
    pub fn not_asked(&self) -> PolicyBasis {
        PolicyBasis { rules: self.runtime.rules(), decided_by: DecidedBy::NotAsked, read: InputRead::Nothing }
    }

    // Asking without a job of ours.

    /// What would be said of a request now. Nothing is counted or kept.
    pub async fn evaluate(&self, request: &Request, purpose: Purpose) -> Result<Verdict, NoAnswer> {
        if let Some(kernel) = self.kernel.kernel() {
            return self.kernel.ask(Circuit::Input, kernel.judge(request, None, purpose)).await;
        }
        let (counting, now) = (Counting::DryRun, self.runtime.now());
        Ok(self.ask(&self.runtime.rules().policy, &Question { request, input_verdict: None, counting, now }))
    }

    /// What is said of a job that is somebody else's. A check counts where a rule counts, as one of ours
    /// would.
    pub async fn check_for_others(
        &self,
        request: &Request,
        input: SentInput,
        purpose: Purpose,
    ) -> Result<(Verdict, Trace), NoAnswer> {
        if let Some(kernel) = self.kernel.kernel() {
            let verdict =
                self.kernel.ask(Circuit::Input, kernel.judge(request, Some(&input.content), purpose)).await?;
            return Ok((verdict, Trace::default()));
        }
        let policy = &self.runtime.rules().policy;
        let stop = look_at_sent(policy, request, input).await;
        let counting = if purpose == Purpose::Check { Counting::New } else { Counting::DryRun };
        let question = Question { request, input_verdict: stop.as_ref(), counting, now: self.runtime.now() };
        if purpose == Purpose::Explain {
            return Ok(policy.explain(&question, &mut self.windows()));
        }
        Ok((self.ask(policy, &question), Trace::default()))
    }

    /// What our policy would say, rule by rule.
    pub fn policy_trace(&self, request: &Request) -> (Verdict, Trace) {
        let question =
            Question { request, input_verdict: None, counting: Counting::DryRun, now: self.runtime.now() };
        self.runtime.rules().policy.explain(&question, &mut self.windows())
    }

    /// What another server has counted.
    pub fn on_peer_counted(&self, counted: Counted) {
        self.windows().hear(counted, self.runtime.now());
    }

    fn windows(&self) -> MutexGuard<'_, Windows> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the input rules find in an input that is ours.
pub async fn scan_input(policy: &Policy, request: &Request, input: Option<Bytes>) -> Option<InputVerdict> {
    match input {
        None => policy.scan_input(request, InputContent::Missing),
        Some(content) => {
            let len = content.len() as i64;
            look_at_sent(policy, request, SentInput { content, len }).await
        }
    }
}

/// Looking takes its time, so it is done where it holds nobody up.
async fn look_at_sent(policy: &Policy, request: &Request, input: SentInput) -> Option<InputVerdict> {
    if input.content.len() <= SMALL || !policy.reads_input(request) {
        return policy.scan_input(request, input.contents());
    }
    let (policy, request) = (policy.clone(), request.clone());
    match tokio::task::spawn_blocking(move || policy.scan_input(&request, input.contents())).await {
        Ok(stop) => stop,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}
