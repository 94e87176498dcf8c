//! A job comes in, its result goes out.

use futures_util::StreamExt;
use redis::AsyncCommands;
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::cap::{ComponentRole, JobRequest, JobStatus};
use reveille_wire::{packet, subject};
use reveille_worker::{Failure, Job, Worker};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::scheduler::{DIRECT, Scheduler, TOPIC, WORKER, attempt, request, soon};

fn echo() -> Worker {
    Worker::new(WORKER).capacity(4).handle(TOPIC, |job: Job| async move { job.input::<Value>() })
}

#[tokio::test]
async fn a_job_succeeds_by_topic_and_by_the_workers_own_subject() {
    let mut scheduler = Scheduler::start().await;
    let _worker = scheduler.employ(echo()).await;
    for (subject, id) in [(TOPIC, "by-topic"), (DIRECT, "by-name")] {
        scheduler.dispatch(subject, attempt(id, 3), &json!({ "id": id })).await;
        let result = scheduler.result().await;
        assert_eq!((result.job_id.as_str(), result.status()), (id, JobStatus::Succeeded));
        assert_eq!(result.worker_id, WORKER);
        assert_eq!(result.result_ptr, format!("redis://res:{id}"));
        assert_eq!(result.dispatch, attempt(id, 3).dispatch);

        let mut redis = scheduler.redis().await;
        let stored: String = redis.get(format!("res:{id}")).await.unwrap();
        assert_eq!(stored, json!({ "id": id }).to_string());
        let seconds: i64 = redis.ttl(format!("res:{id}")).await.unwrap();
        assert!((86_000..=86_400).contains(&seconds), "{seconds}");
    }
}

#[tokio::test]
async fn a_worker_introduces_itself_and_beats_at_once() {
    let mut scheduler = Scheduler::start().await;
    let mut handshakes = scheduler.nats.subscribe(subject::HANDSHAKE).await.unwrap();
    scheduler.nats.flush().await.unwrap();
    let worker =
        echo().pool("p").label("region", "eu").capability("gpu").region("eu").kind("box").agent_name("Ann");
    let running = crate::scheduler::Running::start(worker, scheduler.servers.connect());

    let message = soon("a handshake", handshakes.next()).await.unwrap();
    let Some(Payload::Handshake(handshake)) = packet::decode(&message.payload).unwrap().payload else {
        panic!("not a handshake")
    };
    assert_eq!(handshake.role(), ComponentRole::Worker);
    assert_eq!(handshake.ready_topics, [TOPIC]);
    assert!(handshake.capabilities[TOPIC]);
    assert!(handshake.sdk_version.starts_with("reveille-rust/"));

    let beat = scheduler.heartbeat().await;
    assert_eq!((beat.worker_id.as_str(), beat.pool.as_str(), beat.max_parallel_jobs), (WORKER, "p", 4));
    assert_eq!((beat.region.as_str(), beat.r#type.as_str(), beat.agent_name.as_str()), ("eu", "box", "Ann"));
    assert_eq!((beat.labels["region"].as_str(), beat.capabilities), ("eu", vec!["gpu".to_owned()]));
    assert!(beat.memory_load > 0.0 && beat.cpu_load >= 0.0);
    drop(running);
}

#[tokio::test]
async fn progress_is_published_with_the_attempt() {
    let mut scheduler = Scheduler::start().await;
    let mut told = scheduler.nats.subscribe(subject::JOB_PROGRESS).await.unwrap();
    let worker = Worker::new(WORKER).handle(TOPIC, |job: Job| async move {
        job.progress(40, "nearly half").await;
        Ok::<_, Failure>(job.attempt())
    });
    let _worker = scheduler.employ(worker).await;
    scheduler.dispatch(TOPIC, attempt("j", 2), &json!(null)).await;

    let message = soon("progress", told.next()).await.unwrap();
    let packet = packet::decode(&message.payload).unwrap();
    assert_eq!((packet.sender_id.as_str(), packet.trace_id.as_str()), (WORKER, "trace-1"));
    let Some(Payload::JobProgress(progress)) = packet.payload else { panic!("not progress") };
    assert_eq!((progress.percent, progress.message.as_str()), (40, "nearly half"));
    assert_eq!(progress.dispatch, attempt("j", 2).dispatch);
    assert_eq!(scheduler.result().await.status(), JobStatus::Succeeded);
}

#[tokio::test]
async fn the_trace_of_an_attempt_is_shown_to_the_handler_and_goes_back_with_what_it_says() {
    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let mut scheduler = Scheduler::start().await;
    let mut told = scheduler.nats.subscribe(subject::JOB_PROGRESS).await.unwrap();
    let (seen, mut sight) = mpsc::unbounded_channel();
    let worker = Worker::new(WORKER).handle(TOPIC, move |job: Job| {
        let seen = seen.clone();
        async move {
            seen.send((job.traceparent(), job.tracestate())).unwrap();
            job.progress(40, "").await;
            Ok::<_, Failure>(())
        }
    });
    let _worker = scheduler.employ(worker).await;
    let good = || (Some(PARENT.to_owned()), Some("a=1".to_owned()));
    let table = [
        (vec![("traceparent", PARENT), ("tracestate", "a=1")], good()),
        (vec![("Traceparent", PARENT), ("Tracestate", "a=1")], good()),
        (vec![("traceparent", "00-bad"), ("tracestate", "a=1")], (None, None)),
        (vec![("traceparent", PARENT), ("traceparent", PARENT)], (None, None)),
        (vec![("other", "1")], (None, None)),
    ];
    for (number, (headers, expected)) in table.into_iter().enumerate() {
        let job = JobRequest { context_ptr: String::new(), ..attempt(&format!("j{number}"), 1) };
        scheduler.send_with(TOPIC, job, &headers).await;
        assert_eq!(soon("the handler", sight.recv()).await.unwrap(), expected, "{headers:?}");
        let progress = soon("progress", told.next()).await.unwrap();
        let (result, _) = scheduler.unanswered_result().await;
        scheduler.answer(&result).await;
        for message in [progress, result] {
            let header = |name| message.headers.as_ref()?.get(name).map(|value| value.as_str().to_owned());
            assert_eq!((header("traceparent"), header("tracestate")), expected, "{headers:?}");
        }
    }
}

#[tokio::test]
async fn jobs_beyond_the_capacity_wait_and_are_counted() {
    let mut scheduler = Scheduler::start().await;
    let (started, mut starts) = mpsc::unbounded_channel();
    let (release, gate) = tokio::sync::watch::channel(false);
    let worker = Worker::new(WORKER).capacity(2).handle(TOPIC, move |job: Job| {
        let (started, mut gate) = (started.clone(), gate.clone());
        async move {
            started.send(job.id().to_owned()).unwrap();
            gate.wait_for(|open| *open).await?;
            Ok::<_, Failure>(())
        }
    });
    let _worker = scheduler.employ(worker).await;
    for number in 0..5 {
        scheduler.dispatch(TOPIC, request(&format!("j{number}")), &json!(null)).await;
    }
    assert_eq!(soon("a start", starts.recv()).await.unwrap(), "j0");
    assert_eq!(soon("a start", starts.recv()).await.unwrap(), "j1");
    let beat = scheduler.heartbeat().await;
    assert_eq!((beat.active_jobs, beat.max_parallel_jobs), (5, 2));
    assert!(starts.is_empty());
    release.send(true).unwrap();
    for _ in 0..5 {
        assert_eq!(scheduler.result().await.status(), JobStatus::Succeeded);
    }
}

#[tokio::test]
async fn garbage_is_dropped_and_the_next_job_runs() {
    let mut scheduler = Scheduler::start().await;
    let _worker = scheduler.employ(echo()).await;
    scheduler.nats.publish(DIRECT, "garbage".into()).await.unwrap();
    scheduler.nats.publish(subject::JOB_CANCEL, "garbage".into()).await.unwrap();
    scheduler.dispatch(DIRECT, request("j"), &json!(1)).await;
    assert_eq!(scheduler.result().await.status(), JobStatus::Succeeded);
}
