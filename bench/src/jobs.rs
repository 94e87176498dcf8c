//! Jobs from HTTP to SUCCEEDED: how many a second, and how soon a worker has one.

use crate::crew::{Crew, WORKERS};
use crate::engines::Engines;
use crate::http::Connection;
use crate::latencies::Latencies;
use crate::report::BenchReport;
use crate::server::{BenchServer, cpu_seconds_of};
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
/// Jobs a second at which servers are compared, each as far as it gets.
const PACES: [u64; 2] = [1_000, 2_500];

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
    servers: Vec<BenchServer>,
    /// What else the figures are said of.
    on: &'static str,
    target: &'static str,
    paces: &'static [u64],
}

pub async fn measure(report: &mut BenchReport, binary: &Path, seconds: u64) -> Result<()> {
    let servers = vec![BenchServer::start(binary).await?];
    let stand = Stand { servers, on: "", target: "≥ 5,000", paces: &PACES };
    measure_at(report, stand, None, seconds).await
}

/// The same through one and two servers on Redis, NATS and PostgreSQL, which run on the same two cores.
pub async fn measure_shared(report: &mut BenchReport, binary: &Path, seconds: u64) -> Result<()> {
    let stands =
        [(1, " on NATS + Redis, 1 server", &PACES[..]), (2, " on NATS + Redis, 2 servers", &PACES[..1])];
    for (count, on, paces) in stands {
        let mut engines = Engines::start();
        let servers = BenchServer::start_shared(binary, count, &engines).await?;
        let stand = Stand { servers, on, target: "≥ 3,000", paces };
        measure_at(report, stand, Some(&mut engines), seconds).await?;
    }
    Ok(())
}

async fn measure_at(
    report: &mut BenchReport,
    stand: Stand,
    mut engines: Option<&mut Engines>,
    seconds: u64,
) -> Result<()> {
    let Stand { servers, on, target, paces } = stand;
    let times = Arc::new(Times::default());
    let seen = {
        let times = times.clone();
        move |job: &Job| {
            times.note(job.id().to_owned(), 1);
            times.handled.fetch_add(1, Ordering::Relaxed);
        }
    };
    let crew = Crew::start(&servers[0].connect, seen);
    let lasting = Duration::from_secs(seconds);

    flood(&servers, &times, Duration::from_secs(3)).await.context("warming up")?;
    let (before, began) = (Spent::until_now(&servers, engines.as_deref_mut()), Instant::now());
    let jobs = flood(&servers, &times, lasting).await?;
    report.add(
        format!("HTTP submit to SUCCEEDED{on}, {SUBMITTERS} submitters, {WORKERS} workers"),
        jobs as f64 / began.elapsed().as_secs_f64(),
        "jobs/s",
        target,
    );
    Spent::until_now(&servers, engines.as_deref_mut()).since(&before).report(report, jobs, on);

    for per_second in paces {
        times.clear();
        let before = Spent::until_now(&servers, engines.as_deref_mut());
        let jobs = pace(&servers, &times, *per_second, lasting).await?;
        let spent = Spent::until_now(&servers, engines.as_deref_mut()).since(&before);
        let latencies = times.latencies();
        let pace = format!(" at {per_second} jobs/s");
        let at = format!("{on}{pace}");
        report.add(format!("acknowledged to worker{at}, p50"), latencies.at(50), "ms", "");
        let target = if on.is_empty() { "< 10" } else { "" };
        report.add(format!("acknowledged to worker{at}, p99"), latencies.at(99), "ms", target);
        let all = spent.report(report, jobs, &at);
        if let (Some(alone), false) = (report.value(&server_cpu(&pace)), on.is_empty()) {
            report.add(format!("  times that of one server with its file{at}"), all / alone, "", "≤ 2");
        }
    }
    let memory = servers.iter().map(BenchServer::memory_mib).sum();
    report.add(format!("  server memory afterwards{on}"), memory, "MiB", "");

    crew.stop().await?;
    for server in servers {
        server.stop().await?;
    }
    Ok(())
}

/// CPU seconds.
struct Spent {
    servers: f64,
    /// Redis and NATS, where there are any.
    engines: Option<(f64, f64)>,
    /// Submitters and workers.
    load: f64,
}

impl Spent {
    fn until_now(servers: &[BenchServer], engines: Option<&mut Engines>) -> Self {
        Self {
            servers: servers.iter().map(BenchServer::cpu_seconds).sum(),
            engines: engines.map(Engines::cpu_seconds),
            load: cpu_seconds_of(std::process::id()),
        }
    }

    fn since(self, before: &Self) -> Self {
        let engines = self.engines.zip(before.engines);
        Self {
            servers: self.servers - before.servers,
            engines: engines.map(|((redis, nats), before)| (redis - before.0, nats - before.1)),
            load: self.load - before.load,
        }
    }

    /// Says what one job cost; returns that of all but the load.
    fn report(self, report: &mut BenchReport, jobs: u64, when: &str) -> f64 {
        let each = |seconds: f64| seconds * 1e6 / jobs as f64;
        report.add(server_cpu(when), each(self.servers), "µs", "");
        let mut all = self.servers;
        if let Some((redis, nats)) = self.engines {
            all += redis + nats;
            report.add(format!("  CPU of Redis for a job{when}"), each(redis), "µs", "");
            report.add(format!("  CPU of NATS for a job{when}"), each(nats), "µs", "");
            report.add(format!("  CPU of all three for a job{when}"), each(all), "µs", "");
        }
        report.add(format!("  CPU of submitters and workers for a job{when}"), each(self.load), "µs", "");
        each(all)
    }
}

fn server_cpu(when: &str) -> String {
    format!("  server CPU for a job{when}")
}

/// As fast as they can: returns how many jobs succeeded.
async fn flood(servers: &[BenchServer], times: &Arc<Times>, lasting: Duration) -> Result<u64> {
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

/// At an even pace, noting when each job was acknowledged: returns how many there were.
async fn pace(
    servers: &[BenchServer],
    times: &Arc<Times>,
    per_second: u64,
    lasting: Duration,
) -> Result<u64> {
    let end = Instant::now() + lasting;
    let gap = Duration::from_secs_f64(SUBMITTERS as f64 / per_second as f64);
    let mut submitters = Vec::new();
    for number in 0..SUBMITTERS {
        let server = &servers[number % servers.len()];
        let (mut connection, times) = (Connection::open(&server.http).await?, times.clone());
        submitters.push(tokio::spawn(async move {
            tokio::time::sleep(gap.mul_f64(number as f64 / SUBMITTERS as f64)).await;
            let mut ticks = tokio::time::interval(gap);
            let mut jobs = 0;
            while Instant::now() < end {
                ticks.tick().await;
                let id = connection.submit(body()).await?;
                times.note(id, 0);
                jobs += 1;
            }
            anyhow::Ok(jobs)
        }));
    }
    let mut jobs = 0;
    for submitter in submitters {
        jobs += submitter.await??;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    Ok(jobs)
}

fn body() -> Bytes {
    Bytes::from_static(
        br#"{"topic":"job.bench","context":{"document":"0123456789abcdef0123456789abcdef","pages":[1,2,3]}}"#,
    )
}

/// What the servers themselves count as done.
async fn succeeded(servers: &[BenchServer]) -> Result<u64> {
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
