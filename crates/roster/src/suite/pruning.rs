//! Pruning takes what is old and over, the oldest first, and no more than it was told to.

use super::presence::rows_of;
use super::{NOW, agent, delegation, event, pulse, workspace};
use crate::{Change, PresenceKey, PresenceRow, Roster, StructureEventQuery};
use reveille_core::presence::delegation::{Delegation, DelegationStatus};
use reveille_core::presence::{About, Contract};
use reveille_core::time::Millis;

const NOTHING: Millis = Millis::ZERO;

pub async fn run(roster: &dyn Roster) {
    // All that the other checks left, so that the counts below are of one check only.
    while roster.prune(NOW + 1_000_000, NOW + 1_000_000, 1000).await.unwrap() > 0 {}
    whoever_was_not_seen_for_long_goes(roster).await;
    a_workspace_that_is_there_keeps_its_presence(roster).await;
    old_events_and_delegations_go_unless_they_are_open(roster).await;
}

pub async fn whoever_was_not_seen_for_long_goes(roster: &dyn Roster) {
    let mut rows: Vec<_> = (0..5).map(|n| agent("suite-unseen", &(9 - n).to_string(), NOW + n)).collect();
    let worker = agent("suite-unseen", "worker", NOW + 1);
    let key = PresenceKey { contract: Contract::Cap, ..worker.key.clone() };
    rows.push(PresenceRow { key, about: About::Cap, ..worker });
    roster.write(rows.iter().cloned().map(Change::Presence).collect()).await.unwrap();

    assert_eq!(roster.prune(NOW, NOTHING, 100).await.unwrap(), 0, "seen just then");
    assert_eq!(roster.prune(NOW + 4, NOTHING, 3).await.unwrap(), 3, "no more than it was told to");
    let left = [4, 3, 2].map(|index: usize| rows[index].clone());
    assert_eq!(rows_of(roster, "suite-unseen").await, left, "the oldest went");
    assert_eq!(roster.prune(NOW + 4, NOTHING, 3).await.unwrap(), 2);
    assert_eq!(roster.prune(NOW + 4, NOTHING, 3).await.unwrap(), 0);
    assert_eq!(rows_of(roster, "suite-unseen").await, [rows[4].clone()]);
}

pub async fn a_workspace_that_is_there_keeps_its_presence(roster: &dyn Roster) {
    let (kept, gone) = (workspace("suite-unpruned", "kept"), workspace("suite-unpruned", "gone"));
    // A late beat of a workspace that was purged: nobody else would take it out.
    let changes = vec![
        Change::Workspace(kept.clone()),
        Change::Presence(pulse(&kept, NOW)),
        Change::Presence(pulse(&gone, NOW)),
    ];
    roster.write(changes).await.unwrap();
    assert_eq!(roster.prune(NOW + 1, NOTHING, 100).await.unwrap(), 1);
    assert_eq!(rows_of(roster, "suite-unpruned").await, [pulse(&kept, NOW)]);
}

pub async fn old_events_and_delegations_go_unless_they_are_open(roster: &dyn Roster) {
    let workspace = workspace("suite-old", "a");
    let events: Vec<_> = (0..4).map(|n| event(&workspace, &n.to_string(), NOW + n)).collect();
    let given = |name, status, at| delegation(&workspace, name, status, NOW + at);
    let open = given("open", DelegationStatus::InProgress, 0);
    let ended = given("ended", DelegationStatus::Completed, 0);
    let failed = given("failed", DelegationStatus::Failed, 1);
    let told = Delegation { is_job: false, ..given("told", DelegationStatus::Dispatched, 2) };
    // Given long ago, ended just now.
    let recent = Delegation { updated_at: NOW + 3, ..given("recent", DelegationStatus::Completed, 0) };
    let mut changes: Vec<_> = events.iter().cloned().map(Change::Event).collect();
    changes.extend([&open, &ended, &failed, &told, &recent].map(|given| Change::Delegation(given.clone())));
    roster.write(changes).await.unwrap();

    assert_eq!(roster.prune(NOTHING, NOW, 100).await.unwrap(), 0);
    assert_eq!(roster.prune(NOTHING, NOW + 3, 2).await.unwrap(), 4, "at most two of each");
    let query = StructureEventQuery { tenant: workspace.tenant.clone(), workspace: None, limit: 10 };
    assert_eq!(roster.events(&query).await.unwrap(), [events[3].clone(), events[2].clone()]);
    assert_eq!(roster.delegation(&told.id).await.unwrap(), Some(told), "the oldest went first");

    assert_eq!(roster.prune(NOTHING, NOW + 3, 2).await.unwrap(), 2);
    assert_eq!(roster.prune(NOTHING, NOW + 3, 2).await.unwrap(), 0);
    assert_eq!(roster.events(&query).await.unwrap(), [events[3].clone()]);
    let mut left = roster.delegations_of(&workspace.id, 10).await.unwrap();
    left.sort_by(|one, other| one.id.cmp(&other.id));
    assert_eq!(left, [open, recent]);
}
