//! Limits hold at every moment, and a tenant that floods a pool does not keep the others out.

use super::{NOW, beat, placed, request, scheduled, tenant, wait, worker};
use reveille_core::fleet::{Beat, Load, Who};
use reveille_core::id::{JobId, PoolId, TenantId, Topic, WorkerId};
use reveille_core::job::{Attempt, Job, Phase};
use reveille_core::placement::Placement;
use reveille_core::placement::lane::LANES_PER_TENANT_MAX;
use reveille_core::placement::routing::Routing;
use reveille_core::reason::Reason;
use reveille_core::request::{Priority, Request};
use std::collections::BTreeMap;
use std::sync::Arc;

fn id(job: impl Into<Arc<str>>) -> JobId {
    JobId::known(job)
}

/// A worker of a pool, for mapped routing.
fn pool_worker(placement: &mut Placement, name: &str, capacity: u32) {
    let load = Load { max_parallel_jobs: capacity, ..Load::default() };
    let beat = Beat { pool: PoolId::parse("p").ok(), load, ..Beat::default() };
    placement.beat(&WorkerId::known(name), &tenant(), &beat, NOW).unwrap();
}

fn pools(text: serde_json::Value) -> Arc<Routing> {
    Arc::new(Routing::Mapped(serde_json::from_value(text).unwrap()))
}

fn on_topic(job: &str, tenant: &str, topic: &str) -> Job {
    let plain = Request::plain(job, topic);
    scheduled(&Request { tenant: TenantId::known(tenant), ..plain })
}

fn running_at(job: &Job, worker: &str) -> Job {
    let worker = Some(WorkerId::known(worker));
    let attempt = Attempt { number: 1, worker, pool: None, dispatched_at: NOW, progress: None };
    Job { phase: Phase::Running(attempt), ..job.clone() }
}

/// Serves everybody, one job after the other, and says whose turn it was.
fn served(placement: &mut Placement) -> Vec<JobId> {
    let mut order = Vec::new();
    loop {
        let found = placement.reserve_waiting(NOW);
        if found.is_empty() {
            return order;
        }
        for (job, _) in found {
            placement.remove(&job);
            order.push(job);
        }
    }
}

#[test]
fn a_flood_of_one_tenant_does_not_hold_up_the_others() {
    for capacity in [1, 4] {
        let mut placement = Placement::default();
        for number in 0..5_000 {
            wait(&mut placement, &format!("flood-{number}"), "flood", Priority::Batch);
        }
        for number in 0..10 {
            wait(&mut placement, &format!("a-{number}"), "acme", Priority::Batch);
            wait(&mut placement, &format!("z-{number}"), "zeta", Priority::Batch);
        }
        worker(&mut placement, "w", capacity, 0.0);
        let order = served(&mut placement);
        assert_eq!(order.len(), 5_020);
        let last = order.iter().rposition(|job| !job.as_str().starts_with("flood")).unwrap();
        assert!(last < 30, "with three tenants ten jobs each are thirty turns, not {last}");
        for tenant in ["a-", "z-"] {
            let own: Vec<&str> =
                order.iter().map(JobId::as_str).filter(|job| job.starts_with(tenant)).collect();
            assert!(own.is_sorted(), "each tenant's oldest goes first");
        }
    }
}

/// Asking for many kinds of workers makes many lanes. They are not many turns.
#[test]
fn a_flood_in_many_lanes_gets_no_more_turns_than_one_in_a_single_lane() {
    let mut placement = Placement::default();
    let worker = WorkerId::known("w");
    let mut beat = Beat { load: Load { max_parallel_jobs: 1, ..Load::default() }, ..Beat::default() };
    beat.labels = (0..300).map(|number| (format!("kind-{number}"), "x".to_owned())).collect();
    placement.beat(&worker, &tenant(), &beat, NOW).unwrap();
    for number in 0..300 {
        let mut asked = Request::plain(&format!("flood-{number}"), "job.echo");
        asked.tenant = TenantId::known("flood");
        asked.labels.insert(format!("placement.kind-{number}"), "x".to_owned());
        placement.apply(&scheduled(&asked), NOW);
    }
    for number in 0..10 {
        wait(&mut placement, &format!("a-{number}"), "acme", Priority::Interactive);
    }
    placement.announce_topics(&worker, &tenant(), [Topic::known("job.echo")], NOW).unwrap();
    let order = served(&mut placement);
    assert_eq!(order.len(), 310);
    let last = order.iter().rposition(|job| job.as_str().starts_with("a-")).unwrap();
    assert!(last < 20, "with two tenants ten jobs are twenty turns, not {last}");
}

#[test]
fn nobody_uses_up_the_lanes_alone() {
    let mut placement = Placement::default();
    let kind = |number: u32, tenant: &str| {
        let mut asked = Request::plain(&format!("{tenant}-{number}"), "job.echo");
        asked.tenant = TenantId::known(tenant);
        asked.labels.insert(format!("placement.kind-{number}"), "x".to_owned());
        asked
    };
    for number in 0..LANES_PER_TENANT_MAX {
        let asked = kind(number, "flood");
        assert!(!placement.is_full_for(&asked));
        placement.apply(&scheduled(&asked), NOW);
    }
    assert!(placement.is_full_for(&kind(LANES_PER_TENANT_MAX, "flood")));
    assert!(!placement.is_full_for(&kind(7, "flood")), "it waits for such workers already");
    assert!(!placement.is_full_for(&kind(LANES_PER_TENANT_MAX, "acme")), "others have their own share");
    placement.remove(&id("flood-0"));
    assert!(!placement.is_full_for(&kind(LANES_PER_TENANT_MAX, "flood")));
}

#[test]
fn a_topic_at_its_limit_waits_and_the_other_topics_of_its_pool_pass() {
    let mut placement = Placement::default();
    placement.reroute(pools(serde_json::json!({
        "topics": { "job.slow": { "pools": ["p"], "max_concurrent_jobs": 2 }, "job.fast": "p" },
    })));
    pool_worker(&mut placement, "w", 100);
    for number in 0..3 {
        placement.apply(&on_topic(&format!("s{number}"), "acme", "job.slow"), NOW);
    }
    placement.apply(&on_topic("f0", "acme", "job.fast"), NOW);
    assert_eq!(placed(&mut placement), ["s0@w", "s1@w", "f0@w"]);
    assert_eq!(placement.wait_of(&id("s2")).unwrap().reason, Reason::TopicLimit);
    let other = on_topic("s3", "zeta", "job.slow");
    assert_eq!(placement.reserve(&other.request, NOW), Err(Reason::TopicLimit), "the limit is everybody's");
    placement.remove(&id("f0"));
    assert_eq!(placed(&mut placement), Vec::<String>::new());
    placement.remove(&id("s0"));
    assert_eq!(placed(&mut placement), ["s2@w"]);
}

#[test]
fn a_verdict_may_limit_its_tenant_and_holds_up_no_other_job() {
    let mut placement = Placement::default();
    worker(&mut placement, "w", 100, 0.0);
    let bounded = |name: &str| {
        let mut job = scheduled(&request(name, "acme", Priority::Batch));
        let mut constraints = reveille_core::policy::Constraints::default();
        constraints.budgets.max_concurrent_jobs = 2;
        job.verdicts.last_mut().unwrap().verdict.constraints = Some(Box::new(constraints));
        job
    };
    wait(&mut placement, "free", "acme", Priority::Batch);
    for name in ["b0", "b1", "b2"] {
        placement.apply(&bounded(name), NOW);
    }
    assert_eq!(placed(&mut placement), ["free@w", "b0@w"], "whatever its tenant has at workers counts");
    assert_eq!(placement.wait_of(&id("b1")).unwrap().reason, Reason::TenantLimit);
    wait(&mut placement, "late", "acme", Priority::Batch);
    assert_eq!(placed(&mut placement), ["late@w"], "who has no such verdict is not held up");
    placement.remove(&id("late"));
    assert_eq!(placed(&mut placement), Vec::<String>::new());
    assert_eq!(placement.reserve_within(&bounded("b3").request, Some(2), NOW), Err(Reason::TenantLimit));
    placement.reroute(Arc::default());
    assert_eq!(placed(&mut placement), Vec::<String>::new(), "it is remembered when lanes are made anew");
    placement.remove(&id("free"));
    assert_eq!(placed(&mut placement), ["b1@w"]);
}

#[test]
fn a_job_whose_worker_died_counts_until_it_is_settled() {
    let mut placement = Placement::default();
    placement.limit_tenants(BTreeMap::from([(TenantId::known("acme"), 1)]));
    worker(&mut placement, "w", 10, 0.0);
    placement.reserve(&request("a", "acme", Priority::Batch), NOW).unwrap();
    wait(&mut placement, "b", "acme", Priority::Batch);
    placement.beat(&WorkerId::known("other"), &tenant(), &beat("p", 10, 0.0), NOW + 20_000).unwrap();
    placement
        .announce_topics(&WorkerId::known("other"), &tenant(), [Topic::known("job.echo")], NOW + 20_000)
        .unwrap();
    assert_eq!(placement.expire(NOW + 30_050)[0].jobs, [id("a")]);
    assert_eq!(placed(&mut placement), Vec::<String>::new(), "a is still at work as far as anybody can read");
    placement.remove(&id("a"));
    assert_eq!(placed(&mut placement), ["b@other"]);
}

#[test]
fn a_job_that_is_settled_again_while_its_place_is_committed_keeps_the_place() {
    let mut placement = Placement::default();
    placement.limit_tenants(BTreeMap::from([(TenantId::known("acme"), 1)]));
    worker(&mut placement, "w", 10, 0.0);
    wait(&mut placement, "a", "acme", Priority::Batch);
    wait(&mut placement, "b", "acme", Priority::Batch);
    assert_eq!(placed(&mut placement), ["a@w"]);
    wait(&mut placement, "a", "acme", Priority::Batch);
    assert_eq!(placed(&mut placement), Vec::<String>::new(), "b does not get what a may have by now");
    placement.end_pending(&id("a"));
    wait(&mut placement, "a", "acme", Priority::Batch);
    assert_eq!(placed(&mut placement), ["b@w"], "the commit failed: a goes back to the queue");
}

#[test]
fn while_jobs_are_recounted_whoever_has_a_limit_waits() {
    let mut placement = Placement::default();
    placement.begin_recount();
    placement.limit_tenants(BTreeMap::from([(TenantId::known("acme"), 1)]));
    worker(&mut placement, "w", 10, 0.0);
    wait(&mut placement, "new", "acme", Priority::Batch);
    wait(&mut placement, "other", "zeta", Priority::Batch);
    assert_eq!(placed(&mut placement), ["other@w"]);
    placement.apply(&running_at(&scheduled(&request("old", "acme", Priority::Batch)), "w"), NOW);
    placement.end_recount();
    assert_eq!(placed(&mut placement), Vec::<String>::new());
    placement.remove(&id("old"));
    assert_eq!(placed(&mut placement), ["new@w"]);
}

#[test]
fn an_id_that_another_tenant_has_counts_for_its_owner() {
    let mut placement = Placement::default();
    placement.limit_tenants(BTreeMap::from(
        [("acme", 1), ("zeta", 1)].map(|(name, max)| (TenantId::known(name), max)),
    ));
    worker(&mut placement, "w", 10, 0.0);
    // A start has not met the running job yet when another client submits one under the same id.
    placement.reserve(&request("j", "acme", Priority::Batch), NOW).unwrap();
    placement.apply(&running_at(&scheduled(&request("j", "zeta", Priority::Batch)), "w"), NOW);
    assert!(placement.reserve(&request("a", "acme", Priority::Batch), NOW).is_ok());
    assert_eq!(placement.reserve(&request("z", "zeta", Priority::Batch), NOW), Err(Reason::TenantLimit));
}

const TENANTS: [(&str, u32); 3] = [("acme", 2), ("zeta", 3), ("free", u32::MAX)];

fn count(active: &BTreeMap<JobId, Job>, which: impl Fn(&Job) -> bool) -> u32 {
    active.values().filter(|job| which(job)).count() as u32
}
fn check(active: &BTreeMap<JobId, Job>) {
    for (tenant, max) in TENANTS {
        assert!(count(active, |job| job.request.tenant.as_str() == tenant) <= max, "{tenant}");
    }
    assert!(count(active, |job| job.request.topic.as_str() == "job.slow") <= 4);
}

/// A plain count of who is at workers, beside placement: no step may leave more of a tenant or a topic
/// there than their limits say, and nothing that could go may be left waiting.
#[test]
fn whatever_happens_no_limit_is_exceeded() {
    let mut random = 11u64;
    let mut roll = |sides: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % sides
    };
    let mut placement = Placement::default();
    let limits = TENANTS.iter().filter(|(_, max)| *max < u32::MAX);
    placement.limit_tenants(limits.map(|(name, max)| (TenantId::known(*name), *max)).collect());
    placement.reroute(pools(serde_json::json!({
        "topics": { "job.slow": { "pools": "p", "max_concurrent_jobs": 4 }, "job.fast": "p" },
    })));
    let mut active: BTreeMap<JobId, Job> = BTreeMap::new();
    let mut waiting: BTreeMap<JobId, Job> = BTreeMap::new();
    let (mut most, mut full) = (0, 0);
    for round in 0..20_000u64 {
        match roll(10) {
            0..=4 => {
                let (tenant, _) = TENANTS[roll(3) as usize];
                let topic = if roll(2) == 0 { "job.slow" } else { "job.fast" };
                let job = on_topic(&format!("j{round}"), tenant, topic);
                if roll(2) == 0 && placement.reserve(&job.request, NOW).is_ok() {
                    active.insert(job.id().clone(), job);
                } else if waiting.len() < 200 {
                    placement.apply(&job, NOW);
                    waiting.insert(job.id().clone(), job);
                }
            }
            5..=7 => {
                let Some((job, _)) = active.iter().nth(roll(active.len().max(1) as u64) as usize) else {
                    continue;
                };
                let job = job.clone();
                placement.remove(&job);
                active.remove(&job);
            }
            8 => pool_worker(&mut placement, &format!("w{}", roll(5)), 1 + roll(4) as u32),
            _ if roll(4) == 0 => {
                let name = format!("w{}", roll(5));
                let Some(gone) = placement.remove_member(Who::Worker(&name)) else { continue };
                // Their jobs go back to the queue by a commit each; until then they are at work.
                let again = placement.reserve_waiting(NOW);
                for (job, _) in again {
                    active.insert(job.clone(), waiting.remove(&job).unwrap());
                }
                check(&active);
                for job in gone.jobs {
                    let back = active.remove(&job).unwrap();
                    placement.end_pending(&job);
                    placement.apply(&back, NOW);
                    waiting.insert(job, back);
                }
            }
            _ => {}
        }
        for (job, _) in placement.reserve_waiting(NOW) {
            active.insert(job.clone(), waiting.remove(&job).unwrap());
        }
        check(&active);
        let below = |job: &Job| {
            let max = TENANTS.iter().find(|(name, _)| *name == job.request.tenant.as_str()).unwrap().1;
            let (tenant, topic) = (&job.request.tenant, &job.request.topic);
            count(&active, |other| other.request.tenant == *tenant) < max
                && (topic.as_str() != "job.slow" || count(&active, |other| other.request.topic == *topic) < 4)
        };
        if placement.fleet().iter().any(|(_, worker)| worker.can_take()) {
            assert!(!waiting.values().any(below), "round {round}: a job waits for nothing");
        }
        most = most.max(active.len());
        full += usize::from(count(&active, |job| job.request.tenant.as_str() == "acme") == 2);
    }
    assert!(most >= 8 && full > 1_000, "the limits were reached: {most} jobs at once, {full} times full");
}
