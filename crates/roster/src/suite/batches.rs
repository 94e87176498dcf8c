//! A batch is made whole and in order, or not at all.

use super::presence::rows_of;
use super::{NOW, agent, delegation, event, key, pulse, workspace};
use crate::{Change, KeyRecord, Roster, RosterError, StructureEventQuery, Tenant};
use reveille_core::id::{KeyId, TenantId};
use reveille_core::presence::delegation::DelegationStatus;
use std::slice;

pub async fn run(roster: &dyn Roster) {
    changes_are_made_in_their_order(roster).await;
    a_batch_with_a_change_that_is_refused_leaves_nothing(roster).await;
    an_empty_batch_is_no_trouble(roster).await;
}

pub async fn changes_are_made_in_their_order(roster: &dyn Roster) {
    let workspace = workspace("suite-order", "a");
    let make = || {
        [
            Change::Workspace(workspace.clone()),
            Change::Presence(pulse(&workspace, NOW)),
            Change::Event(event(&workspace, "1", NOW)),
        ]
    };
    let purge = || [Change::PurgeWorkspace(workspace.id.clone())];
    roster.write(make().into_iter().chain(purge()).collect()).await.unwrap();
    assert_eq!(rows_of(roster, "suite-order").await, []);
    roster.write(make().into_iter().chain(purge()).chain(make()).collect()).await.unwrap();
    assert_eq!(rows_of(roster, "suite-order").await, [pulse(&workspace, NOW)]);
}

pub async fn a_batch_with_a_change_that_is_refused_leaves_nothing(roster: &dyn Roster) {
    let taken = key("suite-whole-key", 1);
    roster.write(vec![Change::Key(taken.clone())]).await.unwrap();

    let workspace = workspace("suite-whole", "a");
    let given = delegation(&workspace, "1", DelegationStatus::Pending, NOW);
    let rival = KeyRecord { id: KeyId::known("suite-whole-rival"), ..taken.clone() };
    let others = || {
        vec![
            Change::Workspace(workspace.clone()),
            Change::Presence(agent("suite-whole", "a", NOW)),
            Change::Event(event(&workspace, "1", NOW)),
            Change::Delegation(given.clone()),
            Change::Tenant(Tenant { id: TenantId::known("suite-whole-tenant"), created_at: NOW }),
            Change::RevokeKey { id: taken.id.clone(), at: NOW, by: "bob".to_owned() },
        ]
    };
    for place in 0..=others().len() {
        let mut batch = others();
        batch.insert(place, Change::Key(rival.clone()));
        let refusal = roster.write(batch).await.unwrap_err();
        assert!(matches!(refusal, RosterError::Refused(_)), "{refusal}");
        assert!(!refusal.is_transient());

        assert_eq!(rows_of(roster, "suite-whole").await, []);
        let query = StructureEventQuery { tenant: workspace.tenant.clone(), workspace: None, limit: 10 };
        assert_eq!(roster.events(&query).await.unwrap(), []);
        assert_eq!(roster.delegation(&given.id).await.unwrap(), None);
        let workspaces = roster.workspaces(None, 10_000).await.unwrap();
        assert!(!workspaces.iter().any(|other| other.id == workspace.id));
        let tenants = roster.tenants().await.unwrap();
        assert!(!tenants.iter().any(|tenant| tenant.id.as_str() == "suite-whole-tenant"));
        let keys = roster.keys().await.unwrap();
        let ours: Vec<_> = keys.into_iter().filter(|key| key.hash == taken.hash).collect();
        assert_eq!(ours, slice::from_ref(&taken), "neither a second one nor revoked");
    }
    roster.write(others()).await.unwrap();
    assert_eq!(rows_of(roster, "suite-whole").await, [agent("suite-whole", "a", NOW)]);
}

pub async fn an_empty_batch_is_no_trouble(roster: &dyn Roster) {
    roster.write(Vec::new()).await.unwrap();
}
