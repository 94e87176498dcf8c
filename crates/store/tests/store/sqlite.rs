//! What the file promises beyond the port.

mod audit;
mod files;
mod groups;
mod kills;
mod others;

use reveille_core::id::JobId;
use reveille_core::job::State;
use reveille_core::time::Millis;
use reveille_store::suite::{self, ManualClock, change, ended, insert, load, new_job, running};
use reveille_store::{
    BlobKey, Blobs, DeadLetterQuery, DeadLetters, JobQuery, JobStore, Locks, OpenError, PutMode, SqliteStore,
    Store,
};
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

/// A data file in a directory of its own, which goes when this goes.
struct Place {
    _directory: TempDir,
    path: PathBuf,
    clock: ManualClock,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data.db");
        Self { _directory: directory, path, clock: ManualClock::new(Millis(1_000_000)) }
    }

    fn open(&self) -> SqliteStore {
        SqliteStore::open(&self.path, self.clock.clock()).unwrap()
    }

    fn refusal(&self) -> OpenError {
        let Err(error) = SqliteStore::open(&self.path, self.clock.clock()) else { panic!("it was opened") };
        assert!(error.to_string().starts_with(&self.path.display().to_string()), "{error}");
        error
    }

    fn now(&self) -> Millis {
        self.clock.now()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sqlite_store_keeps_the_promises_of_the_port() {
    let place = Place::new();
    let store: Arc<dyn Store> = Arc::new(place.open());
    suite::run(&store, &place.clock).await;
    suite::blobs::what_is_stored_is_listed_by_key_with_its_length(&*store, &place.clock).await;
}

#[tokio::test]
async fn one_record_that_cannot_be_read_hides_no_other() {
    let place = Place::new();
    let store = place.open();
    for name in ["first", "spoilt", "last"] {
        insert(&store, new_job("unreadable", name, place.now())).await;
    }
    drop(store);
    let file = rusqlite::Connection::open(&place.path).unwrap();
    file.execute("UPDATE jobs SET record = 'nonsense' WHERE id = 'unreadable-spoilt'", []).unwrap();
    drop(file);
    let store = place.open();
    let live = store.live(None, 10).await.unwrap();
    let names: Vec<&str> = live.items.iter().map(|job| job.id().as_str()).collect();
    assert_eq!(names, ["unreadable-first", "unreadable-last"]);
    let spoilt = store.job(&JobId::known("unreadable-spoilt")).await;
    assert!(spoilt.is_err_and(|error| !error.is_transient()), "and it is not worth trying again");
}

#[tokio::test]
async fn a_reopened_store_has_everything_it_had() {
    let place = Place::new();
    let store = place.open();
    let live = insert(&store, new_job("reopen", "live", place.now())).await;
    let live = change(&store, &live, running(&live, place.now())).await;
    let failed = insert(&store, new_job("reopen", "failed", place.now())).await;
    let failed = change(&store, &failed, ended(&failed, State::Failed, place.now())).await;
    let key = BlobKey::result_of(failed.id());
    let expires_at = place.now() + 1000;
    store.put_blob(key.clone(), "kept".into(), expires_at, PutMode::Always).await.unwrap();
    let lock = store.lock("reopen", 1000).await.unwrap().unwrap();
    drop(store);
    assert!(!place.path.with_extension("db-wal").exists(), "a clean end leaves nothing in the log");

    let store = place.open();
    assert_eq!(load(&store, live.id()).await, Some(live.clone()));
    assert_eq!(load(&store, failed.id()).await, Some(failed.clone()));
    assert_eq!(store.live(None, 10).await.unwrap().items, [live.clone(), failed.clone()]);
    assert_eq!(
        store.dead_letters(&DeadLetterQuery { limit: 10, ..DeadLetterQuery::default() }).await.unwrap().items,
        [failed.dead_letter().unwrap()]
    );
    assert_eq!(store.blob(&key).await.unwrap(), Some("kept".into()));
    assert_eq!(store.blob_expiry(&key).await.unwrap(), Some(expires_at));
    assert_eq!(store.lock("reopen", 1000).await.unwrap(), None, "a lock outlives the server");
    place.clock.advance(1000);
    assert_eq!(store.blob(&key).await.unwrap(), None, "an expired blob is not read from the file either");

    let next = store.lock("reopen", 1000).await.unwrap().unwrap();
    assert!(next.fence > lock.fence, "fences go on where they were");

    // Numbers go on where they were: a new job is the newest.
    let newest = insert(&store, new_job("reopen", "newest", place.now())).await;
    let page = store.jobs(&JobQuery { limit: 1, ..JobQuery::default() }).await.unwrap();
    assert_eq!(page.items, [newest]);
}

#[tokio::test]
async fn a_job_that_was_read_from_the_file_is_followed_from_then_on() {
    let place = Place::new();
    let job = insert(&place.open(), new_job("cold", "a", place.now())).await;
    let store = place.open();
    assert_eq!(load(&store, job.id()).await.as_ref(), Some(&job));
    assert_eq!(load(&store, job.id()).await.as_ref(), Some(&job));
    let changed = change(&store, &job, running(&job, place.now())).await;
    assert_eq!(load(&store, job.id()).await, Some(changed));
}
