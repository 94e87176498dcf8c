//! The workers that jobs and runs are measured with: each gives back what it is given.

use anyhow::Result;
use reveille_worker::{Connect, Error, Job, Worker};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub const WORKERS: usize = 4;

pub struct Crew {
    stop: watch::Sender<bool>,
    workers: Vec<JoinHandle<Result<(), Error>>>,
}

impl Crew {
    /// `seen` is shown every job when a worker has it.
    pub fn start(connect: &Connect, seen: impl Fn(&Job) + Clone + Send + Sync + 'static) -> Self {
        let (stop, stopped) = watch::channel(false);
        let start = |number: usize| {
            let (connect, mut stopped, seen) = (connect.clone(), stopped.clone(), seen.clone());
            let worker = Worker::new(format!("bench-{number}"))
                .pool("bench")
                .capacity(256)
                .keep_load_private()
                .handle("job.bench", move |job: Job| {
                    seen(&job);
                    async move { job.input::<Value>() }
                });
            tokio::spawn(async move {
                worker
                    .run(connect, async move {
                        let _ = stopped.wait_for(|stop| *stop).await;
                    })
                    .await
            })
        };
        let workers = (0..WORKERS).map(start).collect();
        Self { stop, workers }
    }

    pub async fn stop(self) -> Result<()> {
        let _ = self.stop.send(true);
        for worker in self.workers {
            worker.await??;
        }
        Ok(())
    }
}
