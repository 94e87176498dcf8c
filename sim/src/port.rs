//! What can happen around any call of the server to something that keeps things: it is slow, it fails,
//! it is full, and sometimes it is the last thing the server does.

use crate::faults::Fault;
use crate::outages::Kept;
use crate::server::Life;
use crate::watch::Calm;
use crate::world::{World, sleep_ms};
use reveille_store::StoreError;
use std::sync::Arc;

/// The way of one life of the server to the store or to the roster.
pub struct Port {
    pub world: Arc<World>,
    life: Life,
    kept: Kept,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

impl Port {
    pub fn new(world: Arc<World>, life: Life, kept: Kept) -> Self {
        Self { world, life, kept }
    }

    pub async fn read<T, E: From<StoreError>>(
        &self,
        what: &str,
        read: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        self.enter(what, Access::Read).await?;
        let found = read.await;
        self.leave(what).await;
        found
    }

    pub async fn write<T, E: From<StoreError>>(
        &self,
        what: &str,
        write: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        self.enter(what, Access::Write).await?;
        let done = write.await;
        self.leave(what).await;
        done
    }

    /// Everything that can happen before the call has its effect.
    async fn enter(&self, what: &str, access: Access) -> Result<(), StoreError> {
        let world = &self.world;
        self.life.or_never().await;
        if world.strikes(Fault::CrashBefore) {
            world.crash(&self.life, format!("before {what}")).await;
        }
        if world.strikes(self.slowness()) {
            let slow_ms = world.dice.between(1, 3_000);
            self.calm().disturbed(world.now() + slow_ms);
            sleep_ms(slow_ms).await;
        } else {
            sleep_ms(world.dice.skewed(0, 3)).await;
        }
        self.life.or_never().await;
        let refusal = match access {
            Access::Read => world.outages.on_read(self.kept, world.now()),
            Access::Write => world.outages.on_write(self.kept, world.now()),
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
        if self.world.strikes(Fault::CrashAfter) {
            self.world.crash(&self.life, format!("after {what}")).await;
        }
        if self.world.dice.percent(20) {
            sleep_ms(self.world.dice.between(1, 3)).await;
        }
        self.life.or_never().await;
    }

    fn slowness(&self) -> Fault {
        match self.kept {
            Kept::Store => Fault::StoreSlow,
            Kept::Roster => Fault::RosterSlow,
        }
    }

    fn calm(&self) -> &Calm {
        match self.kept {
            Kept::Store => &self.world.calm,
            Kept::Roster => &self.world.roster_calm,
        }
    }
}
