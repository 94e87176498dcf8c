//! Files that must be left alone, and the one server that may have a file.

use super::Place;
use reveille_core::id::JobId;
use reveille_core::job::State;
use reveille_core::policy::Decision;
use reveille_store::suite::audit::{judged, whole};
use reveille_store::suite::{change, insert, load, new_job};
use reveille_store::{JobQuery, JobStore, Locks, OpenError, SqliteStore};
use rusqlite::Connection;
use std::fs;

/// The version of the files that are made now.
const VERSION: u32 = 6;

/// A file that is refused is still there afterwards, bit by bit.
fn refused(place: &Place) -> OpenError {
    let before = fs::read(&place.path).unwrap();
    let error = place.refusal();
    assert!(fs::read(&place.path).unwrap() == before, "the file was changed");
    error
}

/// A data file with something in it.
async fn filled() -> Place {
    let place = Place::new();
    let store = place.open();
    for number in 0..200 {
        insert(&store, new_job("files", &number.to_string(), place.now())).await;
    }
    place
}

#[tokio::test]
async fn a_second_server_is_kept_out_until_the_first_is_gone() {
    let place = Place::new();
    let store = place.open();
    let clone = store.clone();
    assert!(matches!(place.refusal(), OpenError::Locked { .. }));
    drop(store);
    assert!(matches!(place.refusal(), OpenError::Locked { .. }), "a clone is as good as the first");
    drop(clone);
    place.open();
}

#[tokio::test]
async fn a_database_of_another_program_is_refused() {
    let place = Place::new();
    let connection = Connection::open(&place.path).unwrap();
    connection.execute_batch("CREATE TABLE jobs (id TEXT); INSERT INTO jobs VALUES ('theirs')").unwrap();
    drop(connection);
    let error = refused(&place);
    assert!(matches!(error, OpenError::Foreign { .. }), "{error}");
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused() {
    let place = Place::new();
    for content in ["{\"not\": \"a database\"}", &"x".repeat(10_000)] {
        fs::write(&place.path, content).unwrap();
        let error = refused(&place);
        assert!(matches!(error, OpenError::Foreign { .. }), "{error}");
    }
}

#[tokio::test]
async fn an_empty_file_becomes_a_data_file() {
    let place = Place::new();
    fs::write(&place.path, "").unwrap();
    insert(&place.open(), new_job("files", "a", place.now())).await;
}

#[tokio::test]
async fn a_newer_file_is_refused_and_says_so() {
    let place = filled().await;
    let connection = Connection::open(&place.path).unwrap();
    connection.execute_batch(&format!("PRAGMA user_version = {}", VERSION + 1)).unwrap();
    drop(connection);
    let error = refused(&place);
    assert!(matches!(error, OpenError::Newer { found: 7, known: 6, .. }), "{error}");
}

#[tokio::test]
async fn a_file_of_the_first_version_is_brought_up_and_loses_nothing() {
    let place = filled().await;
    let connection = Connection::open(&place.path).unwrap();
    let back = r#"DROP TABLE locks; DROP TABLE audit; DROP TABLE audit_chains; DROP TABLE dead_packets; PRAGMA user_version = 1;
        DROP INDEX jobs_asked; DROP INDEX jobs_waiting; ALTER TABLE jobs DROP COLUMN asked;
        UPDATE jobs SET record = replace(record, '"trace_id":"files-7"', '"trace_id":"REQUIRE_APPROVAL"');
        CREATE TABLE keys (id TEXT NOT NULL PRIMARY KEY, hash BLOB NOT NULL UNIQUE, record TEXT NOT NULL);
        INSERT INTO keys VALUES ('key', x'07', '{}');"#;
    connection.execute_batch(back).unwrap();
    drop(connection);
    let store = place.open();
    assert!(store.lock("upgraded", 1000).await.unwrap().is_some());
    assert_eq!(store.live(None, 500).await.unwrap().items.len(), 200);
    let asked = JobQuery { asked: true, limit: 10, ..JobQuery::default() };
    assert_eq!(store.jobs(&asked).await.unwrap().items.len(), 1, "the past says who was asked");
    drop(store);
    let connection = Connection::open(&place.path).unwrap();
    let ask = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, u32>(0)).unwrap();
    assert_eq!(ask("PRAGMA user_version"), VERSION);
    assert_eq!(ask("SELECT count(*) FROM keys"), 1, "they are the roster's now");
}

#[tokio::test]
async fn a_file_of_the_second_version_gets_its_audit_trail() {
    let place = filled().await;
    let connection = Connection::open(&place.path).unwrap();
    let back = "DROP TABLE audit; DROP TABLE audit_chains; DROP TABLE dead_packets; PRAGMA user_version = 2;
        DROP INDEX jobs_asked; DROP INDEX jobs_waiting; ALTER TABLE jobs DROP COLUMN asked;";
    connection.execute_batch(back).unwrap();
    drop(connection);
    let store = place.open();
    let before = load(&store, &JobId::known("files-7")).await.unwrap();
    change(&store, &before, judged(&before, Decision::Allow, place.now())).await;
    whole(&store, "files", 1).await;
    assert_eq!(store.live(None, 500).await.unwrap().items.len(), 200);
}

#[tokio::test]
async fn a_file_of_the_fifth_version_gets_its_list_of_what_waits() {
    let place = filled().await;
    let connection = Connection::open(&place.path).unwrap();
    let back = "DROP INDEX jobs_waiting; PRAGMA user_version = 5;
        CREATE INDEX jobs_asking ON jobs (seq) WHERE state = 'APPROVAL_REQUIRED';";
    connection.execute_batch(back).unwrap();
    drop(connection);
    let store = place.open();
    let waiting = JobQuery { state: Some(State::Pending), limit: 500, ..JobQuery::default() };
    assert_eq!(store.jobs(&waiting).await.unwrap().items.len(), 200);
}

#[tokio::test]
async fn a_truncated_file_is_refused() {
    let place = filled().await;
    let content = fs::read(&place.path).unwrap();
    for len in [content.len() / 2, 4096, 5000, 150] {
        fs::write(&place.path, &content[..len]).unwrap();
        let error = refused(&place);
        assert!(matches!(error, OpenError::Damaged { .. } | OpenError::Foreign { .. }), "{len}: {error}");
    }
}

#[tokio::test]
async fn a_file_with_garbage_in_it_is_refused() {
    let place = filled().await;
    let content = fs::read(&place.path).unwrap();
    for page in 1..content.len() / 4096 {
        let mut garbage = content.clone();
        garbage[page * 4096..][..64].fill(0xa5);
        fs::write(&place.path, &garbage).unwrap();
        let error = refused(&place);
        assert!(matches!(error, OpenError::Damaged { .. }), "page {page}: {error}");
    }
    fs::write(&place.path, &content).unwrap();
    place.open();
}

#[tokio::test]
async fn a_log_without_its_file_is_not_given_to_a_new_one() {
    let place = Place::new();
    fs::write(place.path.with_extension("db-wal"), "commits of a file that is gone").unwrap();
    assert!(matches!(place.refusal(), OpenError::Damaged { .. }));
    assert!(!place.path.exists());
}

#[tokio::test]
async fn what_a_crash_left_of_a_new_file_is_made_anew() {
    let place = Place::new();
    fs::write(place.path.with_extension("db-new"), "half a file").unwrap();
    insert(&place.open(), new_job("files", "a", place.now())).await;
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let place = Place::new();
    let path = place.path.join("deeper").join("data.db");
    let error = SqliteStore::open(&path, place.clock.clock()).err().unwrap();
    assert!(error.to_string().contains("deeper"), "{error}");
}
