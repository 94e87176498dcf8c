//! What several servers see of one another in the store: who is here, whose jobs are whose, and locks that lapse
//! while they are held.

use super::SimStore;
use crate::breakage::Breakage;
use crate::faults::Fault;
use crate::situations::Situation;
use bytes::Bytes;
use reveille_core::id::JobId;
use reveille_core::job::Job;
use reveille_store::{
    EventLog, EventPage, JobStore, Lock, Locks, Members, Membership, Opened, Page, Receipt, StoreError,
};
use std::sync::Arc;
use std::time::Duration;

impl SimStore {
    /// Opens a job to act on a message.
    pub(super) async fn try_open(&self, id: &JobId, message: &Receipt) -> Result<Opened, StoreError> {
        if self.world.breakage == Some(Breakage::ForgetReceipts) {
            return Ok(Opened::Job { job: self.store.job(id).await?, lock: None });
        }
        let opened = self.store.open(id, message).await?;
        match &opened {
            Opened::Seen => self.world.situations.record(Situation::PacketKnown),
            Opened::Busy => self.world.situations.record(Situation::JobBusy),
            Opened::Job { lock, .. } => self.may_lapse(lock.as_ref()).await?,
        }
        Ok(opened)
    }

    /// A lock may be gone before its holder has done anything with it.
    pub(super) async fn may_lapse(&self, lock: Option<&Lock>) -> Result<(), StoreError> {
        let Some(lock) = lock.filter(|_| self.world.plan.is_shared()) else { return Ok(()) };
        if self.world.strikes(Fault::LockLapsed) {
            self.store.unlock(lock).await?;
        }
        Ok(())
    }

    async fn try_beat(&self, about: &str) -> Result<Members, StoreError> {
        let mut roll = self.store.beat(about).await?;
        self.world.beats.note(self.store.name(), self.world.now());
        match self.world.breakage {
            Some(Breakage::RobTheLiving) => {
                roll.silent.extend(roll.here.iter().filter(|other| *other != self.store.name()).cloned());
            }
            Some(Breakage::NoTakeOver) => roll.silent.clear(),
            _ => {}
        }
        if !roll.was_here && self.world.beats.is_known(self.store.name()) {
            self.world.situations.record(Situation::TakenForDead);
        }
        Ok(roll)
    }

    async fn try_adopt(&self, silent: &str, limit: usize) -> Result<Option<Vec<Arc<Job>>>, StoreError> {
        let mut adopted = self.store.adopt(silent, limit).await?;
        if adopted.is_none() && self.world.breakage == Some(Breakage::RobTheLiving) {
            adopted = Some(self.store.as_replica(silent).owned(None, limit).await?.items);
        }
        let jobs = adopted.as_ref().map_or(0, Vec::len);
        if jobs > 0 {
            self.world.trace.say(format_args!("{} takes {jobs} jobs over from {silent}", self.life.name()));
            self.world.situations.record(Situation::TakenOver);
            if let Err(words) = self.world.beats.may_be_taken_from(silent, self.world.now()) {
                self.world.fail(&words);
            }
        }
        Ok(adopted)
    }
}

#[async_trait::async_trait]
impl Membership for SimStore {
    fn name(&self) -> &str {
        self.store.name()
    }

    async fn beat(&self, about: &str) -> Result<Members, StoreError> {
        self.port.write_or_wonder("beat", self.try_beat(about)).await
    }

    async fn adopt(&self, silent: &str, _limit: usize) -> Result<Option<Vec<Arc<Job>>>, StoreError> {
        // A few at a time, so that there is more than one time.
        self.port.write_or_wonder("adopt", self.try_adopt(silent, 5)).await
    }

    async fn owned(&self, cursor: Option<u64>, _limit: usize) -> Result<Page<Arc<Job>>, StoreError> {
        self.port.read("owned", self.store.owned(cursor, 7)).await
    }

    async fn owner(&self, job: &JobId) -> Result<Option<String>, StoreError> {
        self.port.read("owner", self.store.owner(job)).await
    }
}

#[async_trait::async_trait]
impl EventLog for SimStore {
    async fn read_events(&self, after: u64, wait: Duration) -> Result<EventPage, StoreError> {
        self.port.read("read events", self.store.read_events(after, wait)).await
    }

    async fn append_events(&self, batch: u64, items: &[Bytes]) -> Result<(), StoreError> {
        self.port.write("append events", self.store.append_events(batch, items)).await
    }
}
