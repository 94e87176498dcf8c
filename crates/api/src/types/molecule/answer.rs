//! The short answers: what was done, where a workspace stands, and what went wrong.

use reveille_core::id::WorkspaceId;
use reveille_core::presence::workspace::Workspace;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

#[derive(Serialize, ToSchema)]
pub struct Done {
    pub status: &'static str,
}

#[derive(Serialize, ToSchema)]
pub struct Allowed {
    pub allowed: bool,
}

#[derive(Serialize, ToSchema)]
pub struct UpdatedWorkspace {
    status: &'static str,
    /// The agent has to be started again for its new runtime.
    #[serde(skip_serializing_if = "Option::is_none")]
    needs_restart: Option<bool>,
}

impl UpdatedWorkspace {
    pub fn new(needs_restart: bool) -> Self {
        Self { status: "updated", needs_restart: needs_restart.then_some(true) }
    }
}

#[derive(Serialize, ToSchema)]
pub struct RemovedWorkspace {
    /// `removed` or `purged`.
    pub status: &'static str,
    /// Descendants that were removed with it.
    pub cascade_deleted: usize,
}

/// It has children, and nobody said that they may go with it.
#[derive(Serialize, ToSchema)]
pub struct Unconfirmed {
    error: &'static str,
    code: &'static str,
    status: &'static str,
    message: &'static str,
    children_count: usize,
    children: Vec<ChildWorkspace>,
}

#[derive(Serialize, ToSchema)]
struct ChildWorkspace {
    id: String,
    name: String,
}

impl Unconfirmed {
    pub fn of<'a>(children: impl Iterator<Item = &'a Workspace>) -> Self {
        let children: Vec<ChildWorkspace> = children
            .map(|child| ChildWorkspace { id: child.id.to_string(), name: child.name.clone() })
            .collect();
        Self {
            error: "confirmation required",
            code: "confirmation_required",
            status: "confirmation_required",
            message: "its children are removed with it; repeat with ?confirm=true",
            children_count: children.len(),
            children,
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct WorkspaceState {
    pub workspace_id: String,
    pub status: &'static str,
    /// Never: nothing is paused here.
    pub paused: bool,
    pub deleted: bool,
}

/// There is no such workspace, or no more.
#[derive(Serialize, ToSchema)]
pub struct NoWorkspace {
    error: &'static str,
    workspace_id: String,
    deleted: bool,
    /// `removed`, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
}

impl NoWorkspace {
    pub fn new(id: &WorkspaceId, status: Option<&'static str>) -> Self {
        Self { error: "workspace not found", workspace_id: id.to_string(), deleted: true, status }
    }
}

#[derive(Serialize, ToSchema)]
pub struct WorkspaceToken {
    pub workspace_id: String,
    /// Shown here and never again.
    pub auth_token: String,
}

/// It is elsewhere now.
#[derive(Serialize, ToSchema)]
pub struct MovedWorkspace {
    pub id: String,
    /// The workspace that took its place.
    pub forwarded_to: String,
    pub url: Option<String>,
}

/// What a Molecule client is told when something is wrong.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes; `MoleculeRefusal` writes it")]
pub struct MoleculeError {
    /// For a person.
    error: String,
    /// Stays the same between versions.
    code: String,
    /// The field of the body that it is about, if it is about one.
    field: Option<String>,
    /// More about it.
    detail: Option<String>,
    /// How the workspace stands, or the status of this answer.
    #[schema(value_type = Option<Value>)]
    status: Option<Value>,
    /// The workspace that was removed.
    id: Option<String>,
    /// The one that took its place.
    forwarded_to: Option<String>,
    url: Option<String>,
    /// What happened to it last.
    #[schema(value_type = Option<Value>)]
    last_event: Option<Value>,
    /// Seconds after which to try again.
    retry_after: Option<u64>,
}
