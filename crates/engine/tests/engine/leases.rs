//! Leases: renewed while they are held, told when they are lost; and the two layers of a run's lock.

use crate::reconcile::{Failing, Shared};
use prometheus_client::metrics::counter::Counter;
use reveille_core::id::RunId;
use reveille_engine::{Clock, Lease, RunLocks, SystemClock};
use reveille_store::suite::hooked::HookedStore;
use reveille_store::{MemoryLedger, RedisOptions, RedisStore, Store};
use reveille_test_kit::pass;
use reveille_test_servers::{Fsync, Redis};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const NAME: &str = "cordum:test";
const TTL_MS: i64 = 30_000;

fn shared() -> (HookedStore<Failing>, Arc<dyn Store>) {
    let failing = Shared::new().store;
    (failing.clone(), Arc::new(failing))
}

async fn take(store: &Arc<dyn Store>) -> Option<Lease> {
    Lease::take(store, NAME, TTL_MS, &CancellationToken::new()).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_lease_lasts_for_as_long_as_it_is_held_and_is_free_when_it_is_given_back() {
    let (_, store) = shared();
    let lease = take(&store).await.unwrap();
    for _ in 0..10 {
        pass(29).await;
        assert!(lease.is_held());
        assert!(take(&store).await.is_none(), "somebody has it");
    }
    let fence = lease.lock().fence;
    lease.release().await;
    assert!(take(&store).await.unwrap().lock().fence > fence);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_dropped_lapses_by_itself() {
    let (_, store) = shared();
    drop(take(&store).await.unwrap());
    pass(29).await;
    assert!(take(&store).await.is_none());
    pass(1).await;
    assert!(take(&store).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn two_failures_are_borne_and_three_in_a_row_are_the_end() {
    let (failing, store) = shared();
    let lease = take(&store).await.unwrap();
    let away = |is_away| failing.hook.is_away.store(is_away, Ordering::SeqCst);
    for _ in 0..3 {
        away(true);
        // After 10 s it is due, after 7.5 more it is tried again, and the third time it goes through.
        pass(18).await;
        assert!(lease.is_held());
        away(false);
        pass(10).await;
    }
    away(true);
    let began = Instant::now();
    lease.lost().await;
    assert_eq!(began.elapsed().as_secs(), 16, "25 s after the last that went through");
    assert!(!lease.is_held());
    away(false);
    assert!(take(&store).await.is_none(), "its holder stops before another can have it");
    pass(5).await;
    let next = take(&store).await.unwrap();
    // Whoever has lost it has nothing to give back.
    lease.release().await;
    assert!(next.is_held() && take(&store).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn whoever_was_stopped_for_too_long_is_told() {
    let (_, store) = shared();
    let lease = take(&store).await.unwrap();
    assert!(store.unlock(lease.lock()).await.unwrap());
    let other = take(&store).await.unwrap();
    let began = Instant::now();
    lease.lost().await;
    assert_eq!(began.elapsed().as_secs(), 10, "the next renewal says so");
    assert!(other.is_held());
}

#[tokio::test(start_paused = true)]
async fn a_lease_ends_with_its_server() {
    let (_, store) = shared();
    let end = CancellationToken::new();
    let lease = Lease::take(&store, NAME, TTL_MS, &end).await.unwrap().unwrap();
    end.cancel();
    pass(30).await;
    assert!(!lease.is_held());
    assert!(take(&store).await.is_some());
}

fn runs(store: &Arc<dyn Store>) -> (Arc<RunLocks>, Counter) {
    let fallbacks = Counter::default();
    (Arc::new(RunLocks::new(store.clone(), CancellationToken::new(), fallbacks.clone())), fallbacks)
}

#[tokio::test(start_paused = true)]
async fn servers_take_turns_at_a_run() {
    let (_, store) = shared();
    let (servers, inside) = ([runs(&store), runs(&store)], Arc::new(AtomicUsize::new(0)));
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..4 {
        let (runs, inside) = (servers[number % 2].0.clone(), inside.clone());
        tasks.spawn(async move {
            let lease = runs.take(&RunId::known("r")).await.expect("nobody takes long");
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two are at one run");
            tokio::time::sleep(Duration::from_millis(100)).await;
            inside.fetch_sub(1, Ordering::SeqCst);
            lease.release().await;
        });
    }
    tasks.join_all().await;
    assert_eq!(servers[0].1.get() + servers[1].1.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn runs_do_not_wait_for_one_another() {
    let (_, store) = shared();
    let (runs, _) = runs(&store);
    let (first, second) = (RunId::known("first"), RunId::known("second"));
    let lease = runs.take(&first).await.unwrap();
    assert!(runs.take(&second).await.is_some());
    lease.release().await;
    assert!(runs.take(&first).await.is_some());
}

/// Compare-and-swap holds without the lock, so nobody waits for one that hangs, or for a store that is away.
#[tokio::test(start_paused = true)]
async fn a_run_goes_on_without_its_lock_and_that_is_counted() {
    let (failing, store) = shared();
    let ((runs, fallbacks), run) = (runs(&store), RunId::known("r"));
    let lease = runs.take(&run).await.unwrap();
    let waited = Instant::now();
    assert!(runs.take(&run).await.is_none(), "another has it");
    assert_eq!((waited.elapsed(), fallbacks.get()), (Duration::from_millis(500), 1));
    lease.release().await;
    failing.hook.is_away.store(true, Ordering::SeqCst);
    assert!(runs.take(&run).await.is_none(), "nobody can be asked");
    assert_eq!(fallbacks.get(), 2);
    failing.hook.is_away.store(false, Ordering::SeqCst);
    assert!(runs.take(&run).await.is_some());
    assert_eq!(fallbacks.get(), 2);
}

async fn in_redis(redis: &Redis) -> Arc<dyn Store> {
    let options = RedisOptions { url: redis.url(0), ..RedisOptions::default() };
    let clock = SystemClock::start();
    let ledger = Arc::new(MemoryLedger::default());
    Arc::new(RedisStore::open(options, ledger, Arc::new(move || clock.now())).await.unwrap())
}

/// However busy the machine is: two never believe that they have it.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_in_redis_has_one_holder_and_is_lost_with_redis() {
    let mut redis = Redis::start_with(Fsync::Always, &[]);
    let (first, second) = (in_redis(&redis).await, in_redis(&redis).await);
    let end = CancellationToken::new();
    let lease = Lease::take(&first, NAME, 1_500, &end).await.unwrap().unwrap();
    for _ in 0..40 {
        let other = Lease::take(&second, NAME, 1_500, &end).await.unwrap();
        assert!(other.is_none() || !lease.is_held(), "two have it");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    redis.server().kill();
    lease.lost().await;
    assert!(!lease.is_held());
    redis.server().restart();
    let next = loop {
        match Lease::take(&second, NAME, 1_500, &end).await {
            Ok(Some(next)) => break next,
            Ok(None) | Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    };
    assert!(next.lock().fence > lease.lock().fence);
    let is_renewed = loop {
        match first.renew(lease.lock(), 1_500).await {
            Ok(is_renewed) => break is_renewed,
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    };
    assert!(!is_renewed, "its number counts no more");
}
