//! The promises, checked as things happen. The ledger sees every commit that the store made durable,
//! every dispatch that left, and what workers and people really did; whoever breaks a promise is told
//! on at once, in words.

mod history;

use crate::plan;
use crate::plan::WorkerPlan;
use crate::results;
use crate::workers::fits;
use history::{is_decision, new_marks, succession};
use reveille_core::audit::Draft;
use reveille_core::id::{JobId, TenantId, WorkerId, WorkspaceId};
use reveille_core::job::{Event, Job, Mark, Phase, State};
use reveille_core::policy::{Decision, Policy};
use reveille_core::request::Request;
use reveille_core::time::Millis;
use reveille_wire::cap::JobRequest;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A dispatch that was decided before the job ended may still be on its way out for this long.
const OUTRUN_MS: i64 = 1_000;

/// The same where servers share a store: between the look at it and the packet its answer may have been late.
const OUTRUN_SHARED_MS: i64 = 5_000;

pub type InvariantResult = Result<(), String>;

/// When a server does something.
#[derive(Clone, Copy)]
pub struct ServerMoment {
    pub now: Millis,
    /// When the server last went on after it was stopped.
    pub went_on_at: Millis,
    pub is_shared: bool,
}

#[derive(Default)]
pub struct JobHistory {
    entries: BTreeMap<JobId, ObservedJob>,
    pub live: BTreeSet<JobId>,
    keys: BTreeMap<(TenantId, String), JobId>,
    acknowledged: BTreeMap<JobId, TenantId>,
    refused: BTreeSet<JobId>,
    finished: BTreeSet<(JobId, WorkerId)>,
    approvals_asked: BTreeSet<JobId>,
    dead_letters_told: BTreeSet<JobId>,
    cancels_told: BTreeSet<JobId>,
    stories_told: BTreeSet<JobId>,
    packets_kept: Vec<Request>,
    /// Jobs whose stored result says too much.
    pub leaks: BTreeSet<JobId>,
    pub states: BTreeMap<State, u64>,
    pub events: BTreeMap<Event, u64>,
    pub commits: u64,
    decisions: BTreeMap<TenantId, u64>,
    /// What was recorded although it belongs to no job.
    records: Vec<Draft>,
    /// Every policy that is in force at some time, by its snapshot.
    policies: BTreeMap<String, Policy>,
}

pub struct ObservedJob {
    pub job: Arc<Job>,
    ended_at: Option<Millis>,
    given: BTreeSet<(u64, Option<WorkerId>)>,
    /// Attempts whose packet has left.
    sent: BTreeSet<u64>,
    /// Since when its deadline is what it is: whoever sets a job back to its own time moves it.
    deadline_since: Millis,
}

impl JobHistory {
    pub fn with_policies(policies: impl IntoIterator<Item = Policy>) -> Self {
        let named = policies.into_iter().map(|policy| (policy.snapshot().to_owned(), policy));
        Self { policies: named.collect(), ..Self::default() }
    }

    pub fn job(&self, id: &JobId) -> Option<&Arc<Job>> {
        self.entries.get(id).map(|entry| &entry.job)
    }

    pub fn jobs(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.entries.values().map(|entry| &entry.job)
    }

    /// How often policy or a person decided about a job of each tenant.
    pub fn decisions(&self) -> BTreeMap<TenantId, u64> {
        self.decisions.clone()
    }

    /// What belongs to no job was recorded.
    pub fn recorded(&mut self, drafts: Vec<Draft>) -> InvariantResult {
        match drafts.iter().find(|draft| self.records.contains(draft)) {
            Some(draft) => return Err(format!("recorded twice: {draft:?}")),
            None => self.records.extend(drafts),
        }
        Ok(())
    }

    /// How many of those are in a tenant's trail.
    pub fn records_of(&self, tenant: &TenantId) -> u64 {
        self.records.iter().filter(|draft| draft.tenant == *tenant).count() as u64
    }

    /// A commit became durable.
    pub fn committed(&mut self, job: &Arc<Job>, now: Millis) -> InvariantResult {
        self.commits += 1;
        let id = job.id().clone();
        let before = self.entries.get(&id).map(|entry| entry.job.clone());
        succession(before.as_deref(), job)?;
        results::committed(&self.leaks, job)?;
        if matches!(job.state(), State::Dispatched | State::Running) {
            self.judged(job)?;
        }
        for mark in new_marks(before.as_deref(), job) {
            *self.events.entry(mark.event).or_default() += 1;
            *self.states.entry(mark.state).or_default() += 1;
            if is_decision(mark.event) {
                *self.decisions.entry(job.request.tenant.clone()).or_default() += 1;
            }
        }
        if before.is_none() {
            self.claims_its_key(job)?;
        }
        if job.request.is_gate() {
            if job.state() == State::Succeeded && !self.approvals_asked.contains(&id) {
                return Err(format!("the gate {id} let something pass, and nobody was asked"));
            }
        } else if let Some(ending) = job.ending().filter(|ending| ending.state == State::Succeeded) {
            let worker = ending.worker.clone().ok_or_else(|| format!("{id} succeeded at nobody"))?;
            if !self.finished.contains(&(id.clone(), worker.clone())) {
                return Err(format!("{id} succeeded at {worker}, which never finished it"));
            }
        }
        if job.is_live() {
            self.live.insert(id.clone());
        } else {
            self.live.remove(&id);
        }
        let entry = self.entries.entry(id).or_insert_with(|| ObservedJob {
            job: job.clone(),
            ended_at: None,
            given: BTreeSet::new(),
            sent: BTreeSet::new(),
            deadline_since: now,
        });
        if entry.job.deadline() != job.deadline() {
            entry.deadline_since = now;
        }
        if let Phase::Dispatched(attempt) = &job.phase {
            let number = u64::from(attempt.number);
            let had = before.as_ref().and_then(|before| before.attempt()).map(|attempt| attempt.number);
            let is_new = had != Some(attempt.number);
            if is_new && entry.given.iter().any(|(given, _)| *given == number) {
                return Err(format!("attempt {number} of {} was given out twice", job.id()));
            }
            entry.given.insert((u64::from(attempt.number), attempt.worker.clone()));
        }
        if job.state().is_terminal() && entry.ended_at.is_none() {
            entry.ended_at = Some(now);
        }
        entry.job = job.clone();
        Ok(())
    }

    /// One key of one tenant is one job.
    fn claims_its_key(&mut self, job: &Job) -> InvariantResult {
        let Some(key) = job.request.idempotency_key.clone() else { return Ok(()) };
        let holder = self.keys.entry((job.request.tenant.clone(), key.clone())).or_insert(job.id().clone());
        if holder == job.id() {
            return Ok(());
        }
        Err(format!("the key {key} of {} made both {holder} and {}", job.request.tenant, job.id()))
    }

    /// A dispatch leaves: it must be committed, and judged.
    pub fn dispatched(
        &mut self,
        packet: &JobRequest,
        to: Option<&WorkerId>,
        moment: ServerMoment,
    ) -> InvariantResult {
        let id = &packet.job_id;
        let attempt = packet.dispatch.as_ref().map_or(0, |dispatch| dispatch.attempt);
        let entry =
            self.entries.get_mut(id.as_str()).ok_or_else(|| format!("{id} left before it was committed"))?;
        entry.sent.insert(attempt);
        if !entry.given.contains(&(attempt, to.cloned())) {
            return Err(format!("attempt {attempt} of {id} left for {to:?} before it was committed"));
        }
        let outrun_ms = if moment.is_shared { OUTRUN_SHARED_MS } else { OUTRUN_MS };
        // One that was stopped between its look and its packet cannot know what happened meanwhile.
        if let Some(ended_at) = entry.ended_at.filter(|ended_at| moment.went_on_at < *ended_at)
            && moment.now.since(ended_at) > outrun_ms
        {
            let (state, late_ms) = (entry.job.state(), moment.now.since(ended_at));
            return Err(format!("{id} was dispatched {late_ms} ms after it was {state}"));
        }
        let job = entry.job.clone();
        let topic = job.request.topic.as_str();
        if topic == plan::DENIED {
            return Err(format!("{id} was dispatched although policy denies {topic}"));
        }
        if topic == plan::ASKED && !self.approvals_asked.contains(id.as_str()) {
            return Err(format!("{id} was dispatched and nobody approved it"));
        }
        self.judged(&job)
    }

    pub fn deadline_since(&self, id: &JobId) -> Millis {
        self.entries.get(id).map(|entry| entry.deadline_since).unwrap_or_default()
    }

    /// Whether the packet of a job's attempt has left at least once.
    pub fn is_sent(&self, id: &JobId, attempt: u32) -> bool {
        self.entries.get(id).is_some_and(|entry| entry.sent.contains(&u64::from(attempt)))
    }

    /// A delegated job is at a workspace's door: it was given to it, and judged.
    pub fn delivered(&self, id: &JobId, to: &WorkspaceId) -> InvariantResult {
        let entry =
            self.entries.get(id).ok_or_else(|| format!("{id} came to {to} before it was committed"))?;
        let is_given = entry
            .given
            .iter()
            .any(|(_, worker)| worker.as_ref().is_some_and(|worker| worker.as_str() == to.as_str()));
        if !is_given {
            return Err(format!("{id} came to {to}, which was not given it"));
        }
        self.judged(&entry.job)
    }

    /// Somebody is about to approve it.
    pub fn approval_asked(&mut self, id: &JobId) {
        self.approvals_asked.insert(id.clone());
    }

    /// A cancel was acknowledged.
    pub fn cancel_acknowledged(&self, id: &JobId) -> InvariantResult {
        match self.job(id).map(|job| job.state()) {
            Some(State::Cancelled) => Ok(()),
            state => Err(format!("the cancel of {id} was acknowledged, and it is {state:?}")),
        }
    }

    /// A submit was acknowledged with this job.
    pub fn acknowledged(&mut self, asked: &plan::JobPlan, answered: &Job) -> InvariantResult {
        let (request, id) = (&asked.request, answered.id());
        if answered.request.tenant != request.tenant {
            return Err(format!("{} was answered with {id} of {}", request.tenant, answered.request.tenant));
        }
        if let Some(key) = &request.idempotency_key
            && answered.request.id != request.id
            && answered.request.idempotency_key.as_ref() != Some(key)
        {
            return Err(format!("the key {key} was answered with {id}, which has another"));
        }
        self.acknowledged.insert(id.clone(), request.tenant.clone());
        self.refused.remove(id);
        Ok(())
    }

    /// A submit was acknowledged on the bus, where the answer does not carry the job.
    pub fn acknowledged_unseen(&mut self, asked: &plan::JobPlan) -> InvariantResult {
        let request = &asked.request;
        let by_key =
            request.idempotency_key.clone().and_then(|key| self.keys.get(&(request.tenant.clone(), key)));
        let id = by_key.unwrap_or(&request.id);
        let found = self.entries.get(id).map(|entry| entry.job.clone());
        match found {
            Some(job) => self.acknowledged(asked, &job),
            None => Err(format!("{id} was acknowledged and is nowhere")),
        }
    }

    /// The bus has a packet that asks for this: it becomes a job, or the id is another's.
    pub fn kept(&mut self, request: &Request) {
        // One that names another job's input is refused.
        if request.context_ptr.is_empty() || request.context_ptr == format!("redis://ctx:{}", request.id) {
            self.packets_kept.push(request.clone());
        }
    }

    fn packets_are_jobs(&self) -> InvariantResult {
        let has_job = |request: &Request| {
            let key = request.idempotency_key.clone().map(|key| (request.tenant.clone(), key));
            self.entries.contains_key(&request.id) || key.is_some_and(|key| self.keys.contains_key(&key))
        };
        match self.packets_kept.iter().find(|request| !has_job(request)) {
            Some(request) => Err(format!("the packet for {} was kept and came to nothing", request.id)),
            None => Ok(()),
        }
    }

    /// A submit was answered with an error: the job must not be there, unless a later try is acknowledged.
    pub fn refused(&mut self, id: &JobId) {
        if !self.entries.contains_key(id) {
            self.refused.insert(id.clone());
        }
    }

    /// A later try may make it after all.
    pub fn tried_again(&mut self, id: &JobId) {
        self.refused.remove(id);
    }

    /// A worker begins to run a job.
    pub fn started(&self, worker: &WorkerPlan, packet: &JobRequest) -> InvariantResult {
        let (id, name) = (&packet.job_id, &worker.name);
        let assigned = packet.dispatch.as_ref().map_or("", |dispatch| dispatch.assigned_worker_id.as_str());
        if !assigned.is_empty() && assigned != name.as_str() {
            return Err(format!("{name} got {id}, which was assigned to {assigned}"));
        }
        if !fits(worker, packet) {
            return Err(format!("{name} got {id}, which it does not fit"));
        }
        Ok(())
    }

    /// A worker has done a job, and will say so.
    pub fn finished(&mut self, id: &str, worker: &WorkerId) {
        self.finished.insert((JobId::known(id), worker.clone()));
    }

    pub fn dead_letter_told(&mut self, id: &str) {
        self.dead_letters_told.insert(JobId::known(id));
    }

    pub fn cancel_told(&mut self, id: &str) {
        self.cancels_told.insert(JobId::known(id));
    }

    /// The spans of a job left.
    pub fn trace_exported(&mut self, job: &Job) -> InvariantResult {
        let id = job.id();
        // Where there are several servers, another may have gone on before this one got to tell.
        if self.job(id).is_none_or(|committed| committed.revision < job.revision) {
            return Err(format!("{id} is told of as it was never committed"));
        }
        if !self.stories_told.insert(id.clone()) {
            return Err(format!("{id} is told of twice"));
        }
        Ok(())
    }

    /// Everything that must hold when the dust has settled. `stored` is what the store has.
    pub fn settled(&self, stored: &[Arc<Job>]) -> InvariantResult {
        let stored: BTreeMap<&JobId, &Arc<Job>> = stored.iter().map(|job| (job.id(), job)).collect();
        for (id, entry) in &self.entries {
            match stored.get(id) {
                Some(job) if job.revision == entry.job.revision => {}
                Some(job) => {
                    return Err(format!(
                        "{id} is stored at revision {}, not {}",
                        job.revision, entry.job.revision
                    ));
                }
                None => return Err(format!("{id} was committed and is gone")),
            }
            let state = entry.job.state();
            if !state.is_terminal() {
                return Err(format!("{id} never ended; it is {state}"));
            }
            if entry.job.is_live() {
                return Err(format!("{id} is {state} and still owes {:?}", entry.job.owed));
            }
            if state.is_dead_letter() && !self.dead_letters_told.contains(id) {
                return Err(format!("{id} is {state}, and nobody was told of the dead letter"));
            }
            let stopped =
                matches!(state, State::Cancelled) && entry.job.marks.iter().any(by_a_person_at_work);
            if stopped && !self.cancels_told.contains(id) {
                return Err(format!("{id} was cancelled at a worker that was never told"));
            }
        }
        if let Some(id) = stored.keys().find(|id| !self.entries.contains_key(**id)) {
            return Err(format!("{id} is stored, and nobody committed it"));
        }
        for (id, tenant) in &self.acknowledged {
            match self.entries.get(id) {
                None => return Err(format!("{id} was acknowledged and is lost")),
                Some(entry) if entry.job.request.tenant != *tenant => {
                    return Err(format!("{id} was acknowledged to {tenant} and belongs to another"));
                }
                Some(_) => {}
            }
        }
        self.packets_are_jobs()?;
        match self.refused.iter().find(|id| self.entries.contains_key(*id)) {
            Some(id) => Err(format!("{id} was refused and exists")),
            None => Ok(()),
        }
    }

    /// The verdict that let it go: an allowance, or an approval followed by a fresh look; and one that a
    /// policy of this world gives about this very request.
    fn judged(&self, job: &Job) -> InvariantResult {
        let id = job.id();
        let recorded = job.last_verdict().ok_or_else(|| format!("{id} was dispatched and never judged"))?;
        let said = &recorded.verdict;
        match said.decision {
            Decision::Allow | Decision::AllowWithConstraints => {}
            Decision::RequireApproval => {
                let last = |event| job.marks.iter().rposition(|mark| mark.event == event);
                match (last(Event::Approve), last(Event::Allow)) {
                    (Some(approved), Some(allowed)) if approved < allowed => {}
                    _ => {
                        return Err(format!(
                            "{id} was dispatched without its approval, or without a look after it"
                        ));
                    }
                }
            }
            decision => return Err(format!("{id} was dispatched after {}", decision.as_str())),
        }
        let policy = self.policies.get(&said.snapshot);
        let policy =
            policy.ok_or_else(|| format!("{id} was judged by {}, which never held", said.snapshot))?;
        let would_say = policy.evaluate(&job.request);
        if (&said.rule_id, said.decision) != (&would_say.rule_id, would_say.decision) {
            return Err(format!(
                "{id} was let go by {}; of its request policy says {}",
                said.rule_id, would_say.rule_id
            ));
        }
        Ok(())
    }
}

/// The cancel came from outside while a worker had the job, so the worker must be told.
fn by_a_person_at_work(mark: &Mark) -> bool {
    mark.event == Event::Cancel && mark.note.starts_with("cancelled by") && mark.worker.is_some()
}
