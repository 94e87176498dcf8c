//! The worker says who it is, once per connection, and that it lives, every few seconds.
//!
//! The first beat comes at once, so that work can come at once. CAP knows no goodbye: a worker that
//! closes says instead that it is full, so that no scheduler sends it more.

use std::sync::Arc;
use std::time::Duration;

use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::cap::{ComponentRole, Handshake, Heartbeat};
use reveille_wire::packet::PROTOCOL_VERSION;
use reveille_wire::subject;
use tokio::time::{MissedTickBehavior, interval};

use crate::connect::ConnectionWatch;
use crate::load::{CpuMeter, memory_percent};
use crate::worker::WorkerProfile;
use crate::worker_context::WorkerContext;

const BEAT_EVERY: Duration = Duration::from_secs(5);
const SDK_VERSION: &str = concat!("reveille-rust/", env!("CARGO_PKG_VERSION"));

pub struct WorkerBeats {
    pub worker_context: Arc<WorkerContext>,
    pub profile: WorkerProfile,
    pub link: ConnectionWatch,
}

impl WorkerBeats {
    pub async fn run(mut self) {
        let phase = self.worker_context.phase.clone();
        let mut cpu = CpuMeter::new();
        let mut every = interval(BEAT_EVERY);
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut has_said_closing = false;
        self.introduce().await;
        loop {
            tokio::select! {
                // The first tick is at once.
                _ = every.tick() => {}
                Ok(()) = self.link.changed() => self.introduce().await,
                () = phase.closing.cancelled(), if !has_said_closing => has_said_closing = true,
                () = phase.over.cancelled() => return,
            }
            self.beat(&mut cpu).await;
        }
    }

    async fn introduce(&self) {
        let topics: Vec<String> = self.worker_context.handlers.keys().cloned().collect();
        let handshake = Handshake {
            component_id: self.profile.id.clone(),
            role: ComponentRole::Worker as i32,
            supported_versions: vec![PROTOCOL_VERSION],
            capabilities: topics.iter().map(|topic| (topic.clone(), true)).collect(),
            sdk_version: SDK_VERSION.to_owned(),
            ready_topics: topics,
            agent_name: self.profile.agent_name.clone(),
        };
        self.say(subject::HANDSHAKE, Payload::Handshake(handshake)).await;
    }

    async fn beat(&self, cpu: &mut CpuMeter) {
        let WorkerProfile { id, pool, capacity, labels, capabilities, region, kind, agent_name, tells_load } =
            &self.profile;
        let mut active = self.worker_context.ledger.active();
        if self.worker_context.phase.closing.is_cancelled() {
            active = active.max(*capacity);
        }
        let heartbeat = Heartbeat {
            worker_id: id.clone(),
            pool: pool.clone(),
            active_jobs: i32::try_from(active).unwrap_or(i32::MAX),
            max_parallel_jobs: i32::try_from(*capacity).unwrap_or(i32::MAX),
            labels: labels.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
            capabilities: capabilities.clone(),
            region: region.clone(),
            r#type: kind.clone(),
            agent_name: agent_name.clone(),
            cpu_load: if *tells_load { cpu.load_percent().unwrap_or(0.0) } else { 0.0 },
            memory_load: if *tells_load { memory_percent() } else { 0.0 },
            ..Heartbeat::default()
        };
        self.say(subject::HEARTBEAT, Payload::Heartbeat(heartbeat)).await;
    }

    /// As in the stock SDK, what is about no job is traced under the worker's own name.
    async fn say(&self, subject: &'static str, payload: Payload) {
        let publisher = &self.worker_context.publisher;
        publisher.publish(subject, publisher.traced_packet(&self.profile.id, payload, None)).await;
    }
}
