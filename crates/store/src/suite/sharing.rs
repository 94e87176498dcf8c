//! What several replicas may rely on: room is exact over all of them, a lapsed lock commits nothing, a message is
//! acted on once, and the jobs of one that falls silent go to another.
//!
//! Run over two handles of one store, for adapters that can be shared.

use super::listing::live_of;
use super::{ManualClock, change, ended, insert, load, new_job, running};
use crate::{
    BEAT_TTL_MS, Commit, ExceededQuota, HeldLock, JobQuery, Lock, Opened, Preconditions, Quota, Receipt,
    Step, Store,
};
use bytes::Bytes;
use reveille_core::id::TenantId;
use reveille_core::job::{Job, Phase, State};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

const RIVALS: usize = 32;
/// How many of them there is room for.
const PLACES: u32 = 5;

/// `first` and `second` are the handles of two replicas, called so.
pub async fn run(first: &Arc<dyn Store>, second: &Arc<dyn Store>, clock: &ManualClock) {
    for store in [first, second] {
        assert!(store.is_shared());
        assert!(!store.beat("it starts").await.unwrap().was_here);
    }
    a_worker_never_has_more_than_fit(first, second, clock).await;
    a_tenant_and_a_topic_never_have_more_than_they_may(first, second, clock).await;
    a_queue_never_grows_past_its_end(first, second, clock).await;
    no_more_jobs_wait_for_a_person_than_may(first, second, clock).await;
    what_is_given_back_is_room_again(&**first, clock).await;
    all_see_who_holds_what(&**first, &**second, clock).await;
    a_step_under_a_lapsed_lock_does_not_count(&**first, &**second, clock).await;
    a_message_is_acted_on_once(&**first, &**second, clock).await;
    a_message_makes_one_job(&**first, &**second, clock).await;
    live_jobs_are_one_list_whosever_they_are(&**first, &**second, clock).await;
    the_jobs_of_a_silent_replica_go_to_another(&**first, &**second, clock).await;
    a_late_commit_of_one_that_was_taken_over_is_found_again(&**first, &**second, clock).await;
    what_is_told_has_one_order_for_all(&**first, &**second, clock).await;
}

pub async fn a_worker_never_has_more_than_fit(
    first: &Arc<dyn Store>,
    second: &Arc<dyn Store>,
    clock: &ManualClock,
) {
    let quota = Quota { worker_max: Some(PLACES), ..Quota::default() };
    assert_eq!(
        placed_at_once(first, second, "room-worker", quota, clock).await,
        (PLACES, ExceededQuota::Worker)
    );
}

pub async fn a_tenant_and_a_topic_never_have_more_than_they_may(
    first: &Arc<dyn Store>,
    second: &Arc<dyn Store>,
    clock: &ManualClock,
) {
    let quota = Quota { tenant_max: Some(PLACES), ..Quota::default() };
    assert_eq!(
        placed_at_once(first, second, "room-tenant", quota, clock).await,
        (PLACES, ExceededQuota::Tenant)
    );
    let quota = Quota { topic_max: Some(PLACES), ..Quota::default() };
    assert_eq!(
        placed_at_once(first, second, "room-topic", quota, clock).await,
        (PLACES, ExceededQuota::Topic)
    );
}

pub async fn a_queue_never_grows_past_its_end(
    first: &Arc<dyn Store>,
    second: &Arc<dyn Store>,
    clock: &ManualClock,
) {
    let preconditions = Preconditions {
        quota: Quota { queue_max: Some(PLACES.into()), ..Quota::default() },
        ..Preconditions::default()
    };
    let steps = (0..RIVALS).map(|number| {
        Step::insert(new_job("room-queue", &number.to_string(), clock.now())).on(preconditions.clone())
    });
    assert_eq!(commit_at_once(first, second, steps.collect()).await, (PLACES, ExceededQuota::Queue));
}

pub async fn no_more_jobs_wait_for_a_person_than_may(
    first: &Arc<dyn Store>,
    second: &Arc<dyn Store>,
    clock: &ManualClock,
) {
    let quota = Quota { approvals_max: Some(PLACES), ..Quota::default() };
    let on = || Preconditions { quota, ..Preconditions::default() };
    let tenant = Some(TenantId::known("room-asked"));
    let asked =
        |name: &str| Job { phase: Phase::ApprovalRequired, ..new_job("room-asked", name, clock.now()) };
    let steps = (0..RIVALS).map(|number| Step::insert(asked(&number.to_string())).on(on()));
    assert_eq!(commit_at_once(first, second, steps.collect()).await, (PLACES, ExceededQuota::Approvals));
    let query = JobQuery { tenant, state: Some(State::ApprovalRequired), limit: 1, ..JobQuery::default() };
    let waiting = first.jobs(&query).await.unwrap().items.remove(0);
    let over = Step::change(&waiting, ended(&waiting, State::Denied, clock.now()));
    assert_eq!(second.commit(over).await.unwrap(), Commit::Done);
    assert_eq!(first.commit(Step::insert(asked("next")).on(on())).await.unwrap(), Commit::Done);
    let one_more = first.commit(Step::insert(asked("one-more")).on(on())).await.unwrap();
    assert_eq!(one_more, Commit::QuotaExceeded(ExceededQuota::Approvals));
}

pub async fn what_is_given_back_is_room_again(store: &dyn Store, clock: &ManualClock) {
    let quota = Quota {
        worker_max: Some(1),
        tenant_max: Some(1),
        topic_max: Some(1),
        queue_max: Some(2),
        approvals_max: None,
    };
    let preconditions = || Preconditions { quota, ..Preconditions::default() };
    let place = |job: &Arc<Job>| Step::change(job, at(job, "room-back", clock)).on(preconditions());
    let mut jobs = Vec::new();
    for name in ["a", "b"] {
        let step = Step::insert(of_topic("room-back", name, clock)).on(preconditions());
        jobs.push(step.job.clone());
        assert_eq!(store.commit(step).await.unwrap(), Commit::Done);
    }
    let third = || Step::insert(of_topic("room-back", "c", clock)).on(preconditions());
    assert_eq!(store.commit(third()).await.unwrap(), Commit::QuotaExceeded(ExceededQuota::Queue));
    let first = place(&jobs[0]);
    let placed = first.job.clone();
    assert_eq!(store.commit(first).await.unwrap(), Commit::Done);
    assert!(matches!(store.commit(place(&jobs[1])).await.unwrap(), Commit::QuotaExceeded(_)));
    let over = Step::change(&placed, ended(&placed, State::Succeeded, clock.now()));
    assert_eq!(store.commit(over).await.unwrap(), Commit::Done);
    assert_eq!(store.commit(place(&jobs[1])).await.unwrap(), Commit::Done);
    assert_eq!(store.commit(third()).await.unwrap(), Commit::Done);
}

pub async fn all_see_who_holds_what(first: &dyn Store, second: &dyn Store, clock: &ManualClock) {
    let job = insert(first, new_job("held", "a", clock.now())).await;
    open(first, &job, 1).await;
    let lock = first.lock("held", 1000).await.unwrap().unwrap();
    let expected =
        HeldLock { name: "held".to_owned(), holder: "first".to_owned(), until: clock.now() + 1000 };
    for store in [first, second] {
        let held = store.locks_held(500).await.unwrap();
        let ours: Vec<_> = held.iter().filter(|lock| lock.name.contains("held")).collect();
        assert_eq!(ours, [&expected], "the lock of a job is none of these");
    }
    assert!(first.unlock(&lock).await.unwrap());
}

pub async fn a_step_under_a_lapsed_lock_does_not_count(
    first: &dyn Store,
    second: &dyn Store,
    clock: &ManualClock,
) {
    let job = insert(first, new_job("fence", "a", clock.now())).await;
    open(first, &job, 1).await;
    // It could not commit, and tries again.
    let old = open(first, &job, 1).await;
    let step = |lock: &Lock| {
        let preconditions = Preconditions { under: Some(lock.clone()), ..Preconditions::default() };
        Step::change(&job, running(&job, clock.now())).on(preconditions)
    };
    let late = step(&old);
    let receipt = Receipt::new("S", "fence", 2, 0);
    assert_eq!(second.open(job.id(), &receipt).await.unwrap(), Opened::Busy);
    clock.advance(60_000);
    assert_eq!(first.commit(late).await.unwrap(), Commit::Fenced);
    let new = open(second, &job, 2).await;
    assert!(new.fence > old.fence);
    assert_eq!(first.commit(step(&old)).await.unwrap(), Commit::Fenced);
    assert_eq!(load(first, job.id()).await.as_ref(), Some(&job), "nothing of it was written");
    assert_eq!(second.commit(step(&new)).await.unwrap(), Commit::Done);
    assert!(!second.unlock(&new).await.unwrap(), "the commit has given it back");
    open(first, &job, 3).await;
}

pub async fn a_message_is_acted_on_once(first: &dyn Store, second: &dyn Store, clock: &ManualClock) {
    let job = insert(first, new_job("message", "a", clock.now())).await;
    let receipt = Receipt::new("S", "message", 1, 0);
    let Opened::Job { job: Some(opened), lock } = first.open(job.id(), &receipt).await.unwrap() else {
        panic!("it is there, and free");
    };
    assert_eq!(opened, job);
    let preconditions =
        Preconditions { under: lock, answers: Some(receipt.clone()), ..Preconditions::default() };
    let step = Step::change(&job, running(&job, clock.now())).on(preconditions);
    assert_eq!(first.commit(step).await.unwrap(), Commit::Done);
    for store in [first, second] {
        assert_eq!(store.open(job.id(), &receipt).await.unwrap(), Opened::Seen);
    }
    open(second, &job, 2).await;
    // One that had the message already, and was stopped between its decision and its commit.
    let preconditions = Preconditions { answers: Some(receipt), ..Preconditions::default() };
    let late = Step::change(&job, running(&job, clock.now())).on(preconditions);
    assert_eq!(second.commit(late).await.unwrap(), Commit::Seen);
}

pub async fn a_message_makes_one_job(first: &dyn Store, second: &dyn Store, clock: &ManualClock) {
    let receipt = Receipt::new("S", "new", 1, 0);
    let step = || {
        let preconditions = Preconditions { answers: Some(receipt.clone()), ..Preconditions::default() };
        Step::insert(new_job("message-new", "a", clock.now())).on(preconditions)
    };
    let id = step().job.id().clone();
    assert_eq!(first.open_new(&id, &receipt).await.unwrap(), Opened::Job { job: None, lock: None });
    assert_eq!(first.commit(step()).await.unwrap(), Commit::Done);
    assert_eq!(second.commit(step()).await.unwrap(), Commit::Duplicate(id.clone()));
    assert_eq!(second.open_new(&id, &receipt).await.unwrap(), Opened::Seen);
    // Also when its job is gone by then.
    let job = load(first, &id).await.unwrap();
    let over = reveille_core::life::settled(&ended(&job, State::Succeeded, clock.now()));
    assert_eq!(first.commit(Step::change(&job, over)).await.unwrap(), Commit::Done);
    let long_ago = clock.now() + 1;
    while first.prune(long_ago, clock.now(), 1000).await.unwrap() > 0 {}
    assert_eq!(load(first, &id).await, None);
    assert_eq!(second.commit(step()).await.unwrap(), Commit::Seen);
    assert_eq!(load(first, &id).await, None);
}

pub async fn live_jobs_are_one_list_whosever_they_are(
    first: &dyn Store,
    second: &dyn Store,
    clock: &ManualClock,
) {
    let mut jobs = Vec::new();
    for (number, store) in [first, second, second, first, second, first, first].into_iter().enumerate() {
        jobs.push(insert(store, new_job("whosever", &number.to_string(), clock.now())).await);
    }
    let all =
        ["whosever-0", "whosever-1", "whosever-2", "whosever-3", "whosever-4", "whosever-5", "whosever-6"];
    assert_eq!(live_of(first, "whosever").await, all);
    // A job belongs to whoever committed it last, and keeps its place.
    change(second, &jobs[0], running(&jobs[0], clock.now())).await;
    assert_eq!(live_of(second, "whosever").await, all);
    for (store, job) in [(first, &jobs[1]), (second, &jobs[6])] {
        change(store, job, ended(job, State::Succeeded, clock.now())).await;
    }
    assert_eq!(live_of(first, "whosever").await, [all[0], all[2], all[3], all[4], all[5]]);
}

pub async fn the_jobs_of_a_silent_replica_go_to_another(
    first: &dyn Store,
    second: &dyn Store,
    clock: &ManualClock,
) {
    first.beat("one").await.unwrap();
    second.beat("two").await.unwrap();
    let mut live = Vec::new();
    for number in 0..3 {
        live.push(insert(first, new_job("silent", &number.to_string(), clock.now())).await);
    }
    let over = insert(first, new_job("silent", "over", clock.now())).await;
    let over = Step::change(&over, ended(&over, State::Succeeded, clock.now()));
    first.commit(over).await.unwrap();
    assert_eq!(second.adopt("first", 10).await.unwrap(), None, "it is here");

    clock.advance(BEAT_TTL_MS - 1);
    let roll = second.beat("two").await.unwrap();
    assert!(roll.was_here && roll.here.contains(&"first".to_owned()), "{roll:?}");
    clock.advance(1);
    let roll = second.beat("two").await.unwrap();
    assert_eq!((roll.silent, roll.here), (vec!["first".to_owned()], vec!["second".to_owned()]));
    let mut adopted = Vec::new();
    loop {
        let some = second.adopt("first", 100).await.unwrap().unwrap();
        if some.is_empty() {
            break;
        }
        adopted.extend(some);
    }
    adopted.retain(|job| job.request.tenant.as_str() == "silent");
    adopted.sort_by_key(|job| job.id().clone());
    assert_eq!(adopted, live);
    assert!(second.beat("two").await.unwrap().silent.is_empty(), "it left nothing behind");

    let roll = first.beat("one").await.unwrap();
    assert!(!roll.was_here, "it was taken for dead meanwhile");
    assert!(first.beat("one").await.unwrap().was_here);
}

pub async fn a_late_commit_of_one_that_was_taken_over_is_found_again(
    first: &dyn Store,
    second: &dyn Store,
    clock: &ManualClock,
) {
    let job = insert(first, new_job("late", "a", clock.now())).await;
    clock.advance(BEAT_TTL_MS);
    second.beat("two").await.unwrap();
    while !second.adopt("first", 100).await.unwrap().unwrap().is_empty() {}
    // It was stopped between its decision and its commit, and goes on now.
    let late = Step::change(&job, running(&job, clock.now()));
    assert_eq!(first.commit(late).await.unwrap(), Commit::Done);
    let roll = second.beat("two").await.unwrap();
    assert_eq!(roll.silent, ["first".to_owned()]);
    let adopted = second.adopt("first", 100).await.unwrap().unwrap();
    assert_eq!(adopted.iter().map(|job| job.id()).collect::<Vec<_>>(), [job.id()]);
}

/// Gives many jobs to one worker at once. Says how many went, and what the others lacked.
async fn placed_at_once(
    first: &Arc<dyn Store>,
    second: &Arc<dyn Store>,
    check: &str,
    quota: Quota,
    clock: &ManualClock,
) -> (u32, ExceededQuota) {
    let mut steps = Vec::new();
    for number in 0..RIVALS {
        let job = insert(&**first, of_topic(check, &number.to_string(), clock)).await;
        let preconditions = Preconditions { quota, ..Preconditions::default() };
        steps.push(Step::change(&job, at(&job, check, clock)).on(preconditions));
    }
    commit_at_once(first, second, steps).await
}

async fn commit_at_once(
    first: &Arc<dyn Store>,
    second: &Arc<dyn Store>,
    steps: Vec<Step>,
) -> (u32, ExceededQuota) {
    let mut rivals = JoinSet::new();
    for (number, step) in steps.into_iter().enumerate() {
        let store = Arc::clone(if number % 2 == 0 { first } else { second });
        rivals.spawn(async move { store.commit(step).await.unwrap() });
    }
    let mut done = 0;
    let mut lacked = None;
    for commit in rivals.join_all().await {
        match commit {
            Commit::Done => done += 1,
            Commit::QuotaExceeded(full) => assert_eq!(*lacked.get_or_insert(full), full),
            other => panic!("{other:?}"),
        }
    }
    (done, lacked.expect("some were refused"))
}

/// The job at a worker that is named after the check.
fn at(job: &Job, check: &str, clock: &ManualClock) -> Job {
    use reveille_core::id::WorkerId;
    use reveille_core::job::Phase;
    let mut job = running(job, clock.now());
    if let Phase::Running(attempt) = &mut job.phase {
        attempt.worker = Some(WorkerId::known(check));
    }
    job
}

fn of_topic(check: &str, name: &str, clock: &ManualClock) -> Job {
    let mut job = new_job(check, name, clock.now());
    Arc::make_mut(&mut job.request).topic = reveille_core::id::Topic::known(format!("job.{check}"));
    job
}

async fn open(store: &dyn Store, job: &Job, sequence: u64) -> Lock {
    let receipt = Receipt::new("S", job.id().as_str(), sequence, 0);
    match store.open(job.id(), &receipt).await.unwrap() {
        Opened::Job { lock: Some(lock), .. } => lock,
        other => panic!("{other:?}"),
    }
}

pub async fn what_is_told_has_one_order_for_all(first: &dyn Store, second: &dyn Store, clock: &ManualClock) {
    let told = |words: &str| Bytes::copy_from_slice(words.as_bytes());
    let step = Step::insert(new_job("news", "a", clock.now())).with_event(told("a job"));
    let job = step.job.clone();
    assert_eq!(first.commit(step).await.unwrap(), Commit::Done);
    let again = Step::insert(new_job("news", "a", clock.now())).with_event(told("the job again"));
    assert!(matches!(second.commit(again).await.unwrap(), Commit::Duplicate(_)));
    for batch in [1, 1, 2] {
        second.append_events(batch, &[told("a worker"), told("another")]).await.unwrap();
    }
    first.append_events(1, &[told("a workspace")]).await.unwrap();
    let step = Step::change(&job, running(&job, clock.now())).with_event(told("the job runs"));
    assert_eq!(second.commit(step).await.unwrap(), Commit::Done);

    let wait = Duration::from_millis(1);
    let news = first.read_events(0, wait).await.unwrap();
    assert_eq!(news, second.read_events(0, wait).await.unwrap());
    let places: Vec<u64> = news.items.iter().map(|(place, _)| *place).collect();
    assert!(places.is_sorted_by(|a, b| a < b), "{places:?}");
    let words: Vec<&[u8]> = news.items.iter().map(|(_, item)| &item[..]).collect();
    let expected = ["a job", "a worker", "another", "a worker", "another", "a workspace", "the job runs"];
    assert_eq!(words, expected.map(str::as_bytes));
    assert_eq!(news.kept, Some((places[0], places[6])));
    let rest = first.read_events(places[4], wait).await.unwrap();
    assert_eq!(rest.items, news.items[5..]);
    assert_eq!(first.read_events(places[6], wait).await.unwrap().items, []);

    // Whoever waits is woken.
    let (waited, ()) = tokio::join!(first.read_events(places[6], Duration::from_secs(5)), async {
        second.append_events(3, &[told("at last")]).await.unwrap();
    });
    assert_eq!(waited.unwrap().items[0].1, told("at last"));
}
