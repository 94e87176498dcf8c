//! What happened to the structure of the fleet, and what happens to one workspace as it happens.

use super::credential::Credential;
use super::posted::workspace_id;
use super::refusal::MoleculeRefusal;
use crate::types::molecule::event::{StreamEvent, StructureEvent};
use axum::Json;
use axum::extract::{Path, State};
use axum::response::sse::{Event as Sent, Sse};
use futures_util::stream::{self, Stream};
use reveille_core::id::WorkspaceId;
use reveille_engine::{Audience, Engine, NextEvents, Reader, What};
use reveille_roster::{Scope, StructureEventQuery};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

/// Events listed at once.
const LIST_LEN_MAX: usize = 100;
/// How often a stream looks whether it should go on.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Looks without news between two pings.
const LOOKS_A_PING: u32 = 15;

/// Lists what happened to the workspaces, newest first; at most 100.
#[utoipa::path(get, path = "/events", tag = "molecule", responses((status = 200, body = [StructureEvent<'static>])))]
pub async fn list(
    State(engine): State<Engine>,
    credential: Credential,
) -> Result<Json<Value>, MoleculeRefusal> {
    let own = credential.workspace_or_key(Scope::Read)?;
    let tenant = credential.tenant(Scope::Read)?.clone();
    let mut events = engine
        .workspaces()
        .structure_events(&StructureEventQuery { tenant, workspace: None, limit: LIST_LEN_MAX })
        .await?;
    if let Some(own) = own {
        let may_see = |id: &WorkspaceId| {
            engine
                .workspaces()
                .workspace(&own.tenant, id)
                .is_some_and(|other| engine.workspaces().may_talk(own, &other))
        };
        events.retain(|event| may_see(&event.workspace));
    }
    Ok(listed(&events))
}

/// Lists what happened to one workspace, newest first; at most 100.
#[utoipa::path(get, path = "/events/{id}", tag = "molecule", params(("id" = String, Path)), responses((status = 200, body = [StructureEvent<'static>]), (status = 404, description = "No such workspace")))]
pub async fn of_workspace(
    State(engine): State<Engine>,
    credential: Credential,
    Path(id): Path<String>,
) -> Result<Json<Value>, MoleculeRefusal> {
    let asked = credential.sees(&engine, &workspace_id(&id)?)?;
    let query = StructureEventQuery {
        tenant: asked.tenant.clone(),
        workspace: Some(asked.id.clone()),
        limit: LIST_LEN_MAX,
    };
    Ok(listed(&engine.workspaces().structure_events(&query).await?))
}

fn listed(events: &[reveille_roster::StructureEvent]) -> Json<Value> {
    Json(json!(events.iter().map(StructureEvent::of).collect::<Vec<_>>()))
}

/// Streams what happens to one workspace.
#[utoipa::path(get, path = "/workspaces/{id}/events/stream", tag = "molecule", params(("id" = String, Path)), responses(
    (status = 200, description = "Server-sent events, each a WorkspaceEvent. RESYNC: something was missed, so look again", body = String, content_type = "text/event-stream"),
    (status = 404, description = "No such workspace"), (status = 410, description = "It was removed; `forwarded_to` is where to go instead"),
    (status = 429, description = "The tenant has as many streams open as it may; `quota` names it")))]
pub async fn stream(
    State(engine): State<Engine>,
    credential: Credential,
    Path(id): Path<String>,
) -> Result<Sse<impl Stream<Item = Result<Sent, Infallible>>>, MoleculeRefusal> {
    let watched = credential.sees(&engine, &workspace_id(&id)?)?;
    let watched = engine.workspaces().living(&watched.tenant, &watched.id)?;
    let mut reader = engine.subscribe(Audience::Tenant(watched.tenant.clone()), None)?;
    // A new reader is told to start afresh; whoever opens a stream does.
    reader.poll();
    let id = watched.id.clone();
    let ready = VecDeque::from([ping()]);
    let watch = WorkspaceWatch { engine, credential, reader, id, ready, quiet: 0 };
    Ok(Sse::new(stream::unfold(watch, |mut watch| async move {
        let sent = watch.next().await?;
        Some((Ok(sent), watch))
    })))
}

struct WorkspaceWatch {
    engine: Engine,
    credential: Credential,
    reader: Reader,
    id: WorkspaceId,
    ready: VecDeque<Sent>,
    quiet: u32,
}

impl WorkspaceWatch {
    /// Nothing when the server shuts down, or the caller may not look any longer.
    async fn next(&mut self) -> Option<Sent> {
        loop {
            if let Some(sent) = self.ready.pop_front() {
                return Some(sent);
            }
            if self.engine.is_draining() || !self.credential.still_holds(&self.engine) {
                return None;
            }
            match tokio::time::timeout(LOOK_EVERY, self.reader.next()).await {
                Ok(news) => self.take(&news),
                Err(_) => self.quiet += 1,
            }
            if self.quiet >= LOOKS_A_PING {
                self.quiet = 0;
                self.ready.push_back(ping());
            }
        }
    }

    fn take(&mut self, next: &NextEvents) {
        match next {
            NextEvents::StartAfresh(_) => {
                self.ready.extend(StreamEvent::resync(self.engine.now()).sent());
            }
            NextEvents::Events(events) => {
                for (_, event) in events {
                    if let What::Workspace { id, name, payload } = &event.what
                        && *id == self.id
                    {
                        self.ready.extend(StreamEvent::of(name, event.at, payload).sent());
                    }
                }
            }
        }
    }
}

fn ping() -> Sent {
    Sent::default().comment("ping")
}
