//! Runs of a workflow from HTTP to succeeded: ten steps, one after the other, each a job at a worker.

use crate::crew::{Crew, WORKERS};
use crate::engines::Engines;
use crate::http::Connection;
use crate::latencies::Latencies;
use crate::report::BenchReport;
use crate::server::BenchServer;
use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

const STEPS: usize = 10;
/// Each has one run under way, and starts the next when it is over.
const CALLERS: usize = 128;

pub async fn measure(report: &mut BenchReport, binary: &Path, seconds: u64) -> Result<()> {
    let servers = vec![BenchServer::start(binary).await?];
    measure_at(report, servers, "", "≥ 150", seconds).await
}

pub async fn measure_shared(report: &mut BenchReport, binary: &Path, seconds: u64) -> Result<()> {
    for (count, on) in [(1, " on NATS + Redis, 1 server"), (2, " on NATS + Redis, 2 servers")] {
        let engines = Engines::start();
        let servers = BenchServer::start_shared(binary, count, &engines).await?;
        measure_at(report, servers, on, "", seconds).await?;
    }
    Ok(())
}

async fn measure_at(
    report: &mut BenchReport,
    servers: Vec<BenchServer>,
    on: &str,
    target: &'static str,
    seconds: u64,
) -> Result<()> {
    let crew = Crew::start(&servers[0].connect, |_| {});
    Connection::open(&servers[0].http).await?.post("/api/v1/workflows", workflow()).await?;

    flood(&servers, Duration::from_secs(3)).await.context("warming up")?;
    let cpu = || servers.iter().map(BenchServer::cpu_seconds).sum::<f64>();
    let written = || servers.iter().map(BenchServer::written_bytes).sum::<u64>();
    let (cpu_before, written_before, began) = (cpu(), written(), Instant::now());
    let latencies = Latencies::of(flood(&servers, Duration::from_secs(seconds)).await?);
    let took = began.elapsed().as_secs_f64();
    let runs = latencies.count() as f64;
    let what = format!("runs of {STEPS} steps{on}, {CALLERS} callers, {WORKERS} workers");
    report.add(what, runs / took, "runs/s", target);
    report.add(format!("  server CPU for a run{on}"), (cpu() - cpu_before) * 1e3 / runs, "ms", "");
    if on.is_empty() {
        let kib = (written() - written_before) as f64 / 1024.0;
        report.add("  written to the disk for a run", kib / runs, "KiB", "");
    }
    report.add(format!("  a run from start to end{on}, p50"), latencies.at(50), "ms", "");
    report.add(format!("  a run from start to end{on}, p99"), latencies.at(99), "ms", "");
    let memory: f64 = servers.iter().map(BenchServer::memory_mib).sum();
    report.add(format!("  server memory afterwards{on}"), memory, "MiB", "");

    crew.stop().await?;
    for server in servers {
        server.stop().await?;
    }
    Ok(())
}

/// Each step gets what the one before gave, and one more.
fn workflow() -> Bytes {
    let mut steps = json!({});
    for n in 0..STEPS {
        let (after, given) = match n.checked_sub(1) {
            None => (json!([]), "${input.n}".to_owned()),
            Some(before) => (json!([format!("s{before}")]), format!("${{steps.s{before}.output.n + 1}}")),
        };
        steps[format!("s{n}")] = json!({"topic": "job.bench", "depends_on": after, "input": {"n": given}});
    }
    let output = format!("${{steps.s{}.output.n}}", STEPS - 1);
    Bytes::from(json!({"id": "bench", "name": "bench", "steps": steps, "output": output}).to_string())
}

/// As fast as they end: how long each run took, in milliseconds.
async fn flood(servers: &[BenchServer], lasting: Duration) -> Result<Vec<f64>> {
    let end = Instant::now() + lasting;
    let mut callers = Vec::new();
    for server in servers.iter().cycle().take(CALLERS) {
        let mut connection = Connection::open(&server.http).await?;
        callers.push(tokio::spawn(async move {
            let mut took = Vec::new();
            while Instant::now() < end {
                let began = Instant::now();
                run(&mut connection).await?;
                took.push(began.elapsed().as_secs_f64() * 1e3);
            }
            anyhow::Ok(took)
        }));
    }
    let mut all = Vec::new();
    for caller in callers {
        all.extend(caller.await??);
    }
    Ok(all)
}

async fn run(connection: &mut Connection) -> Result<()> {
    let body = Bytes::from_static(br#"{"input": {"n": 7}}"#);
    let started: Value =
        serde_json::from_slice(&connection.post("/api/v1/workflows/bench/runs", body).await?)?;
    let id = started["run_id"].as_str().context("the answer has no run_id")?;
    let run = connection.get(&format!("/api/v1/workflow-runs/{id}?wait=60s")).await?;
    let run: Value = serde_json::from_slice(&run)?;
    ensure!(run["status"] == "succeeded", "run {id} is {}: {}", run["status"], run["error"]);
    ensure!(run["output"] == 7 + STEPS - 1, "run {id} gave {}", run["output"]);
    Ok(())
}
