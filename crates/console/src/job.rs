//! One job: why it is where it is, its life, what was decided about it, and what can be done.

use crate::Console;
use crate::act::{self, ActionForm};
use crate::error_page::ErrorPage;
use crate::mask::masked;
use crate::page::{HtmlPage, PageFrame};
use crate::session::Session;
use crate::words::{ago, ago_micros, chip, clock, moment, path, span};
use axum::Form;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use reveille_api::body::Body;
use reveille_api::convert;
use reveille_api::{dead_letters, jobs};
use reveille_api_types::job::{Explained, JobDetail, TimelineEntry, WaitQuery};
use reveille_api_types::submit::Remediate;
use reveille_core::id::JobId;
use reveille_core::job::{Job, State as JobState};
use reveille_core::policy::Remediation;
use reveille_core::time::Millis;
use serde::Deserialize;

#[derive(Deserialize)]
pub struct JobPageQuery {
    /// `1`: secrets are shown.
    #[serde(default)]
    reveal: String,
}

pub async fn show(
    State(console): State<Console>,
    session: Session,
    headers: HeaderMap,
    Path(id): Path<String>,
    Query(wanted): Query<JobPageQuery>,
) -> Result<HtmlPage, ErrorPage> {
    let engine = State(console.engine.clone());
    let detail =
        jobs::get(engine.clone(), session.auth.clone(), Path(id.clone()), Query(WaitQuery { wait: None }))
            .await?
            .0;
    let job = jobs::visible(&console.engine, &session.auth, &id).await?;
    let why = convert::explained(&job, console.engine.jobs().explain(&job));
    let is_dead = match JobId::parse(&id) {
        Ok(id) => console.engine.jobs().dead_letter(&id).await?.is_some(),
        Err(_) => false,
    };
    let (now, is_revealed) = (console.engine.now(), wanted.reveal == "1");
    let content = html! {
        div data-part="head" {
            h1 { code { (detail.record.id) } " " (chip(&detail.record.state)) }
            (reason(&why, now))
            div.acts { (acts(&session, &job, is_dead)) }
        }
        section data-part="life" { h2 { "Life" } (life(&detail.timeline, now, job.state().is_terminal())) }
        @if !detail.decisions.is_empty() { section data-part="decisions" { h2 { "Decisions" } (decisions(&detail, now)) } }
        @if !job.attempts.is_empty() {
            section data-part="attempts" { h2 { "Attempts" } (attempts(&job)) }
        }
        section data-part="facts" { h2 { "What was asked" } (facts(&detail, now)) }
        section data-part="input" { h2 { "Input" } (blob(detail.context.written(), &detail.context_ptr, is_revealed, &id)) }
        section data-part="result" {
            h2 { "Result" }
            @if detail.result_held { p.note { "It is held back. " a href="/ui/quarantine" { "See the quarantine." } } }
            @else { (blob(detail.result.written(), &detail.result_ptr, is_revealed, &id)) }
        }
    };
    let about = PageFrame { title: &id, place: "/ui/jobs", live: &id, every: 5 };
    Ok(console.page(&session, &headers, about, content).await)
}

/// Why it is where it is, and what would move it.
fn reason(why: &Explained, now: Millis) -> Markup {
    let since = moment(&why.since);
    html! {
        div.reason {
            p.words { (why.explanation) }
            p.quiet {
                @if let Some(unblock) = &why.unblock { b { (unblock) } " " }
                "Changed " (ago(since, now)) ". " code { (why.code) }
            }
        }
    }
}

fn acts(session: &Session, job: &Job, is_dead: bool) -> Markup {
    let to = |act: &str| format!("/ui/jobs/{}/{act}", path(job.id().as_str()));
    let offered = job.last_verdict().map(|recorded| &recorded.verdict.remediations[..]).unwrap_or_default();
    html! {
        @if job.state() == JobState::ApprovalRequired {
            a.button.main href={ "/ui/approvals/" (path(job.id().as_str())) } { "Decide" }
        }
        @if !job.state().is_terminal() { (session.button(&to("cancel"), "Cancel", "danger")) }
        @if is_dead { (session.button(&to("retry"), "Try again", "main")) }
        @if job.state() == JobState::Denied {
            @for Remediation { id, title, .. } in offered {
                (session.button_with(&to("remediate"), if title.is_empty() { id } else { title }, "", id))
            }
        }
    }
}

/// Its life, mark by mark, with how long each part took.
fn life(marks: &[TimelineEntry], now: Millis, is_over: bool) -> Markup {
    let end = |at: usize| {
        marks.get(at + 1).map_or_else(|| if is_over { marks[at].at } else { now.micros() }, |next| next.at)
    };
    let whole = marks.first().map_or(1, |first| (end(marks.len() - 1) - first.at).max(1));
    let start = marks.first().map_or(0, |first| first.at);
    html! {
        ol.life {
            @for (at, mark) in marks.iter().enumerate() {
                @let took = end(at) - mark.at;
                li {
                    time datetime=(Millis(mark.at / 1000).rfc3339()) { (clock(Millis(mark.at / 1000))) }
                    " " (chip(&mark.state)) " " span.event { (mark.event) }
                    @if !mark.worker_id.is_empty() { " on " b { (mark.worker_id) } }
                    @if !mark.note.is_empty() { " – " (mark.note) }
                    @if took > 0 || at + 1 < marks.len() { " " span.quiet { (span(took / 1000)) } }
                    (bar(mark.at - start, took, whole))
                }
            }
        }
    }
}

/// Where in its life a part is, and how much of it.
fn bar(from: i64, took: i64, whole: i64) -> Markup {
    let permille = |part: i64| part * 1000 / whole;
    html! {
        svg.bar viewBox="0 0 1000 6" preserveAspectRatio="none" aria-hidden="true" {
            rect x=(permille(from)) y="0" width=(permille(took).max(3)) height="6" rx="2" {}
        }
    }
}

fn decisions(detail: &JobDetail, now: Millis) -> Markup {
    html! {
        div.scroll { table {
            thead { tr { th { "Decision" } th { "Rule" } th { "Reason" } th { "Policy" } th { "When" } } }
            tbody { @for decision in detail.decisions.iter().rev() { tr {
                td { (chip(&decision.decision)) }
                td { code { (decision.rule_id) } }
                td { (decision.reason) }
                td { code title=(decision.policy_snapshot) { (short(&decision.policy_snapshot)) } }
                td { (ago_micros(decision.checked_at, now)) }
            } } }
        } }
        @if let Some(output) = &detail.output_safety {
            p { "Its result: " (chip(&output.decision)) " by " code { (output.rule_id) } " – " (output.reason) }
        }
    }
}

/// A snapshot is named by a long hash; its beginning tells it from others.
pub fn short(snapshot: &str) -> String {
    snapshot.split_once(':').map_or_else(
        || snapshot.chars().take(16).collect(),
        |(version, hash)| format!("{version}:{}", hash.chars().take(8).collect::<String>()),
    )
}

/// Who had it, the last first, and how far that one says it is.
fn attempts(job: &Job) -> Markup {
    let now = job.attempt();
    html! {
        div.scroll { table {
            thead { tr { th { "Try" } th { "Worker" } th { "Sent" } th { "Progress" } } }
            tbody { @for (at, worker) in job.attempts.iter().enumerate().rev() {
                @let current = now.filter(|now| now.number as usize == at + 1);
                tr {
                    td.number { (at + 1) }
                    td { (worker.as_ref().map_or("anybody of the topic", |worker| worker.as_str())) }
                    td { @if let Some(now) = current { (clock(now.dispatched_at)) } }
                    td { @if let Some(told) = current.and_then(|now| now.progress.as_ref()) {
                        progress value=(told.percent) max="100" {} " " (told.percent) " % " (told.message)
                    } }
                }
            } }
        } }
    }
}

fn facts(detail: &JobDetail, now: Millis) -> Markup {
    let record = &detail.record;
    let labels: Vec<String> = detail.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let row = |name: &str, value: &str| html! { @if !value.is_empty() { dt { (name) } dd { (value) } } };
    html! {
        dl.facts {
            (row("topic", &record.topic))
            (row("tenant", &record.tenant))
            (row("priority", &record.priority))
            dt { "asked" } dd { (ago_micros(record.created_at, now)) }
            (row("by", &record.principal))
            (row("actor", &record.actor_id))
            (row("team", &record.team))
            (row("worker", &record.worker_id))
            (row("capability", &record.capability))
            (row("requires", &record.requires.join(", ")))
            (row("risks", &record.risk_tags.join(", ")))
            (row("labels", &labels.join(", ")))
            @if record.deadline_unix > 0 { dt { "deadline" } dd { (Millis(record.deadline_unix / 1000).rfc3339()) } }
            (row("idempotency key", &record.idempotency_key))
            @if !detail.workflow_id.is_empty() {
                dt { "workflow" } dd { (detail.workflow_id) ", step " (detail.step_index) }
            }
            @if !detail.parent_job_id.is_empty() {
                dt { "came of" } dd { a href={ "/ui/jobs/" (path(&detail.parent_job_id)) } { (detail.parent_job_id) } }
            }
            (row("trace", &record.trace_id))
            @if !detail.error_message.is_empty() { dt { "error" } dd.bad { (detail.error_code) " " (detail.error_message) } }
        }
    }
}

/// JSON that somebody sent. Secrets are shown when somebody asks.
fn blob(value: Option<&str>, pointer: &str, is_revealed: bool, id: &str) -> Markup {
    html! {
        @match value {
            None if pointer.is_empty() => p.note { "There is none." },
            None => p.note { "It is not shown here: it is large, expired, or kept elsewhere (" code { (pointer) } ")." },
            Some(value) => {
                @let (text, hidden) = masked(value, is_revealed);
                pre.blob tabindex="0" { (text) }
                @if hidden > 0 {
                    p.quiet {
                        (crate::words::count(hidden as u64, "secret is", "secrets are")) " masked. "
                        a href={ "/ui/jobs/" (path(id)) "?reveal=1" } { "Show" }
                    }
                }
            }
        }
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
    let to_job = |id: &str| Redirect::to(&format!("/ui/jobs/{}", path(id))).into_response();
    match act.as_str() {
        "cancel" => drop(jobs::cancel(engine, auth, Path(id.clone())).await?),
        "retry" => {
            let again = dead_letters::retry(engine, auth, Path(id)).await?.0;
            return Ok(to_job(&again.job_id));
        }
        "remediate" => {
            let body = Body(Remediate { remediation_id: sent.what.clone() });
            drop(jobs::remediate(engine, auth, Path(id.clone()), body).await?);
        }
        _ => return Err(act::unknown()),
    }
    Ok(to_job(&id))
}
