//! The suite over a real Redis, and what only this adapter can promise.

mod cluster;
mod differential;

use reveille_core::id::{WorkerId, WorkspaceId};
use reveille_core::job::{Attempt, Job, Phase, State};
use reveille_core::time::Millis;
use reveille_store::suite::{self, ManualClock};
use reveille_store::{
    Commit, DeadLetters, JobStore, MemoryLedger, Preconditions, Receipt, RedisOptions, RedisStore, Step,
    Store, StoreError, WorkspaceHints,
};
use reveille_test_servers::{Fsync, Redis};
use std::collections::BTreeMap;
use std::sync::Arc;

const NOW: Millis = Millis(1_800_000_000_000);

async fn open(redis: &Redis, replica: &str, clock: &ManualClock) -> RedisStore {
    open_at(redis.url(0), replica, clock).await
}

async fn open_at(url: String, replica: &str, clock: &ManualClock) -> RedisStore {
    let options =
        RedisOptions { url, replica: replica.to_owned(), uses_our_clock: true, ..RedisOptions::default() };
    RedisStore::open(options, Arc::new(MemoryLedger::default()), clock.clock()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn it_keeps_every_promise() {
    let redis = Redis::start();
    let clock = ManualClock::new(NOW);
    let store: Arc<dyn Store> = Arc::new(open(&redis, "", &clock).await);
    suite::run(&store, &clock).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_can_rely_on_it() {
    let redis = Redis::start();
    let clock = ManualClock::new(NOW);
    let first: Arc<dyn Store> = Arc::new(open(&redis, "first", &clock).await);
    let second: Arc<dyn Store> = Arc::new(open(&redis, "second", &clock).await);
    suite::sharing::run(&first, &second, &clock).await;
}

/// A Redis that is killed keeps what it answered, and the store finds it again by itself.
#[tokio::test(flavor = "multi_thread")]
async fn it_outlives_its_redis() {
    let mut redis = Redis::start_with(Fsync::Always, &[]);
    let clock = ManualClock::new(NOW);
    let store = open(&redis, "", &clock).await;
    let job = suite::insert(&store, suite::new_job("outlive", "a", NOW)).await;
    redis.server().kill();
    let away = store.job(job.id()).await;
    assert!(matches!(away, Err(StoreError::Unavailable(_))), "{away:?}");
    let away = store.commit(Step::insert(suite::new_job("outlive", "b", NOW))).await;
    assert!(matches!(away, Err(StoreError::Unavailable(_))), "{away:?}");
    redis.server().restart();
    // Redis has forgotten the scripts; nobody else has to know.
    let changed = loop {
        match store.commit(Step::change(&job, suite::running(&job, NOW))).await {
            Ok(commit) => break commit,
            Err(error) => assert!(error.is_transient(), "{error}"),
        }
    };
    assert_eq!(changed, Commit::Done);
    assert_eq!(store.job(job.id()).await.unwrap().unwrap().revision, 2);
}

/// Operators see what is under way, and only that.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_in_flight_until_it_is_answered() {
    let redis = Redis::start();
    let clock = ManualClock::new(NOW);
    let store = open(&redis, "one", &clock).await;
    let message = Receipt::new("CORDUM_SYS", "durable", 7, 0);
    let keys = async || {
        let mut keys: Vec<String> =
            store.link().command(redis::cmd("KEYS").arg("cordum:bus:*")).await.unwrap();
        keys.sort();
        keys
    };
    let job = suite::new_job("flight", "a", NOW);
    store.open_new(job.id(), &message).await.unwrap();
    assert_eq!(keys().await, ["cordum:bus:inflight:CORDUM_SYS:durable:7:0"]);
    let ttl: i64 = store.link().command(redis::cmd("PTTL").arg(&keys().await[0])).await.unwrap();
    assert!((1..=120_000).contains(&ttl), "{ttl}");
    let preconditions = Preconditions { answers: Some(message), ..Preconditions::default() };
    assert_eq!(store.commit(Step::insert(job).on(preconditions)).await.unwrap(), Commit::Done);
    assert_eq!(keys().await, ["cordum:bus:processed:CORDUM_SYS:durable:7:0"]);
    let ttl: i64 = store.link().command(redis::cmd("PTTL").arg(&keys().await[0])).await.unwrap();
    assert!((120_001..=600_000).contains(&ttl), "{ttl}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_was_heard_is_hinted_at_for_a_minute() {
    let redis = Redis::start();
    let store = open(&redis, "one", &ManualClock::new(NOW)).await;
    let (here, moved) = (WorkspaceId::known("here"), WorkspaceId::known("moved"));
    let url = Some("http://10.0.0.7:8000".to_owned());
    store.hint(&[(here, url.clone()), (moved.clone(), url.clone())]).await.unwrap();
    store.hint(&[(moved, None)]).await.unwrap();
    for (key, value) in [("ws:here", Some("online".to_owned())), ("ws:here:url", url), ("ws:moved:url", None)]
    {
        let found: Option<String> = store.link().command(redis::cmd("GET").arg(key)).await.unwrap();
        assert_eq!(found, value, "{key}");
    }
    for key in ["ws:here", "ws:moved", "ws:here:url"] {
        let ttl: i64 = store.link().command(redis::cmd("PTTL").arg(key)).await.unwrap();
        assert!((1..=60_000).contains(&ttl), "{key}: {ttl}");
    }
}

/// `job:meta` is for people with `redis-cli`, and says at every step how the job is.
#[tokio::test(flavor = "multi_thread")]
async fn operators_read_how_a_job_is() {
    let redis = Redis::start();
    let clock = ManualClock::new(NOW);
    let store = open(&redis, "only", &clock).await;
    let mut job = suite::new_job("meta", "a", NOW);
    let request = Arc::make_mut(&mut job.request);
    (request.trace_id, request.budget.deadline_ms) = ("a-trace".to_owned(), 60_000);
    "a-key".clone_into(request.idempotency_key.get_or_insert_default());
    "a-team".clone_into(&mut request.actor.team);
    let check = async |job: &Job, owner: &str, says: &[(&str, &str)]| {
        let mut found: BTreeMap<String, String> =
            store.link().command(redis::cmd("HGETALL").arg(format!("job:meta:{}", job.id()))).await.unwrap();
        found.retain(|field, says| !["by", "seq"].contains(&field.as_str()) && !says.is_empty());
        let asked = [
            ("topic", "job.echo"),
            ("tenant", "meta"),
            ("team", "a-team"),
            ("trace_id", "a-trace"),
            ("idempotency_key", "a-key"),
            ("deadline_unix", "1800000060000000"),
        ];
        let revision = job.revision.to_string();
        let is = [("rev", revision.as_str()), ("owner", owner)];
        let wanted = asked.iter().chain(&is).chain(says).filter(|(_, says)| !says.is_empty());
        let wanted: BTreeMap<_, _> =
            wanted.map(|(field, says)| (field.to_string(), says.to_string())).collect();
        assert_eq!(found, wanted);
    };
    let job = suite::insert(&store, job).await;
    let began = ("updated_at", "1800000000000000");
    check(&job, "only", &[("state", "pending"), ("attempts", "0"), began]).await;
    let job = suite::change(&store, &job, suite::running(&job, NOW + 1)).await;
    let went_on = ("updated_at", "1800000000001000");
    check(&job, "only", &[("state", "running"), ("attempts", "0"), ("worker_id", "worker-1"), went_on]).await;
    let job = suite::change(&store, &job, suite::ended(&job, State::Failed, NOW + 2)).await;
    let failed = [
        ("state", "failed"),
        ("attempts", "0"),
        ("failure_reason", "it is over"),
        ("updated_at", "1800000000002000"),
    ];
    let letter: Option<String> = store
        .link()
        .command(redis::cmd("HGET").arg(format!("job:meta:{}", job.id())).arg("dlq"))
        .await
        .unwrap();
    let letter = letter.unwrap();
    check(&job, "only", &[&failed[..], &[("dlq", &letter)]].concat()).await;
    let job = suite::change(&store, &job, reveille_core::life::settled(&job)).await;
    check(&job, "", &[&failed[..], &[("dlq", &letter)]].concat()).await;
    assert!(store.remove_dead_letter(job.id()).await.unwrap());
    check(&job, "", &failed).await;
}

/// A Redis that has lost its last second gives a revision to another change than the one that somebody remembers.
#[tokio::test(flavor = "multi_thread")]
async fn a_revision_that_was_given_twice_is_known_by_what_it_says() {
    let redis = Redis::start();
    let clock = ManualClock::new(NOW);
    let store = open(&redis, "only", &clock).await;
    let job = suite::insert(&store, suite::new_job("twice", "a", NOW)).await;
    let is = suite::change(&store, &job, suite::running(&job, NOW)).await;
    let at_another = Attempt { worker: Some(WorkerId::known("another")), ..is.attempt().unwrap().clone() };
    for phase in [Phase::Running(at_another), Phase::Dispatched(is.attempt().unwrap().clone())] {
        let remembered = Arc::new(Job { phase, ..(*is).clone() });
        let over = suite::ended(&remembered, State::Succeeded, NOW);
        let committed = store.commit(Step::change(&remembered, over)).await.unwrap();
        assert_eq!(committed, Commit::Conflict, "{:?}", remembered.phase);
    }
    let at_worker = redis::cmd("ZCARD").arg("worker:jobs:worker-1").clone();
    assert_eq!(store.link().command::<u64>(&at_worker).await.unwrap(), 1);
    suite::change(&store, &is, suite::ended(&is, State::Succeeded, NOW)).await;
    assert_eq!(store.link().command::<u64>(&at_worker).await.unwrap(), 0, "its place is free");
}

/// Nothing stays for ever but the two counters, what the trail has not sealed, and the last events.
#[tokio::test(flavor = "multi_thread")]
async fn everything_goes_in_the_end() {
    let redis = Redis::start();
    let endless = what_stays(redis.url(0)).await;
    assert_eq!(
        endless,
        ["audit:outbox", "cordum:lock:fence", "cordum:replicas", "job:seq", "reveille:events"]
    );
}

/// The keys without an end, when everything has been done and pruned.
async fn what_stays(url: String) -> Vec<String> {
    let clock = ManualClock::new(NOW);
    let open = async |replica| open_at(url.clone(), replica, &clock).await;
    let (first, second) = (open("first").await, open("second").await);
    let shared = |store: &RedisStore| -> Arc<dyn Store> { Arc::new(store.clone()) };
    suite::sharing::run(&shared(&first), &shared(&second), &clock).await;
    suite::run(&shared(&open("").await), &clock).await;
    // The checks leave jobs live; here they end.
    let mut cursor = None;
    loop {
        let page = first.live(cursor, 500).await.unwrap();
        for job in &page.items {
            let over = suite::ended(job, State::Succeeded, clock.now());
            suite::change(&first, job, reveille_core::life::settled(&over)).await;
        }
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    clock.advance(100_000_000);
    while first.prune(clock.now(), clock.now(), 1000).await.unwrap() > 0 {}
    let keys: Vec<String> = first.link().command(redis::cmd("KEYS").arg("*")).await.unwrap();
    let mut endless = Vec::new();
    for key in keys {
        let ttl: i64 = first.link().command(redis::cmd("PTTL").arg(&key)).await.unwrap();
        if ttl == -1 {
            endless.push(key);
        }
    }
    endless.sort();
    endless
}
