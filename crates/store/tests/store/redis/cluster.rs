//! The same on a real Redis Cluster, and what only a cluster does.

use super::{NOW, open_at, what_stays};
use reveille_core::finding::Finding;
use reveille_core::job::State;
use reveille_core::policy::Decision;
use reveille_core::time::Millis;
use reveille_store::suite::{self, ManualClock};
use reveille_store::{
    BlobKey, Blobs, Commit, JobStore, MemoryLedger, PutMode, RedisOptions, RedisStore, Step, Store,
    StoreError,
};
use reveille_test_servers::RedisCluster;
use std::sync::Arc;
use tokio::task::JoinSet;

/// What all of our keys begin with on a cluster.
const SLOT_TAG: &str = "{rv}";
/// Nodes that share the slots.
const PRIMARIES: usize = 3;

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_keeps_every_promise() {
    let cluster = RedisCluster::start();
    let clock = ManualClock::new(NOW);
    // Any node will do: it knows the others.
    let strange = (cluster.owner_of(SLOT_TAG) + 1) % PRIMARIES;
    let store: Arc<dyn Store> = Arc::new(open_at(cluster.url(strange), "", &clock).await);
    suite::run(&store, &clock).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_can_rely_on_a_cluster() {
    let cluster = RedisCluster::start();
    let clock = ManualClock::new(NOW);
    let first: Arc<dyn Store> = Arc::new(open_at(cluster.url(0), "first", &clock).await);
    let second: Arc<dyn Store> = Arc::new(open_at(cluster.url(1), "second", &clock).await);
    suite::sharing::run(&first, &second, &clock).await;
}

/// Every key of ours is in one slot, and none stays.
#[tokio::test(flavor = "multi_thread")]
async fn everything_on_a_cluster_goes_in_the_end() {
    let cluster = RedisCluster::start();
    let endless = what_stays(cluster.url(0)).await;
    let names = ["audit:outbox", "cordum:lock:fence", "cordum:replicas", "job:seq", "reveille:events"];
    assert_eq!(endless, names.map(|name| format!("{SLOT_TAG}{name}")));
}

/// Results stand where workers write them, wherever that is.
#[tokio::test(flavor = "multi_thread")]
async fn results_keep_their_names_on_a_cluster() {
    let cluster = RedisCluster::start();
    let clock = ManualClock::new(NOW);
    let store = open_at(cluster.url(0), "", &clock).await;
    let keys: Vec<_> = (0..50).map(|n| BlobKey::parse(&format!("res:far-{n}")).unwrap()).collect();
    let owners: std::collections::BTreeSet<_> =
        keys.iter().map(|key| cluster.owner_of(key.as_str())).collect();
    assert_eq!(owners.len(), PRIMARIES, "they are on all nodes");
    let until = NOW + 1_000_000;
    for key in &keys {
        assert_eq!((store.blob(key).await.unwrap(), store.blob_expiry(key).await.unwrap()), (None, None));
        assert!(store.put_blob(key.clone(), "one".into(), until, PutMode::IfAbsent).await.unwrap());
        assert!(!store.put_blob(key.clone(), "two".into(), until, PutMode::IfAbsent).await.unwrap());
        assert_eq!(store.blob(key).await.unwrap(), Some("one".into()));
        assert!(store.put_blob(key.clone(), "three".into(), until, PutMode::Always).await.unwrap());
        assert_eq!(store.blob(key).await.unwrap(), Some("three".into()));
        let expiry = store.blob_expiry(key).await.unwrap().unwrap();
        assert!((NOW + 1..=until).contains(&expiry), "{expiry:?}");
        let node = cluster.owner_of(key.as_str());
        assert_eq!(cluster.ask(node, &format!("GET {}", key.as_str())), "$5\r\nthree\r\n");
    }
    let mixed = keys.iter().cloned().chain([store.colocated_key(BlobKey::parse("art:near").unwrap())]);
    store.put_blob(mixed.clone().next_back().unwrap(), "x".into(), until, PutMode::Always).await.unwrap();
    assert_eq!(store.delete_blobs(mixed.collect()).await.unwrap(), 51);
    assert_eq!(store.delete_blobs(keys).await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_put_a_result_on_a_cluster_one_does() {
    let cluster = RedisCluster::start();
    let clock = ManualClock::new(NOW);
    let store = open_at(cluster.url(0), "", &clock).await;
    let mut rivals = JoinSet::new();
    for n in 0..64 {
        let (store, key) = (store.clone(), BlobKey::parse("res:rivals").unwrap());
        rivals.spawn(async move {
            store.put_blob(key, n.to_string().into(), NOW + 1_000_000, PutMode::IfAbsent).await.unwrap()
        });
    }
    assert_eq!(rivals.join_all().await.into_iter().filter(|stored| *stored).count(), 1);
}

/// A worker wrote it without an end, and nobody else would ever delete it.
#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_job_gives_its_result_one_on_a_cluster_too() {
    let cluster = RedisCluster::start();
    let clock = ManualClock::new(NOW);
    let store = open_at(cluster.url(0), "", &clock).await;
    for n in 0..6 {
        let job = suite::insert(&store, suite::new_job("ends", &n.to_string(), NOW)).await;
        let key = BlobKey::result_of(job.id());
        let node = cluster.owner_of(key.as_str());
        assert_eq!(cluster.ask(node, &format!("SET {} x", key.as_str())), "+OK\r\n");
        let job = suite::change(&store, &job, suite::running(&job, NOW)).await;
        assert_eq!(store.blob_expiry(&key).await.unwrap(), Some(Millis(i64::MAX)));
        suite::change(&store, &job, suite::ended(&job, State::Succeeded, NOW)).await;
        let expiry = store.blob_expiry(&key).await.unwrap().unwrap();
        assert!(expiry <= NOW + RedisOptions::default().keep_results_ms, "{expiry:?}");
        assert_eq!(store.blob(&key).await.unwrap(), Some("x".into()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_writes_nothing_that_is_on_another_node() {
    let cluster = RedisCluster::start();
    let store = open_at(cluster.url(0), "", &ManualClock::new(NOW)).await;
    let mut step = Step::insert(suite::new_job("far", "a", NOW));
    step.blobs.push((BlobKey::result_of(step.job.id()), "x".into(), NOW + 1_000));
    let id = step.job.id().clone();
    assert!(matches!(store.commit(step).await, Err(StoreError::Refused(_))));
    assert_eq!(store.job(&id).await.unwrap(), None);
}

/// While the slot is on its way a script could do half of its work, so it does nothing. Then it goes on at the
/// other node.
#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_moves_leaves_no_half_step() {
    let cluster = RedisCluster::start();
    let clock = ManualClock::new(NOW);
    let store = open_at(cluster.url(0), "", &clock).await;
    // A judged one: its entry of the trail waits, so that every key is there that the script is handed.
    let judged = suite::audit::judged(&suite::new_job("moves", "a", NOW), Decision::Allow, NOW);
    let job = suite::insert(&store, judged).await;
    let keys = |store: &RedisStore| {
        let link = store.link();
        async move {
            let mut keys: Vec<String> = link.command(redis::cmd("KEYS").arg("*")).await.unwrap();
            keys.sort();
            keys
        }
    };
    let before = keys(&store).await;

    let (slot, from) = (cluster.slot_of(SLOT_TAG), cluster.owner_of(SLOT_TAG));
    let to = (from + 1) % PRIMARIES;
    let (from_id, to_id) = (cluster.id_of(from), cluster.id_of(to));
    let must = |node: usize, command: &str| {
        let answer = cluster.ask(node, command);
        assert!(answer.starts_with("+OK"), "{command}: {answer}");
    };
    must(to, &format!("CLUSTER SETSLOT {slot} IMPORTING {from_id}"));
    must(from, &format!("CLUSTER SETSLOT {slot} MIGRATING {to_id}"));
    // What it comes to by itself need not be: nobody runs yet, so there is no index of those who do.
    let step = Step::change(&job, suite::running(&job, NOW));
    let handed = [format!("job:rec:{}", job.id()), format!("job:meta:{}", job.id()), "job:seq".to_owned()];
    assert!(
        handed
            .iter()
            .chain([&"audit:outbox".to_owned()])
            .all(|key| before.contains(&format!("{SLOT_TAG}{key}"))),
        "{before:?}"
    );
    let moving = store.commit(step.clone()).await;
    assert!(matches!(moving, Err(StoreError::Unavailable(_))), "{moving:?}");
    assert_eq!(keys(&store).await, before, "nothing was written");
    assert_eq!(store.job(job.id()).await.unwrap().unwrap().revision, 1);

    let port = cluster.url(to).rsplit(':').next().unwrap().to_owned();
    for key in &before {
        must(from, &format!("MIGRATE 127.0.0.1 {port} {key} 0 5000"));
    }
    for node in [to, from] {
        must(node, &format!("CLUSTER SETSLOT {slot} NODE {to_id}"));
    }
    assert_eq!(store.commit(step).await.unwrap(), Commit::Done);
    assert_eq!(store.job(job.id()).await.unwrap().unwrap().revision, 2);
    assert_eq!(cluster.owner_of(SLOT_TAG), to);
}

/// The node that has all of our keys dies; the one that followed it has them.
#[tokio::test(flavor = "multi_thread")]
async fn a_follower_takes_the_place_of_a_dead_node() {
    let settings = ["--cluster-node-timeout", "1000"];
    let mut cluster = RedisCluster::start_with(&settings);
    cluster.add_follower_of(SLOT_TAG, &settings);
    let clock = ManualClock::new(NOW);
    let dead = cluster.owner_of(SLOT_TAG);
    let store = open_at(cluster.url((dead + 1) % PRIMARIES), "", &clock).await;
    let job = suite::insert(&store, suite::new_job("dies", "a", NOW)).await;
    // Redis copies after it has answered.
    while cluster.ask(PRIMARIES, "DBSIZE") != cluster.ask(dead, "DBSIZE") {}
    cluster.server(dead).kill();
    let step = Step::change(&job, suite::running(&job, NOW));
    let changed = loop {
        match store.commit(step.clone()).await {
            Ok(commit) => break commit,
            Err(error) => assert!(error.is_transient(), "{error}"),
        }
    };
    assert_eq!(changed, Commit::Done);
    assert_eq!(store.job(job.id()).await.unwrap().unwrap().revision, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_looks_is_told_that_it_is_a_cluster() {
    let mut cluster = RedisCluster::start_with(&["--cluster-node-timeout", "1000"]);
    let store = open_at(cluster.url(0), "", &ManualClock::new(NOW)).await;
    let found = store.check().await.unwrap();
    let words: Vec<_> = found.iter().map(Finding::words).collect();
    assert!(words.contains(&"a cluster of 3 primaries; our keys are on one of them"), "{words:?}");
    let risk = found.iter().find(|finding| finding.words().contains("full-coverage")).unwrap();
    assert_eq!(risk.grade(), "risk");
    let other = (cluster.owner_of(SLOT_TAG) + 1) % PRIMARIES;
    cluster.server(other).kill();
    let bad = loop {
        let looked = store.check().await;
        match looked.map(|found| found.into_iter().find(Finding::is_bad)) {
            Ok(Some(bad)) => break bad,
            Ok(None) => {}
            Err(error) => assert!(error.is_transient(), "{error}"),
        }
    };
    assert!(bad.words().contains("cluster_state:fail"), "{bad:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_node_of_a_cluster_is_told_the_password() {
    let cluster = RedisCluster::start();
    let keys: Vec<_> = (0..20).map(|n| BlobKey::parse(&format!("res:told-{n}")).unwrap()).collect();
    for node in 0..PRIMARIES {
        assert_eq!(cluster.ask(node, "CONFIG SET requirepass sesame"), "+OK\r\n");
    }
    let open = async |password: Option<&str>| {
        let (url, password) = (cluster.url(0), password.map(str::to_owned));
        let options = RedisOptions { url, password, ..RedisOptions::default() };
        RedisStore::open(options, Arc::new(MemoryLedger::default()), ManualClock::new(NOW).clock()).await
    };
    let store = open(Some("sesame")).await.unwrap();
    suite::insert(&store, suite::new_job("told", "a", NOW)).await;
    for key in keys {
        assert_eq!(store.blob(&key).await.unwrap(), None);
    }
    for password in [None, Some("open sesame")] {
        let error = open(password).await.map(drop).unwrap_err().to_string();
        assert!(error.contains("auth") || error.contains("AUTH"), "{error}");
    }
}
