//! `GET /api/v1/events`: what happens, as server-sent events that can be resumed.
//!
//! Whoever comes new, or was away for longer than the log reaches, first gets a `snapshot`; whoever comes
//! back with `Last-Event-ID` reads on where it was. An event names who changed and shows how things stand
//! when it is sent.

mod filter;
mod watch;

pub use watch::{Watch, WatchItem, answer};

use crate::ApiError;
use crate::auth::Auth;
use crate::convert;
use axum::Router;
use axum::body::Bytes;
use axum::extract;
use axum::extract::Query;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::get;
use filter::EventFilter;
use futures_util::stream::unfold;
use reveille_api_types::event::{EventQuery, Fleet, JobNews, RunNews, WorkerNews, WorkspaceNews};
use reveille_core::id::TenantId;
use reveille_engine::{Audience, Engine, Event, EventId, NextEvents, What};
use reveille_roster::Scope;
use serde::Serialize;
use std::borrow::Cow;
use std::io::Write;
use std::time::Duration;

/// Workers in a snapshot; of a larger fleet those heard last.
const WORKERS_MAX: usize = 5_000;

pub fn routes() -> Router<Engine> {
    Router::new().route("/events", get(events))
}

/// Streams what happens to workers, jobs, runs and workspaces.
#[utoipa::path(get, path = "/api/v1/events", tag = "fleet", params(
    EventQuery, ("Last-Event-ID" = Option<String>, Header, description = "Reads on after this event; a browser sends it by itself when it comes back")), responses(
    (status = 200, description = "Server-sent events: snapshot (Fleet), worker.CHANGE (WorkerNews), job.updated (JobNews), run.updated (RunNews), workspace.NAME (WorkspaceNews)", body = String, content_type = "text/event-stream"),
    (status = 400, description = "A filter is wrong; it is named"), (status = 403, description = "Another tenant's"),
    (status = 429, description = "The tenant has as many streams open as it may; `quota` names it")))]
pub async fn events(
    extract::State(engine): extract::State<Engine>,
    auth: Auth,
    Query(query): Query<EventQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    auth.needs(Scope::Read)?;
    let filter = EventFilter::understood(&query)?;
    let audience = match query.tenant.as_deref().filter(|name| !name.is_empty()) {
        None => auth.audience(),
        Some(name) => {
            let tenant = TenantId::parse(name)?;
            if !auth.sees(&tenant) {
                return Err(ApiError::forbidden("tenant: it is not this key's tenant"));
            }
            Audience::Tenant(tenant)
        }
    };
    let header = headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let after = header.or(query.after.as_deref()).and_then(EventId::parse);
    let watch = Watch::new(&engine, auth.caller(), audience.clone(), after, Duration::ZERO)?;
    let feed = EventFeed { engine, audience, filter, watch, read_to: None };
    Ok(answer(unfold(feed, EventFeed::next)))
}

struct EventFeed {
    engine: Engine,
    audience: Audience,
    filter: EventFilter,
    watch: Watch,
    /// The last event that was read, whether or not it was wanted.
    read_to: Option<EventId>,
}

impl EventFeed {
    async fn next(mut self) -> Option<(Bytes, Self)> {
        let mut out = Vec::new();
        while out.is_empty() {
            match self.watch.next().await {
                WatchItem::End => return None,
                WatchItem::Look => {}
                WatchItem::KeepAlive => self.keep_alive(&mut out),
                WatchItem::Events(NextEvents::StartAfresh(id)) => {
                    self.read_to = Some(id);
                    frame(&mut out, id, "snapshot", &self.fleet());
                }
                WatchItem::Events(NextEvents::Events(events)) => {
                    for (id, event) in events {
                        self.read_to = Some(id);
                        if self.filter.lets(&event.what) {
                            self.tell(&mut out, id, &event);
                        }
                    }
                }
            }
        }
        Some((out.into(), self))
    }

    /// A comment. It brings the position along, so that a client whose filter lets little through does
    /// not fall behind the log.
    fn keep_alive(&self, out: &mut Vec<u8>) {
        let _ = match self.read_to {
            Some(id) => write!(out, ": keepalive\nid: {id}\n\n"),
            None => write!(out, ": keepalive\n\n"),
        };
    }

    fn fleet(&self) -> Fleet {
        let (now, filter) = (self.engine.now(), &self.filter);
        let mut views = if filter.wants_workers() {
            self.engine.fleet().newest(&self.audience, filter.contract, WORKERS_MAX + 1)
        } else {
            Vec::new()
        };
        let truncated = views.len() > WORKERS_MAX;
        views.truncate(WORKERS_MAX);
        views.retain(|view| filter.wants_worker(view.worker.id.as_str()));
        Fleet {
            at: now.rfc3339(),
            workers: views.iter().map(|view| convert::worker(view, now)).collect(),
            counts: convert::counts(self.engine.fleet().census().of(&self.audience)),
            truncated,
        }
    }

    fn tell(&self, out: &mut Vec<u8>, id: EventId, event: &Event) {
        let (at, tenant) = (event.at.rfc3339(), event.tenant.as_str().into());
        match &event.what {
            What::Worker { member, change } => {
                let view = self.engine.fleet().worker(member.who());
                let worker = view.map(|view| convert::worker(&view, self.engine.now()));
                let name = format!("worker.{}", change.as_str());
                let (worker_id, contract) = (member.id.as_str().into(), member.contract.as_str().into());
                frame(out, id, &name, &WorkerNews { at, tenant, worker_id, contract, worker });
            }
            What::Job { id: job, topic, state, before, worker } => {
                let news = JobNews {
                    at,
                    tenant,
                    job_id: job.as_str().into(),
                    topic: topic.as_str().into(),
                    state: state.as_str().into(),
                    before: before.map(|before| before.as_str().into()),
                    worker_id: worker.as_ref().map(|worker| worker.as_str().into()),
                };
                frame(out, id, "job.updated", &news);
            }
            What::Run { id: run, workflow, state, before, revision } => {
                let news = RunNews {
                    at,
                    tenant,
                    run_id: run.as_str().into(),
                    workflow_id: workflow.as_str().into(),
                    state: state.as_str().into(),
                    before: before.map(|before| before.as_str().into()),
                    revision: *revision,
                };
                frame(out, id, "run.updated", &news);
            }
            What::Workspace { id: workspace, name, payload } => {
                let event = format!("workspace.{}", name.to_ascii_lowercase());
                let payload = Cow::Borrowed(&**payload);
                frame(
                    out,
                    id,
                    &event,
                    &WorkspaceNews { at, tenant, workspace_id: workspace.as_str().into(), payload },
                );
            }
        }
    }
}

fn frame(out: &mut Vec<u8>, id: EventId, event: &str, data: &impl Serialize) {
    // Writing to memory fails only if the data cannot be JSON, which it always can.
    let _ = write!(out, "id: {id}\nevent: {event}\ndata: ");
    let _ = serde_json::to_writer(&mut *out, data);
    out.extend_from_slice(b"\n\n");
}
