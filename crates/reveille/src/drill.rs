//! `reveille drill warm-start`: what a restart costs, with and without the worker snapshot.
//!
//! A throw-away server and a simulated fleet: the server is killed with -9 and started again, cold and
//! then warm, while jobs keep coming. A few workers die with it, so that it shows how long the dead pass
//! for alive. Everything happens on this machine, in a folder that is removed afterwards.

mod fleet;
mod measure;
mod server;

use crate::args::{DrillCommand, WarmStartArgs};
use crate::output;
use crate::progress::ProgressLine;
use anyhow::{Context, Result, ensure};
use fleet::DrillFleet;
use measure::Restart;
use serde_json::json;
use server::{DrillServer, StartKind};
use std::process::ExitCode;
use std::time::Duration;

pub const WORKERS_MAX: usize = 20_000;

pub fn run(command: &DrillCommand) -> Result<ExitCode> {
    let DrillCommand::WarmStart(args) = command;
    ensure!((4..=WORKERS_MAX).contains(&args.workers), "--workers must be between 4 and {WORKERS_MAX}");
    ensure!((5..=600).contains(&args.seconds), "--seconds must be between 5 and 600");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let findings = runtime.block_on(drill(args))?;
    findings.print(args.json);
    Ok(ExitCode::SUCCESS)
}

/// What both restarts showed.
struct Findings {
    workers: usize,
    pools: usize,
    seconds: u64,
    cold: Restart,
    warm: Restart,
    snapshot: measure::SnapshotCost,
}

async fn drill(args: &WarmStartArgs) -> Result<Findings> {
    // Four workers a pool: a job that finds none of them waits, whatever the rest of the fleet does.
    let pools = args.workers.div_ceil(4);
    let steps = 4 + 2 * (args.seconds + 2);
    let bar = ProgressLine::of(steps);
    let mut server = DrillServer::prepare(pools)?;

    bar.say("starting a throw-away server");
    server.start(StartKind::Warm).await?;
    bar.step(1);
    bar.say(format!("connecting {} simulated workers", args.workers));
    let fleet =
        DrillFleet::start(server.nats_address(), args.workers, pools, Duration::from_secs(args.beat_seconds));
    server.wait_for_workers(args.workers).await.context("the fleet did not become known")?;
    bar.step(2);
    bar.say("waiting for a snapshot of all of them");
    let snapshot = server.wait_for_snapshot().await?;
    bar.step(1);

    let cold = restart(&mut server, &fleet, StartKind::Cold, args, &bar).await?;
    bar.say("letting the fleet settle");
    fleet.revive();
    server.wait_for_workers(args.workers).await?;
    server.wait_for_snapshot().await?;
    let warm = restart(&mut server, &fleet, StartKind::Warm, args, &bar).await?;
    Ok(Findings { workers: args.workers, pools, seconds: args.seconds, cold, warm, snapshot })
}

async fn restart(
    server: &mut DrillServer,
    fleet: &DrillFleet,
    start: StartKind,
    args: &WarmStartArgs,
    bar: &ProgressLine,
) -> Result<Restart> {
    let name = if start == StartKind::Warm { "warm" } else { "cold" };
    bar.say(format!("{name}: killed with -9, starting again"));
    fleet.reset();
    server.kill()?;
    // One in twenty dies with the server.
    let dead = fleet.bury(args.workers.div_ceil(20));
    server.start(start).await?;
    bar.step(2);
    bar.say(format!("{name}: jobs for {} s", args.seconds));
    measure::watch(server, fleet, &dead, Duration::from_secs(args.seconds), || bar.step(1)).await
}

impl Findings {
    fn print(&self, as_json: bool) {
        if as_json {
            output::json(&json!({
                "workers": self.workers,
                "pools": self.pools,
                "seconds": self.seconds,
                "cold": self.cold,
                "warm": self.warm,
                "snapshot": self.snapshot,
            }));
            return;
        }
        let (cold, warm) = (&self.cold, &self.warm);
        let row = |what: &str, cold: String, warm: String| vec![what.to_owned(), cold, warm];
        let ms = |ms: Option<f64>| ms.map_or_else(|| "never".to_owned(), |ms| format!("{ms:.0} ms"));
        let seconds = |s: Option<f64>| s.map_or_else(|| "-".to_owned(), |s| format!("{s:.1} s"));
        let rows = [
            row(
                "workers known at the first answer",
                cold.known_at_first.to_string(),
                warm.known_at_first.to_string(),
            ),
            row("jobs submitted", cold.jobs.to_string(), warm.jobs.to_string()),
            row("dispatch errors (no_workers)", cold.no_workers.to_string(), warm.no_workers.to_string()),
            row(
                "jobs that waited for a worker to come back",
                cold.waited.to_string(),
                warm.waited.to_string(),
            ),
            row("time to first dispatch", ms(cold.first_dispatch_ms), ms(warm.first_dispatch_ms)),
            row("dispatch, p50", ms(cold.dispatch_p50_ms), ms(warm.dispatch_p50_ms)),
            row("dispatch, p99", ms(cold.dispatch_p99_ms), ms(warm.dispatch_p99_ms)),
            row("dispatch, worst", ms(cold.dispatch_worst_ms), ms(warm.dispatch_worst_ms)),
            row("dead workers that passed for alive", cold.stale.to_string(), warm.stale.to_string()),
            row("stale-worker lifetime", seconds(cold.stale_seconds), seconds(warm.stale_seconds)),
        ];
        output::line(&format!(
            "{} workers in {} pools; jobs for {} s after each restart\n",
            self.workers, self.pools, self.seconds
        ));
        output::table(&["", "COLD", "WARM"], &rows);
        let snapshot = &self.snapshot;
        output::line(&format!(
            "\nsnapshot: {} bytes, written in {:.1} ms every {:.1} s",
            snapshot.bytes, snapshot.write_ms, snapshot.interval_seconds
        ));
    }
}
