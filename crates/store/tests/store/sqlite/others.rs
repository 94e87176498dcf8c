//! Tables that are not the store's: they share its commits and do not share their troubles with it.

use super::Place;
use super::groups::in_one_group;
use reveille_store::suite::new_job;
use reveille_store::{JobStore, OpenError, SqliteFile, SqliteStore, Step, StoreError};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

async fn with_a_table(place: &Place) -> (SqliteStore, SqliteFile) {
    let store = place.open();
    let file = store.file();
    let create = "CREATE TABLE IF NOT EXISTS others (name TEXT NOT NULL UNIQUE)";
    file.write(move |connection| connection.execute_batch(create).map(|()| 0)).await.unwrap();
    (store, file)
}

async fn insert_other(file: &SqliteFile, name: &'static str) -> Result<u64, StoreError> {
    file.write(move |connection| {
        let rows = connection.prepare_cached("INSERT INTO others VALUES (?1)")?.execute([name])?;
        Ok(rows as u64)
    })
    .await
}

async fn names(file: &SqliteFile) -> Vec<String> {
    let names = file.read(|connection| {
        let mut statement = connection.prepare_cached("SELECT name FROM others ORDER BY name")?;
        let names = statement.query_map([], |row| row.get(0))?;
        Ok(names.collect::<rusqlite::Result<Vec<_>>>()?)
    });
    names.await.unwrap()
}

#[tokio::test]
async fn what_was_written_is_read_at_once_and_after_a_restart() {
    let place = Place::new();
    let (store, file) = with_a_table(&place).await;
    assert_eq!(insert_other(&file, "a").await.unwrap(), 1);
    assert_eq!(names(&file).await, ["a"]);
    drop(store);
    assert!(matches!(place.refusal(), OpenError::Locked { .. }), "the file is as good as a store");
    drop(file);
    let (_store, file) = with_a_table(&place).await;
    assert_eq!(names(&file).await, ["a"]);
}

#[tokio::test]
async fn a_change_that_fails_leaves_nothing_and_harms_no_neighbour() {
    let place = Place::new();
    let (store, file) = with_a_table(&place).await;
    insert_other(&file, "taken").await.unwrap();
    let runs = Arc::new(AtomicU32::new(0));
    let outcomes = in_one_group(&store, |works| {
        for number in 0..8 {
            let (store, file, runs) = (store.clone(), file.clone(), Arc::clone(&runs));
            let job = new_job("others", &number.to_string(), place.now());
            works.spawn(async move {
                let outcome = match number {
                    2 => insert_other(&file, "kept").await,
                    4 => {
                        let both = file.write(move |connection| {
                            runs.fetch_add(1, Ordering::Relaxed);
                            connection.execute("INSERT INTO others VALUES ('half')", [])?;
                            connection.execute("INSERT INTO others VALUES ('taken')", []).map(|_| 2)
                        });
                        both.await
                    }
                    _ => store.commit(Step::insert(job)).await.map(|_| 1),
                };
                (number, outcome)
            });
        }
    });
    for (number, outcome) in outcomes.await {
        match outcome {
            Ok(rows) => assert_eq!((number != 4, rows), (true, 1)),
            Err(StoreError::Refused(_)) => assert_eq!(number, 4),
            Err(error) => panic!("{number}: {error}"),
        }
    }
    assert_eq!(runs.load(Ordering::Relaxed), 2, "once with the others, once alone");
    assert_eq!(names(&file).await, ["kept", "taken"]);
    assert_eq!(store.live(None, 100).await.unwrap().items.len(), 6);
}
