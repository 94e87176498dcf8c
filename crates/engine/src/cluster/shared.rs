//! One of several servers on one store: each says what it commits, counts in the commit, and looks again where a
//! message may have been lost.

use super::announcer::Announcer;
use super::membership::ServerMembership;
use super::{Cluster, JobCache, PeerJob, PeerMessage, PeerMessages, SeenBy};
use crate::observe::Observe;
use crate::observe::events::{Events, WorkerChange};
use crate::runtime::Runtime;
use bytes::Bytes;
use reveille_bus::Bus;
use reveille_core::id::JobId;
use reveille_core::job::Job;
use reveille_core::placement::Member;
use reveille_core::time::Millis;
use reveille_store::{BEAT_MS, Quota, Store};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;

/// Messages that may wait to be sent; more are dropped, and made up for by looking.
const UNSENT_MAX: usize = 65_536;
/// A job of our own is looked at this often, should its moment be later: another server may have changed it, and its
/// message was lost.
const LOOK_AT_OWN_MS: i64 = 300_000;
/// How long whoever waits relies on being told by another server.
const WAKE_PATIENCE: Duration = Duration::from_secs(1);
/// Jobs whose end is remembered, so that an older message does not bring them back.
const ENDED_MAX: usize = 16_384;

pub struct SharedCluster {
    pub(super) runtime: Runtime,
    pub(super) observe: Observe,
    pub(super) store: Arc<dyn Store>,
    pub(super) bus: Arc<dyn Bus>,
    pub(super) membership: ServerMembership,
    pub(super) announcer: Announcer,
    messages: mpsc::Sender<PeerMessage>,
    ended: Mutex<Ended>,
    job_cache: JobCache,
}

impl SharedCluster {
    pub fn new(
        runtime: Runtime,
        observe: Observe,
        store: Arc<dyn Store>,
        bus: Arc<dyn Bus>,
    ) -> (Arc<Self>, PeerMessages) {
        let (messages, unsent) = mpsc::channel(UNSENT_MAX);
        let shared = Self {
            runtime,
            observe,
            store,
            bus,
            membership: ServerMembership::default(),
            announcer: Announcer::default(),
            messages,
            ended: Mutex::default(),
            job_cache: JobCache::default(),
        };
        (Arc::new(shared), PeerMessages(unsent))
    }

    /// Notes the end of a job, here or at another server.
    pub fn note_ended(&self, job: &JobId, revision: u64) {
        self.ended().note(job, revision);
    }

    fn ended(&self) -> MutexGuard<'_, Ended> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cluster for SharedCluster {
    fn name(&self) -> &str {
        self.store.name()
    }

    fn members(&self) -> Vec<String> {
        self.membership.members()
    }

    fn is_cut_off(&self) -> bool {
        self.membership.is_cut_off() || !self.bus.is_up()
    }

    fn others_may_act(&self) -> bool {
        true
    }

    fn publish_committed(&self, job: &Job) {
        // Those who watch are told by the step itself.
        if job.state().is_terminal() {
            self.note_ended(job.id(), job.revision);
        }
        self.publish(&|| PeerMessage::Job(Box::new(PeerJob::of(job))));
    }

    fn step_event(&self, job: &Job) -> Option<Bytes> {
        Some(Events::entry_of(job))
    }

    /// What does not fit is made up for: jobs are looked at, and beats come again. A request that was counted and
    /// not told counts here only.
    fn publish(&self, message: &dyn Fn() -> PeerMessage) {
        let _ = self.messages.try_send(message());
    }

    fn announce(&self, member: Member, change: WorkerChange, seen_by: SeenBy) {
        self.announce_once(member, change, seen_by);
    }

    fn job_cache(&self) -> Option<&JobCache> {
        Some(&self.job_cache)
    }

    fn quota(&self, of: &dyn Fn() -> Quota) -> Quota {
        of()
    }

    fn look_by(&self, due: Millis, now: Millis) -> Millis {
        due.min(now + LOOK_AT_OWN_MS)
    }

    fn wake_patience(&self) -> Duration {
        WAKE_PATIENCE
    }

    fn ended_revision(&self, job: &JobId) -> Option<u64> {
        self.ended().revision_of(job)
    }

    fn is_late(&self, committed_at: Millis, now: Millis) -> bool {
        now.0 - committed_at.0 > BEAT_MS
    }
}

/// Jobs that ended lately, with their last revision.
#[derive(Default)]
struct Ended {
    revisions: FxHashMap<JobId, u64>,
    order: VecDeque<JobId>,
}

impl Ended {
    fn revision_of(&self, job: &JobId) -> Option<u64> {
        self.revisions.get(job).copied()
    }

    fn note(&mut self, job: &JobId, revision: u64) {
        if self.revisions.insert(job.clone(), revision).is_none() {
            self.order.push_back(job.clone());
        }
        if self.order.len() > ENDED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.revisions.remove(&oldest);
        }
    }
}
