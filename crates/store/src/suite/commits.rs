//! Inserting, comparing and swapping, and what a refused step leaves behind: nothing.

use super::{ManualClock, change, ended, insert, letters_of, load, new_job, running};
use crate::{BlobKey, Commit, Preconditions, Step, Store};
use bytes::Bytes;
use reveille_core::id::{JobId, TenantId};
use reveille_core::job::{Job, State};
use reveille_core::life;
use std::sync::Arc;
use tokio::task::JoinSet;

/// How many tasks want the same change at once.
const RIVALS: usize = 64;

pub async fn run(store: &Arc<dyn Store>, clock: &ManualClock) {
    a_committed_job_is_read_back_as_it_was_written(&**store, clock).await;
    a_change_decided_on_another_revision_conflicts(&**store, clock).await;
    an_id_belongs_to_one_job(&**store, clock).await;
    an_idempotency_key_belongs_to_one_job_of_a_tenant(&**store, clock).await;
    nothing_of_a_refused_step_is_visible(&**store, clock).await;
    blobs_become_visible_with_their_step(&**store, clock).await;
    a_step_put_together_by_hand_gets_the_right_revision(&**store, clock).await;
    of_many_rivals_exactly_one_wins(store, clock).await;
    of_many_inserts_with_one_key_exactly_one_wins(store, clock).await;
    many_tasks_lose_no_change_of_one_job(store, clock).await;
}

pub async fn a_committed_job_is_read_back_as_it_was_written(store: &dyn Store, clock: &ManualClock) {
    let mut job = new_job("read-back", "a", clock.now());
    let request = Arc::make_mut(&mut job.request);
    request.labels.insert("größe".to_owned(), "\"\0\u{1f980}".to_owned());
    request.compensation = Bytes::from_static(b"\0\xff");
    assert_eq!(load(store, job.id()).await, None);
    let inserted = insert(store, job).await;
    assert_eq!(inserted.revision, 1);
    assert_eq!(load(store, inserted.id()).await.as_ref(), Some(&inserted));

    let changed = change(store, &inserted, running(&inserted, clock.now())).await;
    assert_eq!(changed.revision, 2);
    assert_eq!(load(store, inserted.id()).await.as_ref(), Some(&changed));

    let over = change(store, &changed, ended(&changed, State::Succeeded, clock.now())).await;
    assert_eq!(load(store, inserted.id()).await, Some(over));
}

pub async fn a_change_decided_on_another_revision_conflicts(store: &dyn Store, clock: &ManualClock) {
    let first = insert(store, new_job("conflict", "a", clock.now())).await;
    let second = change(store, &first, running(&first, clock.now())).await;
    let late = Step::change(&first, ended(&first, State::Cancelled, clock.now()));
    assert_eq!(store.commit(late).await.unwrap(), Commit::Conflict);
    let early = Arc::new(Job { revision: 7, ..(*second).clone() });
    let early = Step::change(&early, ended(&early, State::Cancelled, clock.now()));
    assert_eq!(store.commit(early).await.unwrap(), Commit::Conflict);
    assert_eq!(load(store, first.id()).await, Some(second));

    let unknown = Arc::new(new_job("conflict", "unknown", clock.now()));
    let step = Step::change(&unknown, running(&unknown, clock.now()));
    assert_eq!(store.commit(step).await.unwrap(), Commit::Conflict);
    assert_eq!(load(store, unknown.id()).await, None);
}

pub async fn an_id_belongs_to_one_job(store: &dyn Store, clock: &ManualClock) {
    let job = insert(store, new_job("same-id", "a", clock.now())).await;
    let mut again = new_job("same-id", "a", clock.now());
    Arc::make_mut(&mut again.request).tenant = TenantId::known("same-id-other");
    assert_eq!(store.commit(Step::insert(again)).await.unwrap(), Commit::Duplicate(job.id().clone()));
    assert_eq!(load(store, job.id()).await, Some(job));
}

pub async fn an_idempotency_key_belongs_to_one_job_of_a_tenant(store: &dyn Store, clock: &ManualClock) {
    let job = |check: &str, name: &str| {
        let mut job = new_job(check, name, clock.now());
        Arc::make_mut(&mut job.request).idempotency_key = Some("once".to_owned());
        job
    };
    let first = insert(store, job("same-key", "a")).await;
    let other_tenant = insert(store, job("same-key-other", "a")).await;
    let again = Step::insert(job("same-key", "b"));
    assert_eq!(store.commit(again).await.unwrap(), Commit::Duplicate(first.id().clone()));
    let again = Step::insert(job("same-key-other", "b"));
    assert_eq!(store.commit(again).await.unwrap(), Commit::Duplicate(other_tenant.id().clone()));

    // The key stays taken for as long as the job is kept, not only while it lives.
    let over = change(store, &first, ended(&first, State::Succeeded, clock.now())).await;
    let again = Step::insert(job("same-key", "c"));
    assert_eq!(store.commit(again).await.unwrap(), Commit::Duplicate(over.id().clone()));
    for name in ["b", "c"] {
        assert_eq!(load(store, &JobId::known(format!("same-key-{name}"))).await, None);
    }
    let holder =
        async |tenant: &str, key: &str| store.job_of_key(&TenantId::known(tenant), key).await.unwrap();
    assert_eq!(holder("same-key", "once").await.as_ref(), Some(over.id()));
    assert_eq!(holder("same-key-other", "once").await.as_ref(), Some(other_tenant.id()));
    assert_eq!((holder("same-key", "twice").await, holder("nobody", "once").await), (None, None));
}

pub async fn nothing_of_a_refused_step_is_visible(store: &dyn Store, clock: &ManualClock) {
    let first = insert(store, new_job("refused", "a", clock.now())).await;
    let second = change(store, &first, running(&first, clock.now())).await;
    let key = store.colocated_key(BlobKey::result_of(first.id()));
    let refused = [
        Step::insert(new_job("refused", "a", clock.now())),
        Step::change(&first, ended(&first, State::Failed, clock.now())),
    ];
    for mut step in refused {
        step.blobs = vec![(key.clone(), Bytes::from_static(b"never"), clock.now() + 1000)];
        assert_ne!(store.commit(step).await.unwrap(), Commit::Done);
        assert_eq!(store.blob(&key).await.unwrap(), None);
        assert_eq!(store.blob_expiry(&key).await.unwrap(), None);
    }
    assert_eq!(load(store, first.id()).await, Some(second));
    let letters = store.dead_letters(&letters_of(&TenantId::known("refused"), 10)).await.unwrap();
    assert!(letters.items.is_empty(), "{letters:?}");
}

pub async fn blobs_become_visible_with_their_step(store: &dyn Store, clock: &ManualClock) {
    let job = new_job("step-blobs", "a", clock.now());
    let keys = [BlobKey::context_of(job.id()), BlobKey::parse("art:step-blobs").unwrap()];
    let keys = keys.map(|key| store.colocated_key(key));
    let expires_at = clock.now() + 60_000;
    let mut step = Step::insert(job);
    step.blobs = keys.iter().map(|key| (key.clone(), Bytes::from(key.pointer()), expires_at)).collect();
    assert_eq!(store.commit(step).await.unwrap(), Commit::Done);
    for key in &keys {
        assert_eq!(store.blob(key).await.unwrap(), Some(Bytes::from(key.pointer())));
        assert_eq!(store.blob_expiry(key).await.unwrap(), Some(expires_at));
    }
}

pub async fn a_step_put_together_by_hand_gets_the_right_revision(store: &dyn Store, clock: &ManualClock) {
    let job = Arc::new(Job { revision: 41, ..new_job("by-hand", "a", clock.now()) });
    let step = |before| Step {
        job: Arc::clone(&job),
        before,
        blobs: Vec::new(),
        preconditions: Preconditions::default(),
        event: None,
        audit: Vec::new(),
    };
    assert_eq!(store.commit(step(None)).await.unwrap(), Commit::Done);
    let first = load(store, job.id()).await.unwrap();
    assert_eq!(first.revision, 1);
    assert_eq!(store.commit(step(Some(first))).await.unwrap(), Commit::Done);
    assert_eq!(load(store, job.id()).await.unwrap().revision, 2);
}

pub async fn of_many_rivals_exactly_one_wins(store: &Arc<dyn Store>, clock: &ManualClock) {
    let job = insert(&**store, new_job("rivals", "a", clock.now())).await;
    let mut rivals = JoinSet::new();
    for number in 0..RIVALS {
        let mut after = running(&job, clock.now());
        after.workers_lost = number as u32;
        let mut step = Step::change(&job, after);
        let key = store.colocated_key(BlobKey::result_of(job.id()));
        step.blobs = vec![(key, Bytes::from(number.to_string()), clock.now() + 60_000)];
        let store = Arc::clone(store);
        rivals.spawn(async move { (number, store.commit(step).await.unwrap()) });
    }
    let answers = rivals.join_all().await;
    let winners: Vec<_> = answers.iter().filter(|(_, commit)| *commit == Commit::Done).collect();
    let [(winner, _)] = winners[..] else { panic!("{winners:?} won") };
    assert!(answers.iter().all(|(_, commit)| matches!(commit, Commit::Done | Commit::Conflict)));
    let stored = load(&**store, job.id()).await.unwrap();
    assert_eq!((stored.revision, stored.workers_lost), (2, *winner as u32));
    let blob = store.blob(&store.colocated_key(BlobKey::result_of(job.id()))).await.unwrap();
    assert_eq!(blob, Some(Bytes::from(winner.to_string())));
}

pub async fn of_many_inserts_with_one_key_exactly_one_wins(store: &Arc<dyn Store>, clock: &ManualClock) {
    let mut rivals = JoinSet::new();
    for number in 0..RIVALS {
        let mut job = new_job("key-rivals", &number.to_string(), clock.now());
        Arc::make_mut(&mut job.request).idempotency_key = Some("once".to_owned());
        let store = Arc::clone(store);
        rivals.spawn(async move { (job.id().clone(), store.commit(Step::insert(job)).await.unwrap()) });
    }
    let answers = rivals.join_all().await;
    let winners: Vec<_> = answers.iter().filter(|(_, commit)| *commit == Commit::Done).collect();
    let [(winner, _)] = winners[..] else { panic!("{winners:?} won") };
    for (id, commit) in &answers {
        assert!(id == winner || *commit == Commit::Duplicate(winner.clone()), "{id}: {commit:?}");
        assert_eq!(load(&**store, id).await.is_some(), id == winner);
    }
}

pub async fn many_tasks_lose_no_change_of_one_job(store: &Arc<dyn Store>, clock: &ManualClock) {
    const TASKS: u32 = 8;
    const CHANGES: u32 = 10;
    let job = insert(&**store, new_job("counted", "a", clock.now())).await;
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let (store, id) = (Arc::clone(store), job.id().clone());
        tasks.spawn(async move {
            for _ in 0..CHANGES {
                loop {
                    let before = load(&*store, &id).await.unwrap();
                    let mut after = life::settled(&before);
                    after.workers_lost += 1;
                    if store.commit(Step::change(&before, after)).await.unwrap() == Commit::Done {
                        break;
                    }
                }
            }
        });
    }
    tasks.join_all().await;
    let counted = load(&**store, job.id()).await.unwrap();
    assert_eq!(counted.workers_lost, TASKS * CHANGES);
    assert_eq!(counted.revision, u64::from(1 + TASKS * CHANGES));
}
