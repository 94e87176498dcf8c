//! One job from its acceptance to its result: wait for a slot, read the input, call the handler, store
//! the output, hand the result over.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::cap::{JobResult, JobStatus};
use tokio::sync::SemaphorePermit;
use tokio::time::{Instant, sleep_until};

use crate::assignment::{Assignment, AttemptRef};
use crate::blobs::BLOB_LEN_MAX;
use crate::failure::Failure;
use crate::handler::Handler;
use crate::job::Job;
use crate::ledger::Finality;
use crate::publisher::Publisher;
use crate::traced_packet::TracedPacket;
use crate::worker_context::WorkerContext;

const POINTER_SCHEME: &str = "redis://";

/// Where the output was stored.
type AttemptOutcome = Result<String, Failure>;

/// A place among the running handlers, and since when.
type HandlerSlot<'a> = (SemaphorePermit<'a>, Instant);

pub async fn attempt(worker_context: &WorkerContext, assignment: &Arc<Assignment>, handler: &Handler) {
    // Held until the result is handed over, so that results which pile up slow the handlers down.
    let mut slot = None;
    let output = tokio::select! {
        biased;
        () = assignment.cancelled.cancelled() => Err(Failure::cancelled()),
        () = passed(assignment.deadline()) => Err(Failure::timed_out()),
        () = worker_context.phase.abandoning.cancelled() => Err(stopped()),
        output = work(worker_context, assignment, handler, &mut slot) => output,
    };
    let execution_ms = slot.as_ref().map_or(0, |(_, since)| since.elapsed().as_millis() as i64);
    // The work is done: neither a deadline nor a cancellation takes the output back any more.
    let ended = match output {
        Ok(output) => tokio::select! {
            stored = store(worker_context, assignment, &output) => stored,
            () = worker_context.phase.abandoning.cancelled() => Err(stopped()),
        },
        Err(failure) => Err(failure),
    };

    let room = worker_context.results.room().await;
    let finality = match &ended {
        Err(failure) if failure.status() == JobStatus::FailedRetryable => Finality::Retryable,
        _ => Finality::Final,
    };
    let traced_packet = worker_context.ledger.finish(assignment, finality, |attempt_ref| {
        result_parcel(&worker_context.publisher, assignment, attempt_ref, execution_ms, ended)
    });
    worker_context.results.send(traced_packet, room);
}

/// What says how a job ended.
pub fn result_parcel(
    publisher: &Publisher,
    assignment: &Assignment,
    attempt_ref: AttemptRef,
    execution_ms: i64,
    ended: AttemptOutcome,
) -> TracedPacket {
    let mut result = JobResult {
        job_id: assignment.id.to_string(),
        worker_id: publisher.worker().to_string(),
        execution_ms,
        dispatch: attempt_ref.dispatch,
        ..JobResult::default()
    };
    match ended {
        Ok(result_ptr) => {
            result.status = JobStatus::Succeeded as i32;
            result.result_ptr = result_ptr;
        }
        Err(failure) => {
            tracing::debug!(job_id = %assignment.id, status = ?failure.status(), %failure, "job did not succeed");
            result.status = failure.status() as i32;
            result.error_code_enum = failure.error_code() as i32;
            result.error_message = failure.into_message();
        }
    }
    publisher.traced_packet(&assignment.trace_id, Payload::JobResult(result), attempt_ref.context.as_ref())
}

async fn work<'a>(
    worker_context: &'a WorkerContext,
    assignment: &Arc<Assignment>,
    handler: &Handler,
    slot: &mut Option<HandlerSlot<'a>>,
) -> Result<Vec<u8>, Failure> {
    let permit = worker_context.slots.acquire().await.map_err(|_| stopped())?;
    *slot = Some((permit, Instant::now()));
    let context = context(worker_context, &assignment.request.context_ptr).await?;
    let job = Job::new(Arc::clone(assignment), Arc::clone(&worker_context.publisher), context);
    // The call is inside too: a handler may panic before it returns its future.
    let run = AssertUnwindSafe(async { handler(job).await });
    run.catch_unwind().await.unwrap_or_else(|_| Err(Failure::failed("handler panicked")))
}

/// The job's input; a job without a pointer has an empty one. The words are those of the stock SDK.
async fn context(worker_context: &WorkerContext, pointer: &str) -> Result<Bytes, Failure> {
    if pointer.is_empty() {
        return Ok(Bytes::new());
    }
    let key =
        pointer.strip_prefix(POINTER_SCHEME).ok_or_else(|| Failure::failed("unsupported pointer scheme"))?;
    if key.is_empty() {
        return Err(Failure::failed("missing pointer key"));
    }
    let unreachable = |error| Failure::retryable(format!("context fetch failed: {error}"));
    match worker_context.blobs.get(key).await.map_err(unreachable)? {
        None => Err(Failure::failed("context not found")),
        Some(context) if context.len() > BLOB_LEN_MAX => Err(Failure::failed("context exceeds max size")),
        Some(context) => Ok(context),
    }
}

async fn store(worker_context: &WorkerContext, assignment: &Assignment, output: &[u8]) -> AttemptOutcome {
    if output.len() > BLOB_LEN_MAX {
        return Err(Failure::failed("result exceeds max size"));
    }
    let pointer = format!("{POINTER_SCHEME}res:{}", assignment.id);
    match worker_context.blobs.put(&pointer[POINTER_SCHEME.len()..], output).await {
        Ok(()) => Ok(pointer),
        Err(error) => Err(Failure::retryable(format!("result write failed: {error}"))),
    }
}

async fn passed(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

fn stopped() -> Failure {
    Failure::retryable("the worker was stopped")
}
