//! Those who follow the stream of events, a tenant each. They read slowly, go away and come back with the
//! last id they had, as browsers do, and keep a list of who is offline. Whenever they have read
//! everything, their list must be the server's: then they have missed nothing.

use crate::breakage::Breakage;
use crate::faults::Fault;
use crate::invariants::InvariantResult;
use crate::situations::Situation;
use crate::world::{World, sleep_ms};
use reveille_core::id::{TenantId, WorkerId, WorkspaceId};
use reveille_core::presence::Contract;
use reveille_engine::{Audience, Engine, Event, EventId, NextEvents, What, WorkerChange};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is told of a workspace and kept nowhere.
const UNKEPT: [&str; 2] = ["TASK_UPDATED", "AGENT_MESSAGE"];

pub async fn read(world: Arc<World>, tenant: TenantId) {
    let mut reading =
        EventReader { tenant, last: None, seq: 0, offline: BTreeMap::new(), told: BTreeMap::new() };
    loop {
        let Some((engine, life)) = world.engine() else {
            sleep_ms(world.rng.between(50, 3_000)).await;
            continue;
        };
        if let Some(Err(words)) = life.answer(reading.follow(&world, &engine)).await {
            return world.fail(&words);
        }
        sleep_ms(world.rng.skewed(0, 60_000)).await;
    }
}

struct EventReader {
    tenant: TenantId,
    /// As it came over the wire.
    last: Option<String>,
    seq: u64,
    /// The agents it knows, and whether they are offline.
    offline: BTreeMap<WorkerId, bool>,
    /// How often each kept event of each workspace was told.
    told: BTreeMap<(WorkspaceId, String), u64>,
}

impl EventReader {
    /// Reads until it loses its connection.
    async fn follow(&mut self, world: &World, engine: &Engine) -> InvariantResult {
        let after = self.last.as_deref().and_then(EventId::parse);
        let audience = match world.breakage {
            Some(Breakage::MixTenants) => Audience::Everyone,
            _ => Audience::Tenant(self.tenant.clone()),
        };
        let mut reader = engine.subscribe(audience, after).map_err(|error| error.to_string())?;
        let mut is_first = after.is_some();
        loop {
            let mut news = Some(reader.next().await);
            if std::mem::take(&mut is_first) && matches!(news, Some(NextEvents::Events(_))) {
                world.situations.record(Situation::ReaderResumed);
            }
            while let Some(some) = news {
                self.take(world, engine, some)?;
                news = reader.poll();
            }
            // Servers that share their events are told of the fleet each in its own time; what they show then is
            // looked at when everything is over.
            if !world.plan.is_shared() {
                self.agrees(engine)?;
            }
            if world.strikes(Fault::ReaderLeft) {
                return Ok(());
            }
            if world.rng.percent(10) {
                sleep_ms(world.rng.skewed(1, 20_000)).await;
            }
        }
    }

    fn take(&mut self, world: &World, engine: &Engine, news: NextEvents) -> InvariantResult {
        match news {
            NextEvents::StartAfresh(id) => {
                world.situations.record(Situation::ReaderAfresh);
                self.last = Some(id.to_string());
                self.seq = 0;
                self.offline = self.listed(engine);
            }
            NextEvents::Events(events) => {
                for (id, event) in events {
                    self.hear(world, &event)?;
                    self.last = Some(id.to_string());
                }
            }
        }
        Ok(())
    }

    fn hear(&mut self, world: &World, event: &Event) -> InvariantResult {
        let tenant = &self.tenant;
        if event.seq <= self.seq {
            return Err(format!("{tenant} was told {event:?} after {}", self.seq));
        }
        self.seq = event.seq;
        if event.tenant != *tenant || !belongs(world, tenant, &event.what) {
            return Err(format!("{tenant} was told of another: {event:?}"));
        }
        match &event.what {
            What::Worker { member, change } if member.contract == Contract::VoiceGateway => match change {
                WorkerChange::Left => drop(self.offline.remove(&member.id)),
                change => {
                    self.offline.insert(member.id.clone(), *change == WorkerChange::Offline);
                }
            },
            What::Workspace { id, name, .. } if !UNKEPT.contains(&&**name) => {
                let told = self.told.entry((id.clone(), name.to_string())).or_default();
                *told += 1;
                if *told > world.look_up(|archive| archive.kept(id, name)) {
                    return Err(format!("{name} of {id} was told and is not kept"));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn listed(&self, engine: &Engine) -> BTreeMap<WorkerId, bool> {
        engine
            .fleet()
            .agents(&Audience::Tenant(self.tenant.clone()), usize::MAX)
            .into_iter()
            .map(|agent| (agent.id, agent.offline))
            .collect()
    }

    fn agrees(&self, engine: &Engine) -> InvariantResult {
        let listed = self.listed(engine);
        if listed == self.offline {
            return Ok(());
        }
        let tenant = &self.tenant;
        Err(format!("{tenant} has read everything and knows {:?}, and there is {listed:?}", self.offline))
    }
}

/// Whether what an event tells of is this tenant's.
fn belongs(world: &World, tenant: &TenantId, what: &What) -> bool {
    match what {
        What::Worker { member, .. } => {
            let is_agent = member.contract == Contract::VoiceGateway;
            member.tenant == *tenant
                && (!is_agent || world.agents_watched.was_ever_heard(&(tenant.clone(), member.id.clone())))
        }
        // The event says whose it is, and that was looked at.
        What::Run { .. } => true,
        What::Job { id, .. } => world.tenant_of_job(id).is_some_and(|owner| owner == *tenant),
        What::Workspace { id, .. } => {
            world.look_up(|archive| archive.tenant_of(id).is_none_or(|owner| owner == tenant))
        }
    }
}
