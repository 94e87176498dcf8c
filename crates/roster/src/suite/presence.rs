//! Presence: one row for each member, the latest that is known of it.

use super::{NOW, agent, pulse, workspace, write};
use crate::{AHEAD_MS, Change, PresenceKey, PresenceRow, Roster};
use reveille_core::id::TenantId;
use reveille_core::presence::{About, Contract};
use std::slice;
use std::sync::Arc;
use tokio::task::JoinSet;

const RIVALS: i64 = 16;

pub async fn run(roster: &Arc<dyn Roster>) {
    the_latest_row_is_read_back(&**roster).await;
    a_row_never_goes_back_in_time(&**roster).await;
    a_row_from_a_clock_that_was_set_back_is_replaced(&**roster).await;
    a_member_is_named_by_contract_tenant_and_id(&**roster).await;
    any_text_names_a_member(&**roster).await;
    rivals_leave_one_row_and_the_latest(roster).await;
    pages_visit_every_row_once_in_the_order_of_keys(&**roster).await;
}

pub async fn the_latest_row_is_read_back(roster: &dyn Roster) {
    let workspace = workspace("suite-latest", "w");
    let cap = PresenceRow {
        key: PresenceKey {
            contract: Contract::Cap,
            tenant: TenantId::known("suite-latest"),
            id: "c".to_owned(),
        },
        last_seen: NOW,
        about: About::Cap,
    };
    let mut told = agent("suite-latest", "größe", NOW);
    for row in [&cap, &told, &pulse(&workspace, NOW)] {
        write(roster, Change::Presence(row.clone())).await;
    }
    assert_eq!(rows_of(roster, "suite-latest").await, [cap, told.clone(), pulse(&workspace, NOW)]);
    let About::Agent(about) = &mut told.about else { panic!("an agent") };
    about.active_sessions = 7;
    // In the same millisecond: what was written last counts.
    write(roster, Change::Presence(told.clone())).await;
    assert_eq!(rows_of(roster, "suite-latest").await[1], told);
}

pub async fn a_row_never_goes_back_in_time(roster: &dyn Roster) {
    let newer = agent("suite-back", "a", NOW + 10);
    let older = PresenceRow { about: About::Agent(Box::default()), ..agent("suite-back", "a", NOW + 9) };
    roster.write(vec![Change::Presence(newer.clone()), Change::Presence(older.clone())]).await.unwrap();
    assert_eq!(rows_of(roster, "suite-back").await, slice::from_ref(&newer));
    write(roster, Change::Presence(older)).await;
    assert_eq!(rows_of(roster, "suite-back").await, [newer]);
}

pub async fn a_row_from_a_clock_that_was_set_back_is_replaced(roster: &dyn Roster) {
    let ahead = agent("suite-ahead", "a", NOW + AHEAD_MS);
    let now = PresenceRow { about: About::Agent(Box::default()), ..agent("suite-ahead", "a", NOW) };
    roster.write(vec![Change::Presence(ahead.clone()), Change::Presence(now.clone())]).await.unwrap();
    assert_eq!(rows_of(roster, "suite-ahead").await, [ahead], "a writer may be that far behind");
    let too_far = agent("suite-ahead", "a", NOW + AHEAD_MS + 1);
    roster.write(vec![Change::Presence(too_far), Change::Presence(now.clone())]).await.unwrap();
    assert_eq!(rows_of(roster, "suite-ahead").await, [now]);
}

pub async fn a_member_is_named_by_contract_tenant_and_id(roster: &dyn Roster) {
    let mut rows = Vec::new();
    for contract in Contract::ALL {
        for tenant in ["suite-named-1", "suite-named-2"] {
            let row = agent(tenant, "same", NOW);
            rows.push(PresenceRow { key: PresenceKey { contract, ..row.key.clone() }, ..row });
        }
    }
    roster.write(rows.iter().cloned().map(Change::Presence).collect()).await.unwrap();
    assert_eq!(rows_of(roster, "suite-named-").await, rows);
}

pub async fn any_text_names_a_member(roster: &dyn Roster) {
    let ids =
        ["\0", "\0\0", "\0\u{1}", "\u{1}", "\u{1}\0", "\u{1}\u{2}", "\u{2}", "a\0b", "a\u{7f}", "\u{1f980}"];
    let rows = ids.map(|id| agent("suite-texts", id, NOW));
    roster.write(rows.iter().rev().cloned().map(Change::Presence).collect()).await.unwrap();
    assert_eq!(rows_of(roster, "suite-texts").await, rows);
    for pair in rows.windows(2) {
        assert_eq!(roster.presence(Some(pair[0].key.clone()), 1).await.unwrap(), pair[1..]);
    }
}

pub async fn rivals_leave_one_row_and_the_latest(roster: &Arc<dyn Roster>) {
    let mut rivals = JoinSet::new();
    for number in 0..RIVALS {
        let roster = Arc::clone(roster);
        rivals.spawn(async move {
            write(&*roster, Change::Presence(agent("suite-rivals", "a", NOW + number))).await;
        });
    }
    rivals.join_all().await;
    let latest = agent("suite-rivals", "a", NOW + RIVALS - 1);
    assert_eq!(rows_of(&**roster, "suite-rivals").await, [latest]);
}

pub async fn pages_visit_every_row_once_in_the_order_of_keys(roster: &dyn Roster) {
    let mut rows: Vec<_> = (0..25)
        .map(|number| agent(&format!("suite-pages-{}", number % 3), &number.to_string(), NOW))
        .collect();
    let names = ["w", "W", "~", "a.b"];
    rows.extend(names.map(|name| pulse(&workspace("suite-pages-4", name), NOW)));
    roster.write(rows.iter().cloned().map(Change::Presence).collect()).await.unwrap();
    rows.sort_by(|one, other| one.key.cmp(&other.key));
    for limit in [1, 7, 1000] {
        let mut visited = Vec::new();
        let mut after = None;
        loop {
            let page = roster.presence(after.clone(), limit).await.unwrap();
            assert!(page.len() <= limit);
            let Some(last) = page.last() else { break };
            after = Some(last.key.clone());
            visited.extend(page);
        }
        assert!(visited.is_sorted_by(|one, other| one.key < other.key));
        visited.retain(|row| row.key.tenant.as_str().starts_with("suite-pages-"));
        assert_eq!(visited, rows, "in pages of {limit}");
    }
    assert_eq!(roster.presence(None, 0).await.unwrap(), []);
}

/// The rows of tenants whose names begin so.
pub(super) async fn rows_of(roster: &dyn Roster, tenants: &str) -> Vec<PresenceRow> {
    let mut rows = roster.presence(None, 10_000).await.unwrap();
    rows.retain(|row| row.key.tenant.as_str().starts_with(tenants));
    rows
}
