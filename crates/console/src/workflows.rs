//! Workflows: what is saved, how it looks, and a run to start.

use crate::Console;
use crate::act::ActionForm;
use crate::error_page::ErrorPage;
use crate::page::{HtmlPage, PageFrame};
use crate::run;
use crate::session::Session;
use crate::words::{path, pretty};
use axum::Form;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{PreEscaped, html};
use reveille_api::body::OptionalBody;
use reveille_api::{runs, workflows};
use reveille_api_types::run::{RunListQuery, StartBody, StartQuery};
use reveille_api_types::workflow::{VersionQuery, WorkflowQuery};
use reveille_core::id::WorkflowId;
use reveille_diagram::{Layout, draw_run_svg};
use std::collections::BTreeMap;

pub async fn list(
    State(console): State<Console>,
    session: Session,
    headers: HeaderMap,
    Query(query): Query<WorkflowQuery>,
) -> Result<HtmlPage, ErrorPage> {
    let engine = State(console.engine.clone());
    let found = workflows::list(engine.clone(), session.auth.clone(), Query(query)).await?.0;
    let live = runs::list(engine, session.auth.clone(), Query(RunListQuery::default())).await?.0;
    let now = console.engine.now();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let content = html! {
        h1 { "Workflows" }
        div data-part="workflows" {
            @if found.is_empty() { p.note { "Tenant " b { (session.auth.tenant) } " has none. Save one with " code { "reveille workflow apply FILE" } "." } }
            @else { div.scroll { table {
                thead { tr { th { "Workflow" } th { "Name" } th { "Version" } th { "Steps" } th { "Saved" } } }
                tbody { @for workflow in &found {
                    @let (id, document) = (text(&workflow.document["id"]), &workflow.document);
                    tr {
                        td { a href={ "/ui/workflows/" (path(&id)) } { code { (id) } } }
                        td { (text(&document["name"])) }
                        td.number { (document["version"]) }
                        td.number { (document["steps"].as_object().map_or(0, serde_json::Map::len)) }
                        td { (workflow.saved_at) " by " (workflow.saved_by) }
                    }
                } }
            } } }
            @if let Some(last) = found.last().filter(|_| found.len() >= 50) {
                nav.pager { a rel="next" href={ "/ui/workflows?after=" (path(&text(&last.document["id"]))) } { "More" } }
            }
        }
        h2 { "Runs" }
        div data-part="runs" { (run::table(&live.items, now)) }
        @if live.next_cursor.is_some() { p { a href="/ui/runs" { "All runs" } } }
    };
    let about = PageFrame { title: "Workflows", place: "/ui/workflows", live: "run", every: 0 };
    Ok(console.page(&session, &headers, about, content).await)
}

pub async fn show(
    State(console): State<Console>,
    session: Session,
    headers: HeaderMap,
    Path(id): Path<String>,
    Query(query): Query<VersionQuery>,
) -> Result<HtmlPage, ErrorPage> {
    let engine = State(console.engine.clone());
    let version = query.version;
    let saved = workflows::get(engine.clone(), session.auth.clone(), Path(id.clone()), Query(query)).await?.0;
    let known = WorkflowId::parse(&id)
        .map_err(|_| ErrorPage::new(StatusCode::NOT_FOUND, "There is no such workflow."))?;
    let flow = console.engine.workflows().flow(&session.auth.tenant, &known, version).await?;
    let wanted = RunListQuery { workflow_id: Some(id.clone()), ..RunListQuery::default() };
    let past = runs::list(engine, session.auth.clone(), Query(wanted)).await?.0;
    let now = console.engine.now();
    let content = html! {
        h1 { code { (id) } " " span.quiet { "version " (saved.document["version"]) } }
        p.quiet { (saved.document["name"].as_str().unwrap_or_default()) " – saved " (saved.saved_at) " by " (saved.saved_by) }
        @if let Some(flow) = &flow {
            div.picture { (PreEscaped(draw_run_svg(flow, &Layout::of(flow), &BTreeMap::new()))) }
        }
        details {
            summary { "Start a run" }
            form.tall method="post" action={ "/ui/workflows/" (path(&id)) "/start" } {
                (session.hidden())
                label for="input" { "Input, as JSON" }
                textarea #input name="what" rows="6" spellcheck="false" { "{}" }
                button.main type="submit" { "Start" }
            }
        }
        details { summary { "The document" } pre.blob tabindex="0" { (pretty(&saved.document.to_string())) } }
        h2 { "Runs" }
        div data-part="runs" { (run::table(&past.items, now)) }
    };
    let about = PageFrame { title: &id, place: "/ui/workflows", live: "run", every: 0 };
    Ok(console.page(&session, &headers, about, content).await)
}

pub async fn start(
    State(console): State<Console>,
    session: Session,
    Path(id): Path<String>,
    Form(sent): Form<ActionForm>,
) -> Result<Response, ErrorPage> {
    session.allows(&sent.seal)?;
    let input = serde_json::from_str(&sent.what).map_err(|error| {
        ErrorPage::new(StatusCode::BAD_REQUEST, &format!("The input is not JSON: {error}."))
    })?;
    let body = OptionalBody(StartBody { input: Some(input), idempotency_key: None });
    let started = runs::start(
        State(console.engine.clone()),
        session.auth.clone(),
        Path(id),
        Query(StartQuery::default()),
        HeaderMap::new(),
        body,
    )
    .await?;
    Ok(Redirect::to(&format!("/ui/runs/{}", path(&started.0.run_id))).into_response())
}
