//! Servers that go away and come back.

use redis::AsyncCommands;
use reveille_wire::cap::JobStatus;
use reveille_worker::{Job, Worker};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use crate::scheduler::{Running, Scheduler, TOPIC, WORKER, request, soon};

fn gated() -> (Worker, mpsc::UnboundedReceiver<String>, watch::Sender<bool>) {
    let (started, starts) = mpsc::unbounded_channel();
    let (gate, opened) = watch::channel(false);
    let worker = Worker::new(WORKER).capacity(4).handle(TOPIC, move |job: Job| {
        let (started, mut opened) = (started.clone(), opened.clone());
        async move {
            started.send(job.id().to_owned())?;
            opened.wait_for(|open| *open).await?;
            job.input::<Value>()
        }
    });
    (worker, starts, gate)
}

#[tokio::test]
async fn jobs_outlast_a_redis_restart() {
    let mut scheduler = Scheduler::start().await;
    let (worker, mut starts, gate) = gated();
    let _worker = scheduler.employ(worker).await;
    scheduler.dispatch(TOPIC, request("writes"), &json!("written")).await;
    assert_eq!(soon("the start", starts.recv()).await.unwrap(), "writes");
    let () = scheduler.redis().await.set("ctx:reads", "\"read\"").await.unwrap();

    scheduler.servers.redis.down();
    gate.send(true).unwrap();
    scheduler.send(TOPIC, request("reads")).await;
    while scheduler.heartbeat().await.active_jobs < 2 {}
    scheduler.servers.redis.up().await;

    for _ in 0..2 {
        let result = scheduler.result().await;
        assert_eq!(result.status(), JobStatus::Succeeded, "{result:?}");
    }
    let mut redis = scheduler.redis().await;
    let stored: (String, String) = redis.mget(&["res:writes", "res:reads"]).await.unwrap();
    assert_eq!(stored, ("\"written\"".to_owned(), "\"read\"".to_owned()));
}

#[tokio::test]
async fn a_result_outlasts_a_nats_restart_and_the_worker_comes_back() {
    let mut scheduler = Scheduler::start().await;
    let (worker, mut starts, gate) = gated();
    let _worker = scheduler.employ(worker).await;
    scheduler.dispatch(TOPIC, request("before"), &json!(1)).await;
    assert_eq!(soon("the start", starts.recv()).await.unwrap(), "before");

    scheduler.servers.nats.down();
    gate.send(true).unwrap();
    scheduler.servers.nats.up().await;
    // A heartbeat after the reconnect: from now on jobs reach the worker again.
    scheduler.heartbeat().await;
    let result = scheduler.result().await;
    assert_eq!((result.job_id.as_str(), result.status()), ("before", JobStatus::Succeeded));

    scheduler.dispatch(TOPIC, request("after"), &json!(2)).await;
    let after = loop {
        // What was sent just before the answer arrived may come twice.
        let result = scheduler.result().await;
        if result.job_id == "after" {
            break result;
        }
    };
    assert_eq!(after.status(), JobStatus::Succeeded);
}

#[tokio::test]
async fn a_worker_waits_for_a_server_that_is_not_up_yet() {
    let mut scheduler = Scheduler::start().await;
    scheduler.servers.nats.down();
    let (worker, _, gate) = gated();
    gate.send(true).unwrap();
    let mut running = Running::start(worker, scheduler.servers.connect());
    scheduler.servers.nats.up().await;
    scheduler.heartbeat().await;
    running.begin_stop();
    running.stopped().await;
}
