//! Events: as they are listed, streamed, and framed on the socket.

use axum::response::sse;
use reveille_core::id::WorkspaceId;
use reveille_core::time::Millis;
use reveille_roster as roster;
use serde::Serialize;
use serde_json::Value;
use std::sync::LazyLock;
use utoipa::ToSchema;

/// Somebody missed something: what they know is to be asked for again.
pub const RESYNC: &str = "RESYNC";

static NOTHING: LazyLock<Value> = LazyLock::new(|| Value::Object(serde_json::Map::new()));

#[derive(Serialize, ToSchema)]
pub struct StructureEvent<'a> {
    id: &'a str,
    event_type: &'a str,
    workspace_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_id: Option<&'a str>,
    payload: &'a Value,
    created_at: String,
}

impl<'a> StructureEvent<'a> {
    pub fn of(event: &'a roster::StructureEvent) -> Self {
        Self {
            id: &event.id,
            event_type: &event.kind,
            workspace_id: event.workspace.as_str(),
            target_id: event.target.as_ref().map(WorkspaceId::as_str),
            payload: &event.payload,
            created_at: event.created_at.rfc3339(),
        }
    }
}

/// One event of a workspace's stream.
#[derive(Serialize, ToSchema)]
#[schema(as = WorkspaceEvent)]
pub struct StreamEvent<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    /// Milliseconds since the epoch.
    timestamp: i64,
    data: &'a Value,
}

impl<'a> StreamEvent<'a> {
    pub fn of(kind: &'a str, at: Millis, data: &'a Value) -> Self {
        Self { kind, timestamp: at.0, data }
    }

    pub fn resync(at: Millis) -> Self {
        Self::of(RESYNC, at, &NOTHING)
    }

    /// Nothing if it cannot be written, which no value of ours is.
    pub fn sent(&self) -> Option<sse::Event> {
        sse::Event::default().json_data(self).ok()
    }
}

/// One message on the socket.
#[derive(Serialize, ToSchema)]
pub struct SocketFrame<'a> {
    event: &'a str,
    workspace_id: &'a str,
    timestamp: String,
    payload: &'a Value,
}

impl<'a> SocketFrame<'a> {
    pub fn of(event: &'a str, workspace: &'a WorkspaceId, at: Millis, payload: &'a Value) -> Self {
        Self { event, workspace_id: workspace.as_str(), timestamp: at.rfc3339(), payload }
    }

    pub fn resync(at: Millis) -> Self {
        Self { event: RESYNC, workspace_id: "", timestamp: at.rfc3339(), payload: &NOTHING }
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}
