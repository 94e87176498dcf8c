//! What steps send off: jobs, other runs and alerts; and how they are called back.

use super::Workflows;
use super::outcome::outcome_of_run;
use super::rollback::NotUndone;
use super::{Loaded, RunError, RunQuota, RunRequest, StartRunError, Started};
use crate::jobs::DriveError;
use crate::jobs::{Submission, SubmitError, Submitted, Submitter};
use crate::observe::Trouble;
use crate::runtime::RETRY_PAUSE;
use bytes::Bytes;
use reveille_bus::Message;
use reveille_core::flow::{
    DEPTH_MAX, GATE_TOPIC, Level, Node, NodeKey, RunEvent, RunHead, RunOrigin, Step, StepKind, StepOutcome,
    SubmittedWork, job_id,
};
use reveille_core::id::{JobId, RunId, Topic};
use reveille_core::job::Job;
use reveille_core::reason::Reason;
use reveille_core::request::{Actor, Needs, OfRun, Place, Priority, Request, Role};
use reveille_store::BlobKey;
use reveille_wire::{convert, subject};
use serde_json::Value as Json;
use std::sync::Arc;
use std::time::Duration;

/// Between two looks at a job that does the work of another.
const FOLLOWED_FOR: Duration = Duration::from_secs(30);

impl Workflows {
    /// Sends off what a step under way owes. If it is there already, nothing happens.
    pub(super) fn send_off(&self, loaded: &Loaded, key: &NodeKey, node: &Node) {
        let head = &loaded.run.head;
        let step = loaded.flow.step(&key.step);
        let input = node.input.clone().unwrap_or_default();
        match &node.sent {
            Some(SubmittedWork::Job(id)) => {
                let RunOrigin::Rollback { of } = &head.origin else {
                    let request = request(head, step, key, node, id);
                    return self
                        .runtime
                        .spawn(self.clone().submit_step(request, Some(Bytes::from(input.to_string()))));
                };
                match super::rollback::request(head, of, key, node, id) {
                    Ok((request, input)) => {
                        let context = input.map(|input| Bytes::from(input.to_string()));
                        self.runtime.spawn(self.clone().submit_step(request, context));
                    }
                    Err(not_undone) => self.not_undone(head, key, node.attempt, not_undone),
                }
            }
            Some(SubmittedWork::Run(id)) => {
                if let StepKind::Subworkflow(sub) = &step.kind {
                    let asked = RunRequest {
                        tenant: head.tenant.clone(),
                        workflow: sub.workflow.clone(),
                        input: (*input).clone(),
                        idempotency_key: None,
                        started_by: head.started_by.clone(),
                        actor: head.actor.clone(),
                    };
                    let origin = RunOrigin::Step {
                        run: head.id.clone(),
                        node: key.clone(),
                        attempt: node.attempt,
                        depth: depth_below(head),
                    };
                    self.runtime.spawn(self.clone().start_step(id.clone(), asked, origin));
                }
            }
            Some(SubmittedWork::Notice) => {
                let level =
                    if let StepKind::Notify(notify) = &step.kind { notify.level } else { Level::Info };
                self.runtime.spawn(self.clone().raise_alert(
                    head.clone(),
                    key.clone(),
                    node.attempt,
                    level,
                    input,
                ));
            }
            None => {}
        }
    }

    /// Submits a step's job like any other. Whoever is full now has room later.
    async fn submit_step(self, request: Request, context: Option<Bytes>) {
        let Some(of) = request.place.of_run.clone() else { return };
        let (id, is_compensation) = (request.id.clone(), request.is_compensation());
        loop {
            let (request, context) = (request.clone(), context.clone());
            let submitted =
                self.jobs.submit(Submission { request, context, submitter: Submitter::IsGone }).await;
            if is_compensation && matches!(submitted, Ok(Submitted::New(_))) {
                self.observe.metrics().saga().dispatched();
            }
            match submitted {
                Ok(Submitted::Existing(job)) if *job.id() != id => return self.follow_job(&of, job).await,
                Ok(Submitted::New(job) | Submitted::Existing(job)) => {
                    if self.is_kept(&of, job.id()).await {
                        self.on_step_ended(&job);
                    }
                    return;
                }
                Ok(Submitted::Throttled(verdict)) => {
                    tracing::debug!(run = %of.run, step = %of.node, reason = %verdict.reason, "throttled");
                }
                Err(SubmitError::Draining) => return,
                Err(error) if error.is_transient() => {
                    self.observe.log(Trouble::Store, "step's job not submitted; retrying", &of.run, &error);
                }
                Err(error) => return self.step_failed(&of.run, &of.node, of.attempt, error.to_string()),
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }

    /// The key of a compensation belongs to another job, so that one does it: as it ends, so does the step.
    async fn follow_job(&self, of: &OfRun, job: Arc<Job>) {
        let mut job = job;
        while !job.state().is_terminal() {
            match self.jobs.wait_for_end(job.id(), FOLLOWED_FOR).await {
                Ok(Some(found)) => job = found,
                Ok(None) => {
                    let words = format!("job {} has its key, and is gone", job.id());
                    return self.step_failed(&of.run, &of.node, of.attempt, words);
                }
                Err(error) => {
                    self.observe.log(Trouble::Store, "job not read; retrying", job.id(), &error);
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
            }
            if self.runtime.is_draining() {
                return;
            }
        }
        self.step_is_over_with(of, &job).await;
    }

    fn not_undone(&self, head: &RunHead, key: &NodeKey, attempt: u32, why: NotUndone) {
        let words = match why {
            NotUndone::NoInput(problem) => format!("its input cannot be worked out: {problem}"),
            NotUndone::Unreadable(problem) => {
                self.observe.metrics().saga().unreadable();
                tracing::warn!(run = %head.id, step = %key, %problem, "compensation unreadable");
                format!("{}: {problem}", Reason::SagaUnmarshalFailed.code())
            }
        };
        self.step_failed(&head.id, key, attempt, words);
    }

    /// A start has found a live job. If it is a step's, the server that submitted it may have ended before it saw that
    /// nobody wants it; the run does not remember it then, so the run is asked.
    pub(crate) fn keep_if_wanted(&self, job: &Job) {
        let Some(of) = job.request.place.of_run.clone() else { return };
        // Somebody who tries a step's job again by hand wants it, and gives it another id.
        let is_of_step = *job.id() == job_id(&of.run, &of.node, of.attempt);
        if is_of_step && !job.state().is_terminal() {
            let (workflows, id) = (self.clone(), job.id().clone());
            self.runtime.spawn(async move {
                workflows.is_kept(&of, &id).await;
            });
        }
    }

    /// Whether a step's job is wanted. The run may be over meanwhile, or the step: then the job is cancelled. A store
    /// that is away is waited for; should the server end before it is back, the next start asks again.
    async fn is_kept(&self, of: &OfRun, job: &JobId) -> bool {
        if self.wants(of).await {
            return true;
        }
        let words = "job that no run wants not cancelled; retrying";
        let stop = || self.stop_job(job, "its run is over");
        self.observe.insist(Trouble::Store, words, &of.run, stop).await;
        false
    }

    /// Whether the run still waits for this attempt of a step. Asked of the store, where another server may have
    /// ended the run a moment ago.
    async fn wants(&self, of: &OfRun) -> bool {
        // Nobody else looks at this until the next start: a job that no run wants would stay.
        let read = || self.store.node(&of.run, &of.node);
        match self.observe.until_answered("step not read; retrying", &of.run, read).await {
            Ok(Some(node)) => node.attempt == of.attempt && !node.state.is_settled(),
            Ok(None) => false,
            Err(_) => true,
        }
    }

    /// Cancels a job that its run does not want; one that has ended, or never was, is no trouble.
    async fn stop_job(&self, job: &JobId, reason: &str) -> Result<(), String> {
        match self.jobs.cancel(job, "workflow", reason).await {
            Ok(_) | Err(DriveError::Unknown | DriveError::Refused(_)) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn step_failed(&self, run: &RunId, node: &NodeKey, attempt: u32, words: String) {
        let outcome = StepOutcome::Failed { words, is_worth_another_try: false };
        let event = RunEvent::Over { node: node.clone(), attempt, outcome };
        let (workflows, run) = (self.clone(), run.clone());
        self.runtime.spawn(async move { workflows.drive_run_on(&run, &event).await });
    }

    async fn start_step(self, id: RunId, asked: RunRequest, origin: RunOrigin) {
        let RunOrigin::Step { run: parent, node, attempt, depth } = &origin else { return };
        if *depth > DEPTH_MAX {
            return self.step_failed(parent, node, *attempt, too_deep());
        }
        loop {
            match self.try_start_step(&id, &asked, &origin).await {
                Ok(Started::New(_)) | Err(StartRunError::Draining) => return,
                Ok(Started::Existing(id)) => match self.store.run(&id).await {
                    Ok(Some(run)) if run.head.state.is_terminal() => {
                        let event = RunEvent::Over {
                            node: node.clone(),
                            attempt: *attempt,
                            outcome: outcome_of_run(&run),
                        };
                        return self.drive_run_on(parent, &event).await;
                    }
                    Ok(_) => return,
                    Err(error) => self.observe.log(Trouble::Store, "run not read; retrying", &id, &error),
                },
                Err(StartRunError::Store(error)) => {
                    self.observe.log(Trouble::Store, "run not started; retrying", &id, &error);
                }
                // There may be room by the next attempt, if the step has one.
                Err(error @ StartRunError::TooMany(_)) => {
                    let outcome =
                        StepOutcome::Failed { words: error.to_string(), is_worth_another_try: true };
                    let event = RunEvent::Over { node: node.clone(), attempt: *attempt, outcome };
                    return self.drive_run_on(parent, &event).await;
                }
                Err(error) => return self.step_failed(parent, node, *attempt, error.to_string()),
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }

    async fn try_start_step(
        &self,
        id: &RunId,
        asked: &RunRequest,
        origin: &RunOrigin,
    ) -> Result<Started, StartRunError> {
        let flow = self.flow(&asked.tenant, &asked.workflow, None).await?;
        let flow = flow.ok_or_else(|| StartRunError::UnknownWorkflow(asked.workflow.clone()))?;
        let run = self.new_run(id.clone(), asked, &flow, origin.clone()).await?;
        self.begin_run(run, flow, RunQuota::Counts).await
    }

    /// Says something to whoever listens; the step is over when the bus has it.
    async fn raise_alert(self, head: RunHead, node: NodeKey, attempt: u32, level: Level, input: Arc<Json>) {
        let message = input.get("message").map_or_else(String::new, |message| match message {
            Json::String(text) => text.clone(),
            other => other.to_string(),
        });
        let packet = convert::alert_packet(&head, &node, level, &message, self.runtime.now());
        let packet = self.runtime.encode(&packet);
        let publish = || self.bus.publish(Message::new(subject::WORKFLOW_EVENT, packet.clone()));
        let words = "run alert not published; retrying";
        self.observe.insist(Trouble::Bus, words, &head.id, publish).await;
        let event = RunEvent::Over { node, attempt, outcome: StepOutcome::Succeeded(None) };
        self.drive_run_on(&head.id, &event).await;
    }

    /// Tells what a step has sent off to stop. The run is done with it when that is over.
    pub(super) async fn call_back(self, run: RunId, key: NodeKey, node: Node) {
        self.observe
            .insist(Trouble::Store, "step not cancelled; retrying", &run, || self.stop_work(&node))
            .await;
        let outcome = StepOutcome::Succeeded(None);
        self.drive_run_on(&run, &RunEvent::Over { node: key, attempt: node.attempt, outcome }).await;
    }

    async fn stop_work(&self, node: &Node) -> Result<(), String> {
        let reason = "its run does not want it any more";
        match &node.sent {
            Some(SubmittedWork::Job(job)) => self.stop_job(job, reason).await,
            Some(SubmittedWork::Run(child)) => match self.cancel_child(child, reason).await {
                Ok(_) | Err(RunError::Unknown | RunError::Refused(_)) => Ok(()),
                Err(error) => Err(error.to_string()),
            },
            _ => Ok(()),
        }
    }
}

impl Workflows {
    /// What somebody did is in the trail with the run above it.
    async fn cancel_child(&self, child: &RunId, reason: &str) -> Result<RunHead, RunError> {
        let event = RunEvent::Cancel { by: "workflow".to_owned(), reason: reason.to_owned() };
        let (workflows, child) = (self.clone(), child.clone());
        self.runtime.run_detached(async move { workflows.drive_run(&child, &event).await }).await
    }
}

/// How deep a run is that is a step of this one.
pub(super) fn depth_below(head: &RunHead) -> u32 {
    if let RunOrigin::Step { depth, .. } = head.origin { depth + 1 } else { 1 }
}

pub(super) fn too_deep() -> String {
    format!("runs within runs go {DEPTH_MAX} deep at most")
}

/// The job of a step.
pub(super) fn request(head: &RunHead, step: &Step, key: &NodeKey, node: &Node, id: &JobId) -> Request {
    let (topic, worker, role) = match &step.kind {
        StepKind::Worker(worker) => (worker.topic.clone(), worker.worker.as_ref(), Role::Step),
        _ => (Topic::known(GATE_TOPIC), None, Role::Gate),
    };
    let mut labels = step.labels.clone();
    labels.extend(step.meta.labels.clone());
    if let Some(worker) = worker {
        labels.insert("preferred_worker_id".to_owned(), worker.to_string());
    }
    labels.insert("run_id".to_owned(), head.id.to_string());
    labels.insert("step_id".to_owned(), key.to_string());
    let mut request = Request { labels, priority: Priority::Batch, ..plain(head, id, topic) };
    request.budget.deadline_ms = step.timeout_ms.unwrap_or_default();
    request.place.step_index = i32::try_from(step.index).unwrap_or(i32::MAX);
    request.place.of_run =
        Some(Box::new(OfRun { run: head.id.clone(), node: key.clone(), attempt: node.attempt, role }));
    request.needs = Needs {
        capability: step.meta.capability.clone(),
        risk_tags: step.meta.risk_tags.clone(),
        requires: step.meta.requires.clone(),
        pack_id: step.meta.pack_id.clone(),
    };
    if !step.meta.actor_id.is_empty() {
        request.actor.actor_id.clone_from(&step.meta.actor_id);
        request.actor.actor_type.clone_from(&step.meta.actor_type);
    }
    request
}

/// What every job of a run has.
pub(super) fn plain(head: &RunHead, id: &JobId, topic: Topic) -> Request {
    Request {
        id: id.clone(),
        tenant: head.tenant.clone(),
        topic,
        trace_id: head.id.to_string(),
        context_ptr: BlobKey::context_of(id).pointer(),
        actor: Actor { ..head.actor.clone() },
        place: Place {
            workflow_id: head.workflow.to_string(),
            memory_id: head.memory_id.clone(),
            ..Place::default()
        },
        submitted_by: head.started_by.clone(),
        ..Request::plain(id.as_str(), "job.plain")
    }
}
