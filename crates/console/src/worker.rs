//! One worker: how it is, what it has in hand, how it has been, and drain or undrain.

use crate::Console;
use crate::drain;
use crate::error_page::ErrorPage;
use crate::fleet::place;
use crate::jobs;
use crate::page::{HtmlPage, PageFrame};
use crate::session::Session;
use crate::words::{ago, chip, count, moment, span};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use maud::{Markup, html};
use reveille_api::convert;
use reveille_api_types::job::JobRecord;
use reveille_api_types::worker::Worker;
use reveille_core::id::{TenantId, WorkerId};
use reveille_core::job::Job;
use reveille_core::placement::Member;
use reveille_core::presence::Contract;
use reveille_store::JobQuery;
use serde::Deserialize;
use std::sync::Arc;

/// Jobs that are gone through to find those that it had.
const LOOKED_THROUGH: usize = 500;
const SHOWN_MAX: usize = 20;

#[derive(Deserialize)]
pub struct WorkerPageQuery {
    #[serde(default)]
    contract: String,
    #[serde(default)]
    tenant: String,
}

pub async fn show(
    State(console): State<Console>,
    session: Session,
    headers: HeaderMap,
    Path(id): Path<String>,
    Query(which): Query<WorkerPageQuery>,
) -> Result<HtmlPage, ErrorPage> {
    let member = member(&session, &id, &which).ok_or_else(unknown)?;
    let engine = &console.engine;
    let view = engine
        .fleet()
        .worker(member.who())
        .filter(|view| session.auth.sees(&view.worker.tenant))
        .ok_or_else(unknown)?;
    let (now, worker) = (engine.now(), convert::worker(&view, engine.now()));
    let held = engine.fleet().held_by(member.who());
    let mut at_work = Vec::new();
    for job in held.iter().take(SHOWN_MAX) {
        at_work.extend(engine.jobs().job(job).await?);
    }
    let query = JobQuery { tenant: session.auth.list_of(), limit: LOOKED_THROUGH, ..JobQuery::default() };
    let last = engine.jobs().list(&query).await?.items;
    let was_its = |job: &&Arc<Job>| job.worker() == Some(&member.id) && job.state().is_terminal();
    let ended: Vec<JobRecord> =
        last.iter().filter(was_its).take(SHOWN_MAX).map(|job| convert::job_record(job)).collect();
    // A worker may have jobs of several tenants in hand.
    let is_ours = |job: &&Arc<Job>| session.auth.audience().includes(&job.request.tenant);
    let at_work: Vec<JobRecord> =
        at_work.iter().filter(is_ours).map(|job| convert::job_record(job)).collect();
    let title = if worker.agent_name.is_empty() { id.clone() } else { worker.agent_name.clone() };
    let content = html! {
        div data-part="head" {
            h1 { (title) " " (chip(&worker.status)) }
            p.quiet {
                (worker.contract) " worker of " (worker.tenant)
                ", heard " (ago(moment(&worker.last_heartbeat), now))
                @if worker.expires_in_ms > 0 { ", dead after another " (span(worker.expires_in_ms)) " of silence" }
                @if worker.restored { ". It was known before the server started, and has not been heard since." }
            }
            div.acts { (drain::of_worker(&session, &worker)) a.button href=(place(&worker)) { "Reload" } }
        }
        section data-part="history" {
            h2 { "The last ten minutes" }
            (console.load_history.sparkline(&member))
        }
        section data-part="facts" { h2 { "What it is" } (facts(&worker)) }
        section data-part="held" {
            h2 { "In hand " span.quiet { (count(held.len() as u64, "job", "jobs")) } }
            (jobs::table(&at_work, now, "It has no job of yours now."))
        }
        section data-part="ended" {
            h2 { "Done " span.quiet { "among the last " (LOOKED_THROUGH) " jobs" } }
            (jobs::table(&ended, now, "None of them was its."))
        }
    };
    let about = PageFrame { title: &title, place: "/ui/fleet", live: &id, every: 5 };
    Ok(console.page(&session, &headers, about, content).await)
}

/// Which one is meant: a name alone is a CAP worker, or the caller's own agent.
fn member(session: &Session, id: &str, which: &WorkerPageQuery) -> Option<Member> {
    let tenant = if which.tenant.is_empty() {
        session.auth.tenant.clone()
    } else {
        TenantId::parse(&which.tenant).ok()?
    };
    let contract = if which.contract.is_empty() { Contract::Cap } else { Contract::parse(&which.contract)? };
    Some(Member { contract, tenant, id: WorkerId::parse(id).ok()? })
}

fn unknown() -> ErrorPage {
    ErrorPage::new(StatusCode::NOT_FOUND, "There is no such worker; it may have left.")
}

fn facts(worker: &Worker) -> Markup {
    let list = |words: &[String]| if words.is_empty() { "–".to_owned() } else { words.join(", ") };
    let labels: Vec<String> = worker.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let percent = |part: f32| format!("{part:.0} %");
    html! {
        dl.facts {
            dt { "id" } dd { code { (worker.worker_id) } }
            dt { "pool" } dd { (if worker.pool.is_empty() { "–" } else { &worker.pool }) }
            dt { "jobs" } dd { (worker.active_jobs) " of " (worker.max_parallel_jobs) }
            @if let Some(task) = &worker.current_task { dt { "task" } dd { (task) } }
            dt { "load" } dd { "cpu " (percent(worker.cpu_load)) ", memory " (percent(worker.memory_load)) ", gpu " (percent(worker.gpu_utilization)) }
            dt { "topics" } dd { (list(&worker.topics)) }
            dt { "capabilities" } dd { (list(&worker.capabilities)) }
            dt { "labels" } dd { (list(&labels)) }
            @if !worker.region.is_empty() { dt { "region" } dd { (worker.region) } }
        }
    }
}
