//! Blobs: stored, replaced, kept from being replaced, gone when they expire.

use super::ManualClock;
use crate::{BLOB_LEN_MAX, BlobKey, PutMode, SNAPSHOT_LEN_MAX, Store, StoredBlob};
use bytes::Bytes;
use std::sync::Arc;
use tokio::task::JoinSet;

pub async fn run(store: &Arc<dyn Store>, clock: &ManualClock) {
    the_latest_value_is_read_back(&**store, clock).await;
    if_absent_keeps_what_is_there(&**store, clock).await;
    an_expired_blob_is_not_there(&**store, clock).await;
    deleting_counts_what_was_there(&**store, clock).await;
    an_empty_and_a_large_blob_are_kept_whole(&**store, clock).await;
    the_snapshot_of_a_large_fleet_is_kept_whole(&**store, clock).await;
    of_many_puts_if_absent_exactly_one_stores(store, clock).await;
}

/// For stores that one server has to itself; it is called beside the suite.
pub async fn what_is_stored_is_listed_by_key_with_its_length(store: &dyn Store, clock: &ManualClock) {
    let expires_at = clock.now() + 1000;
    let blob = |name: &str, len| StoredBlob { key: BlobKey::parse(name).unwrap(), len, expires_at };
    let (a, b) = (blob("ctx:suite-listed-a", 3), blob("ctx:suite-listed-b", 0));
    for stored in [&b, &a] {
        let value = Bytes::from(vec![7; stored.len]);
        assert!(store.put_blob(stored.key.clone(), value, expires_at, PutMode::Always).await.unwrap());
    }
    let before = BlobKey::parse("ctx:suite-listed").unwrap();
    assert_eq!(store.stored_blobs(Some(before.clone()), 1).await.unwrap(), std::slice::from_ref(&a));
    assert_eq!(store.stored_blobs(Some(before), 2).await.unwrap(), [a.clone(), b.clone()]);
    assert_eq!(store.stored_blobs(Some(a.key), 1).await.unwrap(), [b]);
    let all = store.stored_blobs(None, 100_000).await.unwrap();
    assert!(
        all.iter().all(|stored| stored.key != BlobKey::workers_snapshot()),
        "the platform's own is not listed"
    );
}

pub async fn the_latest_value_is_read_back(store: &dyn Store, clock: &ManualClock) {
    let key = store.colocated_key(BlobKey::parse("res:suite-latest").unwrap());
    assert_eq!(store.blob(&key).await.unwrap(), None);
    for (value, expires_at) in [("one", clock.now() + 1000), ("two", clock.now() + 500)] {
        assert!(store.put_blob(key.clone(), value.into(), expires_at, PutMode::Always).await.unwrap());
        assert_eq!(store.blob(&key).await.unwrap(), Some(value.into()));
        assert_eq!(store.blob_expiry(&key).await.unwrap(), Some(expires_at));
    }
}

pub async fn if_absent_keeps_what_is_there(store: &dyn Store, clock: &ManualClock) {
    let key = store.colocated_key(BlobKey::parse("ctx:suite-absent").unwrap());
    let soon = clock.now() + 1000;
    assert!(store.put_blob(key.clone(), "first".into(), soon, PutMode::IfAbsent).await.unwrap());
    assert!(!store.put_blob(key.clone(), "second".into(), soon + 1000, PutMode::IfAbsent).await.unwrap());
    assert_eq!(store.blob(&key).await.unwrap(), Some("first".into()));
    assert_eq!(store.blob_expiry(&key).await.unwrap(), Some(soon));
    clock.advance(1000);
    let later = clock.now() + 1000;
    assert!(store.put_blob(key.clone(), "third".into(), later, PutMode::IfAbsent).await.unwrap());
    assert_eq!(store.blob(&key).await.unwrap(), Some("third".into()), "an expired blob is absent");
}

pub async fn an_expired_blob_is_not_there(store: &dyn Store, clock: &ManualClock) {
    let key = store.colocated_key(BlobKey::parse("res:suite-expiry").unwrap());
    store.put_blob(key.clone(), "short".into(), clock.now() + 10, PutMode::Always).await.unwrap();
    clock.advance(9);
    assert_eq!(store.blob(&key).await.unwrap(), Some("short".into()));
    clock.advance(1);
    assert_eq!(store.blob(&key).await.unwrap(), None);
    assert_eq!(store.blob_expiry(&key).await.unwrap(), None);
    assert_eq!(store.delete_blobs(vec![key]).await.unwrap(), 0);
}

pub async fn deleting_counts_what_was_there(store: &dyn Store, clock: &ManualClock) {
    let keys: Vec<_> = ["a", "b", "c"]
        .iter()
        .map(|name| BlobKey::parse(&format!("art:suite-delete-{name}")).unwrap())
        .collect();
    for key in &keys[..2] {
        store.put_blob(key.clone(), "x".into(), clock.now() + 1000, PutMode::Always).await.unwrap();
    }
    assert_eq!(store.delete_blobs(keys.clone()).await.unwrap(), 2);
    for key in &keys {
        assert_eq!(store.blob(key).await.unwrap(), None);
    }
    assert_eq!(store.delete_blobs(keys).await.unwrap(), 0);
    assert_eq!(store.delete_blobs(Vec::new()).await.unwrap(), 0);
}

pub async fn an_empty_and_a_large_blob_are_kept_whole(store: &dyn Store, clock: &ManualClock) {
    let key = BlobKey::parse("art:suite-size").unwrap();
    for value in [Bytes::new(), Bytes::from(vec![0xa5; BLOB_LEN_MAX])] {
        store.put_blob(key.clone(), value.clone(), clock.now() + 1000, PutMode::Always).await.unwrap();
        assert!(store.blob(&key).await.unwrap().as_ref() == Some(&value), "{} bytes", value.len());
    }
    assert_eq!(store.delete_blobs(vec![key]).await.unwrap(), 1);
}

pub async fn the_snapshot_of_a_large_fleet_is_kept_whole(store: &dyn Store, clock: &ManualClock) {
    let key = store.colocated_key(BlobKey::workers_snapshot());
    // A small one is cached; what takes its place must take it there too.
    for value in [Bytes::from_static(b"[]"), Bytes::from(vec![0xa5; SNAPSHOT_LEN_MAX])] {
        store.put_blob(key.clone(), value.clone(), clock.now() + 1000, PutMode::Always).await.unwrap();
        assert!(store.blob(&key).await.unwrap().as_ref() == Some(&value), "{} bytes", value.len());
    }
    clock.advance(1000);
    assert_eq!(store.blob(&key).await.unwrap(), None);
    store.prune(reveille_core::time::Millis::ZERO, clock.now(), 100).await.unwrap();
}

pub async fn of_many_puts_if_absent_exactly_one_stores(store: &Arc<dyn Store>, clock: &ManualClock) {
    let key = BlobKey::parse("res:suite-rivals").unwrap();
    let expires_at = clock.now() + 1000;
    let mut rivals = JoinSet::new();
    for number in 0..64 {
        let (store, key, value) = (Arc::clone(store), key.clone(), Bytes::from(number.to_string()));
        rivals.spawn(async move {
            let stored = store.put_blob(key, value.clone(), expires_at, PutMode::IfAbsent).await.unwrap();
            stored.then_some(value)
        });
    }
    let stored: Vec<_> = rivals.join_all().await.into_iter().flatten().collect();
    let [winner] = &stored[..] else { panic!("{stored:?} were stored") };
    assert_eq!(store.blob(&key).await.unwrap().as_ref(), Some(winner));
}
