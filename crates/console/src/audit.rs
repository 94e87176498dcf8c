//! The audit trail, and whether it is what it was.

use crate::Console;
use crate::error_page::ErrorPage;
use crate::page::{HtmlPage, PageFrame};
use crate::session::Session;
use crate::words::{chip, path};
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use maud::{Markup, html};
use reveille_api::audit;
use reveille_api_types::audit::{AuditEvent, TrailQuery, VerifyQuery};
use serde::Deserialize;

#[derive(Deserialize)]
pub struct AuditPageQuery {
    #[serde(default)]
    event_type: String,
    #[serde(default)]
    severity: String,
    #[serde(default)]
    job_id: String,
    #[serde(default)]
    from: String,
    /// `1`: the whole chain is read and checked.
    #[serde(default)]
    verify: String,
}

pub async fn show(
    State(console): State<Console>,
    session: Session,
    headers: HeaderMap,
    Query(wanted): Query<AuditPageQuery>,
    Query(query): Query<TrailQuery>,
) -> Result<HtmlPage, ErrorPage> {
    let engine = State(console.engine.clone());
    let page = audit::events(engine.clone(), session.auth.clone(), Query(query)).await?.0;
    let found = match wanted.verify.as_str() {
        "1" => {
            Some(audit::verify(engine, session.auth.clone(), Query(VerifyQuery { tenant: None })).await?.0)
        }
        _ => None,
    };
    let same = format!(
        "event_type={}&severity={}&job_id={}&from={}",
        path(&wanted.event_type),
        path(&wanted.severity),
        path(&wanted.job_id),
        path(&wanted.from)
    );
    let content = html! {
        div.title { h1 { "Audit" } a.button href="/ui/audit?verify=1" { "Verify the chain" } }
        @if let Some(found) = &found {
            p.reason role="status" {
                "The chain of " b { (found.tenant_id) } " is " (chip(if found.status == "broken" { "bad" } else { &found.status })) ": "
                (found.words()) "."
            }
        }
        (filter(&wanted))
        div data-part="trail" { (table(&page.items)) }
        @if let Some(next) = &page.next_cursor { nav.pager { a rel="next" href={ "/ui/audit?" (same) "&cursor=" (next) } { "Older" } } }
    };
    let about = PageFrame { title: "Audit", place: "/ui/audit", live: "", every: 0 };
    Ok(console.page(&session, &headers, about, content).await)
}

fn filter(wanted: &AuditPageQuery) -> Markup {
    html! {
        form.filter method="get" action="/ui/audit" role="search" {
            label { "Kind " input name="event_type" value=(wanted.event_type) placeholder="safety.decision"; }
            label { "Severity " select name="severity" data-sends {
                option value="" { "any" }
                @for severity in ["INFO", "LOW", "MEDIUM", "HIGH", "CRITICAL"] {
                    option value=(severity) selected[severity == wanted.severity] { (severity) }
                }
            } }
            label { "Job " input name="job_id" value=(wanted.job_id); }
            label { "Since " input name="from" value=(wanted.from) placeholder="24h"; }
            button type="submit" { "Show" }
        }
    }
}

fn table(entries: &[AuditEvent]) -> Markup {
    html! {
        @if entries.is_empty() { p.note { "There is no such entry." } } @else {
            div.scroll { table {
                thead { tr { th { "No." } th { "When" } th { "What" } th { "Job" } th { "Decision" } th { "Who" } th { "Words" } th { "Hash" } } }
                tbody { @for entry in entries { tr {
                    td.number { (entry.seq) }
                    td { time datetime=(entry.timestamp) { (entry.timestamp) } }
                    td { (chip(&entry.severity.to_ascii_lowercase())) " " code { (entry.event_type) } " " (entry.action) }
                    td { @if let Some(id) = &entry.job_id { a href={ "/ui/jobs/" (path(id)) } { code { (id) } } } }
                    td { @if let Some(decision) = &entry.decision { (chip(decision)) " " } code { (entry.matched_rule) } }
                    td { (entry.identity) " " span.quiet { (entry.tenant_id) } }
                    td { (entry.reason) }
                    td { code title=(entry.event_hash) { (entry.event_hash.chars().take(8).collect::<String>()) } }
                } } }
            } }
        }
    }
}
