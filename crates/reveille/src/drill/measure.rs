//! What is seen after a restart: jobs that come in all the time, and who is listed.

use super::fleet::DrillFleet;
use super::server::DrillServer;
use anyhow::Result;
use reveille_client::NewJob;
use serde::Serialize;
use serde_json::json;
use std::time::{Duration, Instant};

const JOB_EVERY: Duration = Duration::from_millis(20);
/// How long the last jobs may take to reach a worker.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Serialize)]
pub struct Restart {
    pub known_at_first: usize,
    pub jobs: usize,
    /// Jobs of which the server said, right after it took them, that no worker fits.
    pub no_workers: usize,
    /// Jobs whose workers were known and not back yet.
    pub waited: usize,
    /// From the moment the server was ready.
    pub first_dispatch_ms: Option<f64>,
    /// From taken in to received by a worker.
    pub dispatch_p50_ms: Option<f64>,
    pub dispatch_p99_ms: Option<f64>,
    pub dispatch_worst_ms: Option<f64>,
    /// Dead workers that were listed after the start, and how long the last of them was.
    pub stale: usize,
    pub stale_seconds: Option<f64>,
}

#[derive(Debug, Clone, Serialize)]
pub struct SnapshotCost {
    pub bytes: u64,
    pub write_ms: f64,
    pub interval_seconds: f64,
}

/// Submits jobs to one pool after the other and looks who is listed, for so long.
pub async fn watch(
    server: &DrillServer,
    fleet: &DrillFleet,
    dead: &[String],
    long: Duration,
    mut second_passed: impl FnMut(),
) -> Result<Restart> {
    let known_at_first = server.workers().await?.len();
    let mut jobs: Vec<(String, Instant)> = Vec::new();
    let (mut no_workers, mut waited) = (0, 0);
    let mut stale = Stale { listed: 0, until: None };
    let (end, mut next_second) = (server.up_at + long, Instant::now());
    let mut number = 0;
    while Instant::now() < end {
        let began = Instant::now();
        let topic = format!("job.drill.p{}", number % server.pools);
        number += 7;
        let job = NewJob::new(topic).context(json!({}));
        let id = server.ask(move |client| client.jobs().submit(&job)).await?.job_id;
        jobs.push((id.clone(), began));
        if fleet.received_at(&id).is_none() {
            let explained = server.ask(move |client| client.jobs().explain(&id)).await?;
            match explained.code.as_str() {
                "no_workers" => no_workers += 1,
                "workers_away" | "pool_overloaded" => waited += 1,
                _ => {}
            }
        }
        if Instant::now() >= next_second {
            next_second += Duration::from_secs(1);
            second_passed();
            stale.look(server, dead).await?;
        }
        tokio::time::sleep(JOB_EVERY.saturating_sub(began.elapsed())).await;
    }
    let patience = Instant::now() + PATIENCE;
    while Instant::now() < patience && jobs.iter().any(|(id, _)| fleet.received_at(id).is_none()) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let mut took: Vec<f64> = jobs
        .iter()
        .filter_map(|(id, began)| Some(ms(fleet.received_at(id)?.saturating_duration_since(*began))))
        .collect();
    took.sort_by(f64::total_cmp);
    let at = |share: f64| took.get(((took.len().max(1) - 1) as f64 * share) as usize).copied();
    Ok(Restart {
        known_at_first,
        jobs: jobs.len(),
        no_workers,
        waited,
        first_dispatch_ms: fleet.first_received().map(|at| ms(at.saturating_duration_since(server.up_at))),
        dispatch_p50_ms: at(0.5),
        dispatch_p99_ms: at(0.99),
        dispatch_worst_ms: at(1.0),
        stale: stale.listed,
        stale_seconds: stale.until.map(|until| (until - server.up_at).as_secs_f64()),
    })
}

struct Stale {
    listed: usize,
    until: Option<Instant>,
}

impl Stale {
    async fn look(&mut self, server: &DrillServer, dead: &[String]) -> Result<()> {
        let names = server.workers().await?;
        let listed = dead.iter().filter(|name| names.contains(name)).count();
        if listed > 0 {
            self.listed = self.listed.max(listed);
            self.until = Some(Instant::now());
        }
        Ok(())
    }
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
