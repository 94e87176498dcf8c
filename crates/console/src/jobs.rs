//! The list of jobs, with filters that page right.

use crate::Console;
use crate::error_page::ErrorPage;
use crate::page::{HtmlPage, PageFrame};
use crate::session::Session;
use crate::words::{ago_micros, chip, path};
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use maud::{Markup, html};
use reveille_api::jobs;
use reveille_api_types::job::{JobRecord, ListQuery};
use reveille_core::job::State as JobState;
use reveille_core::time::Millis;
use serde::Deserialize;

#[derive(Deserialize, Default)]
pub struct JobsPageQuery {
    #[serde(default)]
    state: String,
    #[serde(default)]
    topic: String,
    #[serde(default)]
    team: String,
    #[serde(default)]
    trace_id: String,
    #[serde(default)]
    cursor: String,
}

impl JobsPageQuery {
    /// The same filter from another place in the list on.
    fn from(&self, cursor: &str) -> String {
        let pairs = [
            ("state", &*self.state),
            ("topic", &self.topic),
            ("team", &self.team),
            ("trace_id", &self.trace_id),
            ("cursor", cursor),
        ];
        let said = pairs.iter().filter(|(_, value)| !value.is_empty());
        let said: Vec<String> = said.map(|(name, value)| format!("{name}={}", path(value))).collect();
        format!("/ui/jobs?{}", said.join("&"))
    }
}

pub async fn list(
    State(console): State<Console>,
    session: Session,
    headers: HeaderMap,
    Query(wanted): Query<JobsPageQuery>,
) -> Result<HtmlPage, ErrorPage> {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let query = ListQuery {
        limit: None,
        cursor: some(&wanted.cursor),
        state: some(&wanted.state),
        topic: some(&wanted.topic),
        tenant: None,
        team: some(&wanted.team),
        trace_id: some(&wanted.trace_id),
        updated_after: None,
        updated_before: None,
    };
    let page = jobs::list(State(console.engine.clone()), session.auth.clone(), Query(query)).await?.0;
    let now = console.engine.now();
    let nothing = if page.next_cursor.is_some() {
        "There is no such job among those looked through. Older ones may be."
    } else {
        "There is no such job."
    };
    let content = html! {
        div.title { h1 { "Jobs" } a.button.main href="/ui/jobs/new" { "Submit a job" } }
        (filter(&wanted))
        div data-part="jobs" { (table(&page.items, now, nothing)) }
        nav.pager aria-label="Pages of the list" {
            @if !wanted.cursor.is_empty() { a href=(wanted.from("")) { "First page" } }
            @if let Some(next) = &page.next_cursor { a rel="next" href=(wanted.from(next)) { "Older jobs" } }
        }
    };
    // Older pages stay as they are while somebody reads them.
    let live = if wanted.cursor.is_empty() { "job" } else { "" };
    let about = PageFrame { title: "Jobs", place: "/ui/jobs", live, every: 0 };
    Ok(console.page(&session, &headers, about, content).await)
}

fn filter(wanted: &JobsPageQuery) -> Markup {
    html! {
        form.filter method="get" action="/ui/jobs" role="search" {
            label { "State " select name="state" data-sends {
                option value="" { "any" }
                @for state in JobState::ALL {
                    @let name = state.to_string();
                    option value=(name) selected[name == wanted.state] { (name) }
                }
            } }
            label { "Topic " input name="topic" value=(wanted.topic) placeholder="job.default"; }
            label { "Team " input name="team" value=(wanted.team); }
            label { "Trace " input name="trace_id" value=(wanted.trace_id); }
            button type="submit" { "Show" }
        }
    }
}

/// Jobs, one a row.
pub fn table(jobs: &[JobRecord], now: Millis, nothing: &str) -> Markup {
    html! {
        @if jobs.is_empty() { p.note { (nothing) } } @else {
            div.scroll { table {
                thead { tr { th { "State" } th { "Job" } th { "Topic" } th { "Tenant" } th { "Worker" } th { "Tries" } th { "Changed" } } }
                tbody { @for job in jobs { tr {
                    td { (chip(&job.state)) }
                    td { a href={ "/ui/jobs/" (path(&job.id)) } { code { (job.id) } } }
                    td { (job.topic) }
                    td { (job.tenant) }
                    td { (job.worker_id) }
                    td.number { (job.attempts) }
                    td { (ago_micros(job.updated_at, now)) }
                } } }
            } }
        }
    }
}
