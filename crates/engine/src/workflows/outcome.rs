//! How jobs and runs end, as the steps see it that had sent them off.

use super::Workflows;
use crate::observe::Trouble;
use reveille_core::approval::Choice;
use reveille_core::flow::{OUTPUT_LEN_MAX, Run, RunEvent, RunOrigin, RunState, StepOutcome};
use reveille_core::job::{Job, State};
use reveille_core::request::OfRun;
use reveille_store::StoreError;
use serde_json::{Value as Json, json};
use std::sync::Arc;

impl Workflows {
    /// A job has ended; if it is a step of a run, the run goes on. A result that is held back until it was looked at is
    /// waited for; one that is held back for good is not.
    pub(crate) fn on_step_ended(&self, job: &Arc<Job>) {
        let is_looked_at = job.state() == State::Succeeded && self.jobs.holds_result(job);
        if job.request.place.of_run.is_some() && job.state().is_terminal() && !is_looked_at {
            self.runtime.spawn(self.clone().step_is_over(job.clone()));
        }
    }

    pub(super) async fn step_is_over(self, job: Arc<Job>) {
        let Some(of) = &job.request.place.of_run else { return };
        self.step_is_over_with(of, &job).await;
    }

    /// The same, where the job that did it may be another's.
    pub(super) async fn step_is_over_with(&self, of: &OfRun, job: &Job) {
        let words = "result not read; retrying";
        let outcome = self.observe.insist(Trouble::Store, words, job.id(), || self.outcome_of(job)).await;
        let event = RunEvent::Over { node: of.node.clone(), attempt: of.attempt, outcome };
        self.drive_run_on(&of.run, &event).await;
    }

    async fn outcome_of(&self, job: &Job) -> Result<StepOutcome, StoreError> {
        let Some(ending) = job.ending() else {
            unreachable!("only jobs that have ended are told of");
        };
        let words = if ending.words.is_empty() { ending.error_code.clone() } else { ending.words.clone() };
        let for_good = |words: String| StepOutcome::Failed { words, is_worth_another_try: false };
        Ok(match ending.state {
            State::Succeeded if job.request.is_gate() => StepOutcome::Succeeded(Some(approval(job))),
            State::Succeeded => match self.jobs.read_result(job).await?.bytes() {
                Some(result) if result.len() > OUTPUT_LEN_MAX => for_good(format!(
                    "its result has {} bytes; a step takes at most {OUTPUT_LEN_MAX}",
                    result.len()
                )),
                Some(result) => StepOutcome::Succeeded(Some(
                    serde_json::from_slice(result)
                        .unwrap_or_else(|_| Json::String(String::from_utf8_lossy(result).into_owned())),
                )),
                None => StepOutcome::Succeeded(None),
            },
            State::Timeout => StepOutcome::TimedOut(words),
            State::Denied => StepOutcome::Denied(words),
            State::Cancelled => for_good(words),
            State::OutputQuarantined => for_good(format!("its output is quarantined: {words}")),
            _ => StepOutcome::Failed { words, is_worth_another_try: !ending.is_fatal },
        })
    }

    /// A run that is a step of another has ended.
    pub(super) fn notify_parent(&self, run: &Run) {
        let RunOrigin::Step { run: parent, node, attempt, .. } = &run.head.origin else { return };
        let event = RunEvent::Over { node: node.clone(), attempt: *attempt, outcome: outcome_of_run(run) };
        let (workflows, parent) = (self.clone(), parent.clone());
        self.runtime.spawn(async move { workflows.drive_run_on(&parent, &event).await });
    }
}

pub(super) fn outcome_of_run(run: &Run) -> StepOutcome {
    let words = run.head.error.clone();
    match run.head.state {
        RunState::Succeeded => StepOutcome::Succeeded(run.output.as_deref().cloned()),
        RunState::Denied => StepOutcome::Denied(words),
        RunState::TimedOut => StepOutcome::TimedOut(words),
        RunState::Cancelled => StepOutcome::Failed { words, is_worth_another_try: false },
        _ => StepOutcome::Failed { words, is_worth_another_try: true },
    }
}

/// Who let it pass, and why.
fn approval(job: &Job) -> Json {
    match job.decided.as_ref().filter(|decided| decided.choice == Choice::Approve) {
        Some(decided) => json!({"approved_by": decided.by, "comment": decided.comment}),
        None => Json::Null,
    }
}
