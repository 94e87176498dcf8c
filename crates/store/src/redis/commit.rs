//! What `commit.lua` is told of a step, and what it answers.

use super::RedisStore;
use super::keys::part;
use crate::{BlobKey, Commit, Full, NEWS_KEPT_MAX, Origin, Step, StoreError};
use redis::{Cmd, ToRedisArgs};
use reveille_core::id::JobId;
use reveille_core::job::{Job, State};
use reveille_core::time::Millis;

/// How much longer Redis itself keeps a blob than we do.
pub(super) const BLOB_GRACE_MS: i64 = 60_000;
/// Room for the call of an ordinary step: arguments, and their bytes.
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
            ["no room", "worker"] => Ok(Commit::NoRoom(Full::Worker)),
            ["no room", "tenant"] => Ok(Commit::NoRoom(Full::Tenant)),
            ["no room", "topic"] => Ok(Commit::NoRoom(Full::Topic)),
            ["no room", "queue"] => Ok(Commit::NoRoom(Full::Queue)),
            _ => Err(StoreError::Corrupt(format!("Redis answered a commit with {reply:?}"))),
        }
    }

    /// The arguments in the order in which the script names them, written out once: every step passes through here.
    pub(super) fn commit_call(&self, step: &Step, job: &Job) -> Result<Cmd, StoreError> {
        let (id, request, terms) = (job.id(), &job.request, &step.terms);
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

        let letter = job.dead_letter();
        let written =
            letter.as_ref().map(serde_json::to_vec).transpose().map_err(|error| unwritable(&error))?;
        let flag = |is: bool| if is { "1" } else { "0" };
        call.arg(&self.keys.prefix).arg(id.as_str());
        optional(&mut call, step.expects);
        call.arg(self.script_now()).arg(token()?);
        call.arg(serde_json::to_vec(job).map_err(|error| unwritable(&error))?);
        call.arg(state_name(job.state())).arg(flag(job.is_live())).arg(flag(job.state().is_terminal()));
        call.arg(job.updated_at.0).arg(flag(job.state() == State::ApprovalRequired));
        call.arg(flag(job.was_released()));
        call.arg(part(request.tenant.as_str())).arg(request.topic.as_str()).arg(&request.trace_id);
        call.arg(request.idempotency_key.as_deref().unwrap_or_default());
        call.arg(job.attempt().and_then(|attempt| attempt.worker.as_ref()).map_or("", |id| id.as_str()));
        call.arg(&self.options.replica);
        call.arg(written.unwrap_or_default());
        call.arg(letter.and_then(|letter| letter.reason_code).map_or("", |reason| reason.code()));
        let room = &terms.room;
        for limit in [room.worker_max, room.tenant_max, room.topic_max] {
            optional(&mut call, limit);
        }
        optional(&mut call, room.queue_max);
        call.arg(terms.under.as_ref().map_or("", |lock| lock.name.as_str()));
        optional(&mut call, terms.under.as_ref().map(|lock| lock.fence));
        let message = terms.answers.as_ref();
        optional(&mut call, message.map(|message| self.keys.processed(message)));
        optional(&mut call, message.map(|message| self.keys.in_flight(message)));
        let keeps = job.state().is_terminal() && !self.keys.is_on_a_cluster();
        optional(&mut call, keeps.then(|| BlobKey::result_of(id)).as_ref().map(BlobKey::as_str));
        call.arg(self.options.keep_results_ms);
        call.arg(step.news.as_deref().unwrap_or_default()).arg(NEWS_KEPT_MAX);

        tell(&mut call, job, step.expects.is_none());
        call.arg(step.audit().len());
        for draft in step.audit() {
            call.arg(&origin()?.0[..]).arg(serde_json::to_vec(draft).map_err(|error| unwritable(&error))?);
        }
        for (_, value, expires_at) in &step.blobs {
            call.arg(&value[..]).arg(expires_at.0).arg(self.ttl_ms(*expires_at));
        }
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

/// What an operator reads of a job in `job:meta`, and lists are filtered by: how it is, and what was asked for. That
/// never changes, so it is written once.
fn tell(call: &mut Cmd, job: &Job, is_new: bool) {
    let (request, ending) = (&job.request, job.ending());
    let verdict = job.judgement().map(|judgement| &judgement.verdict);
    call.arg(if is_new { 15 } else { 9 });
    call.arg("updated").arg(job.updated_at.0);
    call.arg("updated_at").arg(job.updated_at.0 * 1000);
    call.arg("attempts").arg(job.attempts.len());
    call.arg("worker_id").arg(job.worker().map_or("", |worker| worker.as_str()));
    call.arg("result_ptr").arg(ending.map_or("", |ending| &ending.result_ptr));
    call.arg("failure_reason").arg(ending.map_or("", |ending| &ending.words));
    optional(call.arg("deadline_unix"), job.deadline().map(|at| at.0 / 1000));
    call.arg("safety_decision").arg(verdict.map_or("", |verdict| verdict.decision.as_str()));
    call.arg("safety_rule_id").arg(verdict.map_or("", |verdict| &verdict.rule_id));
    if is_new {
        call.arg("topic").arg(request.topic.as_str());
        call.arg("tenant").arg(part(request.tenant.as_str()));
        call.arg("team").arg(&request.actor.team);
        call.arg("principal").arg(&request.actor.principal_id);
        call.arg("trace_id").arg(&request.trace_id);
        call.arg("idempotency_key").arg(request.idempotency_key.as_deref().unwrap_or_default());
    }
}

/// What is not there is written as nothing, and has its place all the same.
fn optional(call: &mut Cmd, value: Option<impl ToRedisArgs>) {
    match value {
        Some(value) => call.arg(value),
        None => call.arg(""),
    };
}

/// Tells a step whose answer was lost from another's.
fn token() -> Result<String, StoreError> {
    Ok(format!("{:032x}", u128::from_be_bytes(origin()?.0)))
}

/// Tells one entry of the trail from every other.
pub(super) fn origin() -> Result<Origin, StoreError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| StoreError::Unavailable(format!("the system has no randomness: {error}")))?;
    Ok(Origin(bytes))
}

pub(super) fn unwritable(error: &serde_json::Error) -> StoreError {
    StoreError::Refused(format!("it cannot be written as JSON: {error}"))
}
