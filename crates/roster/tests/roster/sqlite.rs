//! What the file promises beyond the port, and how fast it takes beats.

use reveille_core::id::{TenantId, WorkerId};
use reveille_core::presence::delegation::DelegationStatus;
use reveille_core::presence::{Drain, Drained};
use reveille_core::time::Millis;
use reveille_roster::suite::{self, NOW, agent, delegation, event, key, pulse, workspace};
use reveille_roster::{
    Change, Generations, Roster, RosterError, Scope, SqliteRoster, StructureEventQuery, Tenant,
};
use reveille_store::SqliteStore;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::Arc;
use std::time::Instant;
use tempfile::TempDir;

/// A data file in a directory of its own, which goes when this goes.
struct Place {
    _directory: TempDir,
    path: PathBuf,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data.db");
        Self { _directory: directory, path }
    }

    fn store(&self) -> SqliteStore {
        SqliteStore::open(&self.path, Arc::new(|| NOW)).unwrap()
    }

    /// The roster keeps the file open; the store need not stay.
    async fn open(&self) -> SqliteRoster {
        SqliteRoster::open(self.store().file()).await.unwrap()
    }
}

/// Changes the file behind the roster's back.
fn tamper(path: &Path, sql: &str) {
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sqlite_roster_keeps_the_promises_of_the_port() {
    let place = Place::new();
    let roster: Arc<dyn Roster> = Arc::new(place.open().await);
    suite::run(&roster).await;
}

#[tokio::test]
async fn a_reopened_file_has_everything_it_had() {
    let place = Place::new();
    let roster = place.open().await;
    let workspace = workspace("reopen", "a");
    let what = Drained::Worker(WorkerId::known("w"));
    let drain = Drain { what, since: NOW, until: NOW + 1, by: "operator".to_owned() };
    let given = delegation(&workspace, "1", DelegationStatus::Pending, NOW);
    let rows = [agent("reopen", "a", NOW), pulse(&workspace, NOW)];
    let mut changes = vec![
        Change::Key(key("reopen", 1)),
        Change::Workspace(workspace.clone()),
        Change::Event(event(&workspace, "1", NOW)),
        Change::Delegation(given.clone()),
        Change::Drain(drain.clone()),
    ];
    changes.extend(rows.clone().map(Change::Presence));
    roster.write(changes).await.unwrap();
    drop(roster);

    let roster = place.open().await;
    assert_eq!(roster.keys().await.unwrap(), [key("reopen", 1)]);
    let tenant = Tenant { id: TenantId::known("reopen"), created_at: NOW };
    assert_eq!(roster.tenants().await.unwrap(), [tenant]);
    assert_eq!(roster.presence(None, 10).await.unwrap(), rows);
    assert_eq!(roster.workspaces(None, 10).await.unwrap(), slice::from_ref(&workspace));
    let query = StructureEventQuery {
        tenant: workspace.tenant.clone(),
        workspace: Some(workspace.id.clone()),
        limit: 10,
    };
    assert_eq!(roster.events(&query).await.unwrap(), [event(&workspace, "1", NOW)]);
    assert_eq!(roster.open_delegations(None, 10).await.unwrap(), [given]);
    assert_eq!(roster.drains().await.unwrap(), [drain]);
}

#[tokio::test]
async fn a_newer_roster_is_refused_and_says_so() {
    let place = Place::new();
    drop(place.open().await);
    tamper(&place.path, "UPDATE roster_schema SET version = 2");
    let error = SqliteRoster::open(place.store().file()).await.err().unwrap();
    assert_eq!(error, RosterError::Newer { found: 2, known: 1 });
    assert!(error.to_string().contains("newer version"), "{error}");
    assert!(!error.is_transient());
}

#[tokio::test]
async fn the_keys_that_the_first_store_had_are_taken_over() {
    let place = Place::new();
    drop(place.store());
    tamper(
        &place.path,
        r#"CREATE TABLE keys (id TEXT NOT NULL PRIMARY KEY, hash BLOB NOT NULL UNIQUE, record TEXT NOT NULL);
           INSERT INTO keys VALUES ('key_1', zeroblob(32), '{"id":"key_1","hash":[0,0,0,0,0,0,0,0,0,0,0,0,
               0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],"name":"operator","tenant":"default",
               "scopes":["admin"],"created_at":7,"expires_at":null,"revoked_at":null}');
           INSERT INTO keys VALUES ('key_2', x'01', 'nonsense');"#,
    );
    let roster = place.open().await;
    let keys = roster.keys().await.unwrap();
    let [key] = &keys[..] else { panic!("{keys:?}") };
    assert_eq!((key.name.as_str(), key.hash, &key.scopes[..]), ("operator", [0; 32], &[Scope::Admin][..]));
    let tenant = Tenant { id: TenantId::known("default"), created_at: Millis(7) };
    assert_eq!(roster.tenants().await.unwrap(), [tenant]);
}

#[tokio::test]
async fn a_file_from_before_there_were_generations_counts_from_now_on() {
    let place = Place::new();
    drop(place.open().await);
    tamper(&place.path, "DROP TABLE generations");
    let roster = place.open().await;
    assert_eq!(roster.generations().await.unwrap(), Generations::default());
    roster.write(vec![Change::Key(key("before", 1))]).await.unwrap();
    drop(roster);
    let counted = place.open().await.generations().await.unwrap();
    assert_eq!(counted, Generations { keys: 1, ..Generations::default() });
}

#[tokio::test]
async fn one_row_that_cannot_be_read_hides_no_other_and_shortens_no_page() {
    let place = Place::new();
    let roster = place.open().await;
    let rows = ["a", "b", "c", "d"].map(|id| agent("unreadable", id, NOW));
    roster.write(rows.clone().map(Change::Presence).to_vec()).await.unwrap();
    let given = delegation(&workspace("unreadable", "a"), "1", DelegationStatus::Pending, NOW);
    roster.write(vec![Change::Delegation(given.clone())]).await.unwrap();
    drop(roster);
    tamper(
        &place.path,
        "UPDATE presence SET about = 'nonsense' WHERE id = 'b';
         UPDATE presence SET about = x'ff' WHERE id = 'c';
         UPDATE delegations SET record = 'nonsense';",
    );
    let roster = place.open().await;
    assert_eq!(roster.presence(None, 2).await.unwrap(), [rows[0].clone(), rows[3].clone()]);
    let error = roster.delegation(&given.id).await.unwrap_err();
    assert!(matches!(error, RosterError::Corrupt(_)), "{error}");
}

/// `cargo test --release -p reveille-roster -- --ignored --nocapture rows_a_second`
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn presence_rows_a_second() {
    const MEMBERS: i64 = 100_000;
    const BATCH_LEN: i64 = 1000;
    let place = Place::new();
    let roster = place.open().await;
    // In an order like that of beats, and in the order of keys: then a batch touches few pages.
    for (round, stride) in [7, 7919, 104_729, 1, 1].into_iter().enumerate() {
        let start = Instant::now();
        for batch in 0..MEMBERS / BATCH_LEN {
            let row = |n| {
                let number = (batch * BATCH_LEN + n) * stride % MEMBERS;
                Change::Presence(agent("default", &format!("agent-{number:06}"), NOW + round as i64))
            };
            roster.write((0..BATCH_LEN).map(row).collect()).await.unwrap();
        }
        let what = if round == 0 { "inserted" } else { "updated" };
        let order = if stride == 1 { "in the order of keys" } else { "in any order" };
        println!("{:.0} rows/s {what} {order}", MEMBERS as f64 / start.elapsed().as_secs_f64());
    }
    let start = Instant::now();
    assert_eq!(roster.prune(NOW, NOW, 1000).await.unwrap(), 0);
    println!("looked for the unseen among {MEMBERS} in {:?}", start.elapsed());
    let start = Instant::now();
    assert_eq!(roster.presence(None, MEMBERS as usize).await.unwrap().len(), MEMBERS as usize);
    println!("read all {MEMBERS} in {:?}", start.elapsed());
}
