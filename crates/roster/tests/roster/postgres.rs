//! What PostgreSQL promises beyond the port.

mod guarded;

use reveille_core::id::KeyId;
use reveille_core::presence::delegation::DelegationStatus;
use reveille_roster::suite::{self, NOW, agent, delegation, key, workspace};
use reveille_roster::{Change, PostgresOptions, PostgresRoster, Roster, RosterError, StructureEventQuery};
use reveille_test_servers::{Postgres, Wire};
use sqlx::postgres::PgConnection;
use sqlx::{Connection, Row};
use std::slice;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::watch;
use tokio::task::JoinSet;

async fn open(url: &str) -> PostgresRoster {
    PostgresRoster::open(&PostgresOptions::new(url)).await.unwrap()
}

/// A session of its own, behind the roster's back.
async fn session(url: &str) -> PgConnection {
    PgConnection::connect(url).await.unwrap()
}

async fn tamper(url: &str, sql: &'static str) {
    sqlx::raw_sql(sql).execute(&mut session(url).await).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_postgres_roster_keeps_the_promises_of_the_port() {
    let server = Postgres::start();
    let roster: Arc<dyn Roster> = Arc::new(open(&server.database()).await);
    suite::run(&roster).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_that_start_together_make_the_tables_once() {
    let server = Postgres::start();
    let url = server.database();
    let mut replicas = JoinSet::new();
    for _ in 0..8 {
        let url = url.clone();
        replicas.spawn(async move { open(&url).await });
    }
    for (number, roster) in replicas.join_all().await.into_iter().enumerate() {
        let row = agent("together", &number.to_string(), NOW);
        roster.write(vec![Change::Presence(row.clone())]).await.unwrap();
        assert_eq!(roster.presence(None, 100).await.unwrap().last(), Some(&row));
    }
    let mut session = session(&url).await;
    let made = sqlx::query("SELECT count(*) FROM reveille_migrations").fetch_one(&mut session);
    assert_eq!(made.await.unwrap().get::<i64, _>(0), 2);
}

#[tokio::test]
async fn a_newer_roster_is_refused_left_alone_and_holds_up_nobody() {
    let server = Postgres::start();
    let url = server.database();
    let running = open(&url).await;
    tamper(
        &url,
        "INSERT INTO reveille_migrations (version, description, success, checksum, execution_time)
         VALUES (3, 'later', true, '', 0); CREATE TABLE later ()",
    )
    .await;
    for _ in 0..2 {
        let error = PostgresRoster::open(&PostgresOptions::new(&url)).await.err().unwrap();
        assert_eq!(error, RosterError::Newer { found: 3, known: 2 });
        assert!(!error.is_transient());
    }
    // While versions are mixed, whoever runs goes on.
    running.write(vec![Change::Presence(agent("newer", "a", NOW))]).await.unwrap();
    tamper(&url, "SELECT * FROM later; DELETE FROM reveille_migrations WHERE version = 3").await;
    assert_eq!(open(&url).await.presence(None, 10).await.unwrap(), [agent("newer", "a", NOW)]);
}

#[tokio::test]
async fn somebody_elses_database_is_refused_and_left_alone() {
    let server = Postgres::start();
    let url = server.database();
    tamper(&url, "CREATE TABLE keys (theirs TEXT)").await;
    let error = PostgresRoster::open(&PostgresOptions::new(&url)).await.err().unwrap();
    assert!(
        matches!(&error, RosterError::Refused(words) if words.contains("\"keys\" already exists")),
        "{error}"
    );
    tamper(&url, "SELECT theirs FROM keys").await;
}

#[tokio::test]
async fn one_row_that_cannot_be_read_hides_no_other_and_shortens_no_page() {
    let server = Postgres::start();
    let url = server.database();
    let roster = open(&url).await;
    let rows = ["a", "b", "c", "d"].map(|id| agent("unreadable", id, NOW));
    let given = delegation(&workspace("unreadable", "a"), "1", DelegationStatus::Pending, NOW);
    let events = ["1", "2", "3"].map(|id| suite::event(&workspace("unreadable", "a"), id, NOW));
    let mut changes = vec![Change::Delegation(given.clone()), Change::Key(key("unreadable", 1))];
    changes.push(Change::Key(key("unreadable", 2)));
    changes.extend(rows.clone().map(Change::Presence));
    changes.extend(events.clone().map(Change::Event));
    roster.write(changes).await.unwrap();
    tamper(
        &url,
        "UPDATE presence SET about = 'nonsense' WHERE id = 'b'; UPDATE presence SET about = '' WHERE id = 'c';
         INSERT INTO presence VALUES (9, 'unreadable', 'z', 1, '{}');
         UPDATE structure_events SET record = 'nonsense' WHERE id LIKE '%2';
         UPDATE keys SET record = 'nonsense' WHERE id LIKE '%1'; UPDATE delegations SET record = 'nonsense';",
    )
    .await;
    assert_eq!(roster.presence(None, 2).await.unwrap(), [rows[0].clone(), rows[3].clone()]);
    assert_eq!(roster.presence(None, 9).await.unwrap().len(), 2);
    let query = StructureEventQuery { tenant: given.tenant.clone(), workspace: None, limit: 2 };
    assert_eq!(roster.events(&query).await.unwrap(), [events[2].clone(), events[0].clone()]);
    assert_eq!(roster.keys().await.unwrap(), [key("unreadable", 2)]);
    assert_eq!(roster.open_delegations(None, 9).await.unwrap(), []);
    let error = roster.delegation(&given.id).await.unwrap_err();
    assert!(matches!(error, RosterError::Corrupt(_)), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn what_was_answered_survives_kill_9_and_the_roster_goes_on_without_being_opened_again() {
    const KILLS: usize = 4;
    let mut server = Postgres::start();
    let roster = open(&server.database()).await;
    let row = |number: usize| agent("killed", &format!("{number:06}"), NOW);
    let (count, mut answered) = watch::channel(0);
    let writer = tokio::spawn({
        let roster = roster.clone();
        async move {
            while *count.borrow() < 20 * (KILLS + 1) {
                let number = *count.borrow();
                match roster.write(vec![Change::Presence(row(number))]).await {
                    Ok(()) => count.send_modify(|count| *count += 1),
                    Err(error) => assert!(error.is_transient(), "{error}"),
                }
            }
        }
    });
    for kill in 1..=KILLS {
        answered.wait_for(|count| *count >= 20 * kill).await.unwrap();
        server.server().kill();
        let so_far = *answered.borrow();
        server.server().restart();
        let kept = roster.presence(None, so_far).await.unwrap();
        assert_eq!(kept, (0..so_far).map(row).collect::<Vec<_>>());
    }
    writer.await.unwrap();
}

#[tokio::test]
async fn a_database_that_is_away_is_unavailable_until_it_is_back() {
    let mut server = Postgres::start();
    let url = server.database();
    let roster = open(&url).await;
    let row = agent("away", "a", NOW);
    roster.write(vec![Change::Presence(row.clone())]).await.unwrap();
    server.server().kill();
    for _ in 0..2 {
        let error = roster.presence(None, 1).await.unwrap_err();
        assert!(matches!(error, RosterError::Unavailable(_)), "{error}");
    }
    let error = PostgresRoster::open(&PostgresOptions::new(&url)).await.err().unwrap();
    assert!(matches!(error, RosterError::Unavailable(_)), "{error}");
    server.server().restart();
    assert_eq!(roster.presence(None, 1).await.unwrap(), slice::from_ref(&row));
}

/// The clock stands still while everybody waits for the network, and then jumps to whoever gives up first.
#[tokio::test]
async fn a_database_that_says_nothing_is_given_up_on_and_used_again_later() {
    let server = Postgres::start();
    let wire = Wire::to(server.port()).await;
    let roster = open(&wire.address_of(&server.database())).await;
    let row = agent("silent", "a", NOW);
    roster.write(vec![Change::Presence(row.clone())]).await.unwrap();
    wire.hush();
    tokio::time::pause();
    // More often than the pool has connections: none is lost.
    for _ in 0..20 {
        let error = roster.presence(None, 1).await.unwrap_err();
        assert!(matches!(error, RosterError::Unavailable(_)), "{error}");
    }
    tokio::time::resume();
    wire.talk();
    assert_eq!(roster.presence(None, 1).await.unwrap(), slice::from_ref(&row));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_that_write_the_same_rows_do_not_stand_in_each_others_way() {
    let server = Postgres::start();
    let url = server.database();
    let mut writers = JoinSet::new();
    let setup = open(&url).await;
    setup.write((0..20).map(|n| Change::Key(key("crowd", n))).collect()).await.unwrap();
    for writer in 0..6_i64 {
        let roster = open(&url).await;
        writers.spawn(async move {
            for round in 0..15 {
                let at = NOW + 10 * round + writer;
                let mut changes = Vec::new();
                // Each in an order of its own.
                for n in (0..40).map(|n| (n * (2 * writer + 3) + round) % 40) {
                    changes.push(Change::Presence(agent("crowd", &format!("{n:02}"), at)));
                    changes.push(Change::Workspace(workspace("crowd", &n.to_string())));
                    let id = KeyId::known(format!("crowd-{}", n % 20));
                    changes.push(Change::KeyUsed { id, at });
                    let from = workspace("crowd", "a");
                    changes.push(Change::Delegation(delegation(
                        &from,
                        &n.to_string(),
                        DelegationStatus::Pending,
                        at,
                    )));
                }
                roster.write(changes).await.unwrap();
                roster.prune(NOW, NOW, 10).await.unwrap();
            }
        });
    }
    writers.join_all().await;
    let last = NOW + 10 * 14 + 5;
    let latest: Vec<_> = (0..40).map(|n| agent("crowd", &format!("{n:02}"), last)).collect();
    assert_eq!(setup.presence(None, 100).await.unwrap(), latest);
    assert!(setup.keys().await.unwrap().iter().all(|key| key.last_used_at == Some(last)));
    assert_eq!(setup.generations().await.unwrap().workspaces, 6 * 15);
}

/// `cargo test --release -p reveille-roster -- --ignored --nocapture beats_a_second_in_postgres`
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn beats_a_second_in_postgres() {
    const MEMBERS: i64 = 100_000;
    const BATCH_LEN: i64 = 1000;
    let server = Postgres::start();
    let roster = open(&server.database()).await;
    for (round, stride) in [7, 7919, 1].into_iter().enumerate() {
        let start = Instant::now();
        for batch in 0..MEMBERS / BATCH_LEN {
            let row = |n| {
                let number = (batch * BATCH_LEN + n) * stride % MEMBERS;
                Change::Presence(agent("default", &format!("agent-{number:06}"), NOW + round as i64))
            };
            roster.write((0..BATCH_LEN).map(row).collect()).await.unwrap();
        }
        let what = if round == 0 { "inserted" } else { "updated" };
        println!("{:.0} rows/s {what}, every {stride}th", MEMBERS as f64 / start.elapsed().as_secs_f64());
    }
    let start = Instant::now();
    assert_eq!(roster.presence(None, MEMBERS as usize).await.unwrap().len(), MEMBERS as usize);
    println!("read all {MEMBERS} in {:?}", start.elapsed());
    let start = Instant::now();
    for number in 0..200 {
        roster.write(vec![Change::Presence(agent("default", &number.to_string(), NOW))]).await.unwrap();
    }
    println!("{:?} for one row alone", start.elapsed() / 200);
}
