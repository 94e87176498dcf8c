//! Dead letters: grouped by why, looked at, and sent again one by one or a group at a time.

use crate::Console;
use crate::act::{self, ActionForm};
use crate::error_page::ErrorPage;
use crate::page::{HtmlPage, PageFrame};
use crate::session::Session;
use crate::words::{ago, chip, count, moment, path};
use axum::Form;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::Response;
use maud::{Markup, html};
use reveille_api::body::OptionalBody;
use reveille_api::dead_letters;
use reveille_api_types::dead_letter::{DeadLetter, LetterQuery, RetryFilter};
use reveille_core::time::Millis;
use serde::Deserialize;

/// Letters that one press of a button sends again.
const AT_ONCE: usize = 500;

#[derive(Deserialize)]
pub struct DeadLettersPageQuery {
    #[serde(default)]
    reason_code: String,
    /// What the last press of a button has done.
    retried: Option<u64>,
    failed: Option<u64>,
}

pub async fn list(
    State(console): State<Console>,
    session: Session,
    headers: HeaderMap,
    Query(told): Query<DeadLettersPageQuery>,
    Query(query): Query<LetterQuery>,
) -> Result<HtmlPage, ErrorPage> {
    let engine = State(console.engine.clone());
    let stats = dead_letters::stats(engine.clone(), session.auth.clone()).await?.0;
    let page = dead_letters::page(engine, session.auth.clone(), Query(query)).await?.0;
    let now = console.engine.now();
    let content = html! {
        h1 { "Dead letters" }
        @if let Some(retried) = told.retried {
            p.note role="status" {
                (count(retried, "job was", "jobs were")) " sent again."
                @if let Some(failed) = told.failed.filter(|failed| *failed > 0) { " " (failed) " could not be; they are still here." }
            }
        }
        div data-part="groups" {
            @if stats.total == 0 { p.note { "Nothing has died." } } @else {
                ul.groups { @for (reason, number) in &stats.by_reason { li {
                    a href={ "/ui/dlq?reason_code=" (reason) } { b { (number) } " " code { (reason) } }
                    @if reason != "none" { (session.button_with("/ui/dlq/retry", "Send all again", "small", reason)) }
                } } }
            }
        }
        @if !told.reason_code.is_empty() { p { "Only " code { (told.reason_code) } ". " a href="/ui/dlq" { "Show all" } } }
        div data-part="letters" { @if !page.items.is_empty() { (table(&session, &page.items, now)) } }
        @if let Some(next) = &page.next_cursor {
            nav.pager { a rel="next" href={ "/ui/dlq?reason_code=" (path(&told.reason_code)) "&cursor=" (next) } { "Older" } }
        }
    };
    let about = PageFrame { title: "Dead letters", place: "/ui/dlq", live: "job", every: 0 };
    Ok(console.page(&session, &headers, about, content).await)
}

fn table(session: &Session, letters: &[DeadLetter], now: Millis) -> Markup {
    html! {
        div.scroll { table {
            thead { tr { th { "Job" } th { "Topic" } th { "Tenant" } th { "Why" } th { "Tries" } th { "Died" } th { "" } } }
            tbody { @for letter in letters {
                @let to = |act: &str| format!("/ui/dlq/{}/{act}", path(&letter.job_id));
                tr {
                    td { a href={ "/ui/jobs/" (path(&letter.job_id)) } { code { (letter.job_id) } } }
                    td { (letter.topic) }
                    td { (letter.tenant) }
                    td { (chip(&letter.status)) " " code { (letter.reason_code) } " " (letter.reason) }
                    td.number { (letter.attempts) }
                    td { (ago(moment(&letter.created_at), now)) }
                    td.acts { (session.button(&to("retry"), "Again", "small")) (session.button(&to("delete"), "Put away", "small")) }
                }
            } }
        } }
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
        "retry" => drop(dead_letters::retry(engine, auth, Path(id)).await?),
        "delete" => drop(dead_letters::delete(engine, auth, Path(id)).await?),
        _ => return Err(act::unknown()),
    }
    Ok(act::back(&sent, "/ui/dlq"))
}

/// Sends a whole group again: at most so many at once, the page says how many there were.
pub async fn retry_group(
    State(console): State<Console>,
    session: Session,
    Form(sent): Form<ActionForm>,
) -> Result<Response, ErrorPage> {
    session.allows(&sent.seal)?;
    let filter =
        RetryFilter { reason_code: Some(sent.what.clone()), limit: Some(AT_ONCE), ..RetryFilter::default() };
    let done =
        dead_letters::retry_many(State(console.engine.clone()), session.auth.clone(), OptionalBody(filter))
            .await?
            .0;
    let to = format!("/ui/dlq?retried={}&failed={}", done.retried.len(), done.failed.len());
    Ok(axum::response::IntoResponse::into_response(axum::response::Redirect::to(&to)))
}
