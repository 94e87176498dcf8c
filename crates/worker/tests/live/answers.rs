//! Repeated deliveries run once, and results are sent until they are answered.

use reveille_wire::cap::JobStatus;
use reveille_worker::{Failure, Job, Worker};
use serde_json::json;
use tokio::sync::{mpsc, watch};

use crate::scheduler::{DIRECT, Scheduler, TOPIC, WORKER, attempt, request, result_of, soon};

/// A handler that tells when it starts and ends when the gate is open.
fn gated() -> (Worker, mpsc::UnboundedReceiver<u64>, watch::Sender<bool>) {
    let (started, starts) = mpsc::unbounded_channel();
    let (gate, opened) = watch::channel(false);
    let worker = Worker::new(WORKER).capacity(4).handle(TOPIC, move |job: Job| {
        let (started, mut opened) = (started.clone(), opened.clone());
        async move {
            started.send(job.attempt())?;
            opened.wait_for(|open| *open).await?;
            Ok::<_, Failure>(json!({ "done": true }))
        }
    });
    (worker, starts, gate)
}

#[tokio::test]
async fn a_repeated_delivery_runs_once_and_is_answered_with_the_same_result() {
    let mut scheduler = Scheduler::start().await;
    let (worker, mut starts, gate) = gated();
    let _worker = scheduler.employ(worker).await;
    scheduler.dispatch(DIRECT, attempt("j", 1), &json!(null)).await;
    assert_eq!(soon("the start", starts.recv()).await, Some(1));
    scheduler.send(DIRECT, attempt("j", 1)).await;
    // Jobs of one subject are taken in order: when this one runs, the repetition was seen.
    scheduler.dispatch(DIRECT, attempt("marker", 9), &json!(null)).await;
    assert_eq!(soon("the marker", starts.recv()).await, Some(9));

    gate.send(true).unwrap();
    let mut ended = [scheduler.result().await, scheduler.result().await];
    ended.sort_by_key(|result| result.job_id.len());
    let [first, marker] = ended;
    assert_eq!((first.job_id.as_str(), marker.job_id.as_str()), ("j", "marker"));

    scheduler.send(DIRECT, attempt("j", 1)).await;
    assert_eq!(scheduler.result().await, first);
    assert!(starts.is_empty());

    scheduler.send(DIRECT, attempt("j", 2)).await;
    assert_eq!(soon("the second attempt", starts.recv()).await, Some(2));
    assert_eq!(scheduler.result().await.dispatch.unwrap().attempt, 2);
}

#[tokio::test]
async fn a_newer_attempt_takes_the_run_over() {
    let mut scheduler = Scheduler::start().await;
    let (worker, mut starts, gate) = gated();
    let _worker = scheduler.employ(worker).await;
    scheduler.dispatch(DIRECT, attempt("j", 1), &json!(null)).await;
    assert_eq!(soon("the start", starts.recv()).await, Some(1));
    scheduler.send(DIRECT, attempt("j", 2)).await;
    scheduler.dispatch(DIRECT, attempt("marker", 9), &json!(null)).await;
    assert_eq!(soon("the marker", starts.recv()).await, Some(9));
    gate.send(true).unwrap();
    let ended = [scheduler.result().await, scheduler.result().await];
    let result = ended.into_iter().find(|result| result.job_id == "j").unwrap();
    assert_eq!(result.dispatch, attempt("j", 2).dispatch);
    assert!(starts.is_empty());
}

#[tokio::test]
async fn a_result_is_sent_again_until_it_is_answered() {
    let mut scheduler = Scheduler::start().await;
    let (worker, mut starts, gate) = gated();
    gate.send(true).unwrap();
    let mut running = scheduler.employ(worker).await;
    scheduler.dispatch(TOPIC, request("j"), &json!(null)).await;
    let (ignored, first) = scheduler.unanswered_result().await;
    let (answered, second) = scheduler.unanswered_result().await;
    assert_eq!(ignored.payload, answered.payload);
    assert_eq!(first, second);
    assert_eq!(result_of(second).status(), JobStatus::Succeeded);
    scheduler.answer(&answered).await;
    assert_eq!(soon("the start", starts.recv()).await, Some(0));

    // An answered result does not keep the worker: it ends at once and sends nothing more.
    running.begin_stop();
    running.stopped().await;
    assert!(starts.is_empty());
}
