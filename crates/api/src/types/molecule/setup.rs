//! A workspace is set up before it starts, and changed later.

use crate::molecule::posted::workspace_id;
use crate::molecule::refusal::MoleculeRefusal;
use reveille_core::id::WorkspaceId;
use reveille_core::presence::workspace::Workspace;
use reveille_engine::{NewWorkspace, Patch};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

/// The most delegations at a time that a workspace may be set up for.
const AT_ONCE_MAX: u32 = 1_000;

#[derive(Deserialize, ToSchema)]
pub struct CreateWorkspace {
    name: String,
    role: Option<String>,
    tier: Option<i64>,
    runtime: Option<String>,
    /// It is run by somebody else, elsewhere.
    pub external: Option<bool>,
    url: Option<String>,
    parent_id: Option<String>,
    /// From 1 to 1,000.
    max_concurrent_tasks: Option<u32>,
    canvas: Option<Canvas>,
}

#[derive(Deserialize, Default, ToSchema)]
struct Canvas {
    #[serde(default)]
    x: f64,
    #[serde(default)]
    y: f64,
}

impl CreateWorkspace {
    pub fn understood(self) -> Result<NewWorkspace, MoleculeRefusal> {
        let canvas = self.canvas.unwrap_or_default();
        Ok(NewWorkspace {
            name: self.name,
            role: self.role,
            tier: self.tier.unwrap_or(1),
            runtime: self.runtime,
            url: self.url.filter(|url| !url.is_empty()),
            parent_id: self.parent_id.map(|id| parent(&id)).transpose()?,
            max_concurrent_tasks: at_once(self.max_concurrent_tasks)?,
            x: canvas.x,
            y: canvas.y,
        })
    }
}

fn parent(text: &str) -> Result<WorkspaceId, MoleculeRefusal> {
    workspace_id(text).map_err(|refused| refused.with("field", "parent_id"))
}

fn at_once(tasks: Option<u32>) -> Result<Option<u32>, MoleculeRefusal> {
    match tasks {
        Some(tasks) if !(1..=AT_ONCE_MAX).contains(&tasks) => {
            let words = format!("max_concurrent_tasks: must be between 1 and {AT_ONCE_MAX}");
            Err(MoleculeRefusal::bad(words).with("field", "max_concurrent_tasks"))
        }
        tasks => Ok(tasks),
    }
}

#[derive(Serialize, ToSchema)]
pub struct CreatedWorkspace {
    id: String,
    pub status: &'static str,
    awareness_namespace: String,
    workspace_access: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<WorkspaceConnection>,
}

impl CreatedWorkspace {
    pub fn of(workspace: &Workspace) -> Self {
        Self {
            id: workspace.id.to_string(),
            status: workspace.status.as_str(),
            awareness_namespace: format!("workspace:{}", workspace.id),
            workspace_access: "none",
            external: None,
            connection: None,
        }
    }
}

/// What an agent that runs elsewhere needs in order to come in.
#[derive(Serialize, ToSchema)]
pub struct WorkspaceConnection {
    workspace_id: String,
    platform_url: String,
    /// Shown here and never again.
    auth_token: String,
    registry_endpoint: String,
    heartbeat_endpoint: String,
}

impl WorkspaceConnection {
    pub fn new(workspace: &Workspace, platform_url: &str, auth_token: String) -> Self {
        Self {
            workspace_id: workspace.id.to_string(),
            platform_url: platform_url.to_owned(),
            auth_token,
            registry_endpoint: format!("{platform_url}/registry/register"),
            heartbeat_endpoint: format!("{platform_url}/registry/heartbeat"),
        }
    }
}

#[derive(Deserialize, ToSchema)]
#[schema(as = PatchWorkspace)]
#[expect(clippy::option_option, reason = "a null takes a value away, and leaving it out does not")]
pub struct PatchBody {
    name: Option<String>,
    /// A null takes the role, or the parent, away.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    role: Option<Option<String>>,
    tier: Option<i64>,
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    parent_id: Option<Option<String>>,
    pub runtime: Option<String>,
    max_concurrent_tasks: Option<u32>,
    collapsed: Option<bool>,
    x: Option<f64>,
    y: Option<f64>,
}

#[expect(clippy::option_option, reason = "it was given, as a null or not")]
fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<String>>, D::Error> {
    Option::<String>::deserialize(from).map(Some)
}

impl PatchBody {
    /// Whether it changes whom the workspace may talk to, or what it counts as.
    pub fn moves(&self) -> bool {
        self.parent_id.is_some() || self.tier.is_some()
    }

    pub fn understood(self) -> Result<Patch, MoleculeRefusal> {
        let parent_id = match self.parent_id {
            Some(Some(id)) if !id.is_empty() => Some(Some(parent(&id)?)),
            Some(_) => Some(None),
            None => None,
        };
        Ok(Patch {
            name: self.name,
            role: self.role,
            tier: self.tier,
            runtime: self.runtime,
            parent_id,
            max_concurrent_tasks: at_once(self.max_concurrent_tasks)?,
            collapsed: self.collapsed,
            x: self.x,
            y: self.y,
        })
    }
}
