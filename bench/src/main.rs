//! Measures what users feel: jobs a second from HTTP to SUCCEEDED, runs of workflows a second, the time until a worker has a job,
//! what policy costs, how soon a page of the console is there, beats a second, how late a death is noticed, and what a large fleet costs. `cargo xtask bench` runs it.
//!
//! The server is the release binary in a process of its own; submitters and workers share this one.
//! Everything is durable (fsync) and on one machine, so the figures include the load's own cost.

mod bare;
mod bare_process;
mod console;
mod crew;
mod engines;
mod expiry;
mod fleet;
mod http;
mod ingest;
mod jobs;
mod latencies;
mod policy;
mod raw;
mod report;
mod runs;
mod server;

use anyhow::{Context, Result};
use report::BenchReport;
use std::path::PathBuf;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const USAGE: &str = "Usage: cargo xtask bench [--only jobs,shared,runs,shared-runs,policy,console,fleet,ingest,expiry] \
     [--server FILE] [--out FOLDER] [--seconds N]";

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let (mut only, mut server, mut out, mut seconds) = (None, None, PathBuf::from("bench-out"), 15u64);
    while let Some(flag) = args.next() {
        match flag.as_str() {
            "bare" => return be_bare(args.next().as_deref()),
            "--help" | "-h" => {
                println!("{USAGE}");
                return Ok(());
            }
            _ => {}
        }
        let value = args.next().with_context(|| format!("{flag} needs a value"))?;
        match flag.as_str() {
            "--only" => only = Some(value),
            "--server" => server = Some(PathBuf::from(value)),
            "--out" => out = PathBuf::from(value),
            "--seconds" => seconds = value.parse().context("--seconds")?,
            _ => anyhow::bail!("{flag} is not known. {USAGE}"),
        }
    }
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only.split(',').any(|one| one == name));
    let mut report = BenchReport::default();
    if wanted("fleet") {
        fleet::measure(&mut report);
    }
    let server = server.unwrap_or_else(|| PathBuf::from("target/release/reveille"));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    if wanted("jobs") {
        runtime.block_on(jobs::measure(&mut report, &server, seconds))?;
    }
    if wanted("shared") {
        runtime.block_on(jobs::measure_shared(&mut report, &server, seconds))?;
    }
    if wanted("runs") {
        runtime.block_on(runs::measure(&mut report, &server, seconds))?;
    }
    if wanted("shared-runs") {
        runtime.block_on(runs::measure_shared(&mut report, &server, seconds))?;
    }
    if wanted("policy") {
        policy::measure(&mut report)?;
    }
    if wanted("console") {
        runtime.block_on(console::measure(&mut report, &server))?;
    }
    if wanted("ingest") {
        runtime.block_on(ingest::measure(&mut report, &server, seconds))?;
    }
    if wanted("expiry") {
        runtime.block_on(expiry::measure(&mut report, &server))?;
    }
    report.write(&out)
}

/// This process is one of the bare servers.
fn be_bare(kind: Option<&str>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match kind {
        Some("http") => runtime.block_on(bare::http()),
        Some("nats") => runtime.block_on(bare::nats()),
        _ => anyhow::bail!("bare: known are http and nats"),
    }
}
