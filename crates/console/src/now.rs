//! The first page: is the fleet alive, what is stuck and why, what waits for me.

use crate::Console;
use crate::error_page::ErrorPage;
use crate::fleet::census;
use crate::page::{HtmlPage, PageFrame};
use crate::session::Session;
use crate::system::charts;
use crate::words::{ago, chip, count, moment, path};
use axum::extract::State;
use axum::http::HeaderMap;
use maud::{Markup, html};
use reveille_api::overview::{self, AttentionCounts};
use reveille_api_types::overview::{Overview, Wait};
use reveille_core::time::Millis;

pub async fn show(
    State(console): State<Console>,
    session: Session,
    headers: HeaderMap,
) -> Result<HtmlPage, ErrorPage> {
    let overview = overview::get(State(console.engine.clone()), session.auth.clone()).await?.0;
    let now = console.engine.now();
    let content = html! {
        h1.hidden { "Now" }
        section data-part="fleet" { h2 { a href="/ui/fleet" { "Fleet" } } (census(&overview.fleet)) }
        section data-part="waiting" { h2 { "Waits for you" } (inbox(&overview)) }
        section data-part="stuck" { h2 { "Not running, and why" } (reasons(&overview.waits, now)) }
        @if session.auth.is_operator() {
            section data-part="hour" { h2 { "The last hour" } (charts(&console.load_history.hour())) }
        }
    };
    let about = PageFrame { title: "Now", place: "/", live: "worker job", every: 10 };
    Ok(console.page_where(&session, &headers, &about, AttentionCounts::of(&overview), &content))
}

fn inbox(overview: &Overview) -> Markup {
    let entry = |number: u64, place: &str, one: &str, many: &str| {
        html! { @if number > 0 { li { a href=(place) { (count(number, one, many)) } } } }
    };
    let (approvals, held) = (overview.approvals as u64, overview.quarantined as u64);
    html! {
        @if approvals + held + overview.dead_letters == 0 { p.note { "Nothing. Go back to sleep." } }
        ul.inbox {
            (entry(approvals, "/ui/approvals", "job wants your approval", "jobs want your approval"))
            (entry(held, "/ui/quarantine", "result is held back", "results are held back"))
            (entry(overview.dead_letters, "/ui/dlq", "dead letter", "dead letters"))
        }
    }
}

fn reasons(waits: &[Wait], now: Millis) -> Markup {
    html! {
        @if waits.is_empty() { p.note { "Every job that was asked for runs, has ended, or waits for a person." } }
        @for wait in waits {
            article.card {
                h3 { (wait.jobs) @if wait.more { "+" } " " (chip("waiting")) " " code { (wait.code) } }
                @for job in &wait.examples {
                    p {
                        a href={ "/ui/jobs/" (path(&job.job_id)) } { code { (job.job_id) } } " " (job.explanation)
                        @if let Some(unblock) = &job.unblock { " " b { (unblock) } }
                        " " span.quiet { (ago(moment(&job.since), now)) }
                    }
                }
            }
        }
    }
}
