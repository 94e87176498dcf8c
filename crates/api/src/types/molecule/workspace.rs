//! A workspace as others see it.

use reveille_core::time::Millis;
use reveille_engine::WorkspaceView;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// What whoever knows its id may see.
#[derive(Serialize, ToSchema)]
pub struct PublicWorkspace {
    id: String,
    name: String,
    role: Option<String>,
    tier: i64,
    status: &'static str,
    url: Option<String>,
    parent_id: Option<String>,
    active_tasks: u32,
    max_concurrent_tasks: u32,
    last_error_rate: f64,
    uptime_seconds: i64,
    runtime: Option<String>,
    agent_card: Option<Value>,
    x: f64,
    y: f64,
    collapsed: bool,
    last_heartbeat_at: Option<String>,
    /// Not kept.
    last_outbound_at: Option<String>,
}

impl PublicWorkspace {
    pub fn of(view: &WorkspaceView) -> Self {
        let (workspace, pulse) = (&view.workspace, &view.pulse);
        Self {
            id: workspace.id.to_string(),
            name: workspace.name.clone(),
            role: workspace.role.clone(),
            tier: workspace.tier,
            status: workspace.status.as_str(),
            url: workspace.url.clone(),
            parent_id: workspace.parent_id.as_ref().map(ToString::to_string),
            active_tasks: pulse.active_tasks,
            max_concurrent_tasks: workspace.at_once(),
            last_error_rate: pulse.error_rate,
            uptime_seconds: pulse.uptime_seconds,
            runtime: workspace.runtime.clone(),
            agent_card: workspace.agent_card.clone(),
            x: workspace.x,
            y: workspace.y,
            collapsed: workspace.collapsed,
            last_heartbeat_at: view.last_seen.map(Millis::rfc3339),
            last_outbound_at: None,
        }
    }
}

/// What its tenant may see.
#[derive(Serialize, ToSchema)]
pub struct Workspace {
    #[serde(flatten)]
    public: PublicWorkspace,
    current_task: String,
    last_sample_error: String,
    /// These three are not kept; canvases read them.
    workspace_dir: Option<String>,
    budget_limit: Option<i64>,
    monthly_spend: i64,
    created_at: String,
    updated_at: String,
}

impl Workspace {
    pub fn of(view: &WorkspaceView) -> Self {
        Self {
            public: PublicWorkspace::of(view),
            current_task: view.pulse.current_task.clone(),
            last_sample_error: view.pulse.sample_error.clone(),
            workspace_dir: None,
            budget_limit: None,
            monthly_spend: 0,
            created_at: view.workspace.created_at.rfc3339(),
            updated_at: view.workspace.updated_at.rfc3339(),
        }
    }
}

/// One of a workspace's peers.
#[derive(Serialize, ToSchema)]
pub struct Peer {
    id: String,
    name: String,
    role: Option<String>,
    tier: i64,
    status: &'static str,
    url: Option<String>,
    parent_id: Option<String>,
    active_tasks: u32,
    agent_card: Option<Value>,
}

impl Peer {
    pub fn of(view: &WorkspaceView) -> Self {
        let workspace = &view.workspace;
        Self {
            id: workspace.id.to_string(),
            name: workspace.name.clone(),
            role: workspace.role.clone(),
            tier: workspace.tier,
            status: workspace.status.as_str(),
            url: workspace.url.clone(),
            parent_id: workspace.parent_id.as_ref().map(ToString::to_string),
            active_tasks: view.pulse.active_tasks,
            agent_card: workspace.agent_card.clone(),
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct Discovered {
    pub id: String,
    pub url: String,
    pub name: String,
}
