//! No tenant and no topic has more jobs at workers than it may, at any commit.

use crate::invariants::{Ledger, Verdict};
use crate::sights::Sight;
use crate::world::World;
use reveille_core::job::Job;

/// A commit is about to be entered. One that gives a job to a worker must leave its limits kept.
pub fn committed(world: &World, ledger: &Ledger, job: &Job) -> Verdict {
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
            Sight::TenantFull,
        ),
        (
            world.plan.topic_max(request),
            active(&|other| other.request.topic == request.topic),
            Sight::TopicFull,
        ),
    ];
    for (max, active, full) in limits {
        match max {
            Some(max) if active > max => {
                let (id, tenant, topic) = (job.id(), &request.tenant, &request.topic);
                return Err(format!(
                    "{id} of {tenant} on {topic} is number {active} at workers, of {max} allowed"
                ));
            }
            Some(max) if active == max => world.sights.saw(full),
            _ => {}
        }
    }
    Ok(())
}
