//! One of several: this server says that it is here, takes over from those who have fallen silent, and tells the
//! others what it commits.
//!
//! A live job belongs to whoever committed it last. Every server seats what is at workers, whoever gave it to
//! them, so that no worker is given too much; what must be exact is asked in the commit. A word that is lost
//! here costs a moment: the job is looked at again, in the store, a little later.

mod others;
mod word;

use crate::Engine;
use crate::chorus::Sight;
use reveille_bus::{BusError, Message};
use reveille_core::id::{JobId, RunId, TenantId, WorkspaceId};
use reveille_core::job::Job;
use reveille_core::policy::Counted;
use reveille_core::presence::agent::AgentBeat;
use reveille_core::presence::workspace::Pulse;
use reveille_core::request::Request;
use reveille_store::{BEAT_MS, BEAT_TTL_MS, Members, StoreError};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior};
use word::{Said, Word};

/// Where servers tell each other what they commit.
const SUBJECT: &str = "reveille.word";
/// The header that says which of them it is: nobody reads what it said itself.
const FROM: &str = "Reveille-From";
const BEAT: Duration = Duration::from_millis(BEAT_MS as u64);
const BEAT_TTL: Duration = Duration::from_millis(BEAT_TTL_MS as u64);
/// Jobs taken over at once.
const PAGE: usize = 200;
/// Words that may wait to be sent; more are dropped, and made up for by looking.
const UNSENT_MAX: usize = 65_536;
/// Words in one message.
const WORDS_MAX: usize = 256;
/// How much is let come together before the next message. The first after a silence goes at once.
const PACE: Duration = Duration::from_millis(2);
/// A job that is at somebody else's worker is looked at this much later, should nothing be heard of it.
const LOOK_AGAIN_MS: i64 = 5_000;
/// And after that this often.
const LOOK_AGAIN_LATER_MS: i64 = 30_000;
/// A job of our own is looked at this often, should its moment be later: another server may have changed it, and its
/// word was lost.
const LOOK_AT_OWN_MS: i64 = 300_000;
/// Jobs whose end is remembered, so that an older word does not bring them back.
const ENDED_MAX: usize = 16_384;

pub struct Replica {
    /// The name of this life of this server; nothing where there is only one.
    name: String,
    words: mpsc::Sender<Said>,
    ended: Mutex<Ended>,
    is_cut_off: AtomicBool,
    here: Mutex<Vec<String>>,
}

/// The far end, until the task takes it.
pub struct Unsent(mpsc::Receiver<Said>);

/// Jobs that ended lately, with their last revision.
#[derive(Default)]
struct Ended {
    revisions: FxHashMap<JobId, u64>,
    order: VecDeque<JobId>,
}

impl Replica {
    pub fn new(name: String) -> (Self, Unsent) {
        let (words, unsent) = mpsc::channel(UNSENT_MAX);
        let replica = Self {
            name,
            words,
            ended: Mutex::default(),
            is_cut_off: AtomicBool::new(false),
            here: Mutex::default(),
        };
        (replica, Unsent(unsent))
    }

    fn ended(&self) -> MutexGuard<'_, Ended> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How the last taking over ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Adoption {
    Whole,
    /// Nobody knows which jobs are ours since.
    Broken,
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

impl Engine {
    /// Whether others may be about the same jobs.
    pub(crate) fn is_one_of_many(&self) -> bool {
        self.store.is_shared()
    }

    /// Whether the shared store has not been heard for so long that others have taken over by now, or the bus
    /// is away: whoever can choose another server should.
    pub fn is_cut_off(&self) -> bool {
        self.replica.is_cut_off.load(Ordering::Relaxed) || (self.is_one_of_many() && !self.bus.is_up())
    }

    /// The servers that share the work, by the last beat; nobody where there is only one.
    pub fn replicas(&self) -> Vec<String> {
        self.replica.here.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Says that this server is here, before it does anything that others would wonder about.
    pub(crate) async fn appear(&self) -> Result<(), StoreError> {
        if self.is_one_of_many() {
            self.store.beat(&self.about()).await?;
        }
        Ok(())
    }

    /// Picks up what is at workers and what others have left behind, and then goes on doing so. Beats have a task
    /// of their own: whoever takes over much must not fall silent over it.
    pub(crate) async fn join(self) {
        let (tell, mut told) = watch::channel(None);
        self.spawn(self.clone().beat_on(tell));
        self.seat_all_at_workers().await;
        self.end_recount();
        let mut adoption = Adoption::Whole;
        while told.changed().await.is_ok() {
            let Some(roll) = told.borrow_and_update().clone() else { continue };
            if adoption == Adoption::Broken {
                adoption = self.adopt_own().await;
            }
            if adoption == Adoption::Whole {
                adoption = self.take_over_from(&roll).await;
            }
            self.picked_up().await;
        }
    }

    /// Says every second that this server is here, and hands on who has fallen silent.
    async fn beat_on(self, tell: watch::Sender<Option<Members>>) {
        let mut interval = tokio::time::interval(BEAT);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut heard, mut here_since) = (Instant::now(), Instant::now());
        loop {
            interval.tick().await;
            let roll = match self.store.beat(&self.about()).await {
                Ok(roll) => roll,
                Err(error) => {
                    let words = "the shared store is away";
                    self.trouble.store.tell(self.now(), words, &self.replica.name, &error);
                    self.note_cut_off(heard.elapsed() > BEAT_TTL);
                    continue;
                }
            };
            heard = Instant::now();
            self.note_cut_off(false);
            if !roll.was_here {
                tracing::warn!("this server was taken for dead; others may have its jobs");
                here_since = heard;
                self.spawn(self.clone().look_at_own());
            }
            self.replica.here.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&roll.here);
            // Whoever was away sees everybody else as silent: they are given the time to say otherwise.
            if here_since.elapsed() >= BEAT_TTL {
                tell.send_replace(Some(roll));
            }
        }
    }

    /// What this server owns and does not know of: an answer was lost when it took over.
    async fn adopt_own(&self) -> Adoption {
        let mut cursor = None;
        loop {
            let Ok(page) = self.store.owned(cursor, PAGE).await else { return Adoption::Broken };
            for job in &page.items {
                if self.timers.revision_of(job.id()).is_none() || self.timers.is_anothers(job.id()) {
                    self.adopt(job.id()).await;
                }
            }
            cursor = page.next;
            if cursor.is_none() {
                return Adoption::Whole;
            }
        }
    }

    fn note_cut_off(&self, is_cut_off: bool) {
        let was = self.replica.is_cut_off.swap(is_cut_off, Ordering::Relaxed);
        if is_cut_off && !was {
            tracing::error!("cut off from the shared store; others take over until it is back");
        } else if was && !is_cut_off {
            tracing::info!("the shared store is back");
        }
    }

    /// What operators read of this server.
    fn about(&self) -> String {
        let policy = self.rules().policy.snapshot().to_owned();
        serde_json::json!({ "version": env!("CARGO_PKG_VERSION"), "policy": policy }).to_string()
    }

    async fn take_over_from(&self, roll: &Members) -> Adoption {
        for silent in &roll.silent {
            let mut jobs = 0;
            loop {
                match self.store.adopt(silent, PAGE).await {
                    Ok(Some(adopted)) if !adopted.is_empty() => {
                        jobs += adopted.len();
                        for job in adopted {
                            self.adopt(job.id()).await;
                        }
                    }
                    Ok(Some(_)) => {
                        tracing::info!(replica = %silent, jobs, "a silent server's jobs were taken over");
                        let engine = self.clone();
                        self.spawn(async move { engine.tell_what_was_left_untold().await });
                        // It may have ended a job and not told the run that waits for it.
                        self.runs.left_behind.notify_one();
                        break;
                    }
                    Ok(None) => break,
                    Err(error) => {
                        let words = "jobs are still to be taken over";
                        self.trouble.store.tell(self.now(), words, silent, &error);
                        return Adoption::Broken;
                    }
                }
            }
        }
        Adoption::Whole
    }

    // What is committed here is told to the others.

    pub(crate) fn tell_others(&self, job: &Job) {
        if !self.is_one_of_many() {
            return;
        }
        if job.state().is_terminal() {
            self.replica.ended().note(job.id(), job.revision);
        }
        self.say(Said::Job(Box::new(Word::of(job))));
    }

    /// A beat that came over HTTP, which only this server has heard.
    pub(crate) fn tell_beat(&self, tenant: &TenantId, beat: &AgentBeat<'_>) {
        if self.is_one_of_many() {
            self.say(Said::Agent { tenant: tenant.clone(), beat: Box::new(beat.kept()) });
        }
    }

    pub(crate) fn tell_others_pulse(&self, workspace: &WorkspaceId, pulse: &Pulse) {
        if self.is_one_of_many() {
            self.say(Said::Pulse { workspace: workspace.clone(), pulse: Box::new(pulse.clone()) });
        }
    }

    /// Somebody may wait there for this run to be over.
    pub(crate) fn tell_others_of_run(&self, run: &RunId) {
        if self.is_one_of_many() {
            self.say(Said::Run(run.clone()));
        }
    }

    /// What was counted here counts at the others, for rules that say how often is too often.
    pub(crate) fn tell_counted(&self, counted: Vec<Counted>) {
        for counted in counted {
            self.say(Said::Counted(counted));
        }
    }

    /// What does not fit is made up for: jobs are looked at, and beats come again. A request that was counted and
    /// not told counts here only.
    fn say(&self, said: Said) {
        let _ = self.replica.words.try_send(said);
    }

    /// One message holds as many words as wait.
    pub(crate) async fn send_words(self, mut unsent: Unsent) {
        let mut words = Vec::with_capacity(WORDS_MAX);
        while unsent.0.recv_many(&mut words, WORDS_MAX).await > 0 {
            let (body, is_full) = (serde_json::to_vec(&words), words.len() == WORDS_MAX);
            words.clear();
            let Ok(body) = body else { continue };
            let message = Message::new(SUBJECT, body).with_headers([(FROM, self.replica.name.as_str())]);
            if let Err(error) = self.bus.publish(message).await {
                self.trouble.bus.tell(
                    self.now(),
                    "others were not told what was committed",
                    &SUBJECT,
                    &error,
                );
            }
            if !is_full {
                tokio::time::sleep(PACE).await;
            }
        }
    }

    pub(crate) async fn hear_others(&self) -> Result<(), BusError> {
        if !self.is_one_of_many() {
            return Ok(());
        }
        let mut heard = self.bus.subscribe(SUBJECT, None).await?;
        let engine = self.clone();
        self.spawn(async move {
            while let Some(delivery) = heard.recv().await {
                if delivery.message.header(FROM).any(|from| from == engine.replica.name.as_bytes()) {
                    continue;
                }
                match serde_json::from_slice::<Vec<Said>>(&delivery.message.payload) {
                    Ok(words) => words.iter().for_each(|said| engine.hear_said(said)),
                    Err(error) => {
                        engine.trouble.packets.tell(engine.now(), "packet refused", &SUBJECT, &error);
                    }
                }
            }
        });
        Ok(())
    }

    fn hear_said(&self, said: &Said) {
        match said {
            Said::Job(word) => self.hear_word(word),
            Said::Agent { tenant, beat } => self.hear_agent(tenant, beat),
            Said::Pulse { workspace, pulse } => {
                if let Some(workspace) = self.workspaces.find(workspace) {
                    self.hear_pulse(&workspace, (**pulse).clone(), Sight::Second);
                }
            }
            Said::Run(id) => self.run_waiters.wake(id),
            Said::Counted(counted) => self.windows().hear(counted.clone(), self.now()),
        }
    }

    fn hear_word(&self, word: &Word) {
        let known = self.timers.revision_of(&word.id).or_else(|| self.replica.ended().revision_of(&word.id));
        if known.is_some_and(|known| known >= word.revision) {
            return;
        }
        let now = self.now();
        let matches = {
            let mut placement = self.placement();
            if word.is_at_worker() {
                let request = Arc::new(Request {
                    tenant: word.tenant.clone(),
                    delegated: word.delegated.clone(),
                    ..Request::plain(word.id.as_str(), word.topic.as_str())
                });
                placement.reserve_at(&request, word.worker.as_ref(), word.at, now);
            } else {
                placement.leave(&word.id);
            }
            placement.matches(now)
        };
        if word.state.is_terminal() {
            self.replica.ended().note(&word.id, word.revision);
            self.waiters.wake(&word.id);
        }
        if word.is_at_worker() {
            self.timers.watch(&word.id, &word.tenant, word.state, word.revision, now + LOOK_AGAIN_MS);
        } else {
            self.timers.clear(&word.id);
        }
        self.assign_all(matches);
    }
}
