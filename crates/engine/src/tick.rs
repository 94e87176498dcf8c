//! The engine's own heartbeat: who is dead by now, and which jobs time has caught up with.

use crate::Engine;
use crate::chorus::Sight;
use crate::drive::NEVER;
use crate::events::WorkerChange;
use crate::hearing::Hearing;
use reveille_core::id::{JobId, WorkerId, WorkspaceId};
use reveille_core::job::{Job, Refusal};
use reveille_core::life::{self, Due};
use reveille_core::placement::Gone;
use reveille_core::placement::routing::OnWorkerLost;
use reveille_core::presence::Contract;
use reveille_core::reason::Reason;
use reveille_core::time::Millis;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior};

const TICK: Duration = Duration::from_millis(20);
/// Jobs handled per tick; the rest follow in the next.
const DUE_MAX: usize = 2_000;
/// A tick this late means that we were not listening either.
const ABSENCE_MS: i64 = 2_000;

impl Engine {
    /// Whoever was restored has been waiting for us since `hydrated_at`; a start that took long is an
    /// absence like any other.
    pub(crate) async fn tick(self, hydrated_at: Instant) {
        let mut interval = tokio::time::interval(TICK);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last = hydrated_at;
        loop {
            interval.tick().await;
            // While nothing can be heard nobody's silence counts, and nothing can be sent.
            if !self.bus.is_up() {
                continue;
            }
            let here = Instant::now();
            let away_ms = (here - last).as_millis() as i64;
            last = here;
            let now = self.now();
            if away_ms > ABSENCE_MS {
                tracing::warn!(away_ms, "this server was away; workers get that time back");
                self.placement().forgive(away_ms, now);
            }
            let (gone, is_slow) = {
                let mut placement = self.placement();
                (placement.expire(now), placement.fleet().is_mass_expiry())
            };
            if self.metrics.fleet.mass_expiry(is_slow) && is_slow {
                tracing::error!("most of the fleet is silent: deaths are held back; look at the network");
            }
            for gone in gone {
                self.member_is_gone(gone);
            }
            for id in self.timers.due(now, DUE_MAX) {
                self.spawn(self.clone().time_has_come(id));
            }
        }
    }

    /// A member fell silent, or was taken out: its jobs go elsewhere, and those who watch are told.
    pub(crate) fn member_is_gone(&self, gone: Gone) {
        let now = self.now();
        let Some(member) = gone.member else {
            tracing::warn!(jobs = gone.jobs.len(), "a nameless listener left its jobs behind");
            for id in gone.jobs {
                self.spawn(self.clone().lose_attempt(id, None));
            }
            return;
        };
        let (contract, worker) = (member.contract.as_str(), member.id.clone());
        tracing::warn!(%worker, contract, jobs = gone.jobs.len(), "left the fleet: silent for its TTL, or retired");
        if gone.restored {
            self.metrics.fleet.stale_restored(now);
        }
        for id in gone.jobs {
            self.spawn(self.clone().left_behind(id, worker.clone()));
        }
        let change = match member.contract {
            Contract::Cap => WorkerChange::Left,
            Contract::VoiceGateway | Contract::Molecule => WorkerChange::Offline,
        };
        if member.contract == Contract::Molecule {
            self.spawn(self.clone().workspace_is_silent(WorkspaceId::known(worker.as_str())));
        }
        self.tell_member(member, change, Sight::Common);
    }

    /// A workspace that only forgot to beat while it thinks still answers its letter: it keeps the job, and
    /// a letter that breaks takes it back.
    async fn left_behind(self, id: JobId, worker: WorkerId) {
        if self.letters.is_under_way(&id) {
            return self.reseat(&id).await;
        }
        self.lose_attempt(id, Some(worker)).await;
    }

    /// The worker no longer has the job.
    pub(crate) async fn lose_attempt(self, id: JobId, worker: Option<WorkerId>) {
        let lost = self.drive_on(&id, |job, now| self.lost(job, worker.as_ref(), now)).await;
        if let Err(error) = lost {
            tracing::debug!(job = %id, %error, "not taken from its worker");
            self.reseat(&id).await;
        }
    }

    fn lost(&self, job: &Job, worker: Option<&WorkerId>, now: Millis) -> Result<Job, Refusal> {
        let attempt = job.attempt().filter(|attempt| attempt.worker.as_ref() == worker);
        let attempt = attempt.ok_or_else(|| Refusal::ForeignWorker(format!("{worker:?}")))?;
        let mut limits = self.limits(job);
        if self.rules().routing.on_worker_lost(attempt.pool.as_ref()) == OnWorkerLost::Fail {
            limits.workers_lost_max = 1;
        }
        life::lose_worker(job, attempt.number, &limits, now)
    }

    pub(crate) fn is_to_be_judged(&self, job: &Job) -> bool {
        let is_due = matches!(life::pass_time(job, &self.limits(job), None, self.now()), Ok(Due::Judge));
        if is_due {
            // Its deadline does not wait for the answer.
            self.timers.set(job, job.deadline().unwrap_or(NEVER));
        }
        is_due
    }

    /// Asks the core what this moment means for the job.
    async fn time_has_come(self, id: JobId) {
        if self.timers.is_anothers(&id) {
            return self.reseat(&id).await;
        }
        let waits_for = self.placement().wait_of(&id).map(|wait| wait.reason);
        let hearing = self.hear_stored(&id, |job| self.is_to_be_judged(job)).await;
        let done = self.drive_on(&id, |job, now| self.by_time(job, waits_for, &hearing, now)).await;
        if done.is_err() {
            self.reseat(&id).await;
        }
    }

    /// What time does to the job, for timers and for whoever comes after them.
    pub(crate) fn by_time(
        &self,
        job: &Job,
        waits_for: Option<Reason>,
        hearing: &Hearing,
        now: Millis,
    ) -> Result<Job, Refusal> {
        match life::pass_time(job, &self.limits(job), waits_for, now)? {
            Due::Change(after) => Ok(*after),
            Due::Judge => self.judge(job, hearing, now),
            Due::Place | Due::Nothing => Err(Refusal::TooEarly),
        }
    }
}
