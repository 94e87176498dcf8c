//! The ways in which a job does not succeed, and the end of the worker itself.

use std::sync::Arc;
use std::time::Duration;

use async_nats::{Request, RequestErrorKind};
use reveille_wire::cap::{ErrorCode, JobRequest, JobResult, JobStatus};
use reveille_worker::{Failure, Job, Worker};
use serde_json::json;
use tokio::sync::{Notify, mpsc, oneshot};

use crate::scheduler::{DIRECT, Scheduler, TOPIC, WORKER, request, soon, with_deadline};

/// Does as its input says.
fn obedient() -> Worker {
    Worker::new(WORKER).capacity(4).handle(TOPIC, |job: Job| async move {
        match job.input::<String>()?.as_str() {
            "retryable" => Err(Failure::retryable("later")),
            "fatal" => Err(Failure::fatal("never")),
            "failed" => Err(Failure::failed("no")),
            "error" => Err("x".parse::<u8>().unwrap_err().into()),
            "panic" => panic!("as told"),
            "large" => Ok("x".repeat(3 * 1024 * 1024)),
            "forever" => std::future::pending().await,
            _ => Ok("done".to_owned()),
        }
    })
}

/// A handler that never ends, tells when it starts, and tells when it is dropped.
fn endless() -> (Worker, mpsc::UnboundedReceiver<&'static str>) {
    struct Told(mpsc::UnboundedSender<&'static str>);
    impl Drop for Told {
        fn drop(&mut self) {
            let _ = self.0.send("dropped");
        }
    }
    let (tell, told) = mpsc::unbounded_channel();
    let worker = Worker::new(WORKER).handle(TOPIC, move |_: Job| {
        let tell = Told(tell.clone());
        async move {
            tell.0.send("started")?;
            std::future::pending::<Result<(), Failure>>().await
        }
    });
    (worker, told)
}

fn ending(result: &JobResult) -> (JobStatus, &str) {
    (result.status(), &result.error_message)
}

#[tokio::test]
async fn a_failure_is_reported_as_what_it_is_and_the_worker_lives_on() {
    let mut scheduler = Scheduler::start().await;
    let _worker = scheduler.employ(obedient()).await;
    for (order, status, message) in [
        ("retryable", JobStatus::FailedRetryable, "later"),
        ("fatal", JobStatus::FailedFatal, "never"),
        ("failed", JobStatus::Failed, "no"),
        ("error", JobStatus::Failed, "invalid digit found in string"),
        ("panic", JobStatus::Failed, "handler panicked"),
        ("large", JobStatus::Failed, "result exceeds max size"),
        ("work", JobStatus::Succeeded, ""),
    ] {
        scheduler.dispatch(TOPIC, request(order), &json!(order)).await;
        assert_eq!(ending(&scheduler.result().await), (status, message), "{order}");
    }
}

#[tokio::test]
async fn an_input_that_cannot_be_had_is_a_failure() {
    let mut scheduler = Scheduler::start().await;
    let _worker = scheduler.employ(obedient()).await;
    let pointing =
        |pointer: &str| JobRequest { context_ptr: pointer.into(), ..request(&format!("to-{pointer}")) };
    for (pointer, message) in [
        ("redis://ctx:nothing", "context not found"),
        ("s3://bucket/x", "unsupported pointer scheme"),
        ("redis://", "missing pointer key"),
        ("", "input validation failed: EOF while parsing a value at line 1 column 0"),
    ] {
        scheduler.send(TOPIC, pointing(pointer)).await;
        assert_eq!(ending(&scheduler.result().await), (JobStatus::Failed, message), "{pointer:?}");
    }
}

#[tokio::test]
async fn a_topic_without_a_handler_is_given_back() {
    let mut scheduler = Scheduler::start().await;
    let _worker = scheduler.employ(obedient()).await;
    scheduler.send(DIRECT, JobRequest { topic: "job.other".into(), ..request("j") }).await;
    let result = scheduler.result().await;
    assert_eq!(ending(&result), (JobStatus::FailedRetryable, "this worker has no handler for job.other"));
}

#[tokio::test]
async fn a_cancelled_job_is_stopped_and_says_so() {
    let mut scheduler = Scheduler::start().await;
    let (worker, mut told) = endless();
    let _worker = scheduler.employ(worker).await;
    scheduler.dispatch(TOPIC, request("j"), &json!(null)).await;
    assert_eq!(soon("the start", told.recv()).await, Some("started"));
    scheduler.cancel("another").await;
    scheduler.cancel("j").await;
    assert_eq!(soon("the end", told.recv()).await, Some("dropped"));
    assert_eq!(ending(&scheduler.result().await), (JobStatus::Cancelled, "cancelled"));
}

#[tokio::test]
async fn a_job_that_waits_for_a_slot_can_be_cancelled() {
    let mut scheduler = Scheduler::start().await;
    let (worker, mut told) = endless();
    let _worker = scheduler.employ(worker).await;
    scheduler.dispatch(TOPIC, request("running"), &json!(null)).await;
    assert_eq!(soon("the start", told.recv()).await, Some("started"));
    scheduler.dispatch(TOPIC, request("waiting"), &json!(null)).await;
    // Cancellations travel on another subscription, so this waits until the job is known here.
    while scheduler.heartbeat().await.active_jobs < 2 {}
    scheduler.cancel("waiting").await;
    let result = scheduler.result().await;
    assert_eq!((result.job_id.as_str(), result.status()), ("waiting", JobStatus::Cancelled));
    assert!(told.is_empty());
}

#[tokio::test]
async fn what_a_handler_started_elsewhere_hears_of_the_cancellation() {
    let mut scheduler = Scheduler::start().await;
    let (tell, told) = oneshot::channel();
    let tell = Arc::new(std::sync::Mutex::new(Some(tell)));
    let started = Arc::new(Notify::new());
    let starting = Arc::clone(&started);
    let worker = Worker::new(WORKER).handle(TOPIC, move |job: Job| {
        let tell = tell.lock().unwrap().take().unwrap();
        starting.notify_one();
        async move {
            tokio::spawn(async move {
                job.cancelled().await;
                tell.send(()).unwrap();
            });
            std::future::pending::<Result<(), Failure>>().await
        }
    });
    let _worker = scheduler.employ(worker).await;
    scheduler.dispatch(TOPIC, request("j"), &json!(null)).await;
    soon("the start", started.notified()).await;
    scheduler.cancel("j").await;
    soon("the news", told).await.unwrap();
}

#[tokio::test]
async fn a_passed_deadline_stops_the_handler() {
    let mut scheduler = Scheduler::start().await;
    let (worker, mut told) = endless();
    let _worker = scheduler.employ(worker).await;
    scheduler.dispatch(TOPIC, with_deadline(request("j"), 200), &json!(null)).await;
    assert_eq!(soon("the start", told.recv()).await, Some("started"));
    assert_eq!(soon("the end", told.recv()).await, Some("dropped"));
    let result = scheduler.result().await;
    assert_eq!(ending(&result), (JobStatus::Timeout, "the deadline has passed"));
    assert_eq!(result.error_code_enum(), ErrorCode::JobTimeout);
}

#[tokio::test]
async fn a_stopping_worker_finishes_its_jobs_and_takes_no_more() {
    let mut scheduler = Scheduler::start().await;
    let (started, mut starts) = mpsc::unbounded_channel();
    let gate = Arc::new(Notify::new());
    let opened = Arc::clone(&gate);
    let worker = Worker::new(WORKER).capacity(3).handle(TOPIC, move |_: Job| {
        let (started, opened) = (started.clone(), Arc::clone(&opened));
        async move {
            started.send(())?;
            opened.notified().await;
            Ok::<_, Failure>(())
        }
    });
    let mut running = scheduler.employ(worker).await;
    scheduler.dispatch(TOPIC, request("j"), &json!(null)).await;
    soon("the start", starts.recv()).await;

    running.begin_stop();
    let beat = scheduler.heartbeat().await;
    assert_eq!((beat.active_jobs, beat.max_parallel_jobs), (3, 3), "a closing worker says that it is full");
    // Nobody listens on the topic any more: a request there has no responders.
    let unheard = async {
        let missed = || Request::new().payload("x".into()).timeout(Some(Duration::from_millis(200)));
        while scheduler.nats.send_request(TOPIC, missed()).await.unwrap_err().kind()
            != RequestErrorKind::NoResponders
        {}
    };
    soon("the end of the subscriptions", unheard).await;
    gate.notify_one();
    assert_eq!(scheduler.result().await.status(), JobStatus::Succeeded);
    running.stopped().await;
    assert!(starts.is_empty());
}
