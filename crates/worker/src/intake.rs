//! Jobs come in: by topic, shared with the other workers of that topic, and by the worker's own subject.
//!
//! A job that was read is accounted for. When too many are here or too many results wait, nothing more
//! is read until there is room again; the subscription holds what arrives meanwhile.

use std::sync::Arc;
use std::time::Duration;

use async_nats::{Client, Message, Subscriber};
use futures_util::StreamExt;
use futures_util::stream::SelectAll;
use reveille_core::id::JobId;
use reveille_wire::cap::JobRequest;
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::subject;

use crate::assignment::Assignment;
use crate::attempt::{attempt, result_parcel};
use crate::error::Error;
use crate::failure::Failure;
use crate::ledger::Arrival;
use crate::signatures::Signatures;
use crate::traced_packet::context_of;
use crate::worker_context::WorkerContext;

/// How long the last messages of the ended subscriptions are waited for.
const DRAIN_MAX: Duration = Duration::from_secs(2);

pub struct JobIntake {
    worker_context: Arc<WorkerContext>,
    subscriptions: SelectAll<Subscriber>,
}

impl JobIntake {
    pub async fn open(worker_context: Arc<WorkerContext>, nats: &Client) -> Result<Self, Error> {
        let mut subscriptions = SelectAll::new();
        for topic in worker_context.handlers.keys() {
            subscriptions.push(nats.queue_subscribe(topic.clone(), topic.clone()).await?);
        }
        subscriptions.push(nats.subscribe(subject::worker_jobs(worker_context.publisher.worker())).await?);
        Ok(Self { worker_context, subscriptions })
    }

    /// Takes jobs until the worker closes, and then those that were already on their way.
    pub async fn run(mut self) {
        let closing = self.worker_context.phase.closing.clone();
        while let Some(Some(message)) = closing.run_until_cancelled(self.subscriptions.next()).await {
            self.take(message).await;
        }
        if tokio::time::timeout(DRAIN_MAX, self.drain()).await.is_err() {
            tracing::warn!("the subscriptions did not close in time");
        }
    }

    async fn drain(&mut self) {
        for subscription in &mut self.subscriptions {
            if let Err(error) = subscription.drain().await {
                tracing::warn!(%error, "cannot close a subscription");
            }
        }
        while let Some(message) = self.subscriptions.next().await {
            self.take(message).await;
        }
    }

    async fn take(&self, message: Message) {
        match read(self.worker_context.publisher.signatures(), &message) {
            Ok((id, trace_id, request)) => {
                let context = context_of(message.headers.as_ref());
                self.accept(Assignment::new(id, trace_id, request, context)).await;
            }
            Err(problem) => tracing::warn!(subject = %message.subject, problem, "packet dropped"),
        }
    }

    async fn accept(&self, assignment: Assignment) {
        let worker_context = &self.worker_context;
        let Some(handler) = worker_context.handlers.get(&assignment.request.topic).cloned() else {
            return self.refuse(assignment).await;
        };
        // Never closed, so this is a wait and not a refusal.
        let place = Arc::clone(&worker_context.places).acquire_owned().await;
        match worker_context.ledger.arrive(assignment) {
            Arrival::Run(assignment) => {
                let worker_context = Arc::clone(worker_context);
                self.worker_context.jobs.spawn(async move {
                    attempt(&worker_context, &assignment, &handler).await;
                    drop(place);
                });
            }
            Arrival::Answer(traced_packet) => {
                worker_context.results.send(traced_packet, worker_context.results.room().await);
            }
            Arrival::Ignore => {}
        }
    }

    /// A job for a topic that nobody handles here is somebody else's; it must not wait for its lease.
    async fn refuse(&self, assignment: Assignment) {
        let topic = &assignment.request.topic;
        tracing::warn!(job_id = %assignment.id, topic, "job for a topic without a handler");
        let failure = Failure::retryable(format!("this worker has no handler for {topic}"));
        let results = &self.worker_context.results;
        let traced_packet = result_parcel(
            &self.worker_context.publisher,
            &assignment,
            assignment.attempt_ref(),
            0,
            Err(failure),
        );
        results.send(traced_packet, results.room().await);
    }
}

fn read(signatures: &Signatures, message: &Message) -> Result<(JobId, String, JobRequest), String> {
    let packet = signatures.decode(&message.payload)?;
    let Some(Payload::JobRequest(request)) = packet.payload else {
        return Err("not a job request".to_owned());
    };
    let id = JobId::parse(&request.job_id).map_err(|problem| problem.to_string())?;
    Ok((id, packet.trace_id, request))
}
