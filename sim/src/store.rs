//! The store as one life of a server sees it: slow, failing, and sometimes the last thing it sees.
//! What it holds outlives the server.

mod membership;

use crate::backend::BackendPort;
use crate::breakage::Breakage;
use crate::faults::Fault;
use crate::outages::Backend;
use crate::server::Life;
use crate::situations::Situation;
use crate::watch::{drains, limits};
use crate::world::{World, sleep_ms};
use bytes::Bytes;
use reveille_core::audit::{Draft, Entry};
use reveille_core::breaker::Breaker;
use reveille_core::id::{JobId, TenantId};
use reveille_core::job::{DeadLetter, Event, Job, Phase};
use reveille_core::life;
use reveille_core::reconcile::{RECONCILER_LOCK, REPLAYER_LOCK};
use reveille_core::time::Millis;
use reveille_store::{
    AuditQuery, AuditTrail, BlobKey, Blobs, Breakers, ChainPage, Commit, DeadLetterCounts, DeadLetterQuery,
    DeadLetters, DeadPacket, DeadPackets, HeldLock, JobQuery, JobStore, Lock, Locks, MemoryStore, Opened,
    Page, PutMode, Quota, Receipt, Step, StoreError, StoredBlob, WorkspaceHints,
};
use reveille_wire::{convert, packet as wire_packet};
use std::sync::Arc;

/// How far another replica's clock is off.
const RIVAL_OFF_MS: i64 = 5_000;

pub struct SimStore {
    world: Arc<World>,
    life: Life,
    port: BackendPort,
    /// What there is, as this server has it.
    store: MemoryStore,
}

impl SimStore {
    pub fn new(world: Arc<World>, life: Life) -> Self {
        let port = BackendPort::new(world.clone(), life.clone(), Backend::Store);
        let is_shared = world.plan.is_shared();
        let store = if is_shared { world.store.as_replica(&life.name()) } else { world.store.clone() };
        Self { world, life, port, store }
    }

    async fn try_commit(&self, mut step: Step) -> Result<Commit, StoreError> {
        let world = &self.world;
        if step.before.is_some() && world.strikes(Fault::RivalCommit) {
            self.rival(step.job.id()).await?;
        }
        if world.breakage == Some(Breakage::LoseCommit) && world.rng.percent(2) {
            return Ok(Commit::Done);
        }
        if world.breakage == Some(Breakage::ForgeVerdict) && step.job.attempt().is_some() {
            step.job = forged(&step.job);
        }
        let ends = step.job.state().is_terminal();
        let before = self.store.job(step.job.id()).await?;
        let done = self.apply(step).await?;
        if let (Some(Breakage::DoubleEnd), Some(before), true) = (world.breakage, before, ends)
            && world.rng.percent(20)
            && let Some(ended) = self.store.job(before.id()).await?
        {
            self.apply(Step::change(&ended, (*before).clone())).await?;
        }
        Ok(done)
    }

    /// The worker snapshot as a start finds it: as it was written, late, damaged, or not at all.
    async fn snapshot(&self) -> Result<Option<Bytes>, StoreError> {
        let world = &self.world;
        if world.strikes(Fault::SnapshotMissing) {
            return Ok(None);
        }
        if world.strikes(Fault::SnapshotLate) {
            sleep_ms(world.rng.between(5_100, 20_000)).await;
        }
        let found = self.store.blob(&BlobKey::workers_snapshot()).await?;
        let Some(bytes) = &found else { return Ok(None) };
        if world.strikes(Fault::SnapshotCorrupt) {
            return Ok(Some(bytes.slice(..world.rng.below(bytes.len() as u64) as usize)));
        }
        Ok(found)
    }

    /// Commits for good, under the eyes of the ledger.
    async fn apply(&self, step: Step) -> Result<Commit, StoreError> {
        let world = &self.world;
        let (job, audit) = (step.job.clone(), step.audit().to_vec());
        let mut done = self.store.commit(self.tampered(step).await).await?;
        if world.breakage == Some(Breakage::ForgetKeys) && matches!(done, Commit::Duplicate(_)) {
            done = self.store.commit(Step::insert(without_key(&job))).await?;
        }
        let words = format!("{} r{} {} {}", job.id(), job.revision, job.state(), last_event(&job));
        world.trace.say(format_args!("{} commits {words}: {done:?}", self.life.name()));
        if let (Some(Event::LoseWorker), Some(Some(worker))) =
            (job.marks.last().map(|mark| mark.event), job.attempts.last())
        {
            world.server(self.life.server).watched.given_up(worker);
        }
        match done {
            Commit::Fenced => world.situations.record(Situation::Fenced),
            Commit::QuotaExceeded(_) => world.situations.record(Situation::QuotaExceeded),
            _ => {}
        }
        if done == Commit::Done {
            if world.breakage == Some(Breakage::RecordTwice) && world.rng.percent(5) {
                self.store.record(audit).await?;
            }
            world.check(|ledger| {
                drains::committed(world, ledger.job(job.id()), &job)?;
                limits::committed(world, ledger, &job)?;
                ledger.committed(&job, world.now())
            });
            world.flow_history(|history| history.job_committed(&job));
        }
        Ok(done)
    }

    /// Another replica gets in between, with a change that changes nothing and a clock of its own.
    async fn rival(&self, id: &JobId) -> Result<(), StoreError> {
        let Some(job) = self.store.job(id).await? else { return Ok(()) };
        let now = self.world.server(self.life.server).clock.now()
            + self.world.rng.between(-RIVAL_OFF_MS, RIVAL_OFF_MS);
        let same = life::set_back(&job, now).unwrap_or_else(|| Job { updated_at: now, ..(*job).clone() });
        self.apply(Step::change(&job, same)).await.map(drop)
    }

    /// What a broken store does to a step.
    async fn tampered(&self, mut step: Step) -> Step {
        match self.world.breakage {
            Some(Breakage::SkipCas) if step.before.is_some() => {
                if let Ok(Some(current)) = self.store.job(step.job.id()).await {
                    step.before = Some(current);
                }
            }
            Some(Breakage::DropRoom) => step.preconditions.quota = Quota::default(),
            Some(Breakage::SkipFence) => step.preconditions.under = None,
            Some(Breakage::Unjudged) => {
                if let (Phase::Dispatched(attempt), Some(packet)) =
                    (&step.job.phase, convert::dispatch_packet(&step.job, self.world.now()))
                {
                    self.world.dispatch_leaves(
                        &self.life,
                        &wire_packet::encode(&packet),
                        attempt.worker.as_ref(),
                    );
                }
            }
            _ => {}
        }
        step
    }
}

fn forged(job: &Job) -> Arc<Job> {
    let mut job = job.clone();
    if let Some(recorded) = job.verdicts.last_mut() {
        "forged".clone_into(&mut recorded.verdict.snapshot);
    }
    Arc::new(job)
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
impl JobStore for SimStore {
    async fn commit(&self, step: Step) -> Result<Commit, StoreError> {
        self.port.write_or_wonder("commit", self.try_commit(step)).await
    }

    async fn job(&self, id: &JobId) -> Result<Option<Arc<Job>>, StoreError> {
        self.port.read("job", self.store.job(id)).await
    }

    async fn open(&self, id: &JobId, message: &Receipt) -> Result<Opened, StoreError> {
        self.port.write_or_wonder("open", self.try_open(id, message)).await
    }

    async fn open_new(&self, id: &JobId, message: &Receipt) -> Result<Opened, StoreError> {
        self.port.write_or_wonder("open_new", self.store.open_new(id, message)).await
    }

    async fn job_of_key(&self, tenant: &TenantId, key: &str) -> Result<Option<JobId>, StoreError> {
        self.port.read("job of key", self.store.job_of_key(tenant, key)).await
    }

    async fn jobs(&self, query: &JobQuery) -> Result<Page<Arc<Job>>, StoreError> {
        let mut page = self.port.read("jobs", self.store.jobs(query)).await?;
        if self.world.breakage == Some(Breakage::HideActive) {
            page.items.retain(|job| job.attempt().is_none());
        }
        Ok(page)
    }

    async fn live(&self, cursor: Option<u64>, _limit: usize) -> Result<Page<Arc<Job>>, StoreError> {
        // Small pages, so that there is a second one.
        let mut page = self.port.read("live", self.store.live(cursor, 7)).await?;
        if self.world.breakage.is_some_and(Breakage::loses_timers)
            && !self.world.server(self.life.server).is_recovered()
        {
            return Ok(Page { items: Vec::new(), next: None });
        }
        if self.world.breakage == Some(Breakage::ForgetLive) {
            page.items.retain(|_| !self.world.rng.percent(50));
        }
        Ok(page)
    }

    async fn prune(&self, ended_before: Millis, now: Millis, limit: usize) -> Result<u64, StoreError> {
        self.port.write("prune", self.store.prune(ended_before, now, limit)).await
    }
}

#[async_trait::async_trait]
impl DeadLetters for SimStore {
    async fn dead_letters(&self, query: &DeadLetterQuery) -> Result<Page<DeadLetter>, StoreError> {
        self.port.read("dead letters", self.store.dead_letters(query)).await
    }

    async fn count_dead_letters(&self, tenant: Option<&TenantId>) -> Result<DeadLetterCounts, StoreError> {
        self.port.read("count dead letters", self.store.count_dead_letters(tenant)).await
    }

    async fn remove_dead_letter(&self, job: &JobId) -> Result<bool, StoreError> {
        self.port.write("remove dead letter", self.store.remove_dead_letter(job)).await
    }
}

#[async_trait::async_trait]
impl Locks for SimStore {
    async fn lock(&self, name: &str, ttl_ms: i64) -> Result<Option<Lock>, StoreError> {
        if self.world.breakage == Some(Breakage::NoNet) && [RECONCILER_LOCK, REPLAYER_LOCK].contains(&name) {
            return Ok(None);
        }
        let lock = self.port.write_or_wonder("lock", self.store.lock(name, ttl_ms)).await?;
        self.may_lapse(lock.as_ref()).await?;
        Ok(lock)
    }

    async fn renew(&self, lock: &Lock, ttl_ms: i64) -> Result<bool, StoreError> {
        self.port.write_or_wonder("renew", self.store.renew(lock, ttl_ms)).await
    }

    async fn unlock(&self, lock: &Lock) -> Result<bool, StoreError> {
        self.port.write_or_wonder("unlock", self.store.unlock(lock)).await
    }

    async fn locks_held(&self, limit: usize) -> Result<Vec<HeldLock>, StoreError> {
        self.port.read("locks held", self.store.locks_held(limit)).await
    }
}

#[async_trait::async_trait]
impl DeadPackets for SimStore {
    async fn bury(&self, packet: DeadPacket) -> Result<(), StoreError> {
        self.port.write("bury", self.store.bury(packet)).await
    }

    async fn buried(&self, cursor: Option<u64>, limit: usize) -> Result<Page<DeadPacket>, StoreError> {
        self.port.read("buried", self.store.buried(cursor, limit)).await
    }
}

#[async_trait::async_trait]
impl Breakers for SimStore {
    async fn breaker(&self, name: &str) -> Result<Breaker, StoreError> {
        self.port.read("breaker", self.store.breaker(name)).await
    }

    async fn swap_breaker(&self, name: &str, before: Breaker, after: Breaker) -> Result<bool, StoreError> {
        self.port.write("swap breaker", self.store.swap_breaker(name, before, after)).await
    }
}

impl WorkspaceHints for SimStore {}

#[async_trait::async_trait]
impl AuditTrail for SimStore {
    async fn record(&self, drafts: Vec<Draft>) -> Result<(), StoreError> {
        let recorded = async {
            self.store.record(drafts.clone()).await?;
            self.world.check(|ledger| ledger.recorded(drafts));
            Ok(())
        };
        self.port.write("record", recorded).await
    }

    async fn record_under(&self, lock: &Lock, drafts: Vec<Draft>) -> Result<bool, StoreError> {
        let recorded = async {
            let is_done = self.store.record_under(lock, drafts.clone()).await?;
            if is_done {
                self.world.check(|ledger| ledger.recorded(drafts));
            }
            Ok(is_done)
        };
        self.port.write("record", recorded).await
    }

    async fn audit(&self, query: &AuditQuery) -> Result<Page<Entry>, StoreError> {
        self.port.read("audit", self.store.audit(query)).await
    }

    async fn chain(&self, tenant: &TenantId, after: u64, limit: usize) -> Result<ChainPage, StoreError> {
        self.port.read("chain", self.store.chain(tenant, after, limit)).await
    }

    async fn chains(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantId>, StoreError> {
        self.port.read("chains", self.store.chains(after, limit)).await
    }

    async fn prune_audit(&self, before: Millis, limit: usize) -> Result<u64, StoreError> {
        self.port.write("prune audit", self.store.prune_audit(before, limit)).await
    }
}

#[async_trait::async_trait]
impl Blobs for SimStore {
    async fn blob(&self, key: &BlobKey) -> Result<Option<Bytes>, StoreError> {
        if *key != BlobKey::workers_snapshot() {
            return self.port.read("blob", self.store.blob(key)).await;
        }
        let found = self.port.read("snapshot", self.snapshot()).await?;
        // Whoever gave up waiting never gets here.
        self.world.server(self.life.server).watched.snapshot_read(found.as_deref(), self.world.now());
        Ok(found.filter(|_| self.world.breakage != Some(Breakage::IgnoreSnapshot)))
    }

    async fn put_blob(
        &self,
        key: BlobKey,
        value: Bytes,
        expires_at: Millis,
        mode: PutMode,
    ) -> Result<bool, StoreError> {
        self.port.write_or_wonder("put blob", self.store.put_blob(key, value, expires_at, mode)).await
    }

    async fn delete_blobs(&self, keys: Vec<BlobKey>) -> Result<u64, StoreError> {
        self.port.write("delete blobs", self.store.delete_blobs(keys)).await
    }

    async fn blob_expiry(&self, key: &BlobKey) -> Result<Option<Millis>, StoreError> {
        self.port.read("blob expiry", self.store.blob_expiry(key)).await
    }

    async fn stored_blobs(
        &self,
        after: Option<BlobKey>,
        limit: usize,
    ) -> Result<Vec<StoredBlob>, StoreError> {
        self.port.read("stored blobs", self.store.stored_blobs(after, limit)).await
    }
}
