//! Changes share commits, and do not share their troubles.

use super::Place;
use bytes::Bytes;
use reveille_store::suite::{insert, load, new_job};
use reveille_store::{BlobKey, Blobs, Commit, JobStore, PutMode, SqliteStore, Step, StoreError};
use rusqlite::Connection;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tokio::task::JoinSet;

/// More than the file may grow by.
pub const TOO_LARGE: usize = 1024 * 1024;
/// Pages that the file may grow by in a small disk.
pub const PAGES_LEFT: u32 = 20;
pub const PLENTY_OF_PAGES: u32 = 1_000_000;

/// Lets the file grow by so many pages and no further: a disk that is full.
pub async fn limit_pages(store: &SqliteStore, pages: u32) {
    let limit = move |connection: &Connection| {
        let used: u32 = connection.query_row("PRAGMA page_count", [], |row| row.get(0))?;
        let limit = used.saturating_add(pages);
        connection.query_row(&format!("PRAGMA max_page_count = {limit}"), [], |_| Ok(0))
    };
    store.file().write(limit).await.unwrap();
}

/// Keeps the writer busy until the other end is dropped, so that what follows becomes one group.
async fn hold(store: SqliteStore, released: mpsc::Receiver<()>) -> Result<u64, StoreError> {
    let wait = move |_: &Connection| {
        let _ = released.recv();
        Ok(0)
    };
    store.file().write(wait).await
}

/// Keeps the writer busy while `spawn` queues work, so that all of it becomes one group.
pub async fn in_one_group<T: Send + 'static>(
    store: &SqliteStore,
    spawn: impl FnOnce(&mut JoinSet<T>),
) -> Vec<T> {
    let (release, released) = mpsc::channel();
    let held = tokio::spawn(hold(store.clone(), released));
    tokio::task::yield_now().await;
    let mut works = JoinSet::new();
    spawn(&mut works);
    // On a runtime of one thread every task has queued its work when this one is polled again.
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    drop(release);
    assert_eq!(held.await.unwrap().unwrap(), 0);
    works.join_all().await
}

#[tokio::test]
async fn concurrent_changes_share_a_commit() {
    let place = Place::new();
    let store = place.open();
    let commits = in_one_group(&store, |works| {
        for number in 0..64 {
            let (store, job) = (store.clone(), new_job("group", &number.to_string(), place.now()));
            works.spawn(async move { store.commit(Step::insert(job)).await.unwrap() });
        }
    });
    assert!(commits.await.iter().all(|commit| *commit == Commit::Done));
    let stats = store.stats();
    assert_eq!(stats.operations, 65, "one of them held the writer");
    assert!(stats.commits <= 4, "{stats:?}");
}

#[tokio::test]
async fn a_refused_change_does_not_disturb_its_group() {
    let place = Place::new();
    let store = place.open();
    let taken = insert(&store, new_job("mixed", "0", place.now())).await;
    let commits = in_one_group(&store, |works| {
        for number in 0..64 {
            // Every fourth id is taken already.
            let name = if number % 4 == 0 { 0 } else { number };
            let (store, job) = (store.clone(), new_job("mixed", &name.to_string(), place.now()));
            works.spawn(async move { (number, store.commit(Step::insert(job)).await.unwrap()) });
        }
    });
    for (number, commit) in commits.await {
        let duplicate = Commit::Duplicate(taken.id().clone());
        assert_eq!(commit, if number % 4 == 0 { duplicate } else { Commit::Done });
    }
    assert_eq!(store.live(None, 100).await.unwrap().items.len(), 49);
}

#[tokio::test]
async fn a_full_disk_is_said_and_survived() {
    let place = Place::new();
    let store = place.open();
    limit_pages(&store, PAGES_LEFT).await;
    let mut acknowledged = Vec::new();
    let refused = loop {
        let job = new_job("full", &acknowledged.len().to_string(), place.now());
        let mut step = Step::insert(job);
        let job = Arc::clone(&step.job);
        step.blobs.push((BlobKey::context_of(job.id()), Bytes::from(vec![1; 2000]), place.now() + 1000));
        match store.commit(step).await {
            Ok(commit) => assert_eq!(commit, Commit::Done),
            Err(error) => {
                assert!(matches!(error, StoreError::Full(_)), "{error}");
                break job;
            }
        }
        acknowledged.push(job);
    };
    assert!(!acknowledged.is_empty());
    assert_eq!(load(&store, refused.id()).await, None);
    assert_eq!(store.blob(&BlobKey::context_of(refused.id())).await.unwrap(), None);

    limit_pages(&store, PLENTY_OF_PAGES).await;
    acknowledged.push(insert(&store, (*refused).clone()).await);
    drop(store);
    let store = place.open();
    for job in &acknowledged {
        assert_eq!(load(&store, job.id()).await.as_ref(), Some(job));
    }
    assert_eq!(store.live(None, 500).await.unwrap().items.len(), acknowledged.len());
}

#[tokio::test]
async fn what_is_too_large_for_the_disk_does_not_keep_small_changes_out() {
    let place = Place::new();
    let store = place.open();
    limit_pages(&store, PAGES_LEFT).await;
    let large = BlobKey::parse("art:large").unwrap();
    let outcomes = in_one_group(&store, |works| {
        for number in 0..8 {
            let (store, expires_at) = (store.clone(), place.now() + 1000);
            if number == 4 {
                let (key, value) = (large.clone(), Bytes::from(vec![0; TOO_LARGE]));
                works.spawn(async move {
                    (number, store.put_blob(key, value, expires_at, PutMode::Always).await.map(drop))
                });
            } else {
                let job = new_job("small", &number.to_string(), place.now());
                works.spawn(async move { (number, store.commit(Step::insert(job)).await.map(drop)) });
            }
        }
    });
    for (number, outcome) in outcomes.await {
        match outcome {
            Ok(()) => assert_ne!(number, 4),
            Err(StoreError::Full(_)) => assert_eq!(number, 4),
            Err(error) => panic!("{number}: {error}"),
        }
    }
    assert_eq!(store.live(None, 100).await.unwrap().items.len(), 7);
    assert_eq!(store.blob(&large).await.unwrap(), None);
}

#[tokio::test]
async fn a_large_log_is_carried_over_when_nothing_else_is_to_do() {
    let place = Place::new();
    let store = place.open();
    let log = place.path.with_extension("db-wal");
    let log_len = || std::fs::metadata(&log).unwrap().len();
    let key = BlobKey::parse("art:large").unwrap();
    let value = Bytes::from(vec![1; 6 * TOO_LARGE]);
    store.put_blob(key, value, place.now() + 1000, PutMode::Always).await.unwrap();
    assert!(log_len() > 6 * TOO_LARGE as u64);
    // Real time: the writer's patience is measured by the thread itself.
    let empty = async {
        while log_len() > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), empty).await.unwrap();
}

#[tokio::test]
async fn a_caller_that_stops_waiting_leaves_nothing_in_the_way() {
    let place = Place::new();
    let store = place.open();
    let job = new_job("gone", "a", place.now());
    let step = Step::insert(job.clone());
    let (release, released) = mpsc::channel();
    let held = tokio::spawn(hold(store.clone(), released));
    tokio::task::yield_now().await;
    let waiting = tokio::time::timeout(Duration::from_millis(1), store.commit(step)).await;
    assert!(waiting.is_err());
    drop(release);
    held.await.unwrap().unwrap();
    // It was queued, so it is made; who asks again is told whose it is.
    let again = store.commit(Step::insert(job.clone())).await.unwrap();
    assert_eq!(again, Commit::Duplicate(job.id().clone()));
}
