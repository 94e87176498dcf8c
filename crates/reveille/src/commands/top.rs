//! `reveille top`: the fleet, the queues and the waits, live in the terminal.
//!
//! No keys and no modes: it draws a screen every second, and Ctrl-C ends it. Where there is no terminal it prints one
//! screen, so that a script or a mail can have it too.

use crate::args::TopArgs;
use crate::client::connect;
use crate::output;
use anyhow::Result;
use reveille_api_types::overview::{Overview, Throughput};
use reveille_api_types::worker::PoolList;
use reveille_client::Client;
use serde_json::json;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

const WIDTH: usize = 80;
const HEIGHT: usize = 24;
/// Home, and everything below it away. Nothing flickers, because what stays is written over by itself.
const HOME: &str = "\x1b[H";
const REST_OF_LINE: &str = "\x1b[K";
const REST_OF_SCREEN: &str = "\x1b[J";
/// Characters of a bar.
const BAR: usize = 20;

/// One look at the server.
struct Look {
    overview: Overview,
    pools: PoolList,
    at: Instant,
}

impl Look {
    fn take(client: &Client) -> Result<Self> {
        Ok(Self {
            overview: client.get("/api/v1/overview", &[])?,
            pools: client.get("/api/v1/pools", &[])?,
            at: Instant::now(),
        })
    }
}

pub fn run(command: &TopArgs) -> Result<ExitCode> {
    let client = connect(&command.server)?;
    let mut before = Look::take(&client)?;
    if command.server.json {
        output::json(&json!({ "overview": before.overview, "pools": before.pools.items }));
        return Ok(ExitCode::SUCCESS);
    }
    if command.once || !std::io::stdout().is_terminal() {
        output::line(screen(&before, None, &command.server.url, (WIDTH, usize::MAX)).trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    let mut shown = screen(&before, None, &command.server.url, size());
    loop {
        draw(&shown)?;
        pause(Duration::from_secs(command.every));
        shown = match Look::take(&client) {
            Ok(now) => {
                let shown = screen(&now, Some(&before), &command.server.url, size());
                before = now;
                shown
            }
            // What was seen last stays, with a word about why it is not newer.
            Err(error) => format!("{error:#}\n\n{}", screen(&before, None, &command.server.url, size())),
        };
    }
}

#[expect(clippy::disallowed_methods, reason = "nothing else runs in this command")]
fn pause(time: Duration) {
    thread::sleep(time);
}

fn size() -> (usize, usize) {
    rustix::termios::tcgetwinsize(std::io::stdout())
        .map_or((WIDTH, HEIGHT), |size| (usize::from(size.ws_col).max(20), usize::from(size.ws_row).max(5)))
}

fn draw(screen: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let lines: String = screen.lines().fold(String::new(), |mut text, line| {
        let _ = write!(text, "{line}{REST_OF_LINE}\r\n");
        text
    });
    write!(out, "{HOME}{lines}{REST_OF_SCREEN}")?;
    out.flush()?;
    Ok(())
}

/// What is seen, cut to the terminal.
fn screen(now: &Look, before: Option<&Look>, url: &str, (width, height): (usize, usize)) -> String {
    let overview = &now.overview;
    let mut text = String::new();
    let fleet = &overview.fleet;
    let _ = writeln!(text, "reveille top  {url}  {}", overview.at);
    let _ = writeln!(
        text,
        "fleet   {} alive, {} busy, {} degraded, {} offline",
        fleet.online, fleet.busy, fleet.degraded, fleet.offline
    );
    let _ = writeln!(
        text,
        "people  {} approvals, {} held results, {} dead letters",
        overview.approvals, overview.quarantined, overview.dead_letters
    );
    let _ = writeln!(text, "jobs    {}", throughput(now, before));
    let _ = writeln!(text, "\n{:<24} {:>8} {:>11}  LOAD", "POOL", "WORKERS", "JOBS");
    for pool in &now.pools.items {
        let _ = writeln!(
            text,
            "{:<24} {:>8} {:>11}  {}{}",
            if pool.name.is_empty() { "(no pool)" } else { &pool.name },
            pool.workers,
            format!("{}/{}", pool.active_jobs, pool.capacity),
            bar(pool.active_jobs, pool.capacity),
            if pool.status == "draining" { " draining" } else { "" }
        );
    }
    let _ = writeln!(text, "\nNOT RUNNING, AND WHY");
    if overview.waits.is_empty() {
        let _ = writeln!(text, "nothing waits");
    }
    for wait in &overview.waits {
        let more = if wait.more { "+" } else { "" };
        let _ = writeln!(text, "{:>4}{more} {}", wait.jobs, wait.code);
        if let Some(job) = wait.examples.first() {
            let _ = writeln!(text, "      {}", job.explanation);
            let _ = writeln!(text, "      {}", job.unblock.as_deref().unwrap_or_default());
        }
    }
    let cut = |line: &str| line.chars().take(width).collect::<String>();
    text.lines().take(height.saturating_sub(1)).map(cut).collect::<Vec<_>>().join("\n") + "\n"
}

/// Jobs a second since the look before; totals without one.
fn throughput(now: &Look, before: Option<&Look>) -> String {
    let Some(figures) = &now.overview.throughput else { return "figures are for operators".to_owned() };
    let told = |count: fn(&Throughput) -> u64, words: &str| {
        let total = count(figures);
        let Some(before) = before else { return format!("{total} {words} since the server started") };
        let seconds = now.at.duration_since(before.at).as_secs_f64().max(0.001);
        // A server that was started anew counts from zero.
        let since = total.saturating_sub(before.overview.throughput.as_ref().map_or(0, count));
        format!("{:.1}/s {words}", since as f64 / seconds)
    };
    let submitted = told(|figures| figures.received, "submitted");
    let succeeded = told(|figures| figures.succeeded, "succeeded");
    let failed = told(|figures| figures.failed, "ended otherwise");
    format!("{} live, {submitted}, {succeeded}, {failed}", figures.live)
}

fn bar(part: u32, whole: u32) -> String {
    let filled = (part as usize * BAR).checked_div(whole as usize).unwrap_or(0).min(BAR);
    format!("[{}{}]", "#".repeat(filled), "-".repeat(BAR - filled))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(received: u64) -> Look {
        let wait = json!({"code": "no_workers", "jobs": 3, "more": false, "examples": [
            {"job_id": "j", "topic": "job.x", "tenant": "acme", "since": "",
             "explanation": "No live worker fits topic job.x.", "unblock": "Start a worker that serves job.x."}]});
        Look {
            overview: output::read(&json!({
                "at": "2026-11-15T12:00:00Z",
                "fleet": {"total": 5, "online": 3, "busy": 1, "degraded": 0, "offline": 2},
                "approvals": 1, "quarantined": 0, "dead_letters": 4, "waits": [wait],
                "throughput": {"received": received, "succeeded": 7, "failed": 0, "live": 5},
            }))
            .unwrap(),
            pools: output::read(&json!({"items": [{"name": "gpu", "workers": 2, "active_jobs": 3, "capacity": 4, "utilization": 0.75, "status": "draining"},
                                    {"name": "", "workers": 0, "active_jobs": 0, "capacity": 0, "utilization": 0.0, "status": "active"}]}))
            .unwrap(),
            at: Instant::now(),
        }
    }

    #[test]
    fn a_screen_says_how_things_are() {
        let text = screen(&look(10), None, "http://x", (80, 40));
        assert_eq!(
            text,
            "reveille top  http://x  2026-11-15T12:00:00Z\n\
             fleet   3 alive, 1 busy, 0 degraded, 2 offline\n\
             people  1 approvals, 0 held results, 4 dead letters\n\
             jobs    5 live, 10 submitted since the server started, 7 succeeded since the ser\n\
             \n\
             POOL                      WORKERS        JOBS  LOAD\n\
             gpu                             2         3/4  [###############-----] draining\n\
             (no pool)                       0         0/0  [--------------------]\n\
             \n\
             NOT RUNNING, AND WHY\n\
             \x20  3 no_workers\n\
             \x20     No live worker fits topic job.x.\n\
             \x20     Start a worker that serves job.x.\n"
        );
        assert_eq!(screen(&look(10), None, "http://x", (80, 5)).lines().count(), 4);
    }

    #[test]
    fn figures_are_those_of_the_time_between_two_looks() {
        let (before, mut now) = (look(10), look(30));
        now.at = before.at + Duration::from_secs(2);
        assert_eq!(
            throughput(&now, Some(&before)),
            "5 live, 10.0/s submitted, 0.0/s succeeded, 0.0/s ended otherwise"
        );
        now.overview.throughput.as_mut().unwrap().received = 0;
        assert!(throughput(&now, Some(&before)).contains(" 0.0/s submitted"), "it was started anew");
    }
}
