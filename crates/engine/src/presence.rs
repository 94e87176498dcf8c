//! Who is there: beats and handshakes from workers, and what the transport itself can see.

use crate::Engine;
use crate::chorus::Sight;
use crate::events::WorkerChange;
use reveille_bus::Listener;
use reveille_core::fleet::{Beat, Who};
use reveille_core::id::{JobId, TenantId, Topic, WorkerId};
use reveille_core::job::{Job, State};
use reveille_core::placement::routing::Routing;
use reveille_core::placement::{Member, Pulsed};
use reveille_core::presence::Contract;
use reveille_core::presence::workspace::Workspace;
use reveille_wire::convert::Introduction;
use reveille_wire::subject;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

/// What each connection listens on, where the transport can tell.
#[derive(Default)]
pub struct Listening(BTreeMap<u64, Ears>);

/// One connection's subscriptions, understood.
#[derive(Default, Clone, PartialEq, Eq)]
struct Ears {
    /// It listens on a worker's own subject, so it is that worker.
    worker: Option<WorkerId>,
    topics: BTreeSet<Topic>,
}

impl Ears {
    fn of(listener: &Listener) -> Self {
        let topics = listener
            .subjects
            .iter()
            .filter(|subject| subject::is_topic(subject) && !subject.contains(['*', '>']));
        Self {
            worker: listener.subjects.iter().find_map(|subject| subject::worker_of(subject)),
            topics: topics.filter_map(|topic| Topic::parse(topic).ok()).collect(),
        }
    }
}

impl Listening {
    fn replace(&mut self, listener: &Listener) -> (Ears, Ears) {
        let now = Ears::of(listener);
        let before = self.0.remove(&listener.connection).unwrap_or_default();
        if now != Ears::default() {
            self.0.insert(listener.connection, now.clone());
        }
        (before, now)
    }

    fn hears(&self, worker: &WorkerId) -> bool {
        self.0.values().any(|ears| ears.worker.as_ref() == Some(worker))
    }

    fn topics_of(&self, worker: &WorkerId) -> Vec<Topic> {
        let own = self.0.values().filter(|ears| ears.worker.as_ref() == Some(worker));
        own.flat_map(|ears| ears.topics.iter().cloned()).collect()
    }

    /// Connections on a topic that do not say who they are.
    fn nameless_on(&self, topic: &Topic) -> u32 {
        self.0.values().filter(|ears| ears.worker.is_none() && ears.topics.contains(topic)).count() as u32
    }
}

impl Engine {
    /// A worker says that it lives, and how busy it is. It is the tenant's whose credential it came with.
    pub fn beat(&self, worker: &WorkerId, tenant: &TenantId, beat: &Beat) {
        let now = self.now();
        let (heard, matches) = {
            let mut placement = self.placement();
            let heard = placement.beat(worker, tenant, beat, now);
            (heard, placement.matches(now))
        };
        self.metrics.fleet.beats(1);
        self.assign_all(matches);
        let Some(heard) = heard else {
            tracing::warn!(%worker, "the fleet is full; the heartbeat was ignored");
            return;
        };
        for job in heard.forgotten {
            self.spawn(self.clone().forgotten(job, worker.clone()));
        }
        if heard.joined {
            tracing::info!(%worker, "worker joined");
            // It may have been listening since before it was forgotten.
            let topics = self.listening.lock().unwrap_or_else(PoisonError::into_inner).topics_of(worker);
            if !topics.is_empty() {
                self.serves(worker, tenant, topics);
            }
        } else if heard.was_away {
            self.spawn(self.clone().send_again(worker.clone()));
        }
        if heard.changed {
            let change = if heard.joined { WorkerChange::Joined } else { WorkerChange::Changed };
            self.tell_worker(worker, tenant, change);
        }
    }

    fn tell_worker(&self, id: &WorkerId, tenant: &TenantId, change: WorkerChange) {
        let member = Member { contract: Contract::Cap, tenant: tenant.clone(), id: id.clone() };
        self.tell_member(member, change, Sight::Common);
    }

    pub(crate) fn tell_pulse(&self, workspace: &Workspace, pulsed: &Pulsed, sight: Sight) {
        if pulsed.noticed.changed {
            let change = if pulsed.noticed.joined { WorkerChange::Joined } else { WorkerChange::Changed };
            let (tenant, id) = (workspace.tenant.clone(), WorkerId::known(workspace.id.as_str()));
            self.tell_member(Member { contract: Contract::Molecule, tenant, id }, change, sight);
        }
    }

    /// The worker says it is idle, and should have this job: it never got the packet, or we never got the
    /// result.
    async fn forgotten(self, id: JobId, worker: WorkerId) {
        if self.timers.is_anothers(&id) {
            return self.reseat(&id).await;
        }
        match self.store.job(&id).await {
            Ok(Some(job)) if job.state() == State::Dispatched => self.send(job).await,
            _ => {
                tracing::warn!(%worker, job = %id, "the worker says it is idle; its job goes back to the queue");
                self.lose_attempt(id, Some(worker)).await;
            }
        }
    }

    /// A worker introduces itself.
    pub fn introduce(&self, tenant: &TenantId, introduction: Introduction) {
        self.serves(&introduction.worker, tenant, introduction.topics);
    }

    fn serves(&self, worker: &WorkerId, tenant: &TenantId, topics: Vec<Topic>) {
        let now = self.now();
        let (was_away, joined, matches) = {
            let mut placement = self.placement();
            let known = placement.fleet().lookup(Who::Worker(worker.as_str()));
            let (was_away, joined) = (known.is_some_and(|worker| worker.unreachable), known.is_none());
            placement.serves(worker, tenant, topics, now);
            (was_away, joined, placement.matches(now))
        };
        if joined {
            tracing::info!(%worker, "worker joined");
        }
        self.assign_all(matches);
        if was_away {
            self.spawn(self.clone().send_again(worker.clone()));
        }
        if joined || was_away {
            let change = if joined { WorkerChange::Joined } else { WorkerChange::Changed };
            self.tell_worker(worker, tenant, change);
        }
    }

    /// A worker that has not said what it serves was heard on the topic of this job. Where a file maps topics to
    /// pools, workers serve what their pool does.
    pub(crate) fn learn_topic(&self, job: &Job, worker: &WorkerId) {
        if self.bus.shows_listeners() || !matches!(*self.rules().routing, Routing::Discovered) {
            return;
        }
        let (topic, now) = (&job.request.topic, self.now());
        let matches = {
            let mut placement = self.placement();
            if !placement.learn_topic(worker, topic) {
                return;
            }
            placement.matches(now)
        };
        tracing::info!(%worker, %topic, "serves a topic, as its result shows");
        self.assign_all(matches);
    }

    /// Follows what connections listen on.
    pub(crate) async fn watch_listeners(self) {
        loop {
            for listener in self.bus.listeners_changed().await {
                self.listener_changed(&listener);
            }
        }
    }

    fn listener_changed(&self, listener: &Listener) {
        let mut listening = self.listening.lock().unwrap_or_else(PoisonError::into_inner);
        let (before, now) = listening.replace(listener);
        let gone = before.worker.filter(|worker| !listening.hears(worker));
        let touched: Vec<(Topic, u32)> = before
            .topics
            .union(&now.topics)
            .map(|topic| (topic.clone(), listening.nameless_on(topic)))
            .collect();
        drop(listening);
        let matches = {
            let mut placement = self.placement();
            if let Some(worker) = &gone {
                placement.unreachable(Who::Worker(worker.as_str()));
            }
            for (topic, count) in touched {
                placement.listeners(&topic, count);
            }
            if listener.subjects.is_empty() {
                placement.connection_gone(listener.connection, self.now());
            }
            placement.matches(self.now())
        };
        self.assign_all(matches);
        if let Some(worker) = now.worker {
            // A connection that listens as a worker was let in as one, by an operator's key or an open door.
            let known = {
                let placement = self.placement();
                placement.fleet().lookup(Who::Worker(worker.as_str())).map(|worker| worker.tenant.clone())
            };
            let tenant = known.unwrap_or_else(|| self.settings.default_tenant.clone());
            self.serves(&worker, &tenant, now.topics.into_iter().collect());
        }
    }
}
