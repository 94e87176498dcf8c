//! Who is there: beats and handshakes from workers, and what the transport itself can see.

use super::Fleet;
use crate::cluster::SeenBy;
use crate::observe::Trouble;
use crate::observe::events::WorkerChange;
use reveille_bus::Listener;
use reveille_core::fleet::{Beat, NoRoom, ServedTenants, Who};
use reveille_core::id::{TenantId, Topic, WorkerId};
use reveille_core::placement::{Member, TopicListeners};
use reveille_core::presence::Contract;
use reveille_core::quota::OverQuota;
use reveille_wire::convert::Introduction;
use reveille_wire::subject;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

/// What each connection listens on, where the transport can tell.
#[derive(Default)]
pub struct Listening(BTreeMap<u64, Subscriptions>);

/// One connection's subscriptions, understood.
#[derive(Default, Clone, PartialEq, Eq)]
struct Subscriptions {
    /// It listens on a worker's own subject, so it is that worker.
    worker: Option<WorkerId>,
    topics: BTreeSet<Topic>,
    /// Whose jobs it may be given.
    tenants: ServedTenants,
}

impl Subscriptions {
    fn of(listener: &Listener) -> Self {
        let topics = listener
            .subjects
            .iter()
            .filter(|subject| subject::is_topic(subject) && !subject.contains(['*', '>']));
        Self {
            worker: listener.subjects.iter().find_map(|subject| subject::worker_of(subject)),
            topics: topics.filter_map(|topic| Topic::parse(topic).ok()).collect(),
            tenants: if listener.subjects.is_empty() {
                ServedTenants::default()
            } else {
                listener.tenants.clone()
            },
        }
    }
}

impl Listening {
    fn replace(&mut self, listener: &Listener) -> (Subscriptions, Subscriptions) {
        let now = Subscriptions::of(listener);
        let before = self.0.remove(&listener.connection).unwrap_or_default();
        if now != Subscriptions::default() {
            self.0.insert(listener.connection, now.clone());
        }
        (before, now)
    }

    fn hears(&self, worker: &WorkerId) -> bool {
        self.0.values().any(|subscriptions| subscriptions.worker.as_ref() == Some(worker))
    }

    fn topics_of(&self, worker: &WorkerId) -> Vec<Topic> {
        let own = self.0.values().filter(|subscriptions| subscriptions.worker.as_ref() == Some(worker));
        own.flat_map(|subscriptions| subscriptions.topics.iter().cloned()).collect()
    }

    /// Connections on a topic that do not say who they are.
    fn anonymous_on(&self, topic: &Topic) -> TopicListeners {
        let mut listeners = TopicListeners::default();
        for own in self.0.values().filter(|own| own.worker.is_none() && own.topics.contains(topic)) {
            listeners.add(&own.tenants);
        }
        listeners
    }
}

impl Fleet {
    /// Whether a worker that came with a tenant's key may join the tenant's other members. One that is there may.
    pub(crate) fn may_join(&self, worker: &WorkerId, tenant: &TenantId) -> Result<(), OverQuota> {
        let checked = self.placement.lock().fleet().check_quota(Who::Worker(worker.as_str()), tenant);
        checked.map_err(|over| self.observe.metrics().over_quota(over))
    }

    /// A worker says that it lives, and how busy it is. It is the tenant's whose credential it came with.
    pub fn beat(&self, worker: &WorkerId, tenant: &TenantId, beat: &Beat) {
        let now = self.runtime.now();
        let (heard, matches) = {
            let mut placement = self.placement.lock();
            let heard = placement.beat(worker, tenant, beat, now);
            (heard, placement.reserve_waiting(now))
        };
        self.observe.metrics().fleet().beats(1);
        self.jobs.assign_all(matches);
        let Some(heard) = heard else {
            return self.observe.log(Trouble::Packets, "heartbeat ignored", worker, &NoRoom::Fleet);
        };
        for job in heard.forgotten {
            self.runtime.spawn(self.jobs.clone().worker_idle(job, worker.clone()));
        }
        if heard.joined {
            tracing::info!(%worker, "worker joined");
            self.serves_what_it_hears(worker, tenant);
        } else if heard.was_away {
            self.runtime.spawn(self.jobs.clone().send_again(worker.clone()));
        }
        if heard.changed {
            let change = if heard.joined { WorkerChange::Joined } else { WorkerChange::Changed };
            self.publish_worker(worker, tenant, change);
        }
    }

    /// A worker that has just joined may have been listening since before it was forgotten.
    pub(super) fn serves_what_it_hears(&self, worker: &WorkerId, tenant: &TenantId) {
        let topics = self.listening.lock().unwrap_or_else(PoisonError::into_inner).topics_of(worker);
        if !topics.is_empty() {
            self.serves(worker, tenant, topics);
        }
    }

    pub(super) fn publish_worker(&self, id: &WorkerId, tenant: &TenantId, change: WorkerChange) {
        let member = Member { contract: Contract::Cap, tenant: tenant.clone(), id: id.clone() };
        self.cluster.announce(member, change, SeenBy::AllServers);
    }

    /// Whether a worker of this name is known.
    pub(crate) fn knows(&self, worker: &WorkerId) -> bool {
        self.placement.lock().fleet().find(Who::Worker(worker.as_str())).is_some()
    }

    /// A worker introduces itself.
    pub fn introduce(&self, tenant: &TenantId, introduction: Introduction) {
        self.serves(&introduction.worker, tenant, introduction.topics);
    }

    fn serves(&self, worker: &WorkerId, tenant: &TenantId, topics: Vec<Topic>) {
        let now = self.runtime.now();
        let (was_away, joined, matches) = {
            let mut placement = self.placement.lock();
            let known = placement.fleet().lookup(Who::Worker(worker.as_str()));
            let (was_away, joined) = (known.is_some_and(|worker| worker.unreachable), known.is_none());
            placement.announce_topics(worker, tenant, topics, now);
            (was_away, joined, placement.reserve_waiting(now))
        };
        if joined {
            tracing::info!(%worker, "worker joined");
        }
        self.jobs.assign_all(matches);
        if was_away {
            self.runtime.spawn(self.jobs.clone().send_again(worker.clone()));
        }
        if joined || was_away {
            let change = if joined { WorkerChange::Joined } else { WorkerChange::Changed };
            self.publish_worker(worker, tenant, change);
        }
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
        let touched: Vec<(Topic, TopicListeners)> = before
            .topics
            .union(&now.topics)
            .map(|topic| (topic.clone(), listening.anonymous_on(topic)))
            .collect();
        drop(listening);
        let matches = {
            let mut placement = self.placement.lock();
            if let Some(worker) = &gone {
                placement.mark_unreachable(Who::Worker(worker.as_str()));
            }
            for (topic, listeners) in touched {
                placement.set_listeners(&topic, listeners);
            }
            if listener.subjects.is_empty() {
                placement.connection_gone(listener.connection, self.runtime.now());
            }
            placement.reserve_waiting(self.runtime.now())
        };
        self.jobs.assign_all(matches);
        if let Some(worker) = now.worker {
            // A connection that listens as a worker was let in as one: by an open door, an operator's key, or a key of
            // its own, with which it has claimed the name before.
            let known = {
                let placement = self.placement.lock();
                placement.fleet().lookup(Who::Worker(worker.as_str())).map(|worker| worker.tenant.clone())
            };
            let tenant = known.unwrap_or_else(|| self.runtime.settings().default_tenant.clone());
            self.serves(&worker, &tenant, now.topics.into_iter().collect());
        }
    }
}
