//! The store as one life of the server sees it: slow, failing, and sometimes the last thing it sees.
//! What it holds outlives the server.

use crate::breakage::Breakage;
use crate::faults::Fault;
use crate::server::Life;
use crate::world::{World, sleep_ms};
use bytes::Bytes;
use reveille_core::id::{JobId, KeyId, TenantId};
use reveille_core::job::{DeadLetter, Job, Phase};
use reveille_core::time::Millis;
use reveille_store::{
    BlobKey, Blobs, Commit, JobQuery, KeyHash, KeyRecord, Page, PutMode, Step, Store, StoreError,
};
use reveille_wire::convert;
use std::sync::Arc;

pub struct SimStore {
    world: Arc<World>,
    life: Life,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

impl SimStore {
    pub fn new(world: Arc<World>, life: Life) -> Self {
        Self { world, life }
    }

    /// Everything that can happen before the call has its effect.
    async fn enter(&self, what: &str, access: Access) -> Result<(), StoreError> {
        let world = &self.world;
        self.life.or_never().await;
        if world.strikes(Fault::CrashBefore) {
            world.crash(&self.life, format!("before {what}")).await;
        }
        if world.strikes(Fault::StoreSlow) {
            let slow_ms = world.dice.between(1, 3_000);
            world.calm.disturbed(world.now() + slow_ms);
            sleep_ms(slow_ms).await;
        } else {
            sleep_ms(world.dice.skewed(0, 3)).await;
        }
        self.life.or_never().await;
        let refusal = match access {
            Access::Read => world.outages.on_read(world.now()),
            Access::Write => world.outages.on_write(world.now()),
        };
        match refusal {
            None => Ok(()),
            Some(error) => {
                world.calm.disturbed(world.now());
                world.trace.say(format_args!("store: {what}: {error}"));
                Err(error)
            }
        }
    }

    /// And after it had, before the server hears so.
    async fn leave(&self, what: &str) {
        if self.world.strikes(Fault::CrashAfter) {
            self.world.crash(&self.life, format!("after {what}")).await;
        }
        if self.world.dice.percent(20) {
            sleep_ms(self.world.dice.between(1, 3)).await;
        }
        self.life.or_never().await;
    }

    async fn read<T>(
        &self,
        what: &str,
        read: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.enter(what, Access::Read).await?;
        let found = read.await;
        self.leave(what).await;
        found
    }

    async fn write<T>(
        &self,
        what: &str,
        write: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.enter(what, Access::Write).await?;
        let done = write.await;
        self.leave(what).await;
        done
    }

    /// Commits for good, under the eyes of the ledger.
    async fn apply(&self, step: Step) -> Result<Commit, StoreError> {
        let world = &self.world;
        let job = step.job.clone();
        let mut done = world.store.commit(self.tampered(step).await).await?;
        if world.breakage == Some(Breakage::ForgetKeys) && matches!(done, Commit::Duplicate(_)) {
            done = world.store.commit(Step::insert(without_key(&job))).await?;
        }
        let words = format!("{} r{} {} {}", job.id(), job.revision, job.state(), last_event(&job));
        world.trace.say(format_args!("commit {words}: {done:?}"));
        if done == Commit::Done {
            world.check(|ledger| ledger.committed(&job, world.now()));
        }
        Ok(done)
    }

    /// Another replica gets in between, with a change that changes nothing.
    async fn rival(&self, id: &JobId) -> Result<(), StoreError> {
        let Some(job) = self.world.store.job(id).await? else { return Ok(()) };
        self.apply(Step::change(&job, (*job).clone())).await.map(drop)
    }

    /// What a broken store does to a step.
    async fn tampered(&self, mut step: Step) -> Step {
        match self.world.breakage {
            Some(Breakage::SkipCas) if step.expects.is_some() => {
                if let Ok(Some(current)) = self.world.store.job(step.job.id()).await {
                    step.expects = Some(current.revision);
                }
            }
            Some(Breakage::Unjudged) => {
                if let (Phase::Dispatched(attempt), Some(packet)) =
                    (&step.job.phase, convert::dispatch_packet(&step.job, self.world.now()))
                {
                    self.world.dispatch_leaves(&packet, attempt.worker.as_ref());
                }
            }
            _ => {}
        }
        step
    }
}

fn without_key(job: &Job) -> Job {
    let mut job = job.clone();
    Arc::make_mut(&mut job.request).idempotency_key = None;
    job
}

fn last_event(job: &Job) -> String {
    job.marks.last().map(|mark| format!("{} {}", mark.event, mark.note)).unwrap_or_default()
}

#[async_trait::async_trait]
impl Store for SimStore {
    async fn commit(&self, step: Step) -> Result<Commit, StoreError> {
        let world = &self.world;
        self.enter("commit", Access::Write).await?;
        if step.expects.is_some() && world.strikes(Fault::RivalCommit) {
            self.rival(step.job.id()).await?;
        }
        if world.breakage == Some(Breakage::LoseCommit) && world.dice.percent(2) {
            return Ok(Commit::Done);
        }
        let ends = step.job.state().is_terminal();
        let before = world.store.job(step.job.id()).await?;
        let done = self.apply(step).await?;
        if let (Some(Breakage::DoubleEnd), Some(before), true) = (world.breakage, before, ends)
            && world.dice.percent(20)
            && let Some(ended) = world.store.job(before.id()).await?
        {
            self.apply(Step::change(&ended, (*before).clone())).await?;
        }
        self.leave("commit").await;
        Ok(done)
    }

    async fn job(&self, id: &JobId) -> Result<Option<Arc<Job>>, StoreError> {
        self.read("job", self.world.store.job(id)).await
    }

    async fn jobs(&self, query: &JobQuery) -> Result<Page<Arc<Job>>, StoreError> {
        self.read("jobs", self.world.store.jobs(query)).await
    }

    async fn live(&self, cursor: Option<u64>, _limit: usize) -> Result<Page<Arc<Job>>, StoreError> {
        // Small pages, so that there is a second one.
        let mut page = self.read("live", self.world.store.live(cursor, 7)).await?;
        if self.world.breakage == Some(Breakage::ForgetLive) {
            page.items.retain(|_| !self.world.dice.percent(50));
        }
        Ok(page)
    }

    async fn dead_letters(
        &self,
        tenant: Option<&TenantId>,
        cursor: Option<u64>,
        limit: usize,
    ) -> Result<Page<DeadLetter>, StoreError> {
        self.read("dead letters", self.world.store.dead_letters(tenant, cursor, limit)).await
    }

    async fn remove_dead_letter(&self, job: &JobId) -> Result<bool, StoreError> {
        self.write("remove dead letter", self.world.store.remove_dead_letter(job)).await
    }

    async fn prune(&self, ended_before: Millis, now: Millis, limit: usize) -> Result<u64, StoreError> {
        self.write("prune", self.world.store.prune(ended_before, now, limit)).await
    }

    async fn put_key(&self, key: KeyRecord) -> Result<(), StoreError> {
        self.write("put key", self.world.store.put_key(key)).await
    }

    async fn key(&self, hash: &KeyHash) -> Result<Option<KeyRecord>, StoreError> {
        self.read("key", self.world.store.key(hash)).await
    }

    async fn keys(&self) -> Result<Vec<KeyRecord>, StoreError> {
        self.read("keys", self.world.store.keys()).await
    }

    async fn revoke_key(&self, id: &KeyId, at: Millis) -> Result<bool, StoreError> {
        self.write("revoke key", self.world.store.revoke_key(id, at)).await
    }
}

#[async_trait::async_trait]
impl Blobs for SimStore {
    async fn blob(&self, key: &BlobKey) -> Result<Option<Bytes>, StoreError> {
        self.read("blob", self.world.store.blob(key)).await
    }

    async fn put_blob(
        &self,
        key: BlobKey,
        value: Bytes,
        expires_at: Millis,
        mode: PutMode,
    ) -> Result<bool, StoreError> {
        self.write("put blob", self.world.store.put_blob(key, value, expires_at, mode)).await
    }

    async fn delete_blobs(&self, keys: Vec<BlobKey>) -> Result<u64, StoreError> {
        self.write("delete blobs", self.world.store.delete_blobs(keys)).await
    }

    async fn blob_expiry(&self, key: &BlobKey) -> Result<Option<Millis>, StoreError> {
        self.read("blob expiry", self.world.store.blob_expiry(key)).await
    }
}
