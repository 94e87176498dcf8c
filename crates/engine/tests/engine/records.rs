//! What belongs to no job is in the audit trail too, whenever the process died.

use reveille_core::audit::EventType;
use reveille_core::id::{KeyId, TenantId};
use reveille_core::time::Millis;
use reveille_engine::NewKey;
use reveille_roster::{Change, KeyRecord, Roster, Scope};
use reveille_store::{AuditOrder, AuditQuery, AuditTrail};
use reveille_test_kit::{NOON, TestClock, TestServer, TestWorld};
use std::time::Duration;

const DAY_MS: i64 = 24 * 3600 * 1000;

/// A world whose time stands still.
fn world() -> TestWorld {
    TestWorld::with_clock(TestClock::standing_still())
}

async fn start(world: &TestWorld) -> TestServer {
    let server = world.start().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    server
}

/// Entries of this kind, oldest first: what was done, to which key, by whom, how long ago.
async fn told(world: &TestWorld, event_type: EventType) -> Vec<String> {
    let (order, event_type) = (AuditOrder::OldestFirst, Some(event_type));
    let query = AuditQuery { order, event_type, limit: 100, ..AuditQuery::default() };
    let drafts = world.store.audit(&query).await.unwrap().items.into_iter().map(|entry| entry.draft);
    drafts
        .map(|draft| {
            let key = draft.extra.get("name").cloned().unwrap_or_default();
            let ago = NOON.0 - draft.at.0;
            format!("{} {} {key} {} {ago}", draft.tenant, draft.action, draft.identity)
        })
        .collect()
}

fn key(name: &str, created_at: Millis) -> KeyRecord {
    let mut hash = [0; 32];
    hash[..name.len()].copy_from_slice(name.as_bytes());
    KeyRecord {
        id: KeyId::known(name),
        hash,
        prefix: "vk_1234".to_owned(),
        name: name.to_owned(),
        tenant: TenantId::known("acme"),
        scopes: vec![Scope::Read],
        worker: None,
        public_key: None,
        created_by: "ann".to_owned(),
        issued_by: None,
        project_ids: None,
        created_at,
        expires_at: None,
        replaces: None,
        replaced_by: None,
        revoked_at: None,
        revoked_by: String::new(),
        last_used_at: None,
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_change_that_died_before_its_entry_gets_it_at_the_next_start() {
    let world = world();
    let old = key("old", NOON - 91 * DAY_MS);
    let revoke = |id: &str, at| Change::RevokeKey { id: KeyId::known(id), at, by: "bob".to_owned() };
    let changes = vec![
        Change::Key(key("fresh", NOON - 5)),
        Change::Key(key("gone", NOON - 7)),
        revoke("gone", NOON - 3),
        Change::Key(old),
        revoke("old", NOON - 9),
    ];
    world.roster.write(changes).await.unwrap();
    let expected = [
        "acme key_revoked old bob 9",
        "acme key_created gone ann 7",
        "acme key_created fresh ann 5",
        "acme key_revoked gone bob 3",
    ];
    for _ in 0..3 {
        start(&world).await.kill();
        assert_eq!(told(&world, EventType::Auth).await, expected, "once, and not what may have been pruned");
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_from_the_environment_is_recorded_when_it_changes() {
    let world = world();
    let new = |name: &str| NewKey {
        name: name.to_owned(),
        tenant: TenantId::known("default"),
        scopes: vec![Scope::Admin],
        worker: None,
        expires_at: None,
        created_by: "server".to_owned(),
        issued_by: None,
        project_ids: None,
    };
    let mut id = KeyId::known("none");
    for name in ["first", "first", "second"] {
        let engine = start(&world).await;
        id = engine.access().keep_key("a secret of somebody", new(name)).await.unwrap().id;
        engine.kill();
    }
    let engine = start(&world).await;
    for who in ["ann", "bob"] {
        assert!(engine.access().revoke_key(&id, who).await.unwrap());
    }
    assert_eq!(
        told(&world, EventType::Auth).await,
        [
            "default key_created first server 0",
            "default key_created second server 0",
            "default key_revoked second ann 0",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_start_with_the_same_policy_says_nothing_new() {
    let world = world();
    for _ in 0..3 {
        start(&world).await.kill();
    }
    assert_eq!(told(&world, EventType::PolicyChange).await, ["default policy_changed   0"]);
}
