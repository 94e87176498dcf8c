//! Keys are found by their hash, revoked once, and never forgotten.

use super::ManualClock;
use crate::{KeyRecord, Scope, Store};
use reveille_core::id::{KeyId, TenantId};

pub async fn run(store: &dyn Store, clock: &ManualClock) {
    a_key_is_found_by_its_hash(store, clock).await;
    a_revoked_key_is_still_known(store, clock).await;
}

pub async fn a_key_is_found_by_its_hash(store: &dyn Store, clock: &ManualClock) {
    let first = key("suite-key-1", 1, clock);
    let second = KeyRecord {
        expires_at: Some(clock.now() + 5),
        scopes: Scope::ALL.to_vec(),
        ..key("suite-key-2", 2, clock)
    };
    for record in [&second, &first] {
        store.put_key(record.clone()).await.unwrap();
    }
    assert_eq!(store.key(&first.hash).await.unwrap().as_ref(), Some(&first));
    assert_eq!(store.key(&second.hash).await.unwrap().as_ref(), Some(&second));
    assert_eq!(store.key(&[3; 32]).await.unwrap(), None);
    let listed = store.keys().await.unwrap();
    let ours: Vec<_> = listed.into_iter().filter(|key| key.id.as_str().starts_with("suite-key-")).collect();
    assert_eq!(ours, [first.clone(), second]);

    let renamed = KeyRecord { name: "renamed".to_owned(), ..first };
    store.put_key(renamed.clone()).await.unwrap();
    assert_eq!(store.key(&renamed.hash).await.unwrap(), Some(renamed), "the same id is the same key");
}

pub async fn a_revoked_key_is_still_known(store: &dyn Store, clock: &ManualClock) {
    let record = key("suite-revoked", 9, clock);
    store.put_key(record.clone()).await.unwrap();
    assert!(store.revoke_key(&record.id, clock.now()).await.unwrap());
    assert!(store.revoke_key(&record.id, clock.now() + 5).await.unwrap());
    let revoked = store.key(&record.hash).await.unwrap().unwrap();
    assert_eq!(revoked.revoked_at, Some(clock.now()), "the first revocation counts");
    assert!(!revoked.is_valid(clock.now()));
    assert!(!store.revoke_key(&KeyId::known("suite-nobody"), clock.now()).await.unwrap());
}

fn key(id: &str, byte: u8, clock: &ManualClock) -> KeyRecord {
    KeyRecord {
        id: KeyId::known(id),
        hash: [byte; 32],
        name: id.to_owned(),
        tenant: TenantId::known("suite-keys"),
        scopes: vec![Scope::Ingest],
        created_at: clock.now(),
        expires_at: None,
        revoked_at: None,
    }
}
