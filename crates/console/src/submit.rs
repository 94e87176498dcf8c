//! A form for one job.

use crate::Console;
use crate::error_page::ErrorPage;
use crate::page::{HtmlPage, PageFrame};
use crate::session::Session;
use crate::words::path;
use axum::Form;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use reveille_api::jobs;
use reveille_api_types::submit::SubmitRequest;
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct SubmitForm {
    seal: String,
    topic: String,
    context: String,
    priority: String,
    capability: String,
    risk_tags: String,
    idempotency_key: String,
}

pub async fn form(State(console): State<Console>, session: Session, headers: HeaderMap) -> HtmlPage {
    show(&console, &session, &headers, &SubmitForm::default(), None).await
}

async fn show(
    console: &Console,
    session: &Session,
    headers: &HeaderMap,
    asked: &SubmitForm,
    problem: Option<&str>,
) -> HtmlPage {
    let about = PageFrame { title: "Submit a job", place: "/ui/jobs", live: "", every: 0 };
    console.page(session, headers, about, filled(session, asked, problem)).await
}

fn filled(session: &Session, asked: &SubmitForm, problem: Option<&str>) -> Markup {
    let context = if asked.context.is_empty() { "{\n  \"prompt\": \"hello\"\n}" } else { &asked.context };
    let topic = if asked.topic.is_empty() { "job.default" } else { &asked.topic };
    html! {
        h1 { "Submit a job" }
        @if let Some(problem) = problem { p.bad role="alert" { (problem) } }
        form.tall method="post" action="/ui/jobs/new" {
            (session.hidden())
            label for="topic" { "Topic" }
            input #topic name="topic" value=(topic) required;
            label for="context" { "Input, as JSON" }
            textarea #context name="context" rows="8" spellcheck="false" { (context) }
            label for="priority" { "Priority" }
            select #priority name="priority" {
                @for priority in ["interactive", "batch", "critical"] {
                    option value=(priority) selected[asked.priority == priority] { (priority) }
                }
            }
            label for="capability" { "Capability " span.quiet { "that the worker must have" } }
            input #capability name="capability" value=(asked.capability);
            label for="risks" { "Risks " span.quiet { "with commas between, for policy" } }
            input #risks name="risk_tags" value=(asked.risk_tags);
            label for="key" { "Idempotency key " span.quiet { "the same key is the same job" } }
            input #key name="idempotency_key" value=(asked.idempotency_key);
            button.main type="submit" { "Submit" }
        }
    }
}

pub async fn send(
    State(console): State<Console>,
    session: Session,
    headers: HeaderMap,
    Form(asked): Form<SubmitForm>,
) -> Result<Response, ErrorPage> {
    session.allows(&asked.seal)?;
    let refuse = async |problem: &str| {
        let page = show(&console, &session, &headers, &asked, Some(problem)).await;
        Ok((StatusCode::BAD_REQUEST, page).into_response())
    };
    let context = match RawValue::from_string(asked.context.trim().to_owned()) {
        Ok(context) => context,
        Err(error) => return refuse(&format!("The input is not JSON: {error}.")).await,
    };
    let some = |text: &str| (!text.trim().is_empty()).then(|| text.trim().to_owned());
    let request = SubmitRequest {
        topic: some(&asked.topic),
        context: Some(context).into(),
        priority: some(&asked.priority),
        capability: some(&asked.capability),
        risk_tags: asked.risk_tags.split(',').filter_map(some).collect(),
        idempotency_key: some(&asked.idempotency_key),
        ..SubmitRequest::default()
    };
    match jobs::submit_job(&console.engine, &session.auth, None, request).await {
        // A job that policy denies has a page as well: it says why.
        Ok(job) => Ok(Redirect::to(&format!("/ui/jobs/{}", path(job.id().as_str()))).into_response()),
        Err(error) => refuse(error.message()).await,
    }
}
