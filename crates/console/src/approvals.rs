//! Approvals: what waits for a person, everything needed to decide, and the decision.

use crate::Console;
use crate::act::{self, ActionForm};
use crate::error_page::ErrorPage;
use crate::mask::masked;
use crate::page::{HtmlPage, PageFrame};
use crate::session::Session;
use crate::words::{ago_micros, chip, count, path, pretty, span};
use axum::Form;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use reveille_api::body::OptionalBody;
use reveille_api::{approvals, convert};
use reveille_api_types::approval::{ApprovalContext, ApprovalQuery, Resolution};
use reveille_core::time::Millis;

pub async fn list(
    State(console): State<Console>,
    session: Session,
    headers: HeaderMap,
    Query(query): Query<ApprovalQuery>,
) -> Result<HtmlPage, ErrorPage> {
    let is_past = convert::include_resolved(&query)?;
    let page = approvals::list(State(console.engine.clone()), session.auth.clone(), Query(query)).await?.0;
    let now = console.engine.now();
    let past = if is_past { "include_resolved=true&" } else { "" };
    let content = html! {
        h1 { "Approvals" }
        p {
            @if is_past { a href="/ui/approvals" { "Only what waits" } }
            @else { a href="/ui/approvals?include_resolved=true" { "Also what was decided" } }
        }
        div data-part="approvals" {
            @if page.items.is_empty() { p.note { "Nothing waits for a person." } } @else {
                div.scroll { table {
                    thead { tr { th { "Job" } th { "Topic" } th { "Asked by" } th { "Rule" } th { "Why" } th { "Waits" } th { "Answer" } } }
                    tbody { @for approval in &page.items { tr {
                        td { a href={ "/ui/approvals/" (path(&approval.job.id)) } { code { (approval.job.id) } } }
                        td { (approval.job.topic) }
                        td { (approval.job.principal) " " span.quiet { (approval.job.tenant) } }
                        td { code { (approval.policy_rule_id) } }
                        td { (approval.policy_reason) }
                        td { (ago_micros(approval.requested_at, now)) }
                        td {
                            @match approval.approval_actionability.as_str() {
                                "actionable" => a.button.small href={ "/ui/approvals/" (path(&approval.job.id)) } { "Decide" },
                                "own_job" => span.quiet { "yours: somebody else decides" },
                                _ => { (chip(&approval.approval_status)) " " span.quiet { (approval.resolved_by.as_deref().unwrap_or_default()) } }
                            }
                        }
                    } } }
                } }
            }
        }
        @if let Some(next) = &page.next_cursor { nav.pager { a rel="next" href={ "/ui/approvals?" (past) "cursor=" (next) } { "More" } } }
    };
    let about = PageFrame { title: "Approvals", place: "/ui/approvals", live: "job", every: 0 };
    Ok(console.page(&session, &headers, about, content).await)
}

pub async fn show(
    State(console): State<Console>,
    session: Session,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> Result<HtmlPage, ErrorPage> {
    let asked =
        approvals::context(State(console.engine.clone()), session.auth.clone(), Path(id.clone())).await?.0;
    let now = console.engine.now();
    let job = &asked.approval.job;
    let content = html! {
        div data-part="head" {
            h1 { "May " code { (job.id) } " run? " (chip(&asked.approval.approval_status)) }
            div.reason {
                p.words { (asked.approval.policy_reason) }
                p.quiet {
                    "Rule " code { (asked.approval.policy_rule_id) } " asked " (ago_micros(asked.approval.requested_at, now)) "."
                    @if let Some(left) = asked.time_remaining_ms { " It can wait another " (span(left)) "." }
                    @if !asked.policy_snapshot_summary.is_current { " The policy has changed since." }
                }
            }
            (decide(&session, &asked))
        }
        section data-part="what" { h2 { "What it would do" } (what(&asked)) }
        section data-part="input" {
            h2 { "Input" }
            @match asked.input.value.written() {
                Some(value) => pre.blob tabindex="0" { (masked(value, false).0) },
                None => p.note { "It is not here to be read: " code { (asked.input.pointer) } },
            }
        }
        @if !asked.prior_approvals.is_empty() { section data-part="prior" { h2 { "Decided before, of the same kind" } (prior(&asked, now)) } }
        p { a href={ "/ui/jobs/" (path(&id)) } { "All about the job" } }
    };
    let about = PageFrame { title: "Approval", place: "/ui/approvals", live: &id, every: 0 };
    Ok(console.page(&session, &headers, about, content).await)
}

fn decide(session: &Session, context: &ApprovalContext) -> Markup {
    let approval = &context.approval;
    let to = |act: &str| format!("/ui/approvals/{}/{act}", path(&approval.job.id));
    html! {
        @match approval.approval_actionability.as_str() {
            "actionable" => form.decide method="post" action=(to("approve")) {
                (session.hidden())
                // What was looked at is what is decided: another request or policy refuses the answer.
                input type="hidden" name="what" value={ (approval.job_hash) " " (approval.policy_snapshot) };
                label for="reason" { "Reason" }
                input #reason name="reason" maxlength="1000" placeholder="for whoever asks later";
                button.main type="submit" { "Approve" }
                button.danger type="submit" formaction=(to("reject")) { "Reject" }
            },
            "own_job" => p.note { "You asked for this job. Somebody else has to decide." },
            _ => p {
                "Decided by " b { (approval.resolved_by.as_deref().unwrap_or("nobody")) }
                @if let Some(words) = approval.resolved_comment.as_deref().filter(|words| !words.is_empty()) { ": " (words) }
            },
        }
    }
}

fn what(context: &ApprovalContext) -> Markup {
    let (radius, job) = (&context.blast_radius, &context.approval.job);
    let list = |words: &[String]| if words.is_empty() { "–".to_owned() } else { words.join(", ") };
    html! {
        dl.facts {
            dt { "topic" } dd { (radius.topic) }
            dt { "asked by" } dd { (job.principal) " of " (job.tenant) @if !job.team.is_empty() { ", team " (job.team) } }
            dt { "could reach" } dd {
                (count(radius.workers_total as u64, "worker", "workers"))
                @if !radius.pools.is_empty() { " in " (list(&radius.pools)) }
                @if !radius.workers.is_empty() { ": " (list(&radius.workers)) }
            }
            dt { "capability" } dd { (if radius.capability.is_empty() { "–" } else { &radius.capability }) }
            dt { "risks" } dd { (list(&radius.risk_tags)) }
            dt { "can be undone" } dd { (context.rollback_hint.hint) }
            @if let Some(limits) = &context.constraints { dt { "allowed within" } dd { pre { (pretty(&limits.to_string())) } } }
        }
    }
}

fn prior(context: &ApprovalContext, now: Millis) -> Markup {
    html! {
        ul { @for before in &context.prior_approvals { li {
            a href={ "/ui/jobs/" (path(&before.job_id)) } { code { (before.job_id) } } " " (chip(&before.decision))
            " " (before.resolved_by.as_deref().unwrap_or_default()) " " (ago_micros(before.resolved_at.unwrap_or(0), now))
        } } }
    }
}

pub async fn act(
    State(console): State<Console>,
    session: Session,
    Path((id, act)): Path<(String, String)>,
    Form(sent): Form<ActionForm>,
) -> Result<Response, ErrorPage> {
    session.allows(&sent.seal)?;
    let (engine, auth) = (State(console.engine.clone()), session.auth.clone());
    let (hash, snapshot) = sent.what.split_once(' ').unwrap_or_default();
    let body = OptionalBody(Resolution {
        reason: Some(sent.reason.clone()),
        note: None,
        job_hash: Some(hash.to_owned()),
        policy_snapshot: Some(snapshot.to_owned()),
    });
    match act.as_str() {
        "approve" => drop(approvals::approve(engine, auth, Path(id.clone()), body).await?),
        "reject" => drop(approvals::reject(engine, auth, Path(id.clone()), body).await?),
        _ => return Err(act::unknown()),
    }
    Ok(Redirect::to(&format!("/ui/jobs/{}", path(&id))).into_response())
}
