//! People who approve, reject, cancel, quarantine, release and discard, whenever they feel like it.

use crate::faults::Fault;
use crate::flows::script;
use crate::workers::client_packet;
use crate::world::{World, sleep_ms};
use reveille_core::approval::Answer;
use reveille_core::id::JobId;
use reveille_core::job::{Job, State};
use reveille_store::{BlobKey, Blobs};
use reveille_wire::cap::JobCancel;
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::subject;
use std::sync::Arc;
use std::time::Duration;

/// Decides about what waits for a decision, and meddles with the rest now and then.
pub async fn decide(world: Arc<World>) {
    loop {
        sleep_ms(world.rng.between(500, 15_000)).await;
        let meddling = world.faults.are_on();
        let jobs: Vec<Arc<Job>> = world.jobs();
        for job in jobs {
            if job.request.place.of_run.is_some() {
                if job.state() == State::ApprovalRequired && world.rng.percent(40) {
                    at_a_gate(&world, job.id()).await;
                }
                continue;
            }
            match job.state() {
                State::ApprovalRequired if world.rng.percent(40) => about_approval(&world, job.id()).await,
                State::OutputQuarantined if meddling && world.rng.percent(10) => {
                    about_output(&world, job.id()).await;
                }
                State::Succeeded if meddling && world.rng.chance(15) => quarantine(&world, job.id()).await,
                state if !state.is_terminal() && meddling && world.rng.percent(2) => {
                    cancel(&world, &job).await;
                }
                _ => {}
            }
        }
    }
}

async fn about_approval(world: &Arc<World>, id: &JobId) {
    let Some((engine, life)) = world.engine() else { return };
    if world.rng.percent(75) {
        world.check(|ledger| {
            ledger.approval_asked(id);
            Ok(())
        });
        let done = patiently(world, life.answer(engine.jobs().approve(id, Answer::by("ann")))).await;
        world.trace.say(format_args!("ann approves {id}: {}", answered(done.as_ref())));
    } else {
        let done = patiently(world, life.answer(engine.jobs().reject(id, Answer::by("bob")))).await;
        world.trace.say(format_args!("bob rejects {id}: {}", answered(done.as_ref())));
    }
}

/// What is said at a gate is said in what was asked; some are never answered.
async fn at_a_gate(world: &Arc<World>, id: &JobId) {
    let Some((engine, life)) = world.engine() else { return };
    let asked = world.store.blob(&BlobKey::context_of(id)).await.ok().flatten();
    let asked = asked.and_then(|asked| serde_json::from_slice(&asked).ok()).unwrap_or_default();
    let Some(yes) = script::decision(&asked) else { return };
    world.check(|ledger| {
        ledger.approval_asked(id);
        Ok(())
    });
    let done = if yes {
        patiently(world, life.answer(engine.jobs().approve(id, Answer::by(script::APPROVER)))).await
    } else {
        patiently(world, life.answer(engine.jobs().reject(id, Answer::by(script::REJECTER)))).await
    };
    world.trace.say(format_args!("the gate {id} is answered with {yes}: {}", answered(done.as_ref())));
}

async fn quarantine(world: &Arc<World>, id: &JobId) {
    let Some((engine, life)) = world.engine() else { return };
    let done = patiently(world, life.answer(engine.jobs().quarantine(id, "it says too much"))).await;
    world.trace.say(format_args!("eve quarantines {id}: {}", answered(done.as_ref())));
}

async fn about_output(world: &Arc<World>, id: &JobId) {
    let Some((engine, life)) = world.engine() else { return };
    if world.rng.percent(50) {
        let done = patiently(world, life.answer(engine.jobs().release(id, "ann", ""))).await;
        world.trace.say(format_args!("ann releases {id}: {}", answered(done.as_ref())));
    } else {
        let done = patiently(world, life.answer(engine.jobs().discard(id, "bob", ""))).await;
        world.trace.say(format_args!("bob discards {id}: {}", answered(done.as_ref())));
    }
}

async fn cancel(world: &Arc<World>, job: &Job) {
    let id = job.id();
    if world.rng.percent(30) {
        let payload =
            JobCancel { job_id: id.to_string(), requested_by: "dan".to_owned(), ..JobCancel::default() };
        let packet = client_packet(world, Payload::JobCancel(payload));
        world.network.send(world, job.request.tenant.as_str(), subject::JOB_CANCEL, packet);
        return;
    }
    let Some((engine, life)) = world.engine() else { return };
    let done = patiently(world, life.answer(engine.jobs().cancel(id, "dan", ""))).await;
    world.trace.say(format_args!("dan cancels {id}: {}", answered(done.as_ref())));
    if let Some(Ok(_)) = done {
        world.check(|ledger| ledger.cancel_acknowledged(id));
    }
}

/// Waits for the answer, or goes away.
async fn patiently<T>(world: &World, call: impl Future<Output = Option<T>>) -> Option<T> {
    if !world.strikes(Fault::CallerLeft) {
        return call.await;
    }
    tokio::time::timeout(Duration::from_millis(world.rng.below(8)), call).await.unwrap_or_default()
}

fn answered<T, E: std::fmt::Display>(done: Option<&Result<T, E>>) -> String {
    match done {
        None => "no answer".to_owned(),
        Some(Ok(_)) => "done".to_owned(),
        Some(Err(error)) => error.to_string(),
    }
}
