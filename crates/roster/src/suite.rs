//! The promises of [`Roster`] as tests, run over every adapter.
//!
//! An adapter's tests call [`run`] on a roster. Each check has its own tenants and ids, so that the
//! checks do not see one another's rows; pruning comes last, because it sees all. What only one adapter
//! can promise (files, recovery) is tested beside that adapter.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed check is a failed test")]

pub mod batches;
pub mod delegations;
pub mod drains;
pub mod events;
pub mod generations;
pub mod keys;
pub mod presence;
pub mod pruning;
pub mod sessions;
pub mod workspaces;

use crate::{Change, KeyRecord, PresenceKey, PresenceRow, Roster, Scope, StructureEvent};
use reveille_core::id::{JobId, KeyId, TenantId, WorkspaceId};
use reveille_core::presence::agent::Agent;
use reveille_core::presence::delegation::{Delegation, DelegationStatus};
use reveille_core::presence::workspace::{Pulse, Workspace, WorkspaceStatus};
use reveille_core::presence::{About, Contract};
use reveille_core::time::Millis;
use std::sync::Arc;

/// When everything in the suite happens, unless a check says otherwise.
pub const NOW: Millis = Millis(1_000_000);

/// Runs every check, in order.
pub async fn run(roster: &Arc<dyn Roster>) {
    keys::run(&**roster).await;
    sessions::run(&**roster).await;
    presence::run(roster).await;
    workspaces::run(&**roster).await;
    events::run(&**roster).await;
    delegations::run(&**roster).await;
    drains::run(&**roster).await;
    batches::run(&**roster).await;
    generations::run(roster).await;
    pruning::run(&**roster).await;
}

/// Writes one change, which must go through.
pub async fn write(roster: &dyn Roster, change: Change) {
    roster.write(vec![change]).await.unwrap();
}

/// A key whose hash is its number, of the tenant that is named after the check.
pub fn key(check: &str, number: u8) -> KeyRecord {
    let mut hash = [number; 32];
    hash[..check.len().min(31)].copy_from_slice(&check.as_bytes()[..check.len().min(31)]);
    KeyRecord {
        id: KeyId::known(format!("{check}-{number}")),
        hash,
        prefix: "vk_1234".to_owned(),
        name: "größe \"\u{1f980}".to_owned(),
        tenant: TenantId::known(check),
        scopes: vec![Scope::Ingest],
        worker: None,
        public_key: None,
        created_by: "ann".to_owned(),
        issued_by: None,
        project_ids: Some(vec!["voice".to_owned()]),
        created_at: NOW,
        expires_at: None,
        replaces: None,
        replaced_by: None,
        revoked_at: None,
        revoked_by: String::new(),
        last_used_at: None,
    }
}

pub fn agent(tenant: &str, id: &str, last_seen: Millis) -> PresenceRow {
    let about = Agent { name: id.to_owned(), cpu_pct: Some(12.5), ..Agent::default() };
    PresenceRow {
        key: PresenceKey {
            contract: Contract::VoiceGateway,
            tenant: TenantId::known(tenant),
            id: id.to_owned(),
        },
        last_seen,
        about: About::Agent(Box::new(about)),
    }
}

/// The presence of a workspace.
pub fn pulse(workspace: &Workspace, last_seen: Millis) -> PresenceRow {
    PresenceRow {
        key: PresenceKey {
            contract: Contract::Molecule,
            tenant: workspace.tenant.clone(),
            id: workspace.id.as_str().to_owned(),
        },
        last_seen,
        about: About::Workspace(Box::new(Pulse { active_tasks: 3, ..Pulse::default() })),
    }
}

/// A workspace called `<tenant>-<name>`.
pub fn workspace(tenant: &str, name: &str) -> Workspace {
    Workspace {
        id: WorkspaceId::known(format!("{tenant}-{name}")),
        tenant: TenantId::known(tenant),
        status: WorkspaceStatus::Provisioning,
        name: name.to_owned(),
        role: None,
        tier: 2,
        runtime: None,
        url: None,
        agent_card: None,
        parent_id: None,
        forwarded_to: None,
        token_hash: Some([9; 32]),
        max_concurrent_tasks: None,
        x: -1.5,
        y: 0.25,
        collapsed: true,
        created_at: NOW,
        updated_at: NOW,
    }
}

/// An event of a workspace, with the id `<workspace>-<name>`.
pub fn event(workspace: &Workspace, name: &str, created_at: Millis) -> StructureEvent {
    StructureEvent {
        id: format!("{}-{name}", workspace.id),
        tenant: workspace.tenant.clone(),
        kind: "WORKSPACE_ONLINE".to_owned(),
        workspace: workspace.id.clone(),
        target: None,
        payload: serde_json::json!({ "name": name, "deep": [1, { "er": null }] }),
        created_at,
    }
}

/// A delegation that is a job, with the id `<source>-<name>`.
pub fn delegation(source: &Workspace, name: &str, status: DelegationStatus, at: Millis) -> Delegation {
    Delegation {
        id: JobId::known(format!("{}-{name}", source.id)),
        tenant: source.tenant.clone(),
        source: source.id.clone(),
        target: WorkspaceId::known("target"),
        summary: "do it".to_owned(),
        status,
        error: None,
        response_preview: None,
        is_job: true,
        created_at: at,
        updated_at: at,
    }
}
