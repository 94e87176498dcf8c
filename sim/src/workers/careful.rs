//! Careful workers, which do the steps of runs. What they were given outlives them, what did not reach them they ask
//! for, and how it went they say until it counts. So a step ends as its input says, whatever goes wrong on the way.

use super::SimWorker;
use crate::flows::script::{Script, attempt_of};
use crate::results;
use crate::world::{World, sleep_ms};
use reveille_core::flow::StepOutcome;
use reveille_core::id::JobId;
use reveille_core::job::Job;
use reveille_core::time::Millis;
use reveille_store::{BlobKey, Blobs};
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::cap::{JobRequest, JobResult, JobStatus};
use reveille_wire::{convert, subject};
use std::sync::Arc;

impl SimWorker {
    pub fn is_well(&self, now: Millis) -> bool {
        let state = self.state();
        state.alive && now >= state.stalled_until
    }

    fn has_seen(&self, key: &(String, u64)) -> bool {
        self.state().seen.contains(key)
    }

    /// Takes what was sent to it and never came.
    pub(super) fn ask_for_missing(self: &Arc<Self>, world: &Arc<World>) {
        for job in world.live_jobs().iter().filter(|job| self.should_have(world, job)) {
            let sent = convert::dispatch_packet(job, world.now());
            let sent = sent.and_then(|packet| packet.payload);
            if let Some(Payload::JobRequest(request)) = sent {
                self.take(world, request);
            }
        }
    }

    fn should_have(&self, world: &World, job: &Job) -> bool {
        let Some(attempt) = job.attempt().filter(|_| job.request.place.of_run.is_some()) else {
            return false;
        };
        let key = (job.id().to_string(), u64::from(attempt.number));
        let is_mine = match &attempt.worker {
            Some(worker) => *worker == self.plan.name && !self.has_seen(&key),
            // Whoever listens on the topic may have it, and one of them has.
            None => world.workers().iter().all(|worker| !worker.has_seen(&key)),
        };
        is_mine && world.is_sent(job.id(), attempt.number)
    }

    pub(super) async fn run_carefully(
        self: Arc<Self>,
        world: Arc<World>,
        request: JobRequest,
        key: (String, u64),
    ) {
        sleep_ms(world.rng.skewed(5, 8_000)).await;
        let id = JobId::known(request.job_id.as_str());
        // What the scheduler tries again is none of the step's tries.
        let stumbles = world.faults.are_on() && world.rng.percent(5);
        while let Some(job) = world.job(&id).filter(|job| !job.state().is_terminal()) {
            let Some(script) = script_of(&world, &id).await else {
                return world.fail(&format!("{id} was given to {} without its input", self.plan.name));
            };
            if !self.state().running.contains(&key) {
                return;
            }
            let outcome = script.said(attempt_of(&id)).filter(|_| self.is_well(world.now()));
            if let Some(outcome) = outcome {
                self.say(&world, &request, &outcome, stumbles).await;
            }
            let is_current = job.attempt().is_some_and(|attempt| u64::from(attempt.number) == key.1);
            if !is_current {
                break;
            }
            sleep_ms(world.rng.between(3_000, 9_000)).await;
        }
        self.state().running.remove(&key);
    }

    async fn say(&self, world: &Arc<World>, request: &JobRequest, outcome: &StepOutcome, stumbles: bool) {
        let status = match outcome {
            _ if stumbles => JobStatus::FailedRetryable,
            StepOutcome::Succeeded(_) => JobStatus::Succeeded,
            StepOutcome::Failed { is_worth_another_try: true, .. } => JobStatus::Failed,
            _ => JobStatus::FailedFatal,
        };
        if let (JobStatus::Succeeded, StepOutcome::Succeeded(Some(what))) = (status, outcome) {
            if !results::put(world, &request.job_id, what.to_string()).await {
                return;
            }
            world.check(|ledger| {
                ledger.finished(&request.job_id, &self.plan.name);
                Ok(())
            });
        }
        world.trace.say(format_args!(
            "{} reports {} {}",
            self.plan.name,
            request.job_id,
            status.as_str_name()
        ));
        let result = JobResult {
            job_id: request.job_id.clone(),
            status: status as i32,
            result_ptr: format!("redis://res:{}", request.job_id),
            worker_id: self.plan.name.to_string(),
            dispatch: request.dispatch.clone().filter(|_| self.plan.echoes),
            ..JobResult::default()
        };
        self.send(world, subject::JOB_RESULT, Payload::JobResult(result));
    }
}

/// What the input of a job says of its end.
async fn script_of(world: &World, id: &JobId) -> Option<Script> {
    let input = world.store.blob(&BlobKey::context_of(id)).await.ok().flatten()?;
    Script::read(&serde_json::from_slice(&input).ok()?)
}
