//! The suite over a real Redis, and what only this adapter can promise.

use reveille_core::id::{TenantId, WorkflowId};
use reveille_core::time::Millis;
use reveille_store::workflows::{RedisWorkflows, RunCommit, WorkflowStore, suite};
use reveille_store::{MemoryLedger, RedisLink, RedisOptions, RedisStore};
use reveille_test_servers::{Redis, RedisCluster};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

async fn open(redis: &Redis, prefix: &str) -> (RedisWorkflows, RedisLink) {
    open_at(redis.url(0), prefix).await
}

async fn open_at(url: String, prefix: &str) -> (RedisWorkflows, RedisLink) {
    let options = RedisOptions { url, prefix: prefix.to_owned(), ..RedisOptions::default() };
    let store = RedisStore::open(options, Arc::new(MemoryLedger::default()), Arc::new(|| Millis(0)));
    let store = store.await.unwrap();
    (RedisWorkflows::open(&store).await.unwrap(), store.link())
}

async fn ask<T: redis::FromRedisValue>(link: &RedisLink, command: &[&str]) -> T {
    let mut asked = redis::cmd(command[0]);
    asked.arg(&command[1..]);
    link.command(&asked).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_keeps_the_promises() {
    let redis = Redis::start();
    let numbers = AtomicU32::new(0);
    suite::run(&|| async {
        let n = numbers.fetch_add(1, Ordering::Relaxed);
        Arc::new(open(&redis, &format!("{{{n}}}")).await.0) as Arc<dyn WorkflowStore>
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_keeps_the_promises() {
    let cluster = RedisCluster::start();
    let numbers = AtomicU32::new(0);
    suite::run(&|| async {
        let n = numbers.fetch_add(1, Ordering::Relaxed);
        Arc::new(open_at(cluster.url(n as usize % 3), &format!("{n}:")).await.0) as Arc<dyn WorkflowStore>
    })
    .await;
}

/// What operators look at, under the names of seed 004.
#[tokio::test(flavor = "multi_thread")]
async fn a_timer_stands_where_operators_look_for_it() {
    let redis = Redis::start();
    let (flows, link) = open(&redis, "").await;
    let mut run = suite::one_run(&flows, "r").await;
    suite::wait_until(&flows, &mut run, Millis(1_800_000_000_250)).await;
    let timers: Vec<String> =
        ask(&link, &["ZRANGE", "cordum:wf:delay:timers", "0", "-1", "WITHSCORES"]).await;
    assert_eq!(timers, ["w:r", "1800000000.25"]);
    assert_eq!(ask::<Vec<String>>(&link, &["SMEMBERS", "wf:runs:active:t"]).await, ["r"]);
}

/// Somebody else's entries, or those of runs that are gone, do not stay.
#[tokio::test(flavor = "multi_thread")]
async fn a_timer_of_nothing_is_cleared_away() {
    let redis = Redis::start();
    let (flows, link) = open(&redis, "").await;
    for member in ["w:gone", "nonsense", ":"] {
        ask::<u32>(&link, &["ZADD", "cordum:wf:delay:timers", "1", member]).await;
    }
    assert_eq!(flows.due(Millis(5_000), 10).await.unwrap(), []);
    assert_eq!(ask::<u32>(&link, &["ZCARD", "cordum:wf:delay:timers"]).await, 0);
}

/// Everything of a run goes with it, and what is left of its workflow ends by itself.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_stays_for_ever() {
    let redis = Redis::start();
    let (flows, link) = open(&redis, "").await;
    let mut run = suite::one_run(&flows, "r").await;
    suite::end(&flows, &mut run).await;
    let (tenant, workflow) = (TenantId::known("t"), WorkflowId::known("w"));
    assert!(flows.delete_workflow(&tenant, &workflow).await.unwrap());
    assert_eq!(ask::<i64>(&link, &["PTTL", "wf:def:t:w"]).await, -1, "its run needs it");
    assert!(flows.delete_run(&run.head.id).await.unwrap());
    let mut left: Vec<String> = ask(&link, &["KEYS", "*"]).await;
    left.sort();
    assert_eq!(left, ["wf:def:t:w", "wf:runs:seq"]);
    assert!(ask::<i64>(&link, &["PTTL", "wf:def:t:w"]).await > 0);
}

/// Of two servers that change a run at once, one does.
#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_servers_is_first() {
    let redis = Redis::start();
    let ((first, _), (second, _)) = (open(&redis, "").await, open(&redis, "").await);
    for n in 0..20 {
        let run = suite::one_run(&first, &format!("r{n}")).await;
        let (mut one, mut other) = (run.clone(), run);
        let (one, other) = tokio::join!(suite::end(&first, &mut one), suite::end(&second, &mut other));
        let mut both = [one, other];
        both.sort_by_key(|commit| *commit == RunCommit::Done);
        assert_eq!(both, [RunCommit::Conflict, RunCommit::Done]);
    }
}
