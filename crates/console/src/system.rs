//! What the server is at and stands on: the last hour, servers, locks, timers, engines and what they can lose, circuits.

use crate::Console;
use crate::error_page::ErrorPage;
use crate::page::{HtmlPage, PageFrame};
use crate::session::Session;
use crate::words::{ago, ahead, chip, count, moment, path};
use axum::extract::State;
use axum::http::HeaderMap;
use maud::{Markup, html};
use reveille_api::system;
use reveille_api_types::system::{LockHeld, System, Timers};
use reveille_core::time::Millis;
use reveille_engine::Figures;

/// Seconds between two figures.
const STEP: f64 = 10.0;
/// What took longer is drawn as this.
const LATE_MS_MAX: f64 = 600_000.0;
/// A lock of this name is about the run that comes after it.
const RUN_LOCK: &str = "cordum:wf:run:lock:";

pub async fn show(
    State(console): State<Console>,
    session: Session,
    headers: HeaderMap,
) -> Result<HtmlPage, ErrorPage> {
    let system = system::get(State(console.engine.clone()), session.auth.clone()).await?.0;
    let now = console.engine.now();
    let content = html! {
        h1 { "System" }
        section data-part="hour" { h2 { "The last hour" } (charts(&console.load_history.hour())) }
        section data-part="servers" { h2 { "Servers" } (servers(&system)) }
        section data-part="timers" { h2 { "Timers" } (timers(&system, now)) }
        section data-part="locks" { h2 { "Locks" } (locks(&system, now)) }
        section data-part="engines" { h2 { "What it stands on" } (engines(&console)) }
        section data-part="circuits" { h2 { "Circuits and snapshot" } (circuits(&system, now)) }
        p { a href="/metrics" { "All metrics" } ", " a href="/api/v1/openapi.json" { "the API" } }
    };
    let about = PageFrame { title: "System", place: "/ui/system", live: "", every: 10 };
    Ok(console.page(&session, &headers, about, content).await)
}

fn servers(system: &System) -> Markup {
    html! {
        @if system.servers.is_empty() { p { "One server, alone." } } @else {
            ul { @for name in &system.servers {
                li { code { (name) } @if *name == system.server { " " span.quiet { "this one" } } }
            } }
            @if system.cut_off { p.bad role="alert" { "This server is cut off from its engines and takes no work." } }
        }
        @if !system.recovered { p.note { "It is still reading what it had to do before it started." } }
    }
}

/// What this server waits for.
fn timers(system: &System, now: Millis) -> Markup {
    let row = |name: &str, timers: &Timers| {
        html! {
            dt { (name) }
            dd {
                (timers.owed) " owed"
                @if let Some(next) = &timers.next_at { ", the next " (ahead(moment(next), now)) }
            }
        }
    };
    html! {
        dl.facts {
            (row("jobs", &system.job_timers))
            (row("runs", &system.run_timers))
            dt { "under way" } dd { (count(system.decisions as u64, "decision", "decisions")) " about jobs" }
        }
    }
}

fn locks(system: &System, now: Millis) -> Markup {
    html! {
        @match &system.locks {
            None => p.bad role="alert" { "The store does not say who holds what." },
            Some(locks) if locks.is_empty() => p.note { "Nobody holds one." },
            Some(locks) => {
                div.scroll { table {
                    thead { tr { th { "Its holder" } th { "Held by" } th { "Lapses, if not renewed" } th { "Lock" } } }
                    tbody { @for lock in locks { tr {
                        td { (lock.purpose) }
                        td { @if lock.holder.is_empty() { "this server" } @else { code { (lock.holder) } } }
                        td { (ahead(moment(&lock.until), now)) }
                        td { (name(lock)) }
                    } } }
                } }
                @if system.more_locks { p.note { "There are more; these are the first to lapse." } }
            }
        }
    }
}

fn name(lock: &LockHeld) -> Markup {
    let run = lock.name.strip_prefix(RUN_LOCK);
    html! {
        @match run {
            Some(run) => a href={ "/ui/runs/" (path(run)) } { code { (lock.name) } },
            None => code { (lock.name) },
        }
    }
}

fn engines(console: &Console) -> Markup {
    html! {
        @for (name, findings) in console.engines.iter() {
            h3 { (name) }
            ul { @for finding in findings { li { (chip(match finding.grade() { "risk" => "risky", grade => grade })) " " (finding.words()) } } }
        }
    }
}

fn circuits(system: &System, now: Millis) -> Markup {
    html! {
        dl.facts {
            @for circuit in &system.circuits {
                dt { (circuit.name) }
                dd { (chip(match circuit.state.as_str() { "closed" => "ok", state => state })) }
            }
            dt { "workers' snapshot" }
            dd { @match &system.snapshot_written_at {
                None => "not written by this server yet",
                Some(at) => { "written " (ago(moment(at), now)) }
            } }
            dt { "policy" } dd { code { (system.policy) } }
        }
    }
}

/// Jobs a second, and how long a dispatch took.
pub fn charts(hour: &[Figures]) -> Markup {
    let rate = |part: fn(&Figures) -> u64| -> Vec<f64> {
        hour.windows(2).map(|pair| part(&pair[1]).saturating_sub(part(&pair[0])) as f64 / STEP).collect()
    };
    let late =
        hour.windows(2).map(|pair| pair[1].p99_ms_since(&pair[0]).map_or(0.0, |ms| ms.min(LATE_MS_MAX)));
    html! {
        div.charts {
            (chart("Submitted", "a second", &rate(|figures| figures.received)))
            (chart("Succeeded", "a second", &rate(|figures| figures.succeeded)))
            (chart("Ended otherwise", "a second", &rate(|figures| figures.failed)))
            (chart("Live jobs", "", &hour.iter().map(|figures| figures.live as f64).collect::<Vec<_>>()))
            (chart("Dispatched within (99 of 100)", "ms", &late.collect::<Vec<_>>()))
        }
    }
}

fn chart(title: &str, unit: &str, values: &[f64]) -> Markup {
    let most = values.iter().copied().fold(0.0_f64, f64::max);
    let scale = if most > 0.0 { most } else { 1.0 };
    let last = values.last().copied().unwrap_or(0.0);
    let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
    let points: Vec<String> = values
        .iter()
        .enumerate()
        .map(|(n, value)| format!("{},{:.1}", 360 - values.len() + n, 58.0 - value / scale * 54.0))
        .collect();
    html! {
        figure {
            figcaption { (title) " " b { (number(last)) } span.quiet { (unit) ", at most " (number(most)) } }
            svg.chart viewBox="0 0 360 60" preserveAspectRatio="none" role="img" aria-label={ (title) ": now " (number(last)) (unit) ", at most " (number(most)) } {
                @if values.len() > 1 { polyline points=(points.join(" ")) {} }
            }
        }
    }
}

fn number(value: f64) -> String {
    if value >= 100.0 || value.fract().abs() < 0.05 { format!("{value:.0}") } else { format!("{value:.1}") }
}
