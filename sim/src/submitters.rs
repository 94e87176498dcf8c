//! Those who ask for jobs. They ask again when they get no answer, as careful clients do.

use crate::faults::Fault;
use crate::plan::{JobPlan, SubmitDoor};
use crate::workers::client_packet;
use crate::world::{World, sleep_ms};
use bytes::Bytes;
use reveille_core::id::JobId;
use reveille_core::request::{Priority, Request};
use reveille_engine::{Submission, SubmitError, Submitted, Submitter};
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::cap::{Budget, JobMetadata, JobPriority, JobRequest};
use reveille_wire::subject;
use std::sync::Arc;
use std::time::Duration;

const TRIES_MAX: u64 = 8;
const PATIENCE: Duration = Duration::from_secs(5);

/// Has the planned jobs asked for, one after the other, and returns when each has had its tries.
pub async fn submit_all(world: Arc<World>) {
    let jobs = world.plan.jobs.clone();
    let gap_ms = world.plan.span_ms / jobs.len() as i64;
    let mut asking = tokio::task::JoinSet::new();
    for job in jobs {
        sleep_ms(world.rng.between(0, gap_ms * 2)).await;
        if world.strikes(Fault::LongIdle) {
            let idle_ms = world.rng.between(300_000, 1_800_000);
            world.trace.say(format_args!("nobody asks for anything for {idle_ms} ms"));
            sleep_ms(idle_ms).await;
        }
        asking.spawn(ask(world.clone(), job));
    }
    while asking.join_next().await.is_some() {}
}

#[derive(PartialEq, Eq)]
enum SubmitAnswer {
    Final,
    AskAgain,
}

async fn ask(world: Arc<World>, mut job: JobPlan) {
    let id = job.request.id.clone();
    for tries in 1..=TRIES_MAX {
        if job.fresh_ids && tries > 1 {
            job.request.id = JobId::known(format!("{id}.{tries}"));
        }
        world.check(|ledger| {
            ledger.tried_again(&job.request.id);
            Ok(())
        });
        let answer = match job.door {
            SubmitDoor::Call => call(&world, &job).await,
            SubmitDoor::Packet => post(&world, &job).await,
        };
        if answer == SubmitAnswer::Final {
            return;
        }
        sleep_ms(world.rng.skewed(100, 30_000)).await;
    }
}

/// As HTTP does it.
async fn call(world: &Arc<World>, job: &JobPlan) -> SubmitAnswer {
    let Some((engine, life)) = world.engine() else { return SubmitAnswer::AskAgain };
    let (id, tenant) = (&job.request.id, &job.request.tenant);
    let submitter = if world.rng.percent(50) { Submitter::IsGone } else { Submitter::Listens };
    let submission =
        Submission { request: job.request.clone(), context: Some(Bytes::from_static(b"{}")), submitter };
    let call = life.answer(engine.jobs().submit(submission));
    let answer = if world.strikes(Fault::CallerLeft) {
        let patience = Duration::from_millis(world.rng.below(8));
        tokio::time::timeout(patience, call).await.unwrap_or_default()
    } else {
        call.await
    };
    match answer {
        Some(Ok(Submitted::New(answered) | Submitted::Existing(answered))) => {
            world.trace.say(format_args!("{tenant} has its {id} taken as {}", answered.id()));
            world.check(|ledger| ledger.acknowledged(job, &answered));
            SubmitAnswer::Final
        }
        Some(Ok(Submitted::Throttled(_))) => SubmitAnswer::Final,
        Some(Err(SubmitError::Store(error))) => {
            world.trace.say(format_args!("{tenant} is told that {id} could not be stored: {error}"));
            // Where the store is not in the server itself, nobody knows whether it was stored.
            if !world.plan.is_shared() {
                world.check(|ledger| {
                    ledger.refused(id);
                    Ok(())
                });
            }
            SubmitAnswer::AskAgain
        }
        Some(Err(error)) => {
            world.trace.say(format_args!("{tenant} is refused {id}: {error}"));
            SubmitAnswer::Final
        }
        None => SubmitAnswer::AskAgain,
    }
}

/// As a client on the bus does it.
async fn post(world: &Arc<World>, job: &JobPlan) -> SubmitAnswer {
    let packet = client_packet(world, Payload::JobRequest(on_the_wire(&job.request)));
    let answer = world.network.request(world, &job.request.tenant, subject::JOB_SUBMIT, packet);
    let Ok(Ok(answer)) = tokio::time::timeout(PATIENCE, answer).await else { return SubmitAnswer::AskAgain };
    if world.plan.is_shared() {
        world.check(|ledger| {
            ledger.kept(&job.request);
            Ok(())
        });
        return SubmitAnswer::Final;
    }
    let taken = serde_json::from_slice::<serde_json::Value>(&answer.payload)
        .is_ok_and(|answer| answer["ok"] == serde_json::Value::Bool(true));
    if taken {
        world.trace.say(format_args!("{} has its packet {} taken", job.request.tenant, job.request.id));
        world.check(|ledger| ledger.acknowledged_unseen(job));
    }
    SubmitAnswer::Final
}

fn on_the_wire(request: &Request) -> JobRequest {
    JobRequest {
        job_id: request.id.to_string(),
        topic: request.topic.to_string(),
        priority: match request.priority {
            Priority::Critical => JobPriority::Critical,
            Priority::Interactive => JobPriority::Interactive,
            Priority::Batch => JobPriority::Batch,
        } as i32,
        context_ptr: request.context_ptr.clone(),
        labels: request.labels.clone(),
        budget: Some(Budget { deadline_ms: request.budget.deadline_ms, ..Budget::default() }),
        meta: Some(JobMetadata {
            idempotency_key: request.idempotency_key.clone().unwrap_or_default(),
            ..JobMetadata::default()
        }),
        ..JobRequest::default()
    }
}
