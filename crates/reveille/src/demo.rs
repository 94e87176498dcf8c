//! `serve --demo`: something to look at. Built-in workers that come in through the doors like any
//! other, and a trickle of jobs, one of which nobody serves.

use anyhow::{Result, ensure};
use bytes::Bytes;
use reveille_core::id::Topic;
use reveille_core::request::{Priority, Request};
use reveille_engine::{Engine, Submission, Submitter};
use reveille_worker::{Connect, Failure, Job, Worker};
use serde_json::{Value, json};
use std::future::pending;
use std::time::Duration;

/// Where this server's doors are.
#[derive(Debug, Clone, Default)]
pub struct Addresses {
    pub nats: String,
    pub resp: String,
}

const JOB_EVERY: Duration = Duration::from_millis(500);

pub fn start(engine: Engine, addresses: &Addresses) -> Result<()> {
    ensure!(
        !addresses.nats.is_empty() && !addresses.resp.is_empty(),
        "--demo needs both doors, and one is off"
    );
    let connect = Connect { nats_url: addresses.nats.clone(), redis_url: addresses.resp.clone() };
    for name in ["demo-ada", "demo-bob", "demo-eve"] {
        let (connect, worker) = (connect.clone(), worker(name));
        tokio::spawn(async move {
            if let Err(error) = worker.run(connect, pending()).await {
                tracing::warn!(worker = name, %error, "a demo worker stopped");
            }
        });
    }
    tokio::spawn(trickle(engine));
    eprintln!(
        "demo: three workers and two jobs a second; try `reveille job list` and `reveille worker list`"
    );
    Ok(())
}

fn worker(name: &str) -> Worker {
    Worker::new(name)
        .pool("demo")
        .capacity(4)
        .keep_load_private()
        .label("region", if name == "demo-eve" { "us" } else { "eu" })
        .handle("job.demo.echo", |job: Job| async move { job.input::<Value>() })
        .handle("job.demo.slow", |job: Job| async move {
            for percent in [25, 50, 75] {
                tokio::time::sleep(Duration::from_secs(2)).await;
                job.progress(percent, "still at it").await;
            }
            Ok::<_, Failure>(json!({ "slow": "done" }))
        })
        .handle("job.demo.flaky", |job: Job| async move {
            if job.attempt() < 2 {
                Err(Failure::retryable("the first try never works"))
            } else {
                Ok(json!({ "flaky": "done" }))
            }
        })
}

async fn trickle(engine: Engine) {
    let mut every = tokio::time::interval(JOB_EVERY);
    for number in 0u64.. {
        every.tick().await;
        let topic = match number % 12 {
            3 | 7 => "job.demo.slow",
            5 => "job.demo.flaky",
            11 => "job.demo.nobody",
            _ => "job.demo.echo",
        };
        let id = engine.jobs().new_id();
        let mut request = Request::plain(id.as_str(), topic);
        request.tenant = engine.settings().default_tenant.clone();
        request.topic = Topic::known(topic);
        request.priority = Priority::ALL[(number % 3) as usize];
        // Nobody serves the last kind, so it must not wait for ever.
        request.budget.deadline_ms = if topic == "job.demo.nobody" { 60_000 } else { 0 };
        let context = Some(Bytes::from(json!({ "number": number }).to_string()));
        let submitted =
            engine.jobs().submit(Submission { request, context, submitter: Submitter::Listens }).await;
        if let Err(error) = submitted {
            tracing::warn!(%error, "a demo job was not taken");
        }
    }
}
