//! The arguments of `commit.lua` for a step, and its answer.

use super::RedisStore;
use super::keys::part;
use super::script::{Invocation, ScriptCall, call};
use super::scripts::CommitStep;
use crate::{BlobKey, Commit, EVENT_LOG_KEPT_MAX, ExceededQuota, Step, StoreError};
use reveille_core::id::JobId;
use reveille_core::job::{Job, State};
use reveille_core::policy::Verdict;
use reveille_core::reason::Reason;
use reveille_core::time::Millis;
use serde::Serialize;
use std::borrow::Cow;

/// How much longer Redis itself keeps a blob than we do.
pub(super) const BLOB_GRACE_MS: i64 = 60_000;

impl RedisStore {
    pub(super) async fn commit_step(&self, step: &Step) -> Result<Commit, StoreError> {
        let job = step.job_to_write();
        let call = self.commit_call(step, &job)?;
        let reply: Vec<String> = self.link.run_surely(&call).await?;
        if self.keys.is_on_a_cluster() && job.state().is_terminal() && reply == ["done"] {
            self.keep_result_of(job.id()).await;
        }
        match reply.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["done"] => Ok(Commit::Done),
            ["conflict"] => Ok(Commit::Conflict),
            ["fenced"] => Ok(Commit::Fenced),
            ["seen"] => Ok(Commit::Seen),
            ["duplicate", id] => JobId::parse(id)
                .map(Commit::Duplicate)
                .map_err(|error| StoreError::Corrupt(format!("an idempotency key names {id:?}: {error}"))),
            ["no room", "worker"] => Ok(Commit::QuotaExceeded(ExceededQuota::Worker)),
            ["no room", "tenant"] => Ok(Commit::QuotaExceeded(ExceededQuota::Tenant)),
            ["no room", "topic"] => Ok(Commit::QuotaExceeded(ExceededQuota::Topic)),
            ["no room", "approvals"] => Ok(Commit::QuotaExceeded(ExceededQuota::Approvals)),
            ["no room", "queue"] => Ok(Commit::QuotaExceeded(ExceededQuota::Queue)),
            _ => Err(StoreError::Corrupt(format!("Redis answered a commit with {reply:?}"))),
        }
    }

    /// The call, in one place: every step passes through here.
    pub(super) fn commit_call(&self, step: &Step, job: &Job) -> Result<Invocation<'_>, StoreError> {
        if let Some((key, _, _)) = step.blobs.iter().find(|(key, _, _)| self.is_far(key)) {
            let words = format!("a step cannot write {}, which is on another node", key.as_str());
            return Err(StoreError::Refused(words));
        }
        let (id, request, preconditions) = (job.id(), &job.request, &step.preconditions);
        let (quota, lock, message) =
            (&preconditions.quota, preconditions.under.as_ref(), preconditions.answers.as_ref());
        let was = step.before.as_deref();
        let moved = |is_in: fn(&Job) -> bool| moved(was.is_some_and(is_in), is_in(job));
        let letter = job.dead_letter();
        // A decision made without opening the job has left no such mark.
        let opened = message.filter(|_| was.is_none() || lock.is_some());
        let ends = job.state().is_terminal() && !self.keys.is_on_a_cluster();
        let kept = ends.then(|| BlobKey::result_of(id));
        let call = call!(CommitStep {
            job_record: self.keys.record(id),
            job_meta: self.keys.meta(id),
            job_seq: self.keys.of("job:seq"),
            audit_outbox: self.keys.of("audit:outbox"),
            prefix: &self.keys.prefix,
            id: id.as_str(),
            expects: step.expects(),
            now: self.script_now(),
            token: self.token(),
            record: json(job)?,
            was_state: was.map(|was| state_name(was.state())),
            state: state_name(job.state()),
            was_worker: was.map(worker_at),
            worker: worker_at(job),
            was_live: was.map(Job::is_live),
            live: job.is_live(),
            active: moved(|job| !job.state().is_terminal()),
            placed: moved(|job| job.attempt().is_some()),
            asked: job.state() == State::ApprovalRequired,
            released: job.was_released(),
            updated: job.updated_at.0,
            owner: &self.options.replica,
            tenant: part(request.tenant.as_str()),
            topic: request.topic.as_str(),
            trace: &request.trace_id,
            idempotency: request.idempotency_key.as_deref(),
            letter: letter.as_ref().map(json).transpose()?,
            reason: letter.and_then(|letter| letter.reason_code).map(Reason::code),
            worker_max: quota.worker_max,
            tenant_max: quota.tenant_max,
            topic_max: quota.topic_max,
            queue_max: quota.queue_max,
            approvals_max: quota.approvals_max,
            lock: lock.map(|lock| &lock.name),
            fence: lock.map(|lock| lock.fence),
            processed: message.map(|message| self.keys.processed(message)),
            in_flight: opened.map(|message| self.keys.in_flight(message)),
            kept: kept.as_ref().map(BlobKey::as_str),
            kept_ms: self.options.keep_results_ms,
            event: step.event.as_deref(),
            events_max: EVENT_LOG_KEPT_MAX,
        });
        let mut call = call.of_more(&self.scripts, step.blobs.iter().map(|(key, _, _)| key.as_str()));
        call.more(step.audit().len());
        for draft in step.audit() {
            call.more(&self.names.origin().0[..]).more(json(draft)?);
        }
        for (_, value, expires_at) in &step.blobs {
            call.more(&value[..]).more(expires_at.0).more(self.ttl_ms(*expires_at));
        }
        add_fields(&mut call, was, job);
        Ok(call)
    }

    /// How long Redis keeps a blob that expires then.
    pub(super) fn ttl_ms(&self, expires_at: Millis) -> i64 {
        (expires_at.0 - self.now().0).max(0) + BLOB_GRACE_MS
    }
}

/// A state as it appears in keys.
pub(super) fn state_name(state: State) -> String {
    state.as_str().to_lowercase()
}

/// The worker that has the job now.
fn worker_at(job: &Job) -> &str {
    job.attempt().and_then(|attempt| attempt.worker.as_ref()).map_or("", |id| id.as_str())
}

/// What to do with a set, given whether the job was in it and whether it is now.
fn moved(was_in: bool, is_in: bool) -> &'static str {
    match (was_in, is_in) {
        (false, true) => "SADD",
        (true, false) => "SREM",
        _ => "",
    }
}

type JobField = (&'static str, for<'a> fn(&'a Job) -> Cow<'a, str>);

/// The fields of `job:meta` about a job's state, for operators and for filtered lists.
const IS: [JobField; 9] = [
    ("state", |job| state_name(job.state()).into()),
    ("updated_at", |job| job.updated_at.micros().to_string().into()),
    ("attempts", |job| job.attempts.len().to_string().into()),
    ("worker_id", |job| job.worker().map_or("", |worker| worker.as_str()).into()),
    ("result_ptr", |job| job.ending().map_or("", |ending| &ending.result_ptr).into()),
    ("failure_reason", |job| job.ending().map_or("", |ending| &ending.words).into()),
    // Microseconds despite its name, as in the reference.
    ("deadline_unix", |job| job.deadline().map_or(String::new(), |at| at.micros().to_string()).into()),
    ("safety_decision", |job| verdict(job).map_or("", |verdict| verdict.decision.as_str()).into()),
    ("safety_rule_id", |job| verdict(job).map_or("", |verdict| &verdict.rule_id).into()),
];

/// And those about its request, which never change.
const ASKED: [JobField; 6] = [
    ("topic", |job| job.request.topic.as_str().into()),
    ("tenant", |job| part(job.request.tenant.as_str()).into()),
    ("team", |job| job.request.actor.team.as_str().into()),
    ("principal", |job| job.request.actor.principal_id.as_str().into()),
    ("trace_id", |job| job.request.trace_id.as_str().into()),
    ("idempotency_key", |job| job.request.idempotency_key.as_deref().unwrap_or_default().into()),
];

fn verdict(job: &Job) -> Option<&Verdict> {
    job.last_verdict().map(|recorded| &recorded.verdict)
}

/// The fields that differ from before. An empty one is left out.
fn add_fields(call: &mut Invocation<'_>, was: Option<&Job>, job: &Job) {
    let asked = if was.is_none() { &ASKED[..] } else { &[] };
    for (name, field) in IS.iter().chain(asked) {
        let (said, says) = (was.map(field).unwrap_or_default(), field(job));
        if said != says {
            call.more(*name).more(&*says);
        }
    }
}

/// As it is stored.
pub(super) fn json(value: &impl Serialize) -> Result<Vec<u8>, StoreError> {
    let unwritable = |error| StoreError::Refused(format!("it cannot be written as JSON: {error}"));
    serde_json::to_vec(value).map_err(unwritable)
}

#[cfg(test)]
mod tests {
    use crate::suite::{self, ManualClock};
    use crate::{AuditTrail, Commit, JobStore, MemoryLedger, RedisOptions, RedisStore, Step};
    use reveille_core::policy::Decision;
    use reveille_core::time::Millis;
    use reveille_test_servers::Redis;
    use std::sync::Arc;

    const NOW: Millis = Millis(1_800_000_000_000);

    /// Whoever asks whether a lost step counted is told so, and the trail has it once.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_step_whose_answer_was_lost_counts_once() {
        let redis = Redis::start();
        let clock = ManualClock::new(NOW);
        let options = RedisOptions { url: redis.url(0), uses_our_clock: true, ..RedisOptions::default() };
        let store =
            RedisStore::open(options, Arc::new(MemoryLedger::default()), clock.clock()).await.unwrap();
        let judged = suite::audit::judged(&suite::new_job("lost", "a", NOW), Decision::Allow, NOW);
        let step = Step::insert(judged);
        let call = store.commit_call(&step, &step.job).unwrap();
        for _ in 0..2 {
            let reply: Vec<String> = store.link.run(&call).await.unwrap();
            assert_eq!(reply, ["done"]);
        }
        assert_eq!(store.commit(step.clone()).await.unwrap(), Commit::Duplicate(step.job.id().clone()));
        let chain = store.chain(&step.job.request.tenant, 0, 10).await.unwrap();
        assert_eq!(chain.entries.len(), 1);
    }
}
