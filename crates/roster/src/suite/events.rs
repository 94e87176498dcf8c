//! Structure events: appended once, told newest first, to their own tenant.

use super::{NOW, event, workspace, write};
use crate::{Change, Roster, StructureEvent, StructureEventQuery};
use reveille_core::id::{TenantId, WorkspaceId};
use reveille_core::presence::workspace::Workspace;
use serde_json::json;
use std::slice;

pub async fn run(roster: &dyn Roster) {
    the_newest_event_comes_first(roster).await;
    an_event_that_is_there_stays_as_it_is(roster).await;
    a_tenant_sees_its_own_events_only(roster).await;
}

pub async fn the_newest_event_comes_first(roster: &dyn Roster) {
    let (one, other) = (workspace("suite-newest", "one"), workspace("suite-newest", "other"));
    let oldest = event(&one, "z", NOW);
    let middle = StructureEvent { target: Some(one.id.clone()), ..event(&other, "m", NOW + 1) };
    let newest = event(&one, "a", NOW + 2);
    // Of two in one millisecond, the id decides: it is ordered by time.
    let and_after = event(&one, "b", NOW + 2);
    for event in [&middle, &and_after, &oldest, &newest] {
        write(roster, Change::Event(event.clone())).await;
    }
    let all = [&and_after, &newest, &middle, &oldest].map(Clone::clone);
    assert_eq!(events_of(roster, &one, None, 10).await, all);
    assert_eq!(events_of(roster, &one, None, 2).await, all[..2]);
    assert_eq!(events_of(roster, &one, Some(&one.id), 10).await, [and_after.clone(), newest, oldest]);
    assert_eq!(events_of(roster, &one, Some(&one.id), 1).await, [and_after]);
    assert_eq!(events_of(roster, &one, Some(&other.id), 10).await, [middle]);
}

pub async fn an_event_that_is_there_stays_as_it_is(roster: &dyn Roster) {
    let workspace = workspace("suite-twice", "a");
    let first = event(&workspace, "1", NOW);
    let second = StructureEvent { payload: json!("other"), created_at: NOW + 5, ..first.clone() };
    for event in [&first, &second, &first] {
        write(roster, Change::Event(event.clone())).await;
    }
    assert_eq!(events_of(roster, &workspace, None, 10).await, [first]);
}

pub async fn a_tenant_sees_its_own_events_only(roster: &dyn Roster) {
    let mine = workspace("suite-mine", "a");
    // Somebody else's workspace with my id: they are told nothing of mine.
    let theirs = Workspace { tenant: TenantId::known("suite-theirs"), ..mine.clone() };
    let my_event = event(&mine, "mine", NOW);
    let their_event = event(&theirs, "theirs", NOW);
    roster.write([&my_event, &their_event].map(|event| Change::Event(event.clone())).to_vec()).await.unwrap();
    for workspace in [None, Some(&mine.id)] {
        assert_eq!(events_of(roster, &mine, workspace, 10).await, slice::from_ref(&my_event));
        assert_eq!(events_of(roster, &theirs, workspace, 10).await, slice::from_ref(&their_event));
    }
    let nobody = workspace("suite-nobody", "a");
    assert_eq!(events_of(roster, &nobody, Some(&mine.id), 10).await, []);
}

async fn events_of(
    roster: &dyn Roster,
    asking: &Workspace,
    workspace: Option<&WorkspaceId>,
    limit: usize,
) -> Vec<StructureEvent> {
    let query = StructureEventQuery { tenant: asking.tenant.clone(), workspace: workspace.cloned(), limit };
    roster.events(&query).await.unwrap()
}
