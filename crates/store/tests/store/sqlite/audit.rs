//! The audit trail in the file: it outlives the server, a full disk and a failed neighbour, and shows
//! what was done to it behind the store's back.

use super::Place;
use super::groups::{PAGES_LEFT, PLENTY_OF_PAGES, TOO_LARGE, in_one_group, limit_pages};
use bytes::Bytes;
use reveille_core::audit::{Draft, EventType, Fault, Status};
use reveille_core::id::TenantId;
use reveille_core::job::Job;
use reveille_core::policy::Decision;
use reveille_core::time::Millis;
use reveille_store::suite::audit::{judged, trail, whole};
use reveille_store::suite::{insert, new_job};
use reveille_store::{AuditTrail, BlobKey, Commit, JobStore, Step, verify_chain};
use rusqlite::Connection;

fn judged_job(check: &str, number: usize, now: Millis) -> Job {
    judged(&new_job(check, &number.to_string(), now), Decision::Allow, now)
}

#[tokio::test]
async fn a_chain_goes_on_where_it_was_after_a_restart() {
    let place = Place::new();
    for round in 0..3 {
        let store = place.open();
        for number in 0..5 {
            insert(&store, judged_job("reopened", 5 * round + number, place.now())).await;
        }
    }
    whole(&place.open(), "reopened", 15).await;
}

#[tokio::test]
async fn a_refused_neighbour_in_the_same_commit_leaves_no_gap() {
    let place = Place::new();
    let store = place.open();
    insert(&store, judged_job("shared", 0, place.now())).await;
    let outcomes = in_one_group(&store, |works| {
        for number in 0..64 {
            // Every fourth id is taken already.
            let name = if number % 4 == 0 { 0 } else { number };
            let (store, job) = (store.clone(), judged_job("shared", name, place.now()));
            works.spawn(async move { store.commit(Step::insert(job)).await.unwrap() });
        }
    });
    let done = outcomes.await.iter().filter(|outcome| **outcome == Commit::Done).count();
    assert_eq!(done, 48);
    whole(&store, "shared", 49).await;
}

#[tokio::test]
async fn a_commit_that_is_rolled_back_and_made_again_in_pieces_leaves_no_gap() {
    let place = Place::new();
    let store = place.open();
    insert(&store, judged_job("pieces", 100, place.now())).await;
    limit_pages(&store, PAGES_LEFT).await;
    let outcomes = in_one_group(&store, |works| {
        for number in 0..8 {
            let mut step = Step::insert(judged_job("pieces", number, place.now()));
            if number == 4 {
                let (key, value) = (BlobKey::context_of(step.job.id()), Bytes::from(vec![0; TOO_LARGE]));
                step.blobs.push((key, value, place.now() + 1000));
            }
            let store = store.clone();
            works.spawn(async move { (number, store.commit(step).await) });
        }
    });
    for (number, outcome) in outcomes.await {
        assert_eq!(matches!(outcome, Ok(Commit::Done)), number != 4, "{number}: {outcome:?}");
    }
    limit_pages(&store, PLENTY_OF_PAGES).await;
    whole(&store, "pieces", 8).await;
    insert(&store, judged_job("pieces", 4, place.now())).await;
    whole(&store, "pieces", 9).await;
    drop(store);
    whole(&place.open(), "pieces", 9).await;
}

#[tokio::test]
async fn what_is_recorded_and_pruned_in_one_commit_leaves_its_boundary() {
    let place = Place::new();
    let store = place.open();
    let old = Draft::new(TenantId::known("brief"), Millis(1), EventType::Auth, "create_key");
    let done = in_one_group(&store, |works| {
        for number in 0..3 {
            let (store, old) = (store.clone(), old.clone());
            works.spawn(async move {
                match number {
                    1 => store.prune_audit(Millis(2), 10).await.unwrap(),
                    _ => store.record(vec![old]).await.map(|()| 0).unwrap(),
                }
            });
        }
    });
    assert_eq!(done.await.iter().sum::<u64>(), 1);
    let found = verify_chain(&store, &old.tenant, 10).await.unwrap();
    assert_eq!((found.status, found.first_seq, found.retention_boundary_seq), (Status::Partial, Some(2), 2));
}

#[tokio::test]
async fn whatever_is_done_to_the_file_by_hand_is_found() {
    let check = async |sql: &str, gaps: &[(u64, Fault)]| {
        let place = Place::new();
        let store = place.open();
        for number in 0..9 {
            insert(&store, judged_job("tampered", number, place.now())).await;
        }
        drop(store);
        Connection::open(&place.path).unwrap().execute_batch(sql).unwrap();
        let store = place.open();
        let found = verify_chain(&store, &TenantId::known("tampered"), 100).await.unwrap();
        let found_gaps: Vec<_> = found.gaps.iter().map(|gap| (gap.at_seq, gap.fault)).collect();
        assert_eq!((found.status, &found_gaps[..]), (Status::Broken, gaps), "{sql}");

        // Nobody's jobs are held up by it, and it is still found when the chain has gone on.
        insert(&store, judged_job("tampered", 9, place.now())).await;
        let found = verify_chain(&store, &TenantId::known("tampered"), 100).await.unwrap();
        assert_eq!(found.status, Status::Broken, "{sql}, later");
    };
    for column in [
        "at = 7",
        "event_type = 'safety.approval'",
        "severity = 'HIGH'",
        "action = 'deny'",
        "identity = 'eve'",
        "job_id = NULL",
        "decision = 'DENY'",
        "decision = NULL",
        "matched_rule = ''",
        "reason = 'x'",
        "policy_version = ''",
        "extra = '{}'",
        "prev_hash = zeroblob(32)",
        "event_hash = zeroblob(32)",
    ] {
        check(&format!("UPDATE audit SET {column} WHERE seq = 5"), &[(5, Fault::Altered)]).await;
    }
    let missing = |at_seq| [(at_seq, Fault::Missing)];
    check("UPDATE audit SET tenant = 'other' WHERE seq = 5", &missing(5)).await;
    check("UPDATE audit SET event_hash = x'00' WHERE seq = 5", &missing(5)).await;
    check("UPDATE audit SET event_type = 'nonsense' WHERE seq = 5", &missing(5)).await;
    check("DELETE FROM audit WHERE seq = 5", &missing(5)).await;
    check("DELETE FROM audit WHERE seq < 3", &missing(1)).await;
    check("DELETE FROM audit WHERE seq > 7", &missing(8)).await;
    check("DELETE FROM audit", &missing(1)).await;
    let swap = "UPDATE audit SET seq = 99 WHERE seq = 5; UPDATE audit SET seq = 5 WHERE seq = 6;
                UPDATE audit SET seq = 6 WHERE seq = 99";
    check(swap, &[(5, Fault::Altered), (6, Fault::Altered)]).await;
    let reordered = |at_seq| (at_seq, Fault::Reordered);
    let early = [reordered(1), reordered(2), reordered(3), (4, Fault::Altered)];
    check("UPDATE audit_chains SET boundary_seq = 3", &early).await;
}

#[tokio::test]
async fn a_head_that_was_lost_holds_nobody_up() {
    let place = Place::new();
    let store = place.open();
    insert(&store, judged_job("headless", 0, place.now())).await;
    drop(store);
    let file = Connection::open(&place.path).unwrap();
    file.execute("DELETE FROM audit_chains", []).unwrap();
    drop(file);
    let store = place.open();
    let tenant = TenantId::known("headless");
    assert_eq!(verify_chain(&store, &tenant, 10).await.unwrap().status, Status::Broken);
    insert(&store, judged_job("headless", 1, place.now())).await;
    assert_eq!(trail(&store, "headless").await.len(), 2);
}
