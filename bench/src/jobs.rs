//! Jobs from HTTP to SUCCEEDED: how many a second, and how soon a worker has one.

use crate::crew::{Crew, WORKERS};
use crate::engines::Engines;
use crate::http::Connection;
use crate::latencies::Latencies;
use crate::report::Report;
use crate::server::{Server, cpu_seconds_of};
use anyhow::{Context, Result};
use bytes::Bytes;
use reveille_worker::Job;
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const SUBMITTERS: usize = 64;
/// Jobs under way at once, as far as the submitters let them pile up.
const OUTSTANDING_MAX: u64 = 512;
const PACED_JOBS_PER_SECOND: u64 = 2_500;
const SHARED_PACED_JOBS_PER_SECOND: u64 = 1_000;

/// When each job was acknowledged and when its handler was called.
#[derive(Default)]
struct Times {
    of_job: Mutex<HashMap<String, [Option<Instant>; 2]>>,
    handled: AtomicU64,
}

impl Times {
    fn note(&self, job: String, which: usize) {
        let mut times = self.of_job.lock().unwrap_or_else(PoisonError::into_inner);
        times.entry(job).or_default()[which] = Some(Instant::now());
    }

    /// Milliseconds from the acknowledgement to the worker; a worker that was faster counts as zero.
    fn latencies(&self) -> Latencies {
        let times = self.of_job.lock().unwrap_or_else(PoisonError::into_inner);
        let both =
            times.values().filter_map(|[acknowledged, received]| Some(((*acknowledged)?, (*received)?)));
        Latencies::of(both.map(|(a, r)| r.saturating_duration_since(a).as_secs_f64() * 1000.0).collect())
    }

    fn clear(&self) {
        self.of_job.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// What is measured where.
struct Stand {
    servers: Vec<Server>,
    /// What else the figures are said of.
    on: &'static str,
    target: &'static str,
}

pub async fn measure(report: &mut Report, binary: &Path, seconds: u64) -> Result<()> {
    let servers = vec![Server::start(binary).await?];
    let stand = Stand { servers, on: "", target: "≥ 5,000" };
    measure_at(report, stand, None, seconds).await
}

/// The same through one and two servers on Redis, NATS and PostgreSQL, which run on the same two cores.
pub async fn measure_shared(report: &mut Report, binary: &Path, seconds: u64) -> Result<()> {
    for (count, on) in [(1, " on NATS + Redis, 1 server"), (2, " on NATS + Redis, 2 servers")] {
        let mut engines = Engines::start();
        let servers = Server::start_shared(binary, count, &engines).await?;
        let stand = Stand { servers, on, target: "≥ 3,000" };
        measure_at(report, stand, Some(&mut engines), seconds).await?;
    }
    Ok(())
}

async fn measure_at(
    report: &mut Report,
    stand: Stand,
    mut engines: Option<&mut Engines>,
    seconds: u64,
) -> Result<()> {
    let Stand { servers, on, target } = stand;
    let times = Arc::new(Times::default());
    let seen = {
        let times = times.clone();
        move |job: &Job| {
            times.note(job.id().to_owned(), 1);
            times.handled.fetch_add(1, Ordering::Relaxed);
        }
    };
    let crew = Crew::start(&servers[0].connect, seen);

    flood(&servers, &times, Duration::from_secs(3)).await.context("warming up")?;
    let cpu = || servers.iter().map(Server::cpu_seconds).sum::<f64>();
    let mut engine_cpu = || engines.as_deref_mut().map(Engines::cpu_seconds);
    let own_cpu = || cpu_seconds_of(std::process::id());
    let (cpu_before, own_before, engines_before, began) = (cpu(), own_cpu(), engine_cpu(), Instant::now());
    let jobs = flood(&servers, &times, Duration::from_secs(seconds)).await?;
    let took = began.elapsed().as_secs_f64();
    let each = |cpu_seconds: f64| cpu_seconds * 1e6 / jobs as f64;
    report.add(
        format!("HTTP submit to SUCCEEDED{on}, {SUBMITTERS} submitters, {WORKERS} workers"),
        jobs as f64 / took,
        "jobs/s",
        target,
    );
    report.add(format!("  server CPU for a job{on}"), each(cpu() - cpu_before), "µs", "");
    if let (Some((redis_before, nats_before)), Some((redis, nats))) = (engines_before, engine_cpu()) {
        report.add(format!("  CPU of Redis for a job{on}"), each(redis - redis_before), "µs", "");
        report.add(format!("  CPU of NATS for a job{on}"), each(nats - nats_before), "µs", "");
    }
    report.add(
        format!("  CPU of submitters and workers for a job{on}"),
        each(own_cpu() - own_before),
        "µs",
        "",
    );

    times.clear();
    let per_second = if on.is_empty() { PACED_JOBS_PER_SECOND } else { SHARED_PACED_JOBS_PER_SECOND };
    pace(&servers, &times, per_second, Duration::from_secs(seconds)).await?;
    let latencies = times.latencies();
    let what = format!("acknowledged to worker{on} at {per_second} jobs/s");
    report.add(format!("{what}, p50"), latencies.at(50), "ms", "");
    report.add(format!("{what}, p99"), latencies.at(99), "ms", if on.is_empty() { "< 10" } else { "" });
    let memory = servers.iter().map(Server::memory_mib).sum();
    report.add(format!("  server memory afterwards{on}"), memory, "MiB", "");

    crew.stop().await?;
    for server in servers {
        server.stop().await?;
    }
    Ok(())
}

/// As fast as they can: returns how many jobs succeeded.
async fn flood(servers: &[Server], times: &Arc<Times>, lasting: Duration) -> Result<u64> {
    let before = succeeded(servers).await?;
    let (end, submitted) = (Instant::now() + lasting, Arc::new(AtomicU64::new(0)));
    let handled_before = times.handled.load(Ordering::Relaxed);
    let mut submitters = Vec::new();
    for number in 0..SUBMITTERS {
        let server = &servers[number % servers.len()];
        let (mut connection, times, submitted) =
            (Connection::open(&server.http).await?, times.clone(), submitted.clone());
        submitters.push(tokio::spawn(async move {
            while Instant::now() < end {
                let handled = times.handled.load(Ordering::Relaxed) - handled_before;
                if submitted.load(Ordering::Relaxed).saturating_sub(handled) > OUTSTANDING_MAX {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    continue;
                }
                connection.submit(body()).await?;
                submitted.fetch_add(1, Ordering::Relaxed);
            }
            anyhow::Ok(())
        }));
    }
    for submitter in submitters {
        submitter.await??;
    }
    let submitted = submitted.load(Ordering::Relaxed);
    while succeeded(servers).await? - before < submitted {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(submitted)
}

/// At an even pace, noting when each job was acknowledged.
async fn pace(servers: &[Server], times: &Arc<Times>, per_second: u64, lasting: Duration) -> Result<()> {
    let end = Instant::now() + lasting;
    let gap = Duration::from_secs_f64(SUBMITTERS as f64 / per_second as f64);
    let mut submitters = Vec::new();
    for number in 0..SUBMITTERS {
        let server = &servers[number % servers.len()];
        let (mut connection, times) = (Connection::open(&server.http).await?, times.clone());
        submitters.push(tokio::spawn(async move {
            tokio::time::sleep(gap.mul_f64(number as f64 / SUBMITTERS as f64)).await;
            let mut ticks = tokio::time::interval(gap);
            while Instant::now() < end {
                ticks.tick().await;
                let id = connection.submit(body()).await?;
                times.note(id, 0);
            }
            anyhow::Ok(())
        }));
    }
    for submitter in submitters {
        submitter.await??;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    Ok(())
}

fn body() -> Bytes {
    Bytes::from_static(
        br#"{"topic":"job.bench","context":{"document":"0123456789abcdef0123456789abcdef","pages":[1,2,3]}}"#,
    )
}

/// What the servers themselves count as done.
async fn succeeded(servers: &[Server]) -> Result<u64> {
    let mut succeeded = 0;
    for server in servers {
        let page = Connection::open(&server.http).await?.get("/metrics").await?;
        let page = String::from_utf8_lossy(&page);
        let line =
            page.lines().find(|line| line.contains("jobs_completed_total") && line.contains("SUCCEEDED"));
        succeeded += line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0);
    }
    Ok(succeeded)
}
