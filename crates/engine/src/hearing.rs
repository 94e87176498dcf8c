//! Judging a job. First everything is heard that has to be waited for, then the judgement is a plain
//! decision like any other, made on the job as it is at that moment.

use crate::Engine;
use crate::rules::Rules;
use crate::safety::Circuit;
use bytes::Bytes;
use reveille_core::id::JobId;
use reveille_core::job::{Job, Refusal};
use reveille_core::life;
use reveille_core::policy::{Counting, Decision, FailMode, Judgement, Question, Trace, Verdict, Windows};
use reveille_core::request::Request;
use reveille_core::time::Millis;
use reveille_kernel::{NoAnswer, Purpose};
use reveille_store::StoreError;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

const PAUSE: Duration = Duration::from_secs(1);
/// The rule that a job ran by when nobody could be asked.
const FAIL_OPEN: &str = "fail-open";

/// What a judgement rests on. A request never changes and neither does its input, so it holds for every
/// try to commit the judgement.
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
    /// Our policy decides, over this input; nothing if a rule wants to see it and it is not to be had.
    Policy(Option<Bytes>),
    /// The safety kernel has spoken.
    Kernel(Verdict),
    /// It has not, and the job waits until it does.
    Nobody(NoAnswer),
    /// The job did not want to be heard.
    NotAsked,
}

impl Hearing {
    /// Why nobody could be asked, if so.
    pub fn problem(&self) -> Option<&NoAnswer> {
        if let Said::Nobody(problem) = &self.said { Some(problem) } else { None }
    }
}

impl Engine {
    /// Hears a new job. `given` is its input if that came along.
    pub(crate) async fn hear(&self, request: &Request, given: Option<&Bytes>) -> Result<Hearing, StoreError> {
        let rules = self.rules();
        if self.safety.kernel().is_none() && !rules.policy.reads_input(request) {
            return Ok(Hearing { rules, said: Said::Policy(Some(Bytes::new())), read: Read::Nothing });
        }
        let (input, read) = match given {
            Some(given) => (Some(given.clone()), Read::Nothing),
            None => {
                let input = self.input_of(request).await?;
                (input.clone(), Read::Stored(input))
            }
        };
        let said = match self.safety.kernel() {
            None => Said::Policy(input),
            Some(kernel) => {
                let question = kernel.judge(request, input.as_ref(), Purpose::Check);
                match self.ask_kernel(Circuit::Input, question).await {
                    Ok(verdict) => Said::Kernel(verdict),
                    Err(problem) => self.unanswered(request, problem, &rules),
                }
            }
        };
        Ok(Hearing { rules, said, read })
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

    /// Hears a job that is stored, if it is one that wants to be heard. A store that fails is asked again
    /// until it answers.
    pub(crate) async fn hear_stored(&self, id: &JobId, wants: impl Fn(&Job) -> bool + Send) -> Hearing {
        loop {
            let heard = match self.store.job(id).await {
                Ok(Some(job)) if wants(&job) => self.hear(&job.request, None).await,
                Ok(_) => Ok(self.not_asked()),
                Err(error) => Err(error),
            };
            match heard {
                Ok(hearing) => return hearing,
                Err(error) if !error.may_pass() => return self.not_asked(),
                Err(error) => {
                    let words = "a job could not be read to be judged; trying again";
                    self.trouble.store.tell(self.now(), words, id, &error);
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// The job as judged, or as put off if nobody could be asked.
    pub(crate) fn judge(&self, job: &Job, hearing: &Hearing, now: Millis) -> Result<Job, Refusal> {
        match self.judgement(job, hearing, now)? {
            Ok(judgement) => life::judge(job, judgement, now),
            Err(problem) => life::unjudged(job, &problem.0, now, self.dice.roll()),
        }
    }

    /// What is said of the job, if somebody could be asked.
    pub(crate) fn judgement(
        &self,
        job: &Job,
        hearing: &Hearing,
        now: Millis,
    ) -> Result<Result<Judgement, NoAnswer>, Refusal> {
        let verdict = match &hearing.said {
            Said::NotAsked => return Err(Refusal::TooEarly),
            Said::Nobody(problem) => return Ok(Err(problem.clone())),
            Said::Kernel(verdict) => verdict.clone(),
            Said::Policy(input) => {
                let counting = if job.judgements.is_empty() { Counting::Counts } else { Counting::Again };
                let question = Question { request: &job.request, input: input.as_deref(), counting, now };
                self.ask(&hearing.rules, &question)
            }
        };
        Ok(Ok(Judgement { verdict, checked_at: now }))
    }

    fn ask(&self, rules: &Rules, question: &Question<'_>) -> Verdict {
        if rules.policy.has_velocity() {
            return rules.policy.judge(question, &mut self.windows());
        }
        rules.policy.judge(question, &mut Windows::default())
    }

    /// The kernel gave no answer, and the fail mode says what that means.
    fn unanswered(&self, request: &Request, problem: NoAnswer, rules: &Rules) -> Said {
        self.metrics.safety_unavailable(&request.topic);
        let fail_mode = self.settings.policy_fail_mode.unwrap_or(rules.policy.input_fail_mode());
        if fail_mode == FailMode::Closed {
            return Said::Nobody(problem);
        }
        tracing::warn!(job = %request.id, topic = %request.topic, %problem, "input policy fail-open: safety kernel unreachable");
        self.metrics.failed_open(&request.topic);
        Said::Kernel(Verdict {
            decision: Decision::Allow,
            reason: format!("input policy fail-open: safety kernel unreachable ({problem})"),
            rule_id: FAIL_OPEN.to_owned(),
            snapshot: String::new(),
            constraints: None,
            remediations: Vec::new(),
        })
    }

    /// What a job is to work on; nothing if that is not to be had here.
    async fn input_of(&self, request: &Request) -> Result<Option<Bytes>, StoreError> {
        if request.context_ptr.is_empty() {
            return Ok(Some(Bytes::new()));
        }
        match self.content(&request.context_ptr).await {
            Err(error) if !error.may_pass() => Ok(None),
            read => read,
        }
    }

    /// For what is no judgement.
    pub(crate) fn not_asked(&self) -> Hearing {
        Hearing { rules: self.rules(), said: Said::NotAsked, read: Read::Nothing }
    }

    // Asking without a job.

    /// What would be said of a request now. Nothing is counted or kept.
    pub async fn would_say(&self, request: &Request, purpose: Purpose) -> Result<Verdict, NoAnswer> {
        if let Some(kernel) = self.safety.kernel() {
            return self.ask_kernel(Circuit::Input, kernel.judge(request, None, purpose)).await;
        }
        Ok(self.evaluate(request, &[]))
    }

    /// What our policy says of a job that is somebody else's. It counts, as one of ours would.
    pub fn check(&self, request: &Request, input: &[u8]) -> Verdict {
        self.ask_for_others(request, input, Counting::Counts)
    }

    /// The same, of a job that will not run.
    pub fn evaluate(&self, request: &Request, input: &[u8]) -> Verdict {
        self.ask_for_others(request, input, Counting::Looks)
    }

    fn ask_for_others(&self, request: &Request, input: &[u8], counting: Counting) -> Verdict {
        let now = self.now();
        self.ask(&self.rules(), &Question { request, input: Some(input), counting, now })
    }

    /// What our policy would say, rule by rule.
    pub fn policy_trace(&self, request: &Request) -> (Verdict, Trace) {
        self.rules().policy.explain(request, &mut self.windows(), self.now())
    }

    fn windows(&self) -> MutexGuard<'_, Windows> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
