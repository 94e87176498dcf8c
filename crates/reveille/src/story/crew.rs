//! The workers of the story. They come in through the doors like any other.

use super::house::House;
use reveille_worker::{Connect, Failure, Job, Worker};
use serde_json::{Value, json};
use std::future::pending;
use std::time::Duration;
use tokio::task::JoinHandle;

pub const NAMES: [&str; 6] = ["ada", "bob", "cleo", "dan", "eve", "fay"];

/// Workers that end with the story, or before.
pub struct DemoWorkers(Vec<(&'static str, JoinHandle<()>)>);

impl DemoWorkers {
    pub fn start(house: &House) -> Self {
        let connect = Connect {
            nats_url: format!("nats://{}", house.nats),
            redis_url: format!("redis://{}", house.resp),
        };
        let start = |name: &'static str| {
            let (worker, connect) = (worker(name), connect.clone());
            let run = async move {
                if let Err(error) = worker.run(connect, pending()).await {
                    tracing::warn!(worker = name, %error, "a worker of the demo stopped");
                }
            };
            (name, tokio::spawn(run))
        };
        Self(NAMES.into_iter().map(start).collect())
    }

    /// No goodbye: whatever it had in hand is lost with it.
    pub fn kill(&self, name: &str) {
        for (_, task) in self.0.iter().filter(|(is, _)| *is == name) {
            task.abort();
        }
    }
}

impl Drop for DemoWorkers {
    fn drop(&mut self) {
        self.0.iter().for_each(|(_, task)| task.abort());
    }
}

fn worker(name: &'static str) -> Worker {
    let pool =
        if NAMES.iter().position(|is| *is == name).is_some_and(|at| at < 4) { "research" } else { "deploy" };
    let seconds =
        |job: &Job| job.input::<Value>().ok().and_then(|input| input["seconds"].as_f64()).unwrap_or(0.3);
    let work = move |job: Job| async move {
        tokio::time::sleep(Duration::from_secs_f64(seconds(&job))).await;
        Ok::<_, Failure>(json!({ "by": name, "try": job.attempt() }))
    };
    // The server is on this machine too, and whatever else its owner does meanwhile.
    let plain = Worker::new(name).pool(pool).capacity(2).keep_load_private();
    if pool == "research" {
        plain.handle("job.demo.search", work).handle("job.demo.think", work)
    } else {
        plain
            .handle("job.demo.deploy", work)
            .handle("job.demo.migrate", work)
            .handle("job.demo.unmigrate", work)
            .handle("job.demo.release", work)
            .handle("job.demo.unrelease", work)
            .handle("job.demo.check", |_: Job| async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Err::<Value, _>(Failure::fatal("the new version does not answer"))
            })
    }
}
