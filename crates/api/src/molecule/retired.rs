//! What somebody is told who asks for a workspace that was retired.
//!
//! Who looks a workspace up is redirected (301) to the one that took its place; who sends to it, or speaks
//! for it, is told that it is gone (410) and where to go instead.

use super::refusal::MoleculeRefusal;
use crate::types::molecule::answer::MovedWorkspace;
use crate::types::molecule::event::StructureEvent;
use axum::http::StatusCode;
use reveille_core::presence::workspace::Workspace;
use reveille_engine::{Engine, Whereabouts};
use serde_json::json;
use std::sync::Arc;

/// The workspace, if it lives. Whoever asked under `path` is sent on to the same path of its successor.
pub async fn looked_up(
    engine: &Engine,
    asked: &Workspace,
    path: &str,
) -> Result<Arc<Workspace>, MoleculeRefusal> {
    match engine.workspaces().whereabouts(&asked.tenant, &asked.id).await? {
        Whereabouts::Here(workspace) => Ok(workspace),
        Whereabouts::Moved { to } => Err(MoleculeRefusal::Moved {
            location: format!("{path}/{}", to.id),
            body: MovedWorkspace {
                id: asked.id.to_string(),
                forwarded_to: to.id.to_string(),
                url: to.url.clone(),
            },
        }),
        Whereabouts::Gone { last } => Err(removed(asked)
            .with("last_event", last.as_ref().map_or(json!(null), |event| json!(StructureEvent::of(event))))),
    }
}

/// The workspace, if it lives; otherwise a pointer to its successor.
pub fn spoken_to(engine: &Engine, asked: &Arc<Workspace>) -> Result<Arc<Workspace>, MoleculeRefusal> {
    if !asked.is_removed() {
        return Ok(asked.clone());
    }
    let gone = removed(asked);
    Err(match engine.workspaces().successor(asked) {
        Some(to) => gone.with("forwarded_to", to.id.as_str()).with("url", json!(to.url)),
        None => gone,
    })
}

fn removed(asked: &Workspace) -> MoleculeRefusal {
    MoleculeRefusal::new(StatusCode::GONE, "gone", "workspace was removed")
        .with("id", asked.id.as_str())
        .with("status", "removed")
}
