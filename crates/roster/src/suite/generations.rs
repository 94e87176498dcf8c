//! Generations grow with what they are named after, and with nothing else.

use super::{NOW, agent, delegation, event, key, workspace};
use crate::{Change, EndedSessions, Generations, KeyRecord, Roster, Tenant};
use reveille_core::id::{KeyId, SessionId, TenantId, WorkerId};
use reveille_core::presence::delegation::DelegationStatus;
use reveille_core::presence::{Drain, Drained};
use std::sync::Arc;

pub async fn run(roster: &Arc<dyn Roster>) {
    Box::pin(a_generation_grows_with_what_it_is_named_after(&**roster)).await;
    a_refused_batch_moves_no_generation(&**roster).await;
    whoever_sees_a_generation_sees_what_it_counts(roster).await;
}

pub async fn a_generation_grows_with_what_it_is_named_after(roster: &dyn Roster) {
    let (key, workspace) = (key("suite-generation", 1), workspace("suite-generation", "a"));
    let id = || key.id.clone();
    let what = || Drained::Worker(WorkerId::known("suite-generation"));
    let drain = Drain { what: what(), since: NOW, until: NOW, by: String::new() };
    let tenant = Tenant { id: TenantId::known("suite-generation-2"), created_at: NOW };
    let given = delegation(&workspace, "1", DelegationStatus::Failed, NOW);
    let session = Some(SessionId::known("a"));
    let ended = EndedSessions { key: id(), session, until: NOW };
    let replaced =
        Change::ReplaceKey { id: id(), by: KeyId::known("suite-generation-next"), expires_at: NOW };
    let [none, keys, sessions] = [[false; 4], [true, false, false, false], [false, true, false, false]];
    let [workspaces, drains] = [[false, false, true, false], [false, false, false, true]];
    let changes = [
        (Change::Key(key.clone()), keys),
        (Change::RevokeKey { id: id(), at: NOW, by: String::new() }, keys),
        (replaced, keys),
        (Change::EndSessions(ended), sessions),
        (Change::ForgetSessions { over_by: NOW }, none),
        (Change::KeyUsed { id: id(), at: NOW }, none),
        (Change::Tenant(tenant), none),
        (Change::Presence(agent("suite-generation", "a", NOW)), none),
        (Change::Workspace(workspace.clone()), workspaces),
        (Change::Event(event(&workspace, "1", NOW)), none),
        (Change::Delegation(given), none),
        (Change::PurgeWorkspace(workspace.id.clone()), workspaces),
        (Change::Drain(drain), drains),
        (Change::Undrain(what()), drains),
    ];
    let start = roster.generations().await.unwrap();
    for (change, expected) in changes.clone() {
        let words = format!("{change:?}");
        let before = roster.generations().await.unwrap();
        roster.write(vec![change]).await.unwrap();
        assert_eq!(grown(before, roster.generations().await.unwrap()), expected, "{words}");
    }
    roster.write(changes.map(|(change, _)| change).to_vec()).await.unwrap();
    assert_eq!(grown(start, roster.generations().await.unwrap()), [true; 4]);
}

pub async fn a_refused_batch_moves_no_generation(roster: &dyn Roster) {
    let taken = key("suite-unmoved", 1);
    roster.write(vec![Change::Key(taken.clone())]).await.unwrap();
    let before = roster.generations().await.unwrap();
    let rival = KeyRecord { id: KeyId::known("suite-unmoved-rival"), ..taken };
    let batch = vec![Change::Workspace(workspace("suite-unmoved", "a")), Change::Key(rival)];
    roster.write(batch).await.unwrap_err();
    assert_eq!(roster.generations().await.unwrap(), before);
}

pub async fn whoever_sees_a_generation_sees_what_it_counts(roster: &Arc<dyn Roster>) {
    const KEYS: u8 = 30;
    let before = roster.generations().await.unwrap().keys;
    let writer = tokio::spawn({
        let roster = Arc::clone(roster);
        async move {
            for number in 0..KEYS {
                roster.write(vec![Change::Key(key("suite-counted", number))]).await.unwrap();
                tokio::task::yield_now().await;
            }
        }
    });
    let mut counted = 0;
    while counted < u64::from(KEYS) {
        counted = roster.generations().await.unwrap().keys - before;
        let keys = roster.keys().await.unwrap();
        let seen = keys.iter().filter(|key| key.tenant.as_str() == "suite-counted").count();
        assert!(seen as u64 >= counted, "{seen} keys after {counted} writes");
        tokio::task::yield_now().await;
    }
    writer.await.unwrap();
}

/// Which of keys, ended sessions, workspaces and drains have moved. None goes back.
fn grown(before: Generations, after: Generations) -> [bool; 4] {
    let counts = |of: Generations| [of.keys, of.sessions, of.workspaces, of.drains];
    let (before, after) = (counts(before), counts(after));
    std::array::from_fn(|at| {
        assert!(after[at] >= before[at], "{after:?} after {before:?}");
        after[at] > before[at]
    })
}
