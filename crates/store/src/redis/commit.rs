//! What `commit.lua` is told of a step, and what it answers.

use super::RedisStore;
use super::keys::part;
use crate::{BlobKey, Commit, EVENT_LOG_KEPT_MAX, Full, Step, StoreError};
use redis::{Cmd, ToRedisArgs};
use reveille_core::id::JobId;
use reveille_core::job::{Job, State};
use reveille_core::policy::Verdict;
use reveille_core::time::Millis;
use serde::Serialize;
use std::borrow::Cow;

/// How much longer Redis itself keeps a blob than we do.
pub(super) const BLOB_GRACE_MS: i64 = 60_000;
/// Quota for the call of an ordinary step: arguments, and their bytes.
const CALL_LEN: usize = 96;
const CALL_BYTES: usize = 4_096;

impl RedisStore {
    pub(super) async fn commit_step(&self, step: &Step) -> Result<Commit, StoreError> {
        let job = step.job_to_write();
        let call = self.commit_call(step, &job)?;
        let reply: Vec<String> = self.link.call_surely(&self.scripts.commit, &call).await?;
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
            ["no room", "worker"] => Ok(Commit::QuotaExceeded(Full::Worker)),
            ["no room", "tenant"] => Ok(Commit::QuotaExceeded(Full::Tenant)),
            ["no room", "topic"] => Ok(Commit::QuotaExceeded(Full::Topic)),
            ["no room", "queue"] => Ok(Commit::QuotaExceeded(Full::Queue)),
            _ => Err(StoreError::Corrupt(format!("Redis answered a commit with {reply:?}"))),
        }
    }

    /// The arguments in the order in which the script names them, written out once: every step passes through here.
    pub(super) fn commit_call(&self, step: &Step, job: &Job) -> Result<Cmd, StoreError> {
        let (id, request, preconditions) = (job.id(), &job.request, &step.preconditions);
        let was = step.before.as_deref();
        let mut call = Cmd::with_capacity(CALL_LEN, CALL_BYTES);
        call.arg("EVALSHA").arg(self.scripts.commit.get_hash()).arg(4 + step.blobs.len());
        call.arg(self.keys.record(id)).arg(self.keys.meta(id));
        call.arg(self.keys.of("job:seq")).arg(self.keys.of("audit:outbox"));
        for (key, _, _) in &step.blobs {
            if self.is_far(key) {
                let words = format!("a step cannot write {}, which is on another node", key.as_str());
                return Err(StoreError::Refused(words));
            }
            call.arg(key.as_str());
        }

        call.arg(&self.keys.prefix).arg(id.as_str());
        optional(&mut call, step.expects());
        call.arg(self.script_now()).arg(self.token()).arg(json(job)?);
        optional(&mut call, was.map(|was| state_name(was.state())));
        call.arg(state_name(job.state()));
        call.arg(was.map_or("", worker_at)).arg(worker_at(job));
        call.arg(was.map_or("", |was| flag(was.is_live()))).arg(flag(job.is_live()));
        let moved = |is_in: fn(&Job) -> bool| moved(was.is_some_and(is_in), is_in(job));
        call.arg(moved(|job| !job.state().is_terminal())).arg(moved(|job| job.attempt().is_some()));
        call.arg(flag(job.state() == State::ApprovalRequired)).arg(flag(job.was_released()));
        call.arg(job.updated_at.0).arg(&self.options.replica);
        call.arg(part(request.tenant.as_str())).arg(request.topic.as_str()).arg(&request.trace_id);
        call.arg(request.idempotency_key.as_deref().unwrap_or_default());
        let letter = job.dead_letter();
        optional(&mut call, letter.as_ref().map(json).transpose()?);
        call.arg(letter.and_then(|letter| letter.reason_code).map_or("", |reason| reason.code()));
        let quota = &preconditions.quota;
        for limit in [quota.worker_max, quota.tenant_max, quota.topic_max] {
            optional(&mut call, limit);
        }
        optional(&mut call, quota.queue_max);
        call.arg(preconditions.under.as_ref().map_or("", |lock| lock.name.as_str()));
        optional(&mut call, preconditions.under.as_ref().map(|lock| lock.fence));
        let message = preconditions.answers.as_ref();
        optional(&mut call, message.map(|message| self.keys.processed(message)));
        // What was decided without opening the job has left no such mark.
        let opened = message.filter(|_| was.is_none() || preconditions.under.is_some());
        optional(&mut call, opened.map(|message| self.keys.in_flight(message)));
        let keeps = job.state().is_terminal() && !self.keys.is_on_a_cluster();
        optional(&mut call, keeps.then(|| BlobKey::result_of(id)).as_ref().map(BlobKey::as_str));
        call.arg(self.options.keep_results_ms);
        call.arg(step.news.as_deref().unwrap_or_default()).arg(EVENT_LOG_KEPT_MAX);

        call.arg(step.audit().len());
        for draft in step.audit() {
            call.arg(&self.names.origin().0[..]).arg(json(draft)?);
        }
        for (_, value, expires_at) in &step.blobs {
            call.arg(&value[..]).arg(expires_at.0).arg(self.ttl_ms(*expires_at));
        }
        tell(&mut call, was, job);
        Ok(call)
    }

    /// How long Redis keeps a blob that expires then.
    pub(super) fn ttl_ms(&self, expires_at: Millis) -> i64 {
        (expires_at.0 - self.now().0).max(0) + BLOB_GRACE_MS
    }
}

/// A state as it stands in keys.
pub(super) fn state_name(state: State) -> String {
    state.as_str().to_lowercase()
}

/// The worker that has the job now.
fn worker_at(job: &Job) -> &str {
    job.attempt().and_then(|attempt| attempt.worker.as_ref()).map_or("", |id| id.as_str())
}

fn flag(is: bool) -> &'static str {
    if is { "1" } else { "0" }
}

/// What is to be done with a set that the job was in or not, and is in now or not.
fn moved(was_in: bool, is_in: bool) -> &'static str {
    match (was_in, is_in) {
        (false, true) => "SADD",
        (true, false) => "SREM",
        _ => "",
    }
}

type Field = (&'static str, for<'a> fn(&'a Job) -> Cow<'a, str>);

/// What `job:meta` says of how a job is, for operators and for lists that are filtered.
const IS: [Field; 9] = [
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

/// And of what was asked for, which never changes.
const ASKED: [Field; 6] = [
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

/// The fields that are others than they were. One that has nothing to say yet is not there.
fn tell(call: &mut Cmd, was: Option<&Job>, job: &Job) {
    let asked = if was.is_none() { &ASKED[..] } else { &[] };
    for (name, field) in IS.iter().chain(asked) {
        let (said, says) = (was.map(field).unwrap_or_default(), field(job));
        if said != says {
            call.arg(*name).arg(&*says);
        }
    }
}

/// As it is kept.
pub(super) fn json(value: &impl Serialize) -> Result<Vec<u8>, StoreError> {
    let unwritable = |error| StoreError::Refused(format!("it cannot be written as JSON: {error}"));
    serde_json::to_vec(value).map_err(unwritable)
}

/// What is not there is written as nothing, and has its place all the same.
fn optional(call: &mut Cmd, value: Option<impl ToRedisArgs>) {
    match value {
        Some(value) => call.arg(value),
        None => call.arg(""),
    };
}
