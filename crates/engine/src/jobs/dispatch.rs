//! Getting a dispatched job to a worker, and noticing at once when nobody was there.

use super::Jobs;
use super::change::LockedJob;
use crate::observe::Trouble;
use crate::observe::with_context;
use crate::runtime::PUBLISH_PAUSE;
use reveille_bus::{DeliveryReport, Message};
use reveille_core::fleet::{Who, Worker};
use reveille_core::id::WorkerId;
use reveille_core::job::{Job, Phase, State};
use reveille_core::life;
use reveille_core::placement::Selector;
use reveille_core::placement::routing::Routing;
use reveille_wire::{convert, subject};
use std::sync::Arc;
use std::time::Duration;

/// A job that ends sooner than this after it was heard never needs a commit for RUNNING alone.
const RUNNING_AFTER: Duration = Duration::from_millis(25);

impl Jobs {
    /// Sends the packet that a dispatched job owes.
    pub(crate) async fn send(self, job: Arc<Job>) {
        let Some(attempt) = job.attempt() else { return };
        let (number, to) = (attempt.number, attempt.worker.clone());
        let Some(packet) = convert::dispatch_packet(&job, self.runtime.now()) else { return };
        let subject = to.as_ref().map_or_else(|| job.request.topic.to_string(), subject::worker_jobs);
        let message = with_context(
            Message::new(subject, self.runtime.encode(&packet)).about(&job.request.tenant),
            &self.observe.trace_of(&job.request).attempt(number),
        );
        // One that was stopped between the commit and here is no longer the one to send it.
        if self.cluster.is_late(job.updated_at, self.runtime.now())
            && !self.still_dispatched(&job, number).await
        {
            return;
        }
        let heard = loop {
            // The look at the store may have taken long, and this server itself has moved the job on meanwhile.
            if self.is_behind(&job) {
                return;
            }
            match self.bus.publish(message.clone()).await {
                Ok(heard) => break heard,
                Err(error) => {
                    self.observe.log(Trouble::Bus, "bus failed; retrying", job.id(), &error);
                    tokio::time::sleep(PUBLISH_PAUSE).await;
                    // It may have ended, or gone elsewhere, while the bus was away.
                    if !self.still_dispatched(&job, number).await {
                        return;
                    }
                }
            }
        };
        match (heard, to) {
            (DeliveryReport::Somebody { by }, to) => {
                if let (Some(by), None) = (&by, to) {
                    self.placement.lock().note_connection(job.id(), by.connection);
                }
                tokio::time::sleep(RUNNING_AFTER).await;
                let name = by.and_then(|by| WorkerId::parse(&by.name?).ok());
                self.mark_running(&job, number, name).await;
            }
            (DeliveryReport::Nobody, Some(worker)) => self.nobody_heard(&job, number, &worker).await,
            (DeliveryReport::Nobody, None) => self.unheard(&job, number).await,
        }
    }

    /// Sends again what a worker that is back should have had. The attempt is the same, so a worker
    /// that has it already knows it.
    pub(crate) async fn send_again(self, worker: WorkerId) {
        let held = self.placement.lock().held_by(Who::Worker(worker.as_str()));
        for id in held {
            if self.placement.timers().is_anothers(&id) {
                continue;
            }
            if let Ok(Some(job)) = self.store.job(&id).await
                && matches!(&job.phase, Phase::Dispatched(attempt) if attempt.worker.as_ref() == Some(&worker))
            {
                self.runtime.spawn(self.clone().send(job));
            }
        }
    }

    async fn mark_running(&self, job: &Arc<Job>, number: u32, name: Option<WorkerId>) {
        // Most jobs are over by now, or have moved on: it is not this record any more.
        let lock = self.lock(job.id()).await;
        if self.placement.timers().revision_of(job.id()) != Some(job.revision) {
            return;
        }
        let known = LockedJob::known(job.clone(), lock);
        // The transport's name counts only if it is that of a worker we know.
        let heard_by =
            name.filter(|name| self.placement.lock().fleet().find(Who::Worker(name.as_str())).is_some());
        let started =
            self.drive_taken(known, |job, now| life::start(job, number, heard_by.clone(), now)).await;
        if let Err(error) = started {
            tracing::debug!(job = %job.id(), %error, "job not marked as running");
        }
    }

    async fn still_dispatched(&self, job: &Job, number: u32) -> bool {
        let read = || self.store.job(job.id());
        let job = self.observe.insist(Trouble::Store, "store failed; retrying", job.id(), read).await;
        let dispatched = job.filter(|job| job.state() == State::Dispatched);
        dispatched.and_then(|job| job.attempt().map(|attempt| attempt.number)) == Some(number)
    }

    /// The worker does not listen. One that never has may still be reached through its topic; one that
    /// has was here a moment ago, and somebody else should have the job. One that we only expect back
    /// after our own restart keeps its job until its TTL is over.
    async fn nobody_heard(&self, job: &Job, number: u32, worker: &WorkerId) {
        let (listens, expected) = {
            let mut placement = self.placement.lock();
            let who = Who::Worker(worker.as_str());
            let known = placement.fleet().lookup(who);
            let is_expected = |worker: &Worker| worker.expected || (worker.restored && worker.unreachable);
            let facts = known.map_or((true, false), |worker| (worker.counts_jobs, is_expected(worker)));
            placement.mark_unreachable(who);
            facts
        };
        if expected {
            return;
        }
        // Whoever of the queue group takes it need not fit what the job asks of its worker.
        let wanted = Selector::of(&job.request, &self.runtime.rules().routing);
        if listens || !wanted.labels.is_empty() || !wanted.requires.is_empty() {
            return self.unheard(job, number).await;
        }
        if let Err(error) = self.drive_on(job.id(), |job, now| life::open(job, number, now)).await {
            tracing::debug!(job = %job.id(), %error, "dispatch not widened to its topic");
        }
    }

    async fn unheard(&self, job: &Job, number: u32) {
        let random = self.runtime.random();
        let back = self.drive_on(job.id(), |job, now| life::unheard(job, number, now, random)).await;
        if let Err(error) = back {
            tracing::debug!(job = %job.id(), %error, "dispatch not taken back");
        }
    }

    /// A worker that has not said what it serves was heard on the topic of this job. Where a file maps topics to
    /// pools, workers serve what their pool does.
    pub(super) fn learn_topic(&self, job: &Job, worker: &WorkerId) {
        if self.bus.shows_listeners() || !matches!(*self.runtime.rules().routing, Routing::Discovered) {
            return;
        }
        let (topic, now) = (&job.request.topic, self.runtime.now());
        let matches = {
            let mut placement = self.placement.lock();
            if !placement.learn_topic(worker, topic) {
                return;
            }
            placement.reserve_waiting(now)
        };
        tracing::info!(%worker, %topic, "worker serves a topic, learned from its result");
        self.assign_all(matches);
    }
}
