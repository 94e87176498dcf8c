//! The simulated fleet: many workers, each with a connection of its own that it opens again whenever it
//! breaks. They beat on their own clocks, as workers do that do not know that a server was restarted.

use anyhow::{Context, Result};
use reveille_core::time::Millis;
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::cap::{Heartbeat, JobResult, JobStatus};
use reveille_wire::{packet, subject};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;

/// How soon a worker tries again after its connection broke.
const RECONNECT: Duration = Duration::from_millis(100);

pub struct DrillFleet {
    shared: Arc<DrillContext>,
}

struct DrillContext {
    address: SocketAddr,
    beat_every: Duration,
    state: Mutex<DrillState>,
}

#[derive(Default)]
struct DrillState {
    dead: BTreeSet<usize>,
    /// When each job reached a worker for the first time.
    received: BTreeMap<String, Instant>,
}

impl DrillFleet {
    pub fn start(address: SocketAddr, workers: usize, pools: usize, beat_every: Duration) -> Self {
        let shared = Arc::new(DrillContext { address, beat_every, state: Mutex::default() });
        for number in 0..workers {
            let member = DrillWorker { number, pool: number % pools, shared: shared.clone() };
            // Their beats are spread over the interval, as in life.
            let phase = beat_every.mul_f64(number as f64 / workers as f64);
            tokio::spawn(member.live(phase));
        }
        Self { shared }
    }

    /// So many of them die: connections closed, no more beats. Says who.
    pub fn bury(&self, count: usize) -> Vec<String> {
        let mut state = self.shared.lock();
        state.dead = (0..count).map(|number| number * 20).collect();
        state.dead.iter().map(|number| name(*number)).collect()
    }

    pub fn revive(&self) {
        self.shared.lock().dead.clear();
    }

    pub fn reset(&self) {
        self.shared.lock().received.clear();
    }

    pub fn received_at(&self, job: &str) -> Option<Instant> {
        self.shared.lock().received.get(job).copied()
    }

    pub fn first_received(&self) -> Option<Instant> {
        self.shared.lock().received.values().min().copied()
    }
}

impl DrillContext {
    fn lock(&self) -> MutexGuard<'_, DrillState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn name(number: usize) -> String {
    format!("drill-worker-{number:05}")
}

struct DrillWorker {
    number: usize,
    pool: usize,
    shared: Arc<DrillContext>,
}

impl DrillWorker {
    async fn live(self, phase: Duration) {
        let first = tokio::time::Instant::now() + phase;
        let mut beats = tokio::time::interval_at(first, self.shared.beat_every);
        beats.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        loop {
            if !self.is_dead() {
                // A connection that breaks is the point of the drill.
                let _ = self.work(&mut beats).await;
            }
            tokio::time::sleep(RECONNECT).await;
        }
    }

    fn is_dead(&self) -> bool {
        self.shared.lock().dead.contains(&self.number)
    }

    async fn work(&self, beats: &mut tokio::time::Interval) -> Result<()> {
        let stream = TcpStream::connect(self.shared.address).await?;
        stream.set_nodelay(true)?;
        let (read, mut write) = stream.into_split();
        let mut read = BufReader::new(read);
        let id = name(self.number);
        let hello =
            format!("CONNECT {{\"verbose\":false,\"name\":\"{id}\"}}\r\nSUB worker.{id}.jobs 1\r\nPING\r\n");
        write.write_all(hello.as_bytes()).await?;
        let mut line = String::new();
        loop {
            line.clear();
            tokio::select! {
                _ = beats.tick() => {
                    if self.is_dead() {
                        return Ok(());
                    }
                    self.beat(&mut write).await?;
                    continue;
                }
                read = read.read_line(&mut line) => if read? == 0 { return Ok(()) },
            }
            if line.starts_with("PING") {
                write.write_all(b"PONG\r\n").await?;
            } else if let Some(head) = line.strip_prefix("MSG ") {
                let len: usize = head.trim().rsplit(' ').next().context("a length")?.parse()?;
                let mut payload = vec![0; len + 2];
                read.read_exact(&mut payload).await?;
                self.answer(&mut write, &payload[..len]).await?;
            }
        }
    }

    async fn beat(&self, write: &mut OwnedWriteHalf) -> Result<()> {
        let id = name(self.number);
        let heartbeat = Heartbeat {
            worker_id: id.clone(),
            pool: format!("drill-{}", self.pool),
            max_parallel_jobs: 100,
            labels: [("region".to_owned(), "drill".to_owned())].into(),
            ..Heartbeat::default()
        };
        say(write, subject::HEARTBEAT, &id, Payload::Heartbeat(heartbeat)).await
    }

    /// Does the job at once.
    async fn answer(&self, write: &mut OwnedWriteHalf, payload: &[u8]) -> Result<()> {
        let Some(Payload::JobRequest(job)) = packet::decode(payload)?.payload else { return Ok(()) };
        self.shared.lock().received.entry(job.job_id.clone()).or_insert_with(Instant::now);
        let id = name(self.number);
        let result = JobResult {
            job_id: job.job_id,
            status: JobStatus::Succeeded as i32,
            worker_id: id.clone(),
            dispatch: job.dispatch,
            ..JobResult::default()
        };
        say(write, subject::JOB_RESULT, &id, Payload::JobResult(result)).await
    }
}

async fn say(write: &mut OwnedWriteHalf, subject: &str, id: &str, payload: Payload) -> Result<()> {
    let packet = packet::encode(&packet::envelope(id, id, now(), payload));
    let mut frame = format!("PUB {subject} {}\r\n", packet.len()).into_bytes();
    frame.extend_from_slice(&packet);
    frame.extend_from_slice(b"\r\n");
    write.write_all(&frame).await?;
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a worker outside the server has a clock of its own")]
fn now() -> Millis {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Millis(since.as_millis() as i64)
}
