//! A run: its workflow drawn with how each step stands, its lines, and what can be done. A rollback is drawn
//! backwards, beside the run that it undoes.

use crate::Console;
use crate::act::{self, ActionForm};
use crate::error_page::ErrorPage;
use crate::mask::masked;
use crate::page::{HtmlPage, PageFrame};
use crate::session::Session;
use crate::words::{ago, chip, clock, moment as at, path, span};
use axum::Form;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, PreEscaped, html};
use reveille_api::body::OptionalBody;
use reveille_api::runs;
use reveille_api_types::job::WaitQuery;
use reveille_api_types::run::{
    CancelBody, RerunBody, RunDetail, RunListQuery, RunRecord, StepRecord, TimelineLine, TimelineQuery,
};
use reveille_core::flow::RunState;
use reveille_core::id::{StepId, TenantId, WorkflowId};
use reveille_core::time::Millis;
use reveille_diagram::{Layout, StepStatus, draw_run_svg};
use std::collections::BTreeMap;

/// Lines of its timeline that are shown.
const LINES: usize = 200;

pub async fn list(
    State(console): State<Console>,
    session: Session,
    headers: HeaderMap,
    Query(mut query): Query<RunListQuery>,
) -> Result<HtmlPage, ErrorPage> {
    // A form sends what was left empty as well.
    let empty = |text: &mut Option<String>| text.take_if(|text| text.is_empty());
    for field in [&mut query.status, &mut query.workflow_id, &mut query.cursor] {
        drop(empty(field));
    }
    let status = query.status.clone().unwrap_or_default();
    let workflow = query.workflow_id.clone().unwrap_or_default();
    let is_first = query.cursor.is_none();
    let page = runs::list(State(console.engine.clone()), session.auth.clone(), Query(query)).await?.0;
    let now = console.engine.now();
    let content = html! {
        h1 { "Runs" }
        form.filter method="get" action="/ui/runs" role="search" {
            label { "State " select name="status" data-sends {
                option value="" { "any" }
                @for state in RunState::ALL {
                    @let name = state.to_string();
                    option value=(name) selected[name == status] { (name) }
                }
            } }
            label { "Workflow " input name="workflow_id" value=(workflow); }
            button type="submit" { "Show" }
        }
        div data-part="runs" { (table(&page.items, now)) }
        @if let Some(next) = &page.next_cursor {
            nav.pager { a rel="next" href={ "/ui/runs?status=" (status) "&workflow_id=" (path(&workflow)) "&cursor=" (next) } { "Older runs" } }
        }
    };
    let about = PageFrame {
        title: "Runs",
        place: "/ui/workflows",
        live: if is_first { "run" } else { "" },
        every: 0,
    };
    Ok(console.page(&session, &headers, about, content).await)
}

/// Runs, one a row.
pub fn table(runs: &[RunRecord], now: Millis) -> Markup {
    html! {
        @if runs.is_empty() { p.note { "There is no such run." } } @else {
            div.scroll { table {
                thead { tr { th { "State" } th { "Run" } th { "Workflow" } th { "Tenant" } th { "Under way" } th { "Began" } th { "Took" } } }
                tbody { @for run in runs { tr {
                    td { (chip(&run.status)) @if run.origin != "started" { " " span.quiet { (run.origin) } } }
                    td { a href={ "/ui/runs/" (path(&run.id)) } { code { (run.id) } } }
                    td { a href={ "/ui/workflows/" (path(&run.workflow_id)) } { (run.workflow_id) } " " span.quiet { "v" (run.workflow_version) } }
                    td { (run.org_id) }
                    td { @if run.completed_at.is_none() { (run.running) " running, " (run.waiting) " waiting" } @else { span.bad { (run.error) } } }
                    td { (ago(at(&run.created_at), now)) }
                    td { (span(run.completed_at.as_deref().map_or(now, at).since(at(&run.created_at)))) }
                } } }
            } }
        }
    }
}

pub async fn show(
    State(console): State<Console>,
    session: Session,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> Result<HtmlPage, ErrorPage> {
    let get = async |id: &str| {
        let wait = Query(WaitQuery { wait: None });
        runs::get(State(console.engine.clone()), session.auth.clone(), Path(id.to_owned()), wait).await
    };
    let detail = get(&id).await?.0;
    let rollback = match &detail.rollback_run_id {
        Some(id) => Some(get(id).await?.0),
        None => None,
    };
    let wanted = TimelineQuery { limit: Some(LINES.to_string()), after: None };
    let lines =
        runs::timeline(State(console.engine.clone()), session.auth.clone(), Path(id.clone()), Query(wanted))
            .await?
            .0;
    let now = console.engine.now();
    let picture = picture(&console, &detail, now).await?;
    let content = html! {
        div data-part="head" { (head(&session, &detail, now)) }
        @if let Some(picture) = picture { section.picture data-part="picture" { (PreEscaped(picture)) } }
        @if let Some(undo) = &rollback {
            section data-part="rollback" {
                h2 { "Rollback " (chip(&undo.status)) " " a href={ "/ui/runs/" (path(&undo.id)) } { "its own run" } }
                (backwards(undo))
            }
        }
        @if detail.origin == "rollback" { section data-part="backwards" { (backwards(&detail)) } }
        section data-part="steps" { h2 { "Steps" } (steps(&session, &detail, now)) }
        section data-part="lines" { h2 { "Timeline" } (timeline(&lines)) }
        section data-part="values" {
            h2 { "Input" } pre.blob tabindex="0" { (masked(&detail.input.to_string(), false).0) }
            @if !detail.output.is_null() { h2 { "Output" } pre.blob tabindex="0" { (masked(&detail.output.to_string(), false).0) } }
        }
    };
    let live = format!("{id} job");
    let about = PageFrame { title: &id, place: "/ui/workflows", live: &live, every: 5 };
    Ok(console.page(&session, &headers, about, content).await)
}

fn head(session: &Session, detail: &RunDetail, now: Millis) -> Markup {
    let run = &detail.record;
    let is_over = run.completed_at.is_some();
    let to = |act: &str| format!("/ui/runs/{}/{act}", path(&run.id));
    html! {
        h1 { code { (run.id) } " " (chip(&run.status)) }
        p.quiet {
            a href={ "/ui/workflows/" (path(&run.workflow_id)) "?version=" (run.workflow_version) } { (run.workflow_id) } " version " (run.workflow_version)
            " of " (run.org_id) ", began " (ago(at(&run.created_at), now))
            @if let Some(end) = &run.completed_at { ", took " (span(at(end).since(at(&run.created_at)))) }
            @if let Some(parent) = &run.parent_run_id { ", " (run.origin) " of " a href={ "/ui/runs/" (path(parent)) } { code { (parent) } } }
        }
        @if !run.error.is_empty() { p.bad { (run.error) } }
        div.acts {
            @if !is_over { (session.button(&to("cancel"), "Cancel", "danger")) }
            @if is_over && matches!(run.origin.as_str(), "started" | "rerun" | "step") { (session.button(&to("rerun"), "Run again", "main")) }
        }
    }
}

/// The workflow as it stands in this run, if it is still known.
async fn picture(console: &Console, detail: &RunDetail, now: Millis) -> Result<Option<String>, ErrorPage> {
    let run = &detail.record;
    let (Ok(tenant), Ok(workflow)) = (TenantId::parse(&run.org_id), WorkflowId::parse(&run.workflow_id))
    else {
        return Ok(None);
    };
    if matches!(run.origin.as_str(), "rollback" | "client") {
        return Ok(None);
    }
    let flow = console.engine.workflows().flow(&tenant, &workflow, Some(run.workflow_version)).await;
    let Some(flow) = flow? else { return Ok(None) };
    let status = |(id, step): (&String, &StepRecord)| {
        let text = match &step.started_at {
            _ if step.rounds.is_some() => rounds(step),
            Some(began) => {
                let ended = matches!(step.status.as_str(), "running" | "waiting" | "pending");
                let end = if ended { now } else { at(&step.since) };
                format!("{} {}", step.status, span(end.since(at(began))))
            }
            None => step.status.clone(),
        };
        Some((StepId::parse(id).ok()?, StepStatus { class: step.status.clone(), text }))
    };
    let steps: BTreeMap<StepId, StepStatus> = detail.steps.iter().filter_map(status).collect();
    Ok(Some(draw_run_svg(&flow, &Layout::of(&flow), &steps)))
}

fn rounds(step: &StepRecord) -> String {
    step.rounds.as_ref().map_or(String::new(), |rounds| {
        format!("{} of {} done, {} failed", rounds.succeeded, rounds.count, rounds.failed)
    })
}

/// What is undone, drawn from the right to the left: what was done last is undone first.
fn backwards(undo: &RunDetail) -> Markup {
    let entries = undo.input["undo"].as_array().map(Vec::as_slice).unwrap_or_default();
    html! {
        ol.backwards reversed {
            @for (at, entry) in entries.iter().enumerate().rev() {
                @let step = undo.steps.get(&format!("undo[{at}]"));
                @let status = step.map_or("pending", |step| step.status.as_str());
                li class={ "undo " (status) } {
                    b { (entry["node"].as_str().unwrap_or("?")) } " " (chip(status)) " "
                    @if let Some(job) = step.and_then(|step| step.job_id.as_ref()) {
                        a href={ "/ui/jobs/" (path(job)) } { "job" }
                    }
                    @if let Some(words) = step.map(|step| &step.message).filter(|words| !words.is_empty()) {
                        " " span.quiet { (words) }
                    }
                }
            }
        }
    }
}

fn steps(session: &Session, detail: &RunDetail, now: Millis) -> Markup {
    let run = &detail.record;
    let can_repeat =
        run.completed_at.is_some() && matches!(run.origin.as_str(), "started" | "rerun" | "step");
    let to = format!("/ui/runs/{}/rerun", path(&run.id));
    html! {
        div.scroll { table {
            thead { tr { th { "Step" } th { "State" } th { "Try" } th { "Since" } th { "Job" } th { "Words" } th { "" } } }
            tbody { @for (id, step) in &detail.steps { tr {
                td { code { (id) } }
                td { (chip(&step.status)) @if step.rounds.is_some() { " " span.quiet { (rounds(step)) } } }
                td.number { (step.attempt) }
                td { (ago(at(&step.since), now)) @if let Some(due) = &step.due_at { ", due " time datetime=(due) { (due) } } }
                td { @if let Some(job) = &step.job_id { a href={ "/ui/jobs/" (path(job)) } { code { (job) } } } }
                td { (step.message) }
                td { @if can_repeat && !id.contains('[') { (session.button_with(&to, "Run again from here", "small", id)) } }
            } } }
        } }
    }
}

fn timeline(lines: &[TimelineLine]) -> Markup {
    html! {
        ol.lines { @for line in lines { li {
            time datetime=(line.time) { (clock(at(&line.time))) } " " code { (line.kind) }
            @if let Some(step) = &line.step_id { " " b { (step) } }
            @if !line.status.is_empty() { " " (chip(&line.status)) }
            @if !line.message.is_empty() { " " (line.message) }
        } } }
        @if lines.len() >= LINES { p.note { "The first " (LINES) " lines. " code { "reveille run timeline" } " prints them all." } }
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
    match act.as_str() {
        "cancel" => {
            let body = OptionalBody(CancelBody { reason: sent.reason.clone() });
            runs::cancel(engine, auth, Path(id), body).await?;
            Ok(act::back(&sent, "/ui/workflows"))
        }
        "rerun" => {
            let from_step = (!sent.what.is_empty()).then(|| sent.what.clone());
            let again =
                runs::rerun(engine, auth, Path(id), OptionalBody(RerunBody { from_step, dry_run: None }))
                    .await?
                    .0;
            Ok(Redirect::to(&format!("/ui/runs/{}", path(&again.run_id))).into_response())
        }
        _ => Err(act::unknown()),
    }
}
