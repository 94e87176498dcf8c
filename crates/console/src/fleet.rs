//! The fleet: every worker a tile, in the colour of how it is, grouped by pool or tenant.

use crate::Console;
use crate::drain;
use crate::error_page::ErrorPage;
use crate::page::{HtmlPage, PageFrame};
use crate::session::Session;
use crate::words::{ago, count, moment, path};
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use maud::{Markup, html};
use reveille_api::convert;
use reveille_api::{pools, workers};
use reveille_api_types::event::Counts;
use reveille_api_types::worker::{PageQuery, Worker};
use reveille_core::time::Millis;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Tiles of one page.
const TILES_MAX: usize = 5_000;
/// Pages of the API that are gone through to find them.
const READS_MAX: usize = 40;
/// How a member can be, in the order of the legend.
const STATUSES: [&str; 6] = ["online", "busy", "degraded", "restored", "drained", "offline"];

#[derive(Deserialize)]
pub struct FleetPageQuery {
    /// `pool` or `tenant`.
    #[serde(default)]
    by: String,
    /// Part of a name, a topic, a capability or a label.
    #[serde(default)]
    q: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    contract: String,
}

pub async fn show(
    State(console): State<Console>,
    session: Session,
    headers: HeaderMap,
    Query(wanted): Query<FleetPageQuery>,
) -> Result<HtmlPage, ErrorPage> {
    let (tiles, is_all) = find(&console, &session, &wanted).await?;
    let pools = pools::list(State(console.engine.clone()), session.auth.clone()).await?.0.items;
    let total = convert::counts(console.engine.fleet().census().of(&session.auth.audience()));
    let now = console.engine.now();
    let mut groups: BTreeMap<&str, Vec<&Worker>> = BTreeMap::new();
    for worker in &tiles {
        let group = if wanted.by == "tenant" { &worker.tenant } else { &worker.pool };
        groups.entry(group).or_default().push(worker);
    }
    let content = html! {
        h1 { "Fleet" }
        div data-part="census" { (census(&total)) }
        (filter(&wanted))
        @if tiles.is_empty() { (nobody(&total, &wanted)) }
        @if !is_all { p.note { "The first " (TILES_MAX) " are shown. Search to see others." } }
        @for (name, members) in &groups {
            section.group {
                h2 {
                    @if name.is_empty() { "no " @if wanted.by == "tenant" { "tenant" } @else { "pool" } } @else { (name) }
                    " " span.quiet { (count(members.len() as u64, "worker", "workers")) }
                    @if let Some(pool) = pools.iter().find(|pool| wanted.by != "tenant" && pool.name == **name) {
                        (drain::of_pool(&session, pool))
                    }
                }
                div.tiles { @for worker in members { (tile(worker, now)) } }
            }
        }
    };
    let about = PageFrame { title: "Fleet", place: "/ui/fleet", live: "worker", every: 5 };
    Ok(console.page(&session, &headers, about, content).await)
}

/// Members that are wanted, and whether these are all of them.
async fn find(
    console: &Console,
    session: &Session,
    wanted: &FleetPageQuery,
) -> Result<(Vec<Worker>, bool), ErrorPage> {
    let needle = wanted.q.to_lowercase();
    let fits = |worker: &Worker| {
        let has = |text: &str| text.to_lowercase().contains(&needle);
        let labels = || worker.labels.iter().any(|(key, value)| has(key) || has(value));
        let lists = || worker.topics.iter().chain(&worker.capabilities).any(|word| has(word));
        (wanted.status.is_empty() || wanted.status == worker.status)
            && (needle.is_empty()
                || has(&worker.worker_id)
                || has(&worker.agent_name)
                || has(&worker.pool)
                || lists()
                || labels())
    };
    let contract = (!wanted.contract.is_empty()).then(|| wanted.contract.clone());
    let (mut found, mut cursor) = (Vec::new(), None);
    for _ in 0..READS_MAX {
        let query = PageQuery { limit: None, cursor: cursor.take(), contract: contract.clone() };
        let page = workers::list(State(console.engine.clone()), session.auth.clone(), Query(query)).await?.0;
        found.extend(page.items.into_iter().filter(fits));
        let is_over = page.next_cursor.is_none();
        if is_over || found.len() > TILES_MAX {
            let is_all = is_over && found.len() <= TILES_MAX;
            found.truncate(TILES_MAX);
            return Ok((found, is_all));
        }
        cursor = page.next_cursor;
    }
    Ok((found, false))
}

/// How many there are, and how they are.
pub fn census(fleet: &Counts) -> Markup {
    html! {
        dl.figures {
            div { dt { "alive" } dd { (fleet.online) } }
            div.busy { dt { "busy" } dd { (fleet.busy) } }
            div.warn { dt { "degraded" } dd { (fleet.degraded) } }
            div.off { dt { "offline" } dd { (fleet.offline) } }
        }
    }
}

fn filter(wanted: &FleetPageQuery) -> Markup {
    let option =
        |value: &str, words: &str, is: &str| html! { option value=(value) selected[value == is] { (words) } };
    html! {
        form.filter method="get" action="/ui/fleet" role="search" {
            label { "Search " input type="search" name="q" value=(wanted.q) placeholder="name, topic, label"; }
            label { "Status " select name="status" data-sends {
                (option("", "any", &wanted.status))
                @for status in STATUSES { (option(status, status, &wanted.status)) }
            } }
            label { "Contract " select name="contract" data-sends {
                (option("", "any", &wanted.contract))
                @for contract in ["cap", "voicegateway", "molecule"] { (option(contract, contract, &wanted.contract)) }
            } }
            label { "Group by " select name="by" data-sends {
                (option("", "pool", &wanted.by))
                (option("tenant", "tenant", &wanted.by))
            } }
            button type="submit" { "Show" }
        }
    }
}

fn nobody(total: &Counts, wanted: &FleetPageQuery) -> Markup {
    let is_filtered = !(wanted.q.is_empty() && wanted.status.is_empty() && wanted.contract.is_empty());
    html! {
        p.note {
            @if total.total > 0 && is_filtered { "No worker is like that. " a href="/ui/fleet" { "Show all." } }
            @else {
                "No worker has been heard yet. Start one, for example with "
                code { "reveille serve --demo" } ", or point a CAP agent at the NATS door."
            }
        }
    }
}

/// One worker. Its id is that of its place on the page, so that a new drawing finds the old one.
fn tile(worker: &Worker, now: Millis) -> Markup {
    let name = if worker.agent_name.is_empty() { &worker.worker_id } else { &worker.agent_name };
    let (active, most) = (worker.active_jobs, worker.max_parallel_jobs);
    let part = format!("{}/{}/{}", worker.contract, worker.tenant, worker.worker_id);
    html! {
        a class={ "tile " (worker.status) } data-part=(part) href=(place(worker))
            aria-label={ (name) ", " (worker.status) ", " (active) " of " (most) " jobs" } {
            b { (name) }
            span.load { (active) "/" (most) " " meter value=(active) max=(most.max(1)) {} }
            span.task { (worker.current_task.as_deref().unwrap_or(&worker.status)) }
            span.seen { (worker.contract) " · " (ago(moment(&worker.last_heartbeat), now)) }
        }
    }
}

/// Where a worker's page is. A name alone may be that of several.
pub fn place(worker: &Worker) -> String {
    format!(
        "/ui/workers/{}?contract={}&tenant={}",
        path(&worker.worker_id),
        worker.contract,
        path(&worker.tenant)
    )
}
