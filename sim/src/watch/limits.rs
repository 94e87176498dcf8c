//! No tenant and no topic has more jobs at workers, and no tenant more before people, than it may, at any commit.

use crate::invariants::{InvariantResult, JobHistory};
use crate::situations::Situation;
use crate::world::World;
use reveille_core::job::{Job, State};

/// A commit is about to be entered. One that gives a job to a worker, or to a person, must leave its limits kept.
pub fn committed(world: &World, ledger: &JobHistory, job: &Job) -> InvariantResult {
    people_have_room(world, ledger, job)?;
    let was_at_work = ledger.job(job.id()).is_some_and(|before| before.attempt().is_some());
    if was_at_work || job.attempt().is_none() {
        return Ok(());
    }
    let active = |alike: &dyn Fn(&Job) -> bool| {
        ledger.jobs().filter(|other| other.attempt().is_some() && alike(other)).count() as u32 + 1
    };
    let request = &job.request;
    let limits = [
        (
            world.plan.tenant_max(request),
            active(&|other| other.request.tenant == request.tenant),
            Situation::TenantFull,
        ),
        (
            world.plan.topic_max(request),
            active(&|other| other.request.topic == request.topic),
            Situation::TopicFull,
        ),
    ];
    worker_has_room(world, ledger, job)?;
    for (max, active, full) in limits {
        match max {
            Some(max) if active > max => {
                let (id, tenant, topic) = (job.id(), &request.tenant, &request.topic);
                return Err(format!(
                    "{id} of {tenant} on {topic} is number {active} at workers, of {max} allowed"
                ));
            }
            Some(max) if active == max => world.situations.record(full),
            _ => {}
        }
    }
    Ok(())
}

/// No more jobs of a tenant wait for a person than may.
fn people_have_room(world: &World, ledger: &JobHistory, job: &Job) -> InvariantResult {
    let Some(max) = world.approvals_max() else { return Ok(()) };
    let waits = |job: &Job| job.state() == State::ApprovalRequired;
    if !waits(job) || ledger.job(job.id()).is_some_and(|before| waits(before)) {
        return Ok(());
    }
    let tenant = &job.request.tenant;
    let waiting =
        ledger.jobs().filter(|other| other.request.tenant == *tenant && waits(other)).count() as u32 + 1;
    if waiting > max {
        let id = job.id();
        return Err(format!(
            "{id} of {tenant} is number {waiting} that waits for a person, of {max} allowed"
        ));
    }
    if waiting == max {
        world.situations.record(Situation::PeopleBusy);
    }
    Ok(())
}

/// Several servers together give a worker no more than it may have. One alone may find more at a worker when it starts.
fn worker_has_room(world: &World, ledger: &JobHistory, job: &Job) -> InvariantResult {
    let Some(worker) = job.attempt().and_then(|attempt| attempt.worker.as_ref()) else { return Ok(()) };
    let Some(plan) = world.worker_plan(worker).filter(|_| world.plan.is_shared()) else { return Ok(()) };
    if job.request.delegated.is_some() {
        return Ok(());
    }
    let is_there =
        |other: &Job| other.attempt().is_some_and(|attempt| attempt.worker.as_ref() == Some(worker));
    let there = ledger.jobs().filter(|other| is_there(other)).count() as u32 + 1;
    if there > plan.jobs_max() {
        let (id, max) = (job.id(), plan.jobs_max());
        return Err(format!("{id} is number {there} at {worker}, which may have {max}"));
    }
    if there == plan.jobs_max() {
        world.situations.record(Situation::WorkerFull);
    }
    Ok(())
}
