//! The bus as one life of the server sees it.

use crate::breakage::Breakage;
use crate::faults::Fault;
use crate::links::Dependency;
use crate::server::Life;
use crate::world::World;
use reveille_bus::{Bus, BusError, DeliveryReport, Listener, Message, Subscription};
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::{packet, subject};
use std::sync::Arc;

pub struct SimBus {
    world: Arc<World>,
    life: Life,
}

impl SimBus {
    pub fn new(world: Arc<World>, life: Life) -> Self {
        Self { world, life }
    }

    /// What leaves is looked at before anybody gets it.
    fn inspect(&self, message: &Message) {
        let world = &self.world;
        let worker = subject::worker_of(&message.subject);
        if worker.is_some() || subject::is_topic(&message.subject) {
            return world.dispatch_leaves(&self.life, &message.payload, worker.as_ref());
        }
        match packet::decode(&message.payload).ok().and_then(|packet| packet.payload) {
            Some(Payload::JobResult(result)) if message.subject == subject::JOB_DLQ => {
                world.check(|ledger| {
                    ledger.dead_letter_told(&result.job_id);
                    Ok(())
                });
            }
            Some(Payload::JobCancel(cancel)) => world.check(|ledger| {
                ledger.cancel_told(&cancel.job_id);
                Ok(())
            }),
            _ => {}
        }
    }
}

#[async_trait::async_trait]
impl Bus for SimBus {
    async fn publish(&self, message: Message) -> Result<DeliveryReport, BusError> {
        let world = &self.world;
        self.life.here().await;
        let words = message.subject.clone();
        if world.strikes(Fault::CrashBefore) {
            world.crash(&self.life, format!("before publish {words}")).await;
        }
        if world.outages.on_publish(world.now())
            || !world.server(self.life.server).links.leads(Dependency::Bus)
        {
            world.trace.say(format_args!("bus: publish {words} failed"));
            return Err(BusError::Unavailable("the simulation says so".to_owned()));
        }
        if world.breakage == Some(Breakage::MuteDeadLetters) && words == subject::JOB_DLQ {
            return Ok(DeliveryReport::Nobody);
        }
        self.inspect(&message);
        let heard = world.network.publish(world, message);
        world.trace.say(format_args!("{} publishes {words}: {heard:?}", self.life.name()));
        if world.plan.is_shared() && world.strikes(Fault::PublishUnsure) {
            return Err(BusError::Unavailable("nobody says whether it went".to_owned()));
        }
        if world.strikes(Fault::CrashAfter) {
            world.crash(&self.life, format!("after publish {words}")).await;
        }
        Ok(heard)
    }

    async fn subscribe(&self, subject: &str, queue: Option<&str>) -> Result<Subscription, BusError> {
        self.life.here().await;
        let shares = queue.is_some();
        Ok(Subscription::new(self.world.network.subscribe(self.life.server, subject, shares)))
    }

    fn is_up(&self) -> bool {
        self.world.server(self.life.server).hears()
    }

    /// One server alone is the bus and sees its connections.
    fn shows_listeners(&self) -> bool {
        !self.world.plan.is_shared()
    }

    async fn listeners_changed(&self) -> Vec<Listener> {
        self.life.here().await;
        if !self.shows_listeners() {
            std::future::pending::<()>().await;
        }
        let listeners = self.world.network.listeners_changed().await;
        self.life.here().await;
        for worker in listeners.iter().flat_map(|listener| &listener.subjects) {
            if let Some(worker) = subject::worker_of(worker) {
                self.world.server(self.life.server).watched.connected(&worker, self.world.now());
            }
        }
        listeners
    }
}
