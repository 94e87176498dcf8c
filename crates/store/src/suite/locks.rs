//! Locks: one holder at a time, until it gives the lock back or its time is up.

use super::ManualClock;
use crate::{BlobKey, Lock, PutMode, Store};
use std::sync::Arc;
use tokio::task::JoinSet;

const RIVALS: usize = 64;

pub async fn run(store: &Arc<dyn Store>, clock: &ManualClock) {
    of_many_rivals_exactly_one_gets_the_lock(store, clock).await;
    a_lapsed_lock_can_be_taken_and_its_old_holder_has_no_say(&**store, clock).await;
    a_lock_that_is_given_back_is_free_at_once(&**store, clock).await;
    a_renewed_lock_lasts_from_then_on(&**store, clock).await;
    a_lapsed_lock_cannot_be_renewed_or_given_back(&**store, clock).await;
    names_do_not_disturb_one_another(&**store, clock).await;
    those_who_look_on_see_what_is_held(&**store, clock).await;
    pruning_takes_lapsed_locks_and_no_fence_comes_twice(&**store, clock).await;
    a_clock_that_was_set_back_holds_no_lock_for_longer(&**store, clock).await;
    what_is_put_under_a_lock_that_has_lapsed_is_not_there(&**store, clock).await;
}

pub async fn of_many_rivals_exactly_one_gets_the_lock(store: &Arc<dyn Store>, _: &ManualClock) {
    let mut rivals = JoinSet::new();
    for _ in 0..RIVALS {
        let store = Arc::clone(store);
        rivals.spawn(async move { store.lock("suite-rivals", 1000).await.unwrap() });
    }
    let winners: Vec<Lock> = rivals.join_all().await.into_iter().flatten().collect();
    let [winner] = &winners[..] else { panic!("{winners:?} have it") };
    assert!(winner.name.ends_with("suite-rivals"), "{winner:?}");
    assert!(winner.fence > 0);
}

pub async fn a_lapsed_lock_can_be_taken_and_its_old_holder_has_no_say(
    store: &dyn Store,
    clock: &ManualClock,
) {
    let old = take(store, "suite-lapse", 100).await;
    clock.advance(99);
    assert_eq!(store.lock("suite-lapse", 100).await.unwrap(), None);
    clock.advance(1);
    let new = take(store, "suite-lapse", 100).await;
    assert!(new.fence > old.fence, "{} after {}", new.fence, old.fence);
    assert!(!store.renew(&old, 1000).await.unwrap());
    assert!(!store.unlock(&old).await.unwrap());
    assert_eq!(store.lock("suite-lapse", 100).await.unwrap(), None, "the new holder still has it");
    assert!(store.renew(&new, 100).await.unwrap());
    assert!(store.unlock(&new).await.unwrap());
}

pub async fn a_lock_that_is_given_back_is_free_at_once(store: &dyn Store, _: &ManualClock) {
    let first = take(store, "suite-back", 1000).await;
    assert!(store.unlock(&first).await.unwrap());
    assert!(!store.unlock(&first).await.unwrap(), "it is given back once");
    let second = take(store, "suite-back", 1000).await;
    assert!(second.fence > first.fence);
    assert!(!store.unlock(&first).await.unwrap());
    assert_eq!(store.lock("suite-back", 1000).await.unwrap(), None);
}

pub async fn a_renewed_lock_lasts_from_then_on(store: &dyn Store, clock: &ManualClock) {
    let lock = take(store, "suite-renew", 100).await;
    for _ in 0..3 {
        clock.advance(60);
        assert!(store.renew(&lock, 100).await.unwrap());
    }
    clock.advance(99);
    assert_eq!(store.lock("suite-renew", 100).await.unwrap(), None);
    clock.advance(1);
    take(store, "suite-renew", 100).await;
}

pub async fn a_lapsed_lock_cannot_be_renewed_or_given_back(store: &dyn Store, clock: &ManualClock) {
    let lock = take(store, "suite-late", 100).await;
    clock.advance(100);
    assert!(!store.renew(&lock, 100).await.unwrap());
    assert!(!store.unlock(&lock).await.unwrap());
}

pub async fn names_do_not_disturb_one_another(store: &dyn Store, _: &ManualClock) {
    let one = take(store, "suite-one", 1000).await;
    let other = take(store, "suite-other", 1000).await;
    let forged = Lock { name: one.name.clone(), fence: other.fence };
    assert!(!store.unlock(&forged).await.unwrap());
    assert!(store.unlock(&other).await.unwrap());
    assert_eq!(store.lock("suite-one", 1000).await.unwrap(), None);
}

pub async fn those_who_look_on_see_what_is_held(store: &dyn Store, clock: &ManualClock) {
    let now = clock.now();
    let seen = async || {
        let held = store.locks_held(500).await.unwrap().into_iter();
        let ours = held.filter(|lock| lock.name.starts_with("suite-seen-"));
        ours.map(|lock| (lock.name, lock.until)).collect::<Vec<_>>()
    };
    let at = |name: &str, ms: i64| (format!("suite-seen-{name}"), now + ms);
    take(store, "suite-seen-long", 1000).await;
    let short = take(store, "suite-seen-short", 100).await;
    let back = take(store, "suite-seen-back", 1000).await;
    assert!(store.unlock(&back).await.unwrap());
    assert_eq!(seen().await, [at("short", 100), at("long", 1000)]);
    assert_eq!(store.locks_held(1).await.unwrap().len(), 1);
    assert!(store.renew(&short, 2000).await.unwrap());
    assert_eq!(seen().await, [at("long", 1000), at("short", 2000)]);
    clock.advance(1000);
    assert_eq!(seen().await, [at("short", 2000)], "one that has lapsed is nobody's");
}

pub async fn pruning_takes_lapsed_locks_and_no_fence_comes_twice(store: &dyn Store, clock: &ManualClock) {
    let nothing_ended = reveille_core::time::Millis::ZERO;
    clock.advance(100_000);
    while store.prune(nothing_ended, clock.now(), 1000).await.unwrap() > 0 {}
    let lapsed = take(store, "suite-prune-lapsed", 100).await;
    take(store, "suite-prune-held", 1000).await;
    clock.advance(100);
    // Where locks go by themselves there is nothing left to prune.
    assert!(store.prune(nothing_ended, clock.now(), 1000).await.unwrap() <= 1);
    assert_eq!(store.lock("suite-prune-held", 1000).await.unwrap(), None);
    let again = take(store, "suite-prune-lapsed", 100).await;
    assert!(again.fence > lapsed.fence);
}

pub async fn a_clock_that_was_set_back_holds_no_lock_for_longer(store: &dyn Store, clock: &ManualClock) {
    let before = take(store, "suite-set-back", 1000).await;
    clock.advance(-1000);
    assert_eq!(store.lock("suite-set-back", 1000).await.unwrap(), None, "clocks may be a little apart");
    clock.advance(-3_600_000);
    let after = take(store, "suite-set-back", 1000).await;
    assert!(after.fence > before.fence);
    assert!(!store.renew(&before, 1000).await.unwrap());
    clock.advance(3_601_000);
}

pub async fn what_is_put_under_a_lock_that_has_lapsed_is_not_there(store: &dyn Store, clock: &ManualClock) {
    let key = store.colocated_key(BlobKey::parse("art:suite-under").unwrap());
    let put = async |lock: &Lock, value: &'static str| {
        let mode = PutMode::Under(lock.clone());
        store.put_blob(key.clone(), value.into(), clock.now() + 1_000_000, mode).await.unwrap()
    };
    let old = take(store, "suite-under", 100).await;
    assert!(put(&old, "first").await && put(&old, "second").await, "the lock is kept");
    clock.advance(100);
    assert!(!put(&old, "late").await);
    let new = take(store, "suite-under", 100).await;
    assert!(!put(&old, "later").await);
    assert_eq!(store.blob(&key).await.unwrap().as_deref(), Some(&b"second"[..]));
    assert!(put(&new, "third").await);
    assert_eq!(store.blob(&key).await.unwrap().as_deref(), Some(&b"third"[..]));
    assert_eq!(store.blob_expiry(&key).await.unwrap(), Some(clock.now() + 1_000_000));
    store.delete_blobs(vec![key]).await.unwrap();
}

async fn take(store: &dyn Store, name: &str, ttl_ms: i64) -> Lock {
    store.lock(name, ttl_ms).await.unwrap().unwrap_or_else(|| panic!("{name} is taken"))
}
