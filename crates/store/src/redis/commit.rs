//! What `commit.lua` is told of a step, and what it answers.

use super::RedisStore;
use super::keys::part;
use crate::{BlobKey, Commit, Full, NEWS_KEPT_MAX, Origin, Step, StoreError};
use redis::ScriptInvocation;
use reveille_core::id::JobId;
use reveille_core::job::{Job, State};
use reveille_core::time::Millis;

/// How much longer Redis itself keeps a blob than we do.
pub(super) const BLOB_GRACE_MS: i64 = 60_000;

impl RedisStore {
    pub(super) async fn commit_step(&self, step: &Step) -> Result<Commit, StoreError> {
        let job = step.job_to_write();
        let script = self.commit_script(step, &job)?;
        let reply: Vec<String> = self.link.run_surely(&script).await?;
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

    /// The arguments in the order in which the script names them.
    pub(super) fn commit_script(&self, step: &Step, job: &Job) -> Result<ScriptInvocation<'_>, StoreError> {
        let (id, request, terms) = (job.id(), &job.request, &step.terms);
        let mut script = self.scripts.commit.prepare_invoke();
        script.key(self.keys.record(id)).key(self.keys.meta(id));
        script.key(self.keys.of("job:seq")).key(self.keys.of("audit:outbox"));
        for (key, _, _) in &step.blobs {
            if self.is_far(key) {
                let words = format!("a step cannot write {}, which is on another node", key.as_str());
                return Err(StoreError::Refused(words));
            }
            script.key(key.as_str());
        }

        let letter = job.dead_letter();
        let written =
            letter.as_ref().map(serde_json::to_vec).transpose().map_err(|error| unwritable(&error))?;
        let flag = |is: bool| if is { "1" } else { "0" };
        script.arg(&self.keys.prefix).arg(id.as_str()).arg(optional(step.expects)).arg(self.script_now());
        script.arg(token()?).arg(serde_json::to_vec(job).map_err(|error| unwritable(&error))?);
        script.arg(state_name(job.state())).arg(flag(job.is_live())).arg(flag(job.state().is_terminal()));
        script.arg(job.updated_at.0).arg(flag(job.state() == State::ApprovalRequired));
        script.arg(flag(job.was_released()));
        script.arg(part(request.tenant.as_str())).arg(request.topic.as_str()).arg(&request.trace_id);
        script.arg(request.idempotency_key.as_deref().unwrap_or_default());
        script.arg(job.attempt().and_then(|attempt| attempt.worker.as_ref()).map_or("", |id| id.as_str()));
        script.arg(&self.options.replica);
        script.arg(written.unwrap_or_default());
        script.arg(letter.and_then(|letter| letter.reason_code).map_or("", |reason| reason.code()));
        let room = &terms.room;
        script.arg(optional(room.worker_max)).arg(optional(room.tenant_max)).arg(optional(room.topic_max));
        script.arg(optional(room.queue_max));
        script.arg(terms.under.as_ref().map_or("", |lock| lock.name.as_str()));
        script.arg(optional(terms.under.as_ref().map(|lock| lock.fence)));
        let message = terms.answers.as_ref();
        script.arg(message.map_or(String::new(), |message| self.keys.processed(message)));
        script.arg(message.map_or(String::new(), |message| self.keys.in_flight(message)));
        let keeps = job.state().is_terminal() && !self.keys.is_on_a_cluster();
        let kept = keeps.then(|| BlobKey::result_of(id));
        script.arg(kept.as_ref().map_or("", |key| key.as_str())).arg(self.options.keep_results_ms);
        script.arg(step.news.as_deref().unwrap_or_default()).arg(NEWS_KEPT_MAX);

        // What was asked for never changes, so it is written once.
        let mut fields = told(job);
        if step.expects.is_none() {
            fields.extend(asked(job));
        }
        script.arg(fields.len());
        for (name, value) in &fields {
            script.arg(*name).arg(value);
        }
        script.arg(step.audit().len());
        for draft in step.audit() {
            script.arg(&origin()?.0[..]).arg(serde_json::to_vec(draft).map_err(|error| unwritable(&error))?);
        }
        for (_, value, expires_at) in &step.blobs {
            script.arg(&value[..]).arg(expires_at.0).arg(self.ttl_ms(*expires_at));
        }
        Ok(script)
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

/// What an operator reads of a job in `job:meta`, and lists are filtered by: how it is.
fn told(job: &Job) -> Vec<(&'static str, String)> {
    let ending = job.ending();
    let verdict = job.judgement().map(|judgement| &judgement.verdict);
    vec![
        ("updated", job.updated_at.0.to_string()),
        ("updated_at", (job.updated_at.0 * 1000).to_string()),
        ("attempts", job.attempts.len().to_string()),
        ("worker_id", job.worker().map_or(String::new(), ToString::to_string)),
        ("result_ptr", ending.map_or(String::new(), |ending| ending.result_ptr.clone())),
        ("failure_reason", ending.map_or(String::new(), |ending| ending.words.clone())),
        ("deadline_unix", job.deadline().map_or(String::new(), |at| (at.0 / 1000).to_string())),
        ("safety_decision", verdict.map_or(String::new(), |verdict| verdict.decision.as_str().to_owned())),
        ("safety_rule_id", verdict.map_or(String::new(), |verdict| verdict.rule_id.clone())),
    ]
}

/// The same: what was asked for.
fn asked(job: &Job) -> [(&'static str, String); 6] {
    let request = &job.request;
    [
        ("topic", request.topic.as_str().to_owned()),
        ("tenant", part(request.tenant.as_str())),
        ("team", request.actor.team.clone()),
        ("principal", request.actor.principal_id.clone()),
        ("trace_id", request.trace_id.clone()),
        ("idempotency_key", request.idempotency_key.clone().unwrap_or_default()),
    ]
}

fn optional(number: Option<impl ToString>) -> String {
    number.map_or(String::new(), |number| number.to_string())
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
