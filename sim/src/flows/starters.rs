//! Those who save workflows and start runs. They ask again when they get no answer, and some when they did; some
//! change their mind.

use super::workflows::StartPlan;
use crate::faults::Fault;
use crate::situations::Situation;
use crate::world::{World, sleep_ms};
use reveille_core::id::{RunId, TenantId};
use reveille_core::request::Actor;
use reveille_engine::{RunError, RunRequest, StartRunError, Started};
use std::sync::Arc;
use std::time::Duration;

const TRIES_MAX: u64 = 8;

/// Has everything saved that this world's runs go by, and then has them started.
pub async fn start_all(world: Arc<World>) {
    let Some(plan) = world.plan.flows.clone() else { return };
    for document in &plan.documents {
        while !save(&world, &plan.tenant, document).await {
            sleep_ms(world.rng.skewed(100, 10_000)).await;
        }
    }
    let gap_ms = world.plan.span_ms / plan.starts.len() as i64;
    let mut asking = tokio::task::JoinSet::new();
    for start in plan.starts {
        sleep_ms(world.rng.between(0, gap_ms * 2)).await;
        asking.spawn(ask(world.clone(), plan.tenant.clone(), start));
    }
    while asking.join_next().await.is_some() {}
}

async fn save(world: &World, tenant: &TenantId, document: &reveille_core::flow::WorkflowDocument) -> bool {
    let Some((engine, life)) = world.engine() else { return false };
    match life.answer(engine.workflows().save_workflow(tenant, document.clone(), "ann")).await {
        Some(Ok(1)) => true,
        Some(Ok(version)) => {
            world.fail(&format!("{} was saved once and is version {version}", document.id));
            false
        }
        other => {
            world.trace.say(format_args!("{} is not saved yet: {other:?}", document.id));
            false
        }
    }
}

async fn ask(world: Arc<World>, tenant: TenantId, start: StartPlan) {
    let Some(run) = started(&world, &tenant, &start).await else { return };
    for _ in 0..start.repeats {
        sleep_ms(world.rng.skewed(1, 20_000)).await;
        started(&world, &tenant, &start).await;
    }
    if let Some(after_ms) = start.cancelled_after_ms {
        sleep_ms(after_ms).await;
        cancel(&world, &run).await;
    }
}

/// Starts it, if it takes a few tries; nothing if it never was answered.
async fn started(world: &World, tenant: &TenantId, start: &StartPlan) -> Option<RunId> {
    for _ in 0..TRIES_MAX {
        match call(world, tenant, start).await {
            Some(Ok(started)) => {
                if matches!(started, Started::Existing(_)) {
                    world.situations.record(Situation::StartRepeated);
                }
                world.trace.say(format_args!("{tenant} has {} as {}", start.key, started.id()));
                world.flow_history(|history| history.told(&start.key, started.id()));
                return Some(started.id().clone());
            }
            Some(Err(StartRunError::Store(error))) => {
                world.trace.say(format_args!("{tenant} is told that {} is not stored: {error}", start.key));
            }
            Some(Err(error)) => {
                world.fail(&format!("{} was refused: {error}", start.key));
                return None;
            }
            None => {}
        }
        sleep_ms(world.rng.skewed(100, 30_000)).await;
    }
    None
}

async fn call(world: &World, tenant: &TenantId, start: &StartPlan) -> Option<Result<Started, StartRunError>> {
    let (engine, life) = world.engine()?;
    let asked = RunRequest {
        tenant: tenant.clone(),
        workflow: start.workflow.clone(),
        input: start.input.clone(),
        idempotency_key: Some(start.key.clone()),
        started_by: None,
        actor: Actor::default(),
    };
    let call = life.answer(engine.workflows().start_run(asked));
    if !world.strikes(Fault::CallerLeft) {
        return call.await;
    }
    tokio::time::timeout(Duration::from_millis(world.rng.below(8)), call).await.unwrap_or_default()
}

async fn cancel(world: &World, run: &RunId) {
    let Some((engine, life)) = world.engine() else { return };
    world.flow_history(|history| {
        history.cancels_asked.insert(run.clone());
        Ok(())
    });
    match life.answer(engine.workflows().cancel_run(run, "dan", "")).await {
        Some(Err(RunError::Unknown)) => world.fail(&format!("{run} was acknowledged and is not known")),
        done => world.trace.say(format_args!("dan cancels {run}: {:?}", done.map(|done| done.is_ok()))),
    }
}
