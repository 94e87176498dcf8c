//! Random sequences of calls against the memory store and against Redis: both must give the same answers.
//!
//! The suite checks what somebody thought of. Here a seeded generator makes up the calls of two servers, and everything
//! that can be seen of the two stores is compared as text. What is left out is where adapters may differ: the numbers
//! of fences and places in lists, the order in which jobs are adopted, how many rows were pruned, and a new job under a
//! lock, which nobody makes. Within one sequence all steps carry an event or none does, as with servers that share a
//! store or do not.

mod generator;

use super::NOW;
use generator::{Call, Mode, Random, keys_of, tenant, words};
use reveille_core::id::Topic;
use reveille_core::job::{DeadLetter, Job, State};
use reveille_store::suite::ManualClock;
use reveille_store::{
    Commit, DeadLetterQuery, DeadPacket, JobQuery, Lock, MemoryLedger, MemoryStore, Opened, Page, PutMode,
    RedisOptions, RedisStore, Store, StoreError,
};
use reveille_test_servers::Redis;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

const SEQUENCES: u64 = 200;
const CALLS: usize = 60;
/// The servers that share each store.
const SERVERS: [&str; 2] = ["first", "second"];
const JOBS: u64 = 6;

#[tokio::test(flavor = "multi_thread")]
async fn the_memory_store_and_redis_give_the_same_answers() {
    let redis = Redis::start();
    let mut met = BTreeSet::new();
    for seed in 0..SEQUENCES {
        Sequence::new(&redis, seed, &mut met).await.run().await;
    }
    // A generator that never gets there proves nothing.
    for answer in [
        "Done",
        "Conflict",
        "Duplicate",
        "Fenced",
        "Commit(Seen)",
        "QuotaExceeded(Worker)",
        "QuotaExceeded(Tenant)",
        "QuotaExceeded(Topic)",
        "QuotaExceeded(Queue)",
        "Opened(\"Busy\")",
        "Opened(\"Seen\")",
        "Adopted(None)",
        "Adopted(Some([]))",
        "Adopted(Some([Job",
        "Locked(false)",
        "Locked(true)",
        "Renewed(false)",
        "Renewed(true)",
        "Put(false)",
        "Put(true)",
        "RemovedDeadLetter(true)",
        "Swapped(false)",
    ] {
        assert!(
            met.iter().any(|it: &String| it.contains(answer)),
            "no call was answered with {answer}: {met:?}"
        );
    }
}

/// What is left of an answer that both stores must give.
#[derive(Debug)]
#[expect(dead_code, reason = "answers are compared as text")]
enum Answer {
    Commit(Commit),
    Opened(&'static str),
    OpenedJob { job: Option<Arc<Job>>, is_locked: bool },
    Locked(bool),
    Renewed(bool),
    Unlocked(bool),
    Put(bool),
    DeletedBlobs(u64),
    RemovedDeadLetter(bool),
    Beat { was_here: bool, silent: Vec<String>, here: Vec<String> },
    Adopted(Option<Vec<Arc<Job>>>),
    Swapped(bool),
    Done,
}

/// One of the two stores, as both servers have it.
struct Side {
    servers: [Arc<dyn Store>; 2],
    /// What each call has locked.
    locks: Vec<Option<Lock>>,
}

struct Sequence<'m> {
    seed: u64,
    random: Random,
    clock: ManualClock,
    memory: Side,
    redis: Side,
    steps_have_events: bool,
    /// Every version that a job has had.
    versions: Vec<Arc<Job>>,
    calls: Vec<(usize, Call)>,
    met: &'m mut BTreeSet<String>,
}

impl<'m> Sequence<'m> {
    async fn new(redis: &Redis, seed: u64, met: &'m mut BTreeSet<String>) -> Self {
        let clock = ManualClock::new(NOW);
        let memory = MemoryStore::new(clock.clock());
        let ledger = Arc::new(MemoryLedger::default());
        let memory = SERVERS.map(|name| Arc::new(memory.as_replica(name)) as Arc<dyn Store>);
        let open = async |replica| {
            let options = RedisOptions {
                url: redis.url(0),
                prefix: format!("{seed}:"),
                replica,
                uses_our_clock: true,
                ..RedisOptions::default()
            };
            let store = RedisStore::open(options, ledger.clone(), clock.clock()).await.unwrap();
            Arc::new(store) as Arc<dyn Store>
        };
        let [first, second] = SERVERS.map(str::to_owned);
        let redis = [open(first).await, open(second).await];
        let mut random = Random(seed);
        let steps_have_events = random.one_in(2);
        let side = |servers| Side { servers, locks: Vec::new() };
        let (memory, redis) = (side(memory), side(redis));
        let (versions, calls) = (Vec::new(), Vec::new());
        Self { seed, random, clock, memory, redis, steps_have_events, versions, calls, met }
    }

    async fn run(mut self) {
        for server in 0..SERVERS.len() {
            self.call(server, Call::Beat).await;
        }
        for number in 0..CALLS {
            if self.random.one_in(4) {
                self.clock.advance(self.random.pick(&[1, 500, 2_500, 3_500, 61_000]));
            }
            let server = self.random.below(2) as usize;
            let call = self.next_call();
            self.call(server, call).await;
            if number % 30 == 29 {
                self.look().await;
            }
        }
    }

    async fn call(&mut self, server: usize, call: Call) {
        self.calls.push((server, call.clone()));
        let answers = [
            self.memory.answer(server, &call).await.unwrap(),
            self.redis.answer(server, &call).await.unwrap(),
        ];
        self.agree("the last of these calls", &answers);
        let words = format!("{:?}", answers[0]);
        self.met.insert(words.chars().take(40).collect());
        if let (Call::Commit { step, .. }, Answer::Commit(Commit::Done)) = (&call, &answers[0]) {
            if step.before.is_none() {
                // One that was pruned and comes again is another job.
                self.versions.retain(|job| job.id() != step.job.id());
            }
            self.versions.push(step.job.clone());
        }
    }

    /// Everything that can be seen, at both servers.
    async fn look(&self) {
        for server in 0..SERVERS.len() {
            let seen = [&self.memory, &self.redis].map(|side| side.servers[server].clone());
            let [memory, redis] = &seen;
            for query in [
                JobQuery::default(),
                JobQuery { tenant: Some(tenant(0)), ..JobQuery::default() },
                JobQuery { state: Some(State::Failed), ..JobQuery::default() },
                JobQuery { state: Some(State::Succeeded), tenant: Some(tenant(1)), ..JobQuery::default() },
                JobQuery { topic: Some(Topic::known("job.a")), ..JobQuery::default() },
                JobQuery { trace_id: Some(self.id(0).to_string()), ..JobQuery::default() },
                JobQuery { asked: true, ..JobQuery::default() },
                JobQuery { updated_after: Some(self.clock.now() + -3_000), ..JobQuery::default() },
            ] {
                let jobs = async |store: &Arc<dyn Store>| {
                    pages(async |cursor| store.jobs(&JobQuery { cursor, limit: 3, ..query.clone() }).await)
                        .await
                };
                self.agree(&format!("{query:?}"), &[jobs(memory).await, jobs(redis).await]);
            }
            self.agree("live jobs", &[live(memory).await, live(redis).await]);
            self.agree("owned jobs", &[owned(memory).await, owned(redis).await]);
            self.agree("dead letters", &[letters(memory).await, letters(redis).await]);
            self.agree("buried packets", &[buried(memory).await, buried(redis).await]);
            self.agree("the rest", &[self.rest(memory).await, self.rest(redis).await]);
        }
    }

    async fn rest(&self, store: &Arc<dyn Store>) -> Vec<String> {
        let mut seen = Vec::new();
        let mut add = |what: &dyn Debug| seen.push(format!("{what:?}"));
        for job in 0..JOBS {
            let id = self.id(job);
            add(&(store.job(&id).await.unwrap(), store.owner(&id).await.unwrap()));
            for key in keys_of(&id) {
                add(&(&key, store.blob(&key).await.unwrap(), store.blob_expiry(&key).await.unwrap()));
            }
        }
        for number in 0..2 {
            let tenant = tenant(number);
            add(&store.chain(&tenant, 0, 500).await.unwrap());
            add(&store.count_dead_letters(Some(&tenant)).await.unwrap());
            add(&store.job_of_key(&tenant, "key-0").await.unwrap());
        }
        add(&store.count_dead_letters(None).await.unwrap());
        add(&store.locks_held(10).await.unwrap());
        add(&store.read_events(0, Duration::from_millis(1)).await.unwrap());
        add(&store.breaker("breaker").await.unwrap());
        seen
    }

    fn agree(&self, what: &str, answers: &[impl Debug; 2]) {
        let [memory, redis] = answers.each_ref().map(|answer| format!("{answer:?}"));
        if memory == redis {
            return;
        }
        let calls = self.calls.iter().map(|(server, call)| format!("{} {}", SERVERS[*server], words(call)));
        let calls: Vec<_> = calls.collect();
        panic!(
            "seed {}, call {}: {what}\nmemory: {memory}\nredis:  {redis}\n\n{}",
            self.seed,
            self.calls.len(),
            calls.join("\n")
        );
    }
}

impl Side {
    async fn answer(&mut self, server: usize, call: &Call) -> Result<Answer, StoreError> {
        let store = self.servers[server].clone();
        // A lock that nobody took is one that nobody holds.
        let lock_of = |lock: &usize| {
            let nobodys = Lock { name: "nobodys".to_owned(), fence: 0 };
            self.locks.get(*lock).cloned().flatten().unwrap_or(nobodys)
        };
        let mut taken = None;
        let answer = match call {
            Call::Commit { step, under } => {
                let mut step = (**step).clone();
                step.preconditions.under = under.as_ref().map(lock_of);
                Answer::Commit(store.commit(step).await?)
            }
            Call::Open { job, message } => opened(store.open(job, message).await?, &mut taken),
            Call::OpenNew { job, message } => opened(store.open_new(job, message).await?, &mut taken),
            Call::TakeLock { name, ttl_ms } => {
                taken = store.lock(name, *ttl_ms).await?;
                Answer::Locked(taken.is_some())
            }
            Call::Renew { lock, ttl_ms } => Answer::Renewed(store.renew(&lock_of(lock), *ttl_ms).await?),
            Call::Unlock { lock } => Answer::Unlocked(store.unlock(&lock_of(lock)).await?),
            Call::Put { key, value, expires_at, mode } => {
                let mode = match mode {
                    Mode::Always => PutMode::Always,
                    Mode::IfAbsent => PutMode::IfAbsent,
                    Mode::Under(lock) => PutMode::Under(lock_of(lock)),
                };
                Answer::Put(store.put_blob(key.clone(), value.clone(), *expires_at, mode).await?)
            }
            Call::DeleteBlobs { keys } => Answer::DeletedBlobs(store.delete_blobs(keys.clone()).await?),
            Call::RemoveDeadLetter { job } => Answer::RemovedDeadLetter(store.remove_dead_letter(job).await?),
            Call::Bury { packet } => {
                store.bury((**packet).clone()).await?;
                Answer::Done
            }
            Call::Beat => {
                let mut members = store.beat("a server").await?;
                members.silent.sort();
                members.here.sort();
                let (was_here, silent, here) = (members.was_here, members.silent, members.here);
                Answer::Beat { was_here, silent, here }
            }
            Call::Adopt { silent } => {
                let mut adopted = store.adopt(silent, 500).await?;
                if let Some(jobs) = &mut adopted {
                    jobs.sort_by_key(|job| job.id().clone());
                }
                Answer::Adopted(adopted)
            }
            Call::AppendEvents { batch, items } => {
                store.append_events(*batch, items).await?;
                Answer::Done
            }
            Call::Swap { before, after } => {
                Answer::Swapped(store.swap_breaker("breaker", *before, *after).await?)
            }
            Call::Prune { ended_before, now } => {
                store.prune(*ended_before, *now, 500).await?;
                Answer::Done
            }
        };
        self.locks.push(taken);
        Ok(answer)
    }
}

fn opened(opened: Opened, taken: &mut Option<Lock>) -> Answer {
    match opened {
        Opened::Seen => Answer::Opened("Seen"),
        Opened::Busy => Answer::Opened("Busy"),
        Opened::Job { job, lock } => {
            *taken = lock;
            Answer::OpenedJob { job, is_locked: taken.is_some() }
        }
    }
}

async fn live(store: &Arc<dyn Store>) -> Vec<Vec<Arc<Job>>> {
    pages(async |cursor| store.live(cursor, 3).await).await
}

async fn owned(store: &Arc<dyn Store>) -> Vec<Vec<Arc<Job>>> {
    pages(async |cursor| store.owned(cursor, 3).await).await
}

async fn letters(store: &Arc<dyn Store>) -> Vec<Vec<DeadLetter>> {
    let query = |cursor| DeadLetterQuery { cursor, limit: 3, ..DeadLetterQuery::default() };
    pages(async |cursor| store.dead_letters(&query(cursor)).await).await
}

async fn buried(store: &Arc<dyn Store>) -> Vec<Vec<DeadPacket>> {
    pages(async |cursor| store.buried(cursor, 3).await).await
}

/// All pages of a list. Where each begins is the adapter's own affair.
async fn pages<T>(next: impl AsyncFn(Option<u64>) -> Result<Page<T>, StoreError>) -> Vec<Vec<T>> {
    let (mut pages, mut cursor) = (Vec::new(), None);
    loop {
        let page = next(cursor).await.unwrap();
        pages.push(page.items);
        cursor = page.next;
        if cursor.is_none() {
            return pages;
        }
    }
}
