//! Leases: renewed while they are held, told when they are lost; and the two layers of a run's lock.

use crate::safety_net::{Failing, Shared, pass};
use prometheus_client::metrics::counter::Counter;
use reveille_core::id::RunId;
use reveille_engine::{Clock, Lease, RunLocks, SystemClock};
use reveille_rig::{Fsync, Redis};
use reveille_store::suite::hooked::Hooked;
use reveille_store::{MemoryLedger, RedisOptions, RedisStore, Store};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const NAME: &str = "cordum:test";
const TTL_MS: i64 = 30_000;

fn shared() -> (Hooked<Failing>, Arc<dyn Store>) {
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

/// Counts those who are at a run at once; there must never be two.
async fn at_it(inside: &AtomicUsize) {
    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two are at one run");
    tokio::time::sleep(Duration::from_millis(100)).await;
    inside.fetch_sub(1, Ordering::SeqCst);
}

#[tokio::test(start_paused = true)]
async fn a_run_is_worked_on_by_one_at_a_time_within_a_server_and_among_servers() {
    let (_, store) = shared();
    let (servers, inside) = ([runs(&store).0, runs(&store).0], Arc::new(AtomicUsize::new(0)));
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..20 {
        let (runs, inside) = (servers[number % 2].clone(), inside.clone());
        tasks.spawn(async move {
            let is_locked = async |turn: &reveille_engine::RunTurn<'_>| {
                at_it(&inside).await;
                turn.lock().is_some()
            };
            runs.with(&RunId::known("r"), is_locked).await
        });
    }
    assert!(tasks.join_all().await.into_iter().all(|is_locked| is_locked));
}

#[tokio::test(start_paused = true)]
async fn runs_do_not_wait_for_one_another() {
    let (_, store) = shared();
    let (runs, _) = runs(&store);
    let (first, second) = (RunId::known("first"), RunId::known("second"));
    let turn = runs.take(&first).await;
    runs.take(&second).await.give_back().await;
    let waits = tokio::time::timeout(Duration::from_mins(5), runs.take(&first));
    assert!(waits.await.is_err(), "a long step keeps its run");
    turn.give_back().await;
    runs.take(&first).await.give_back().await;
}

#[tokio::test(start_paused = true)]
async fn while_the_store_is_away_a_run_has_its_turn_alone_and_that_is_counted() {
    let (failing, store) = shared();
    let ((runs, fallbacks), run) = (runs(&store), RunId::known("r"));
    failing.hook.is_away.store(true, Ordering::SeqCst);
    let turn = runs.take(&run).await;
    assert!(turn.lock().is_none());
    let waits = tokio::time::timeout(Duration::from_mins(1), runs.take(&run));
    assert!(waits.await.is_err(), "within this server it is still one at a time");
    turn.give_back().await;
    assert_eq!(fallbacks.get(), 1);
    failing.hook.is_away.store(false, Ordering::SeqCst);
    assert!(runs.take(&run).await.lock().is_some());
    assert_eq!(fallbacks.get(), 1);
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
