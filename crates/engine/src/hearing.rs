//! Judging a job. First everything is heard that has to be waited for, then the verdict is a plain
//! decision like any other, made on the job as it is at that moment.

use crate::Engine;
use crate::rules::Rules;
use crate::safety::Circuit;
use bytes::Bytes;
use reveille_core::id::JobId;
use reveille_core::job::{Job, Refusal};
use reveille_core::life;
use reveille_core::policy::{
    Contents, Counting, Decision, FailMode, Policy, Question, RecordedVerdict, Stop, Trace, Verdict, Windows,
};
use reveille_core::request::Request;
use reveille_core::time::Millis;
use reveille_kernel::convert::Sent;
use reveille_kernel::{Kernel, NoAnswer, Purpose};
use reveille_store::{BlobKey, StoreError};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

const PAUSE: Duration = Duration::from_secs(1);
/// An input that is looked through in less time than it takes to hand it over.
const SMALL: usize = 64 * 1024;
/// The rule that a job ran by when nobody could be asked.
const FAIL_OPEN: &str = "fail-open";

/// What a verdict rests on. A request never changes and neither does its input, so it holds for every
/// try to commit the verdict.
pub(crate) struct Hearing {
    rules: Arc<Rules>,
    said: Said,
    read: Read,
}

/// What was read of the input.
enum Read {
    /// Nothing, or what came along with the job.
    Nothing,
    /// This was stored, if anything was.
    Stored(Option<Bytes>),
}

enum Said {
    /// Our policy decides; this was found in the input.
    Policy(Option<Stop>),
    /// The safety kernel has spoken.
    Kernel(Verdict),
    /// It has not, and new jobs run all the same.
    FailedOpen(Verdict),
    /// It has not, and the job waits until it does.
    Nobody(NoAnswer),
    /// The job did not want to be heard.
    NotAsked,
}

impl Hearing {
    /// Why nobody could be asked, if so. Who waits for a person goes on waiting then, whatever the fail mode.
    pub fn problem(&self) -> Option<String> {
        match &self.said {
            Said::Nobody(problem) => Some(problem.to_string()),
            Said::FailedOpen(verdict) => Some(verdict.reason.clone()),
            Said::Policy(_) | Said::Kernel(_) | Said::NotAsked => None,
        }
    }
}

impl Engine {
    /// Hears a new job. `given` is its input if that came along.
    pub(crate) async fn hear(&self, request: &Request, given: Option<&Bytes>) -> Result<Hearing, StoreError> {
        let rules = self.rules();
        if self.safety.kernel().is_none() && !rules.policy.reads_input(request) {
            return Ok(Hearing { rules, said: Said::Policy(None), read: Read::Nothing });
        }
        // Most jobs are judged without waiting for anything, and their futures stay small.
        Box::pin(self.hear_in_full(request, given, rules)).await
    }

    async fn hear_in_full(
        &self,
        request: &Request,
        given: Option<&Bytes>,
        rules: Arc<Rules>,
    ) -> Result<Hearing, StoreError> {
        let (input, read) = if let Some(given) = given {
            (Some(given.clone()), Read::Nothing)
        } else {
            let input = self.input_of(request).await?;
            (input.clone(), Read::Stored(input))
        };
        let said = match self.safety.kernel() {
            None => Said::Policy(scan_input(&rules.policy, request, input).await),
            Some(kernel) => self.hear_kernel(kernel, request, input.as_ref(), &rules).await,
        };
        Ok(Hearing { rules, said, read })
    }

    /// Hears a job that is stored, if it is one that wants to be heard.
    pub(crate) async fn hear_again(
        &self,
        id: &JobId,
        wants: impl Fn(&Job) -> bool + Send,
    ) -> Result<Hearing, StoreError> {
        match self.store.job(id).await? {
            Some(job) if wants(&job) => self.hear(&job.request, None).await,
            _ => Ok(self.not_asked()),
        }
    }

    /// The same, for what has nobody to tell: a store that fails is asked again until it answers.
    pub(crate) async fn hear_stored(
        &self,
        id: &JobId,
        wants: impl Fn(&Job) -> bool + Send + Sync,
    ) -> Hearing {
        loop {
            match self.hear_again(id, &wants).await {
                Ok(hearing) => return hearing,
                Err(error) if !error.is_transient() => return self.not_asked(),
                Err(error) => {
                    let words = "a job could not be read to be judged; trying again";
                    self.trouble.store.tell(self.now(), words, id, &error);
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Whether the stored input is still the one that was heard. Asked with the turn of a job that does not
    /// exist yet: once it does, nobody changes its input.
    pub(crate) async fn is_unchanged(
        &self,
        request: &Request,
        hearing: &Hearing,
    ) -> Result<bool, StoreError> {
        match &hearing.read {
            Read::Nothing => Ok(true),
            Read::Stored(before) => Ok(self.input_of(request).await? == *before),
        }
    }

    /// The job as judged, or as put off if nobody could be asked.
    pub(crate) fn judge(&self, job: &Job, hearing: &Hearing, now: Millis) -> Result<Job, Refusal> {
        match self.last_verdict(job, hearing, now)? {
            Ok(last_verdict) => life::judge(job, last_verdict, now),
            Err(problem) => life::unjudged(job, &problem.to_string(), now, self.rng.next_u64()),
        }
    }

    /// What is said of the job, if somebody could be asked.
    pub(crate) fn last_verdict(
        &self,
        job: &Job,
        hearing: &Hearing,
        now: Millis,
    ) -> Result<Result<RecordedVerdict, NoAnswer>, Refusal> {
        let verdict = match &hearing.said {
            Said::NotAsked => return Err(Refusal::TooEarly),
            Said::Nobody(problem) => return Ok(Err(problem.clone())),
            Said::Kernel(verdict) | Said::FailedOpen(verdict) => verdict.clone(),
            Said::Policy(stop) => {
                let counting = if job.verdicts.is_empty() { Counting::Counts } else { Counting::Again };
                let question = Question { request: &job.request, stop: stop.as_ref(), counting, now };
                self.ask(&hearing.rules.policy, &question)
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
            self.tell_counted(counted);
            return verdict;
        }
        policy.judge(question, &mut Windows::default())
    }

    async fn hear_kernel(
        &self,
        kernel: &Arc<dyn Kernel>,
        request: &Request,
        input: Option<&Bytes>,
        rules: &Rules,
    ) -> Said {
        let question = kernel.judge(request, input, Purpose::Check);
        match self.ask_kernel(Circuit::Input, question).await {
            Ok(verdict) => Said::Kernel(rules.policy.refusal(request).unwrap_or(verdict)),
            Err(problem) => self.unanswered(request, problem, rules),
        }
    }

    /// The kernel gave no answer, and the fail mode says what that means.
    fn unanswered(&self, request: &Request, problem: NoAnswer, rules: &Rules) -> Said {
        self.metrics.safety_unavailable(&request.topic);
        let fail_mode = self.settings.policy_fail_mode.unwrap_or(rules.policy.input_fail_mode());
        // What was done stays done while nobody can be asked: that is worse than undoing it unasked.
        if fail_mode == FailMode::Closed && !request.is_compensation() {
            return Said::Nobody(problem);
        }
        tracing::warn!(job = %request.id, topic = %request.topic, %problem, "input policy fail-open: safety kernel unreachable");
        self.metrics.failed_open(&request.topic);
        let verdict = Verdict {
            decision: Decision::Allow,
            reason: format!("input policy fail-open: safety kernel unreachable ({problem})"),
            rule_id: FAIL_OPEN.to_owned(),
            snapshot: String::new(),
            constraints: None,
            remediations: Vec::new(),
        };
        Said::FailedOpen(rules.policy.refusal(request).unwrap_or(verdict))
    }

    /// What a job is to work on; nothing if that is not to be had here. Another's blob can still be changed
    /// after it was looked at, so it counts as not to be had.
    async fn input_of(&self, request: &Request) -> Result<Option<Bytes>, StoreError> {
        if request.context_ptr.is_empty() {
            return Ok(Some(Bytes::new()));
        }
        let input = BlobKey::from_pointer(&request.context_ptr).ok();
        if input.and_then(|key| key.job_of_context()).as_ref() != Some(&request.id) {
            return Ok(None);
        }
        match self.content(&request.context_ptr).await {
            Err(error) if !error.is_transient() => Ok(None),
            read => read,
        }
    }

    /// For what is no verdict.
    pub(crate) fn not_asked(&self) -> Hearing {
        Hearing { rules: self.rules(), said: Said::NotAsked, read: Read::Nothing }
    }

    // Asking without a job of ours.

    /// What would be said of a request now. Nothing is counted or kept.
    pub async fn would_say(&self, request: &Request, purpose: Purpose) -> Result<Verdict, NoAnswer> {
        if let Some(kernel) = self.safety.kernel() {
            return self.ask_kernel(Circuit::Input, kernel.judge(request, None, purpose)).await;
        }
        let (counting, now) = (Counting::Looks, self.now());
        Ok(self.ask(&self.rules().policy, &Question { request, stop: None, counting, now }))
    }

    /// What is said of a job that is somebody else's. A check counts where a rule counts, as one of ours
    /// would.
    pub async fn say_for_others(
        &self,
        request: &Request,
        input: Sent,
        purpose: Purpose,
    ) -> Result<(Verdict, Trace), NoAnswer> {
        if let Some(kernel) = self.safety.kernel() {
            let verdict =
                self.ask_kernel(Circuit::Input, kernel.judge(request, Some(&input.content), purpose)).await?;
            return Ok((verdict, Trace::default()));
        }
        let policy = &self.rules().policy;
        let stop = look_at_sent(policy, request, input).await;
        let counting = if purpose == Purpose::Check { Counting::Counts } else { Counting::Looks };
        let question = Question { request, stop: stop.as_ref(), counting, now: self.now() };
        if purpose == Purpose::Explain {
            return Ok(policy.explain(&question, &mut self.windows()));
        }
        Ok((self.ask(policy, &question), Trace::default()))
    }

    /// What our policy would say, rule by rule.
    pub fn policy_trace(&self, request: &Request) -> (Verdict, Trace) {
        let question = Question { request, stop: None, counting: Counting::Looks, now: self.now() };
        self.rules().policy.explain(&question, &mut self.windows())
    }

    pub(crate) fn windows(&self) -> MutexGuard<'_, Windows> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the input rules find in an input that is ours.
pub(crate) async fn scan_input(policy: &Policy, request: &Request, input: Option<Bytes>) -> Option<Stop> {
    match input {
        None => policy.look(request, Contents::Missing),
        Some(content) => {
            let len = content.len() as i64;
            look_at_sent(policy, request, Sent { content, len }).await
        }
    }
}

/// Looking takes its time, so it is done where it holds nobody up.
async fn look_at_sent(policy: &Policy, request: &Request, input: Sent) -> Option<Stop> {
    if input.content.len() <= SMALL || !policy.reads_input(request) {
        return policy.look(request, input.contents());
    }
    let (policy, request) = (policy.clone(), request.clone());
    match tokio::task::spawn_blocking(move || policy.look(&request, input.contents())).await {
        Ok(stop) => stop,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}
