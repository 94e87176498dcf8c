//! What the server stands on: servers, engines and what they can lose, circuits, and the last hour.

use crate::Console;
use crate::page::{About, Page};
use crate::session::Session;
use crate::trouble::Trouble;
use crate::words::{chip, span};
use axum::extract::State;
use axum::http::HeaderMap;
use maud::{Markup, html};
use reveille_api::figures::Figures;
use reveille_engine::Circuit;
use reveille_roster::Scope;

/// Seconds between two figures.
const STEP: f64 = 10.0;

pub async fn show(
    State(console): State<Console>,
    session: Session,
    headers: HeaderMap,
) -> Result<Page, Trouble> {
    session.auth.needs(Scope::Admin)?;
    let hour = console.pulse.hour();
    let content = html! {
        h1 { "System" }
        section data-part="hour" { h2 { "The last hour" } (charts(&hour)) }
        section data-part="servers" { h2 { "Servers" } (servers(&console)) }
        section data-part="engines" { h2 { "What it stands on" } (engines(&console)) }
        section data-part="circuits" { h2 { "Circuits and snapshot" } (circuits(&console, hour.last())) }
        p { a href="/metrics" { "All metrics" } ", " a href="/api/v1/openapi.json" { "the API" } }
    };
    let about = About { title: "System", place: "/ui/system", live: "", every: 10 };
    Ok(console.page(&session, &headers, about, content).await)
}

fn servers(console: &Console) -> Markup {
    let names = console.engine.replicas();
    html! {
        @if names.is_empty() { p { "One server, alone." } } @else {
            ul { @for name in &names { li { code { (name) } } } }
            @if console.engine.is_cut_off() { p.bad role="alert" { "This server is cut off from its engines and takes no work." } }
        }
        @if !console.engine.is_recovered() { p.note { "It is still reading what it had to do before it started." } }
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

fn circuits(console: &Console, last: Option<&Figures>) -> Markup {
    let age = last.map_or(-1.0, |figures| figures.snapshot_age);
    html! {
        dl.facts {
            @for circuit in Circuit::ALL {
                dt { (circuit.name()) }
                dd { (chip(match console.engine.circuit(circuit).name() { "closed" => "ok", name => name })) }
            }
            dt { "workers' snapshot" }
            dd { @if age < 0.0 { "not written by this server yet" } @else { "written " (span((age * 1000.0) as i64)) " ago" } }
            dt { "policy" } dd { code { (console.engine.rules().policy.snapshot()) } }
            dt { "jobs with a timer here" } dd { (last.map_or(0.0, |figures| figures.live)) }
        }
    }
}

/// Jobs a second, and how long a dispatch took.
pub fn charts(hour: &[Figures]) -> Markup {
    let rate = |part: fn(&Figures) -> f64| -> Vec<f64> {
        hour.windows(2).map(|pair| ((part(&pair[1]) - part(&pair[0])) / STEP).max(0.0)).collect()
    };
    let late: Vec<f64> = hour
        .windows(2)
        .map(|pair| pair[1].p99_since(&pair[0]).map_or(0.0, |ms| ms.min(600_000) as f64))
        .collect();
    html! {
        div.charts {
            (chart("Submitted", "a second", &rate(|figures| figures.received)))
            (chart("Succeeded", "a second", &rate(|figures| figures.succeeded)))
            (chart("Ended otherwise", "a second", &rate(|figures| figures.failed)))
            (chart("Live jobs", "", &hour.iter().map(|figures| figures.live).collect::<Vec<_>>()))
            (chart("Dispatched within (99 of 100)", "ms", &late))
        }
    }
}

fn chart(title: &str, unit: &str, values: &[f64]) -> Markup {
    let most = values.iter().copied().fold(0.0_f64, f64::max);
    let scale = if most > 0.0 { most } else { 1.0 };
    let last = values.last().copied().unwrap_or(0.0);
    let points: Vec<String> = values
        .iter()
        .enumerate()
        .map(|(n, value)| format!("{},{:.1}", 360 - values.len() + n, 58.0 - value / scale * 54.0))
        .collect();
    html! {
        figure {
            figcaption { (title) " " b { (number(last)) } " " span.quiet { (unit) ", at most " (number(most)) } }
            svg.chart viewBox="0 0 360 60" preserveAspectRatio="none" role="img" aria-label={ (title) ": now " (number(last)) " " (unit) ", at most " (number(most)) } {
                @if values.len() > 1 { polyline points=(points.join(" ")) {} }
            }
        }
    }
}

fn number(value: f64) -> String {
    if value >= 100.0 || value.fract().abs() < 0.05 { format!("{value:.0}") } else { format!("{value:.1}") }
}
