//! Pruning takes an ended job with all that is its own, and nothing else.

use super::{ManualClock, change, ended, insert, letters_of, load, new_job, running};
use crate::{BlobKey, JobQuery, PutMode, Store};
use reveille_core::id::TenantId;
use reveille_core::job::{Job, State};
use reveille_core::life;
use reveille_core::time::Millis;
use std::sync::Arc;

pub async fn run(store: &dyn Store, clock: &ManualClock) {
    an_ended_job_goes_with_everything_that_is_its_own(store, clock).await;
    a_job_that_is_live_or_recent_stays(store, clock).await;
    expired_blobs_go(store, clock).await;
    a_limit_is_kept_and_the_rest_goes_next_time(store, clock).await;
}

pub async fn an_ended_job_goes_with_everything_that_is_its_own(store: &dyn Store, clock: &ManualClock) {
    forget_the_other_checks(store, clock).await;
    let now = clock.now();
    let tenant = TenantId::known("prune");
    let mut job = new_job("prune", "a", now);
    Arc::make_mut(&mut job.request).idempotency_key = Some("again".to_owned());
    let job = insert(store, job).await;
    let own = [store.colocated_key(BlobKey::context_of(job.id())), BlobKey::result_of(job.id())];
    let foreign = BlobKey::parse("res:prune-a2").unwrap();
    for key in own.iter().chain([&foreign]) {
        store.put_blob(key.clone(), "x".into(), now + 1_000_000, PutMode::Always).await.unwrap();
    }
    let failed = change(store, &job, ended(&job, State::Failed, now)).await;
    change(store, &failed, life::settled(&failed)).await;

    assert_eq!(store.prune(now + 1, now, 100).await.unwrap(), 4, "a job, a dead letter and two blobs");
    assert_eq!(load(store, job.id()).await, None);
    for key in &own {
        assert_eq!(store.blob(key).await.unwrap(), None);
    }
    assert_eq!(store.blob(&foreign).await.unwrap(), Some("x".into()));
    assert!(store.dead_letters(&letters_of(&tenant, 10)).await.unwrap().items.is_empty());
    let query = JobQuery { tenant: Some(tenant), limit: 10, ..JobQuery::default() };
    assert!(store.jobs(&query).await.unwrap().items.is_empty());
    assert_eq!(store.prune(now + 1, now, 100).await.unwrap(), 0);

    // Its id and its idempotency key are free again.
    let mut again = new_job("prune", "a", now);
    Arc::make_mut(&mut again.request).idempotency_key = Some("again".to_owned());
    insert(store, again).await;
}

pub async fn a_job_that_is_live_or_recent_stays(store: &dyn Store, clock: &ManualClock) {
    let now = clock.now();
    let waiting = insert(store, new_job("prune-stay", "waiting", now)).await;
    let owing = insert(store, new_job("prune-stay", "owing", now)).await;
    let owing = change(store, &owing, ended(&owing, State::Failed, now)).await;
    let recent = over(store, new_job("prune-stay", "recent", now), now + 100).await;
    // Its result was found to be bad after it had owed nothing any more.
    let again = over(store, new_job("prune-stay", "again", now), now).await;
    let again = change(store, &again, ended(&again, State::OutputQuarantined, now)).await;
    store.prune(now + 100, now, 100).await.unwrap();
    for job in [waiting, owing, recent, again] {
        assert_eq!(load(store, job.id()).await.as_ref(), Some(&job));
    }
}

pub async fn expired_blobs_go(store: &dyn Store, clock: &ManualClock) {
    let keys: Vec<_> =
        (0..3).map(|n| store.colocated_key(BlobKey::parse(&format!("art:prune-{n}")).unwrap())).collect();
    for (key, ms) in keys.iter().zip([10, 20, 1000]) {
        store.put_blob(key.clone(), "x".into(), clock.now() + ms, PutMode::Always).await.unwrap();
    }
    clock.advance(20);
    assert_eq!(store.prune(Millis::ZERO, clock.now(), 100).await.unwrap(), 2);
    assert_eq!(store.prune(Millis::ZERO, clock.now(), 100).await.unwrap(), 0);
    assert_eq!(store.blob(&keys[2]).await.unwrap(), Some("x".into()));
}

pub async fn a_limit_is_kept_and_the_rest_goes_next_time(store: &dyn Store, clock: &ManualClock) {
    forget_the_other_checks(store, clock).await;
    let now = clock.now();
    for number in 0..5 {
        over(store, new_job("prune-limit", &number.to_string(), now), now + number).await;
    }
    assert_eq!(store.prune(now + 100, now, 3).await.unwrap(), 3);
    let query = JobQuery { tenant: Some(TenantId::known("prune-limit")), limit: 10, ..JobQuery::default() };
    let left = store.jobs(&query).await.unwrap().items;
    let left: Vec<_> = left.iter().map(|job| job.id().as_str()).collect();
    assert_eq!(left, ["prune-limit-4", "prune-limit-3"], "the longest ended go first");
    assert_eq!(store.prune(now + 100, now, 3).await.unwrap(), 2);
    assert_eq!(store.prune(now + 100, now, 3).await.unwrap(), 0);
}

/// Runs a job to an end that owes nothing.
async fn over(store: &dyn Store, job: Job, at: Millis) -> Arc<Job> {
    let job = insert(store, job).await;
    let job = change(store, &job, running(&job, at)).await;
    change(store, &job, ended(&job, State::Succeeded, at)).await
}

/// Prunes until nothing is left to prune, so that the counts below are of one check only.
async fn forget_the_other_checks(store: &dyn Store, clock: &ManualClock) {
    while store.prune(clock.now() + 1_000_000, clock.now(), 1000).await.unwrap() > 0 {}
}
