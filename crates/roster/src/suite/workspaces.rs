//! Workspaces: kept as they were told, listed by id, purged with all that is theirs.

use super::presence::rows_of;
use super::{NOW, event, pulse, workspace, write};
use crate::{Change, Roster, StructureEventQuery};
use reveille_core::id::{TenantId, WorkspaceId};
use reveille_core::presence::workspace::{Workspace, WorkspaceStatus};
use serde_json::json;
use std::slice;

pub async fn run(roster: &dyn Roster) {
    a_workspace_is_read_back_with_all_that_its_card_says(roster).await;
    removed_workspaces_are_listed_too(roster).await;
    pages_visit_every_workspace_once(roster).await;
    purging_takes_a_workspace_its_presence_and_its_events(roster).await;
}

pub async fn a_workspace_is_read_back_with_all_that_its_card_says(roster: &dyn Roster) {
    let card = json!({
        "name": "größe \"\u{1f980}", "x-unknown": { "deep": [1, 2.5, -3, null, true, { "": "empty" }] },
        "big": u64::MAX, "small": i64::MIN, "text": "\0\n",
    });
    let full = Workspace {
        agent_card: Some(card),
        role: Some("lead".to_owned()),
        url: Some("http://127.0.0.1:1/a2a".to_owned()),
        parent_id: Some(WorkspaceId::known("parent")),
        forwarded_to: Some(WorkspaceId::known("elsewhere")),
        max_concurrent_tasks: Some(4),
        ..workspace("suite-card", "full")
    };
    for written in [workspace("suite-card", "full"), full.clone(), full.clone()] {
        write(roster, Change::Workspace(written)).await;
    }
    assert_eq!(workspaces_of(roster, "suite-card").await, [full]);
}

pub async fn removed_workspaces_are_listed_too(roster: &dyn Roster) {
    let removed = Workspace { status: WorkspaceStatus::Removed, ..workspace("suite-removed", "a") };
    write(roster, Change::Workspace(removed.clone())).await;
    assert_eq!(workspaces_of(roster, "suite-removed").await, [removed]);
}

pub async fn pages_visit_every_workspace_once(roster: &dyn Roster) {
    let written: Vec<_> = (10..30).map(|number| workspace("suite-ws-pages", &number.to_string())).collect();
    roster.write(written.iter().rev().cloned().map(Change::Workspace).collect()).await.unwrap();
    for limit in [1, 6, 1000] {
        let mut visited = Vec::new();
        let mut after = None;
        loop {
            let page = roster.workspaces(after.clone(), limit).await.unwrap();
            assert!(page.len() <= limit);
            let Some(last) = page.last() else { break };
            after = Some(last.id.clone());
            visited.extend(page);
        }
        assert!(visited.is_sorted_by(|one, other| one.id < other.id));
        visited.retain(|workspace| workspace.tenant.as_str() == "suite-ws-pages");
        assert_eq!(visited, written, "in pages of {limit}");
    }
}

pub async fn purging_takes_a_workspace_its_presence_and_its_events(roster: &dyn Roster) {
    let (gone, kept) = (workspace("suite-purge", "gone"), workspace("suite-purge", "kept"));
    let other_tenant = Workspace { tenant: TenantId::known("suite-purge-2"), ..gone.clone() };
    let mut changes = Vec::new();
    for workspace in [&gone, &kept] {
        changes.push(Change::Workspace(workspace.clone()));
        changes.push(Change::Presence(pulse(workspace, NOW)));
        changes.push(Change::Event(event(workspace, "1", NOW)));
        changes.push(Change::Event(event(workspace, "2", NOW)));
    }
    // The same id elsewhere is somebody else.
    changes.push(Change::Presence(pulse(&other_tenant, NOW)));
    roster.write(changes).await.unwrap();

    for _ in 0..2 {
        write(roster, Change::PurgeWorkspace(gone.id.clone())).await;
        assert_eq!(workspaces_of(roster, "suite-purge").await, slice::from_ref(&kept));
        let rows = [pulse(&kept, NOW), pulse(&other_tenant, NOW)];
        assert_eq!(rows_of(roster, "suite-purge").await, rows);
        let query = StructureEventQuery { tenant: kept.tenant.clone(), workspace: None, limit: 10 };
        let events = roster.events(&query).await.unwrap();
        assert_eq!(events, [event(&kept, "2", NOW), event(&kept, "1", NOW)]);
    }
    let tenants = roster.tenants().await.unwrap();
    assert!(tenants.iter().any(|tenant| tenant.id == gone.tenant), "a tenant stays known");
}

async fn workspaces_of(roster: &dyn Roster, tenant: &str) -> Vec<Workspace> {
    let mut workspaces = roster.workspaces(None, 10_000).await.unwrap();
    workspaces.retain(|workspace| workspace.tenant.as_str() == tenant);
    workspaces
}
