//! Simulated workers: they connect, introduce themselves, beat, run what they are given and report.
//! They also die with everything they had, stall, come back under their old name, and lose their
//! connection.

mod careful;

use crate::plan::{WorkerKind, WorkerPlan};
use crate::results;
use crate::world::{World, sleep_ms};
use bytes::Bytes;
use reveille_bus::Message;
use reveille_core::time::Millis;
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::cap::{
    ComponentRole, Handshake, Heartbeat, JobProgress, JobRequest, JobResult, JobStatus,
};
use reveille_wire::{packet, subject};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const BEAT_MS: i64 = 5_000;

pub struct SimWorker {
    pub number: usize,
    pub plan: WorkerPlan,
    state: Mutex<WorkerState>,
}

struct WorkerState {
    alive: bool,
    /// Counts restarts: what an earlier process began, a later one does not finish.
    process: u64,
    introduced: bool,
    connection: Option<u64>,
    stalled_until: Millis,
    /// Job and attempt of everything that runs.
    running: BTreeSet<(String, u64)>,
    /// Attempts that came before: a repeated delivery is not run again.
    seen: BTreeSet<(String, u64)>,
}

/// Whether a worker is one that the job asked for.
pub fn fits(worker: &WorkerPlan, job: &JobRequest) -> bool {
    job.labels.get("placement.region").is_none_or(|region| region == worker.region)
}

impl SimWorker {
    pub fn new(number: usize, plan: WorkerPlan) -> Self {
        let state = WorkerState {
            alive: true,
            process: 0,
            introduced: false,
            connection: None,
            stalled_until: Millis::ZERO,
            running: BTreeSet::new(),
            seen: BTreeSet::new(),
        };
        Self { number, plan, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, WorkerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connects whenever it is not, and beats, for as long as the run lasts.
    pub async fn live(self: Arc<Self>, world: Arc<World>) {
        sleep_ms(world.rng.between(0, BEAT_MS)).await;
        loop {
            if world.bus_is_there() {
                self.attend(&world);
            }
            sleep_ms(BEAT_MS).await;
        }
    }

    fn attend(self: &Arc<Self>, world: &Arc<World>) {
        let (alive, connection, stalled) = {
            let state = self.state();
            (state.alive, state.connection, world.now() < state.stalled_until)
        };
        let ghost = world.beats_as_a_ghost();
        if (!alive && !ghost) || (alive && stalled) {
            return;
        }
        if alive && connection.is_none_or(|connection| !world.network.is_connected(connection)) {
            let is_new = self.connect(world);
            // One that only got its connection back goes on beating when it would have anyway.
            if !is_new && world.rng.percent(50) {
                return;
            }
        }
        // Beside several servers no connection breaks when one of them starts anew.
        if world.plan.is_shared() && (world.rng.percent(30) || !world.faults.are_on()) {
            self.introduce(world);
        }
        if self.plan.careful {
            self.ask_for_missing(world);
        }
        if self.plan.kind != WorkerKind::Runner {
            self.send(world, subject::HEARTBEAT, Payload::Heartbeat(self.beat()));
        }
    }

    /// Whether it should have been heard lately.
    pub fn beats(&self, now: Millis) -> bool {
        let is_well = now.since(self.state().stalled_until) > 2 * BEAT_MS;
        is_well && self.is_alive() && self.plan.kind != WorkerKind::Runner
    }

    pub fn is_alive(&self) -> bool {
        self.state().alive
    }

    /// Says whether this process is a new one: then it introduces itself.
    fn connect(self: &Arc<Self>, world: &Arc<World>) -> bool {
        let mut subjects: BTreeSet<String> = self.plan.topics.iter().map(ToString::to_string).collect();
        if self.plan.kind == WorkerKind::Agent {
            subjects.insert(subject::worker_jobs(&self.plan.name));
            subjects.insert(subject::JOB_CANCEL.to_owned());
        }
        let name = self.plan.named.then(|| self.plan.name.to_string());
        let connection = world.network.connect(self.number, name, subjects);
        let is_new = {
            let mut state = self.state();
            state.connection = Some(connection);
            !std::mem::replace(&mut state.introduced, true)
        };
        world.trace.say(format_args!("{} connects as {connection}", self.plan.name));
        if is_new || world.rng.percent(50) {
            self.introduce(world);
        }
        is_new
    }

    fn introduce(&self, world: &Arc<World>) {
        if self.plan.kind != WorkerKind::Agent {
            return;
        }
        let handshake = Handshake {
            component_id: self.plan.name.to_string(),
            role: ComponentRole::Worker as i32,
            ready_topics: self.plan.topics.iter().map(ToString::to_string).collect(),
            ..Handshake::default()
        };
        self.send(world, subject::HANDSHAKE, Payload::Handshake(handshake));
    }

    fn beat(&self) -> Heartbeat {
        Heartbeat {
            worker_id: self.plan.name.to_string(),
            region: self.plan.region.to_owned(),
            active_jobs: self.state().running.len() as i32,
            max_parallel_jobs: self.plan.capacity as i32,
            pool: self.plan.pool.to_string(),
            labels: [("region".to_owned(), self.plan.region.to_owned())].into(),
            ..Heartbeat::default()
        }
    }

    fn send(&self, world: &Arc<World>, subject: &str, payload: Payload) {
        let name = self.plan.name.as_str();
        let packet = packet::encode(&packet::envelope(name, "trace", world.now(), payload));
        world.network.send_as_worker(world, subject, packet);
    }

    // What goes wrong.

    /// Dies with everything it runs. Whoever holds the other end of the connection sees it break.
    pub fn die(&self, world: &World) {
        if let Some(connection) = self.vanish() {
            world.network.disconnect(connection);
        }
    }

    /// Dies, and the connection seems to be there.
    pub fn die_silently(&self) {
        self.vanish();
    }

    fn vanish(&self) -> Option<u64> {
        let mut state = self.state();
        state.alive = false;
        state.introduced = false;
        if !self.plan.careful {
            state.process += 1;
            state.running.clear();
            state.seen.clear();
        }
        state.connection
    }

    /// A new process under the old name.
    pub fn restart(&self, world: &World) {
        let connection = {
            let mut state = self.state();
            state.alive = true;
            state.stalled_until = Millis::ZERO;
            state.connection.take()
        };
        if let Some(connection) = connection {
            world.network.disconnect(connection);
        }
    }

    pub fn stall(&self, until: Millis) {
        self.state().stalled_until = until;
    }

    pub fn lose_connection(&self, world: &World) {
        let connection = self.state().connection.take();
        if let Some(connection) = connection {
            world.network.disconnect(connection);
        }
    }

    // Work.

    pub fn receive(self: &Arc<Self>, world: &Arc<World>, message: &Message) {
        if !self.is_alive() {
            return;
        }
        match packet::decode(&message.payload).ok().and_then(|packet| packet.payload) {
            Some(Payload::JobRequest(job)) => self.take(world, job),
            Some(Payload::JobCancel(cancel)) => {
                self.state().running.retain(|(job, _)| *job != cancel.job_id);
            }
            _ => {}
        }
    }

    fn take(self: &Arc<Self>, world: &Arc<World>, job: JobRequest) {
        let attempt = job.dispatch.as_ref().map_or(0, |dispatch| dispatch.attempt);
        let key = (job.job_id.clone(), attempt);
        let process = {
            let mut state = self.state();
            if !state.seen.insert(key.clone()) {
                return;
            }
            state.running.insert(key.clone());
            state.process
        };
        world.trace.say(format_args!("{} takes {} attempt {attempt}", self.plan.name, job.job_id));
        world.check(|ledger| ledger.started(&self.plan, &job));
        if self.plan.careful {
            tokio::spawn(self.clone().run_carefully(world.clone(), job, key));
        } else {
            tokio::spawn(self.clone().run(world.clone(), job, key, process));
        }
    }

    async fn run(self: Arc<Self>, world: Arc<World>, job: JobRequest, key: (String, u64), process: u64) {
        let run_ms = if world.rng.percent(3) {
            world.rng.between(60_000, 400_000)
        } else {
            world.rng.skewed(5, 40_000)
        };
        let parts = world.rng.between(1, 3);
        for part in 1..=parts {
            sleep_ms(run_ms / parts).await;
            if !self.runs(&key, process) {
                return;
            }
            if part < parts {
                let progress = JobProgress {
                    job_id: job.job_id.clone(),
                    percent: (part * 100 / parts) as i32,
                    ..JobProgress::default()
                };
                self.send(&world, subject::JOB_PROGRESS, Payload::JobProgress(progress));
            }
        }
        while world.now() < self.state().stalled_until {
            sleep_ms(1_000).await;
        }
        if self.runs(&key, process) {
            self.report(&world, &job, run_ms).await;
            self.state().running.remove(&key);
        }
    }

    fn runs(&self, key: &(String, u64), process: u64) -> bool {
        let state = self.state();
        state.process == process && state.running.contains(key)
    }

    /// A result that meets no server waits for one, as the stock client's buffer makes it.
    async fn report(&self, world: &Arc<World>, job: &JobRequest, run_ms: i64) {
        let status = outcome(world, &job.topic);
        if status == JobStatus::Succeeded {
            world.check(|ledger| {
                ledger.finished(&job.job_id, &self.plan.name);
                Ok(())
            });
        }
        world.trace.say(format_args!("{} reports {} {}", self.plan.name, job.job_id, status.as_str_name()));
        while !world.bus_is_there() && world.rng.percent(95) {
            sleep_ms(1_000).await;
        }
        if status == JobStatus::Succeeded {
            results::write(world, &job.job_id).await;
        }
        let result = JobResult {
            job_id: job.job_id.clone(),
            status: status as i32,
            result_ptr: format!("redis://res:{}", job.job_id),
            worker_id: self.plan.name.to_string(),
            execution_ms: run_ms,
            dispatch: job.dispatch.clone().filter(|_| self.plan.echoes),
            ..JobResult::default()
        };
        self.send(world, subject::JOB_RESULT, Payload::JobResult(result));
    }
}

fn outcome(world: &World, topic: &str) -> JobStatus {
    if topic == "job.flaky" && world.rng.percent(50) {
        return JobStatus::FailedRetryable;
    }
    match world.rng.below(100) {
        0..=2 => JobStatus::Failed,
        3 => JobStatus::FailedFatal,
        4..=6 => JobStatus::FailedRetryable,
        7 => JobStatus::Cancelled,
        8 => JobStatus::Timeout,
        9 => JobStatus::Denied,
        _ => JobStatus::Succeeded,
    }
}

/// A packet as somebody without a worker's name would send it.
pub fn client_packet(world: &World, payload: Payload) -> Bytes {
    packet::encode(&packet::envelope("client", "trace", world.now(), payload))
}
