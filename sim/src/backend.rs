//! What can happen around any call of the server to something that keeps things: it is slow, it fails,
//! it is full, and sometimes it is the last thing the server does.

use crate::breakage::Breakage;
use crate::faults::Fault;
use crate::outages::Backend;
use crate::server::Life;
use crate::watch::Calm;
use crate::world::{World, sleep_ms};
use reveille_store::StoreError;
use std::sync::Arc;

/// How long the server waits for an answer that does not come.
const PATIENCE_MS: i64 = 4_000;

/// The way of one life of the server to the store or to the roster.
pub struct BackendPort {
    pub world: Arc<World>,
    life: Life,
    kept: Backend,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CallKind {
    Read,
    Write,
}

impl BackendPort {
    pub fn new(world: Arc<World>, life: Life, kept: Backend) -> Self {
        Self { world, life, kept }
    }

    pub async fn read<T, E: From<StoreError>>(
        &self,
        what: &str,
        read: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        self.enter(what, CallKind::Read).await?;
        let found = read.await;
        self.leave(what).await;
        found
    }

    /// What has no effect, or has it and is answered.
    pub async fn write<T, E: From<StoreError>>(
        &self,
        what: &str,
        write: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        self.enter(what, CallKind::Write).await?;
        let done = write.await;
        self.leave(what).await;
        done
    }

    /// What may have its effect, and the answer is lost.
    pub async fn write_or_wonder<T, E: From<StoreError>>(
        &self,
        what: &str,
        write: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        self.enter(what, CallKind::Write).await?;
        let done = write.await;
        self.leave(what).await;
        let breaks = self.world.breakage == Some(Breakage::UnknownIsFailure) && what == "commit";
        let is_broken = breaks && self.world.rng.percent(20);
        let is_lost = is_broken || !self.leads() || self.world.strikes(Fault::AnswerLost);
        if self.world.plan.is_shared() && is_lost {
            self.world.trace.say(format_args!("{}: {what}: the answer is lost", self.life.name()));
            self.unanswered().await;
            if is_broken {
                return Err(StoreError::Refused("the simulation says so".to_owned()).into());
            }
            return Err(nobody_answers().into());
        }
        done
    }

    /// Everything that can happen before the call has its effect.
    async fn enter(&self, what: &str, access: CallKind) -> Result<(), StoreError> {
        let world = &self.world;
        self.life.here().await;
        if world.strikes(Fault::CrashBefore) {
            world.crash(&self.life, format!("before {what}")).await;
        }
        if world.strikes(self.slowness()) {
            let slow_ms = world.rng.between(1, 3_000);
            self.calm().disturbed(world.now() + slow_ms);
            sleep_ms(slow_ms).await;
        } else {
            sleep_ms(world.rng.skewed(0, 3)).await;
        }
        self.life.here().await;
        if world.plan.is_shared() && (!self.leads() || world.strikes(Fault::RequestLost)) {
            self.unanswered().await;
            return Err(nobody_answers());
        }
        let refusal = match access {
            CallKind::Read => world.outages.on_read(self.kept, world.now()),
            CallKind::Write => world.outages.on_write(self.kept, world.now()),
        };
        match refusal {
            None => Ok(()),
            Some(error) => {
                self.calm().disturbed(world.now());
                world.trace.say(format_args!("{}: {what}: {error}", self.kept.as_str()));
                Err(error)
            }
        }
    }

    /// And after it had, before the server hears so.
    async fn leave(&self, what: &str) {
        let world = &self.world;
        if world.strikes(Fault::CrashAfter) {
            world.crash(&self.life, format!("after {what}")).await;
        }
        if world.plan.is_shared() && world.strikes(Fault::AnswerLate) {
            let late_ms = world.rng.between(500, PATIENCE_MS);
            self.calm().disturbed(world.now() + late_ms);
            sleep_ms(late_ms).await;
        } else if world.rng.percent(20) {
            sleep_ms(world.rng.between(1, 3)).await;
        }
        self.life.here().await;
    }

    fn leads(&self) -> bool {
        self.world.server(self.life.server).links.leads(self.kept.way())
    }

    /// Refused at once, or after waiting in vain.
    async fn unanswered(&self) {
        let waits_ms = if self.world.rng.percent(50) { 0 } else { PATIENCE_MS };
        self.calm().disturbed(self.world.now() + waits_ms);
        sleep_ms(waits_ms).await;
        self.life.here().await;
    }

    fn slowness(&self) -> Fault {
        match self.kept {
            Backend::Store => Fault::StoreSlow,
            Backend::Roster => Fault::RosterSlow,
        }
    }

    fn calm(&self) -> &Calm {
        match self.kept {
            Backend::Store => &self.world.calm,
            Backend::Roster => &self.world.roster_calm,
        }
    }
}

fn nobody_answers() -> StoreError {
    StoreError::Unavailable("nobody answers".to_owned())
}
