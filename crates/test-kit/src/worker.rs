//! A worker on the local bus: it beats, takes jobs and reports.

use crate::packets::packet;
use crate::wait::soon;
use reveille_bus::{Bus, LocalBus, Message, Subscription};
use reveille_core::fleet::{Beat, Load};
use reveille_core::id::{TenantId, Topic, WorkerId};
use reveille_engine::Engine;
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::cap::{JobRequest, JobResult};
use reveille_wire::convert::Introduction;
use reveille_wire::{packet as wire, subject};
use std::time::Duration;

/// Says who a worker is and what it takes, as its handshake would.
pub fn introduce(engine: &Engine, tenant: &TenantId, name: &str, topics: &[&str]) {
    let topics = topics.iter().copied().map(Topic::known).collect();
    engine.fleet().introduce(tenant, Introduction { worker: WorkerId::known(name), topics });
}

pub fn beat(engine: &Engine, tenant: &TenantId, name: &str, load: Load) {
    engine.fleet().beat(&WorkerId::known(name), tenant, &Beat { load, ..Beat::default() });
}

/// The load of somebody who has nothing to do and room for so many.
pub fn idle(capacity: u32) -> Load {
    Load { max_parallel_jobs: capacity, ..Load::default() }
}

/// Beats for as long as the test lasts.
pub fn keep_beating(engine: &Engine, tenant: &TenantId, name: &str, capacity: u32, every: Duration) {
    let (engine, tenant, name) = (engine.clone(), tenant.clone(), name.to_owned());
    tokio::spawn(async move {
        loop {
            beat(&engine, &tenant, &name, idle(capacity));
            tokio::time::sleep(every).await;
        }
    });
}

/// Listens where its jobs come.
pub struct TestWorker {
    reporter: Reporter,
    pub jobs: Subscription,
}

/// Tells what became of a worker's jobs.
#[derive(Clone)]
pub struct Reporter {
    name: String,
    bus: LocalBus,
}

impl TestWorker {
    pub async fn listen(bus: &LocalBus, name: &str) -> Self {
        let jobs = bus.subscribe(&format!("worker.{name}.jobs"), None).await.unwrap();
        Self { reporter: Reporter { name: name.to_owned(), bus: bus.clone() }, jobs }
    }

    pub fn reporter(&self) -> Reporter {
        self.reporter.clone()
    }

    /// The next job that reaches it.
    pub async fn next(&mut self) -> JobRequest {
        soon(self.take()).await.expect("the bus has ended")
    }

    pub async fn report(&self, result: JobResult) {
        self.reporter.report(result).await;
    }

    async fn take(&mut self) -> Option<JobRequest> {
        let delivery = self.jobs.recv().await?;
        let Some(Payload::JobRequest(job)) = wire::decode(&delivery.message.payload).unwrap().payload else {
            panic!("a worker is sent jobs");
        };
        Some(job)
    }

    /// Does one job after the other for as long as the test lasts. Where there is no result, it is not heard of again.
    pub fn work<F>(mut self, work: impl Fn(JobRequest) -> F + Send + 'static)
    where
        F: Future<Output = Option<JobResult>> + Send,
    {
        tokio::spawn(async move {
            while let Some(job) = self.take().await {
                if let Some(result) = work(job).await {
                    self.report(result).await;
                }
            }
        });
    }
}

impl Reporter {
    pub async fn report(&self, result: JobResult) {
        let result = JobResult { worker_id: self.name.clone(), ..result };
        let packet = packet(&self.name, Payload::JobResult(result));
        self.bus.publish(Message::new(subject::JOB_RESULT, packet)).await.unwrap();
    }
}
