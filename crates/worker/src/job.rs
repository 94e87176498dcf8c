//! What a handler is given.

use std::sync::Arc;

use bytes::Bytes;
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::cap::{JobProgress, JobRequest, JobStatus};
use reveille_wire::subject;
use serde::de::DeserializeOwned;

use crate::assignment::Assignment;
use crate::failure::Failure;
use crate::publisher::Publisher;

/// A job to be done. Cloning is cheap, so a job can go along into spawned tasks.
#[derive(Clone)]
pub struct Job {
    assignment: Arc<Assignment>,
    publisher: Arc<Publisher>,
    context: Bytes,
}

impl Job {
    pub(crate) fn new(assignment: Arc<Assignment>, publisher: Arc<Publisher>, context: Bytes) -> Self {
        Self { assignment, publisher, context }
    }

    pub fn id(&self) -> &str {
        self.assignment.id.as_str()
    }

    pub fn topic(&self) -> &str {
        &self.assignment.request.topic
    }

    pub fn trace_id(&self) -> &str {
        &self.assignment.trace_id
    }

    /// Where this attempt stands in the job's trace (W3C Trace Context), for spans and calls of the
    /// handler's own; nothing when the scheduler does not trace.
    pub fn traceparent(&self) -> Option<String> {
        self.assignment.attempt_ref().context.map(|context| context.parent.to_string())
    }

    /// What goes along with [`Job::traceparent`], if anything.
    pub fn tracestate(&self) -> Option<String> {
        let state = self.assignment.attempt_ref().context?.state?;
        Some(state.as_str().to_owned())
    }

    /// Which try this is, from 1; 0 when the scheduler does not count.
    pub fn attempt(&self) -> u64 {
        self.assignment.attempt()
    }

    /// Everything else that was asked for: labels, environment, budget, metadata.
    pub fn request(&self) -> &JobRequest {
        &self.assignment.request
    }

    /// The job's input as it was stored; empty for a job without one.
    pub fn context(&self) -> &Bytes {
        &self.context
    }

    /// The job's input, read as JSON.
    pub fn input<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        serde_json::from_slice(&self.context)
            .map_err(|error| Failure::failed(format!("input validation failed: {error}")))
    }

    /// Tells whoever watches how far the job is. Nobody has to hear it, so it cannot fail.
    pub async fn progress(&self, percent: u8, message: impl Into<String>) {
        let attempt_ref = self.assignment.attempt_ref();
        let progress = JobProgress {
            job_id: self.id().to_owned(),
            percent: i32::from(percent.min(100)),
            message: message.into(),
            status: JobStatus::Running as i32,
            dispatch: attempt_ref.dispatch,
            ..JobProgress::default()
        };
        let payload = Payload::JobProgress(progress);
        let traced_packet =
            self.publisher.traced_packet(self.trace_id(), payload, attempt_ref.context.as_ref());
        self.publisher.publish(subject::JOB_PROGRESS, traced_packet).await;
    }

    /// Resolves when the job was cancelled. The handler's own future is dropped at that moment; this
    /// is for what it started elsewhere, such as spawned tasks.
    pub async fn cancelled(&self) {
        self.assignment.cancelled.cancelled().await;
    }
}
