//! The ledger on a real PostgreSQL: killed, cut off, tampered with.

use super::{open, tamper};
use reveille_core::audit::Status;
use reveille_core::id::TenantId;
use reveille_store::postgres::PostgresLedger;
use reveille_store::suite::ledger::{Sealing, numbered, sealed};
use reveille_store::suite::{self, audit};
use reveille_store::{Ledger, StoreError, verify_chain};
use reveille_test_servers::{Postgres, Wire};
use std::sync::Arc;
use tokio::sync::watch;

async fn ledger(url: &str) -> PostgresLedger {
    PostgresLedger::new(open(url).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_postgres_ledger_keeps_the_promises_of_the_port() {
    let server = Postgres::start();
    let ledger: Arc<dyn Ledger> = Arc::new(ledger(&server.database()).await);
    suite::ledger::run(&ledger).await;
}

/// The chain has these numbers, each once, and holds.
async fn holds(ledger: &dyn Ledger, tenant: &str, numbers: impl Iterator<Item = u64>) {
    let expected: Vec<_> = numbers.map(|number| number.to_string()).collect();
    assert_eq!(sealed(ledger, tenant).await, expected);
    audit::whole(&Sealing::over(ledger), tenant, expected.len() as u64).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_sealed_when_postgres_was_killed_before_it_answered_is_not_sealed_again() {
    let mut server = Postgres::start();
    let url = server.database();
    let wire = Wire::to(server.port()).await;
    let cut_off = ledger(&wire.address_of(&url)).await;
    cut_off.seal(vec![numbered("lost", 1)]).await.unwrap();

    wire.lose_a_commit();
    let sealing = tokio::spawn({
        let ledger = cut_off.clone();
        async move { ledger.seal(vec![numbered("lost", 2), numbered("lost", 3)]).await }
    });
    wire.has_lost_it().await;
    server.server().kill();
    wire.cut();
    let error = sealing.await.unwrap().unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
    server.server().restart();

    let sealer = ledger(&url).await;
    holds(&sealer, "lost", 1..=3).await;
    sealer.seal((2..=4).map(|number| numbered("lost", number)).collect()).await.unwrap();
    holds(&sealer, "lost", 1..=4).await;
    wire.talk();
    cut_off.seal(vec![numbered("lost", 4), numbered("lost", 5)]).await.unwrap();
    holds(&cut_off, "lost", 1..=5).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn whoever_seals_until_it_is_answered_leaves_one_of_each_however_often_postgres_is_killed() {
    const KILLS: u64 = 4;
    let mut server = Postgres::start();
    let url = server.database();
    let (count, mut done) = watch::channel(0);
    let sealer = tokio::spawn({
        let ledger = ledger(&url).await;
        async move {
            while *count.borrow() < 10 * (KILLS + 1) {
                let first = *count.borrow() * 3;
                let drafts = || (first..first + 3).map(|number| numbered("kills", number)).collect();
                while let Err(error) = ledger.seal(drafts()).await {
                    assert!(error.is_transient(), "{error}");
                }
                count.send_modify(|count| *count += 1);
            }
        }
    });
    let reader = ledger(&url).await;
    for kill in 1..=KILLS {
        done.wait_for(|count| *count >= 10 * kill).await.unwrap();
        server.server().kill();
        let answered = *done.borrow();
        server.server().restart();
        let found = sealed(&reader, "kills").await;
        assert!(found.len() as u64 >= 3 * answered, "{} of {answered} batches", found.len());
    }
    sealer.await.unwrap();
    holds(&reader, "kills", 0..30 * (KILLS + 1)).await;
}

#[tokio::test]
async fn whatever_is_done_to_the_tables_by_hand_is_found() {
    let server = Postgres::start();
    for statement in [
        "UPDATE audit SET draft = replace(draft, '\"action\":\"2\"', '\"action\":\"7\"') WHERE seq = 3",
        "UPDATE audit SET at = at + 1 WHERE seq = 3",
        "UPDATE audit SET severity = 'LOW' WHERE seq = 3",
        "UPDATE audit SET event_type = 'safety.approval' WHERE seq = 3",
        "UPDATE audit SET job_id = 'j' WHERE seq = 3",
        "UPDATE audit SET draft = 'nonsense' WHERE seq = 3",
        "UPDATE audit SET event_hash = prev_hash WHERE seq = 3",
        "UPDATE audit SET seq = 9 WHERE seq = 3",
        "DELETE FROM audit WHERE seq = 3",
        "DELETE FROM audit WHERE seq = 5",
        "DELETE FROM audit",
    ] {
        let url = server.database();
        let ledger = ledger(&url).await;
        ledger.seal((0..5).map(|number| numbered("tampered", number)).collect()).await.unwrap();
        holds(&ledger, "tampered", 0..5).await;
        tamper(&url, statement).await;
        let found = verify_chain(&Sealing::over(&ledger), &TenantId::known("tampered"), 100).await.unwrap();
        assert_eq!(found.status, Status::Broken, "{statement}: {found:?}");
    }
}

#[tokio::test]
async fn a_head_that_was_lost_holds_nobody_up() {
    let server = Postgres::start();
    let url = server.database();
    let ledger = ledger(&url).await;
    ledger.seal(vec![numbered("headless", 1), numbered("headless", 2)]).await.unwrap();
    tamper(&url, "DELETE FROM audit_chains").await;
    ledger.seal(vec![numbered("headless", 3)]).await.unwrap();
    holds(&ledger, "headless", 1..=3).await;
}
