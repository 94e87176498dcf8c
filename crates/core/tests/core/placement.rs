//! Where jobs go, and in whose turn.

mod grants;
mod shares;

use reveille_core::fleet::{Beat, Load, ServedTenants, Who};
use reveille_core::id::{JobId, PoolId, TenantId, Topic, WorkerId};
use reveille_core::job::{Attempt, Job, Phase};
use reveille_core::life;
use reveille_core::placement::routing::Routing;
use reveille_core::placement::{Fitting, LostMember, Member, Placement, Selector, TopicListeners, Wait};
use reveille_core::policy::{Policy, RecordedVerdict};
use reveille_core::presence::Contract;
use reveille_core::reason::Reason;
use reveille_core::request::{Priority, Request};
use reveille_core::time::Millis;
use std::collections::BTreeMap;
use std::sync::Arc;

const NOW: Millis = Millis(1_000_000);

fn tenant() -> TenantId {
    TenantId::known("t")
}

fn cap(id: &str) -> Member {
    Member { contract: Contract::Cap, tenant: tenant(), id: WorkerId::known(id) }
}

fn beat(pool: &str, max_parallel_jobs: u32, cpu: f32) -> Beat {
    let load = Load { max_parallel_jobs, cpu, ..Load::default() };
    Beat { pool: PoolId::parse(pool).ok(), load, ..Beat::default() }
}

/// So many connections that say nothing of themselves, for everybody's jobs.
fn listeners(count: usize) -> TopicListeners {
    let mut listeners = TopicListeners::default();
    (0..count).for_each(|_| listeners.add(&ServedTenants::Everyone));
    listeners
}

fn worker(placement: &mut Placement, id: &str, max_parallel: u32, cpu: f32) {
    let id = WorkerId::known(id);
    placement.beat(&id, &tenant(), &beat("p", max_parallel, cpu), NOW).unwrap();
    placement.announce_topics(&id, &tenant(), [Topic::known("job.echo")], NOW).unwrap();
}

fn request(id: &str, tenant: &str, priority: Priority) -> Arc<Request> {
    let plain = Request::plain(id, "job.echo");
    Arc::new(Request { tenant: TenantId::known(tenant), priority, ..plain })
}

fn scheduled(request: &Request) -> Job {
    let recorded = RecordedVerdict { verdict: Policy::builtin().evaluate(request), checked_at: NOW };
    life::judge(&life::submit(request.clone(), NOW), recorded, NOW).unwrap()
}

fn wait(placement: &mut Placement, id: &str, tenant: &str, priority: Priority) {
    placement.apply(&scheduled(&request(id, tenant, priority)), NOW);
}

fn placed(placement: &mut Placement) -> Vec<String> {
    let found = placement.reserve_waiting(NOW).into_iter();
    found
        .map(|(job, to)| format!("{job}@{}", to.worker.map_or("-".to_owned(), |worker| worker.to_string())))
        .collect()
}

fn fitting(placement: &Placement, job: &str) -> Fitting {
    let selector = placement.selector_of(&JobId::known(job)).unwrap();
    let (mut fitting, mut part) = (Fitting::default(), 0);
    while fitting.add_part(placement.fleet(), part, selector) {
        part += 1;
    }
    fitting
}

#[test]
fn a_burst_is_spread_over_the_least_loaded_workers() {
    let mut placement = Placement::default();
    worker(&mut placement, "idle", 10, 0.0);
    worker(&mut placement, "warm", 10, 50.0);
    let places: Vec<String> = (0..4)
        .map(|n| {
            placement
                .reserve(&request(&format!("j{n}"), "t", Priority::Batch), NOW)
                .unwrap()
                .worker
                .unwrap()
                .to_string()
        })
        .collect();
    assert_eq!(places, ["idle", "warm", "idle", "warm"], "our own jobs count before any beat tells of them");
}

#[test]
fn an_overloaded_worker_gets_nothing_and_the_reason_says_so() {
    for (max_parallel, cpu) in [(1, 95.0), (10, 90.0)] {
        let mut placement = Placement::default();
        let job = request("j", "t", Priority::Batch);
        assert_eq!(placement.reserve(&job, NOW), Err(Reason::NoWorkers));
        worker(&mut placement, "w", max_parallel, cpu);
        assert_eq!(placement.reserve(&job, NOW), Err(Reason::PoolOverloaded));
    }
    let mut placement = Placement::default();
    worker(&mut placement, "w", 10, 0.0);
    let given = (0..20)
        .take_while(|n| placement.reserve(&request(&format!("j{n}"), "t", Priority::Batch), NOW).is_ok())
        .count();
    assert_eq!(given, 9, "at nine of ten the worker is overloaded");
    let mut placement = Placement::default();
    worker(&mut placement, "hot", 10, 95.0);
    wait(&mut placement, "j", "t", Priority::Batch);
    let fitting = fitting(&placement, "j");
    assert_eq!((fitting.busy, fitting.hot), (1, 1), "it has room, and its CPU has none");
}

#[test]
fn waiting_jobs_go_the_moment_a_worker_appears_in_the_order_of_their_turns() {
    let mut placement = Placement::default();
    for (id, tenant, priority) in [
        ("a1", "acme", Priority::Batch),
        ("a2", "acme", Priority::Batch),
        ("z1", "zeta", Priority::Batch),
        ("c1", "zeta", Priority::Critical),
    ] {
        wait(&mut placement, id, tenant, priority);
    }
    assert_eq!(placed(&mut placement), Vec::<String>::new());
    assert_eq!(
        placement.wait_of(&JobId::known("a2")).unwrap(),
        Wait { reason: Reason::NoWorkers, ahead: 3, fitting: 0 }
    );
    worker(&mut placement, "w", 1, 0.0);
    assert_eq!(placed(&mut placement), ["c1@w"]);
    let later = request("late", "acme", Priority::Critical);
    assert_eq!(placement.reserve(&later, NOW), Err(Reason::PoolOverloaded));
    for (done, next) in [("c1", "a1@w"), ("a1", "z1@w"), ("z1", "a2@w")] {
        placement.remove(&JobId::known(done));
        assert_eq!(placed(&mut placement), [next]);
    }
}

#[test]
fn a_newcomer_does_not_overtake_those_who_wait() {
    let mut placement = Placement::default();
    wait(&mut placement, "first", "t", Priority::Batch);
    worker(&mut placement, "w", 2, 0.0);
    assert!(placement.reserve(&request("second", "t", Priority::Batch), NOW).is_err());
    assert_eq!(placed(&mut placement), ["first@w"]);
}

#[test]
fn a_tenant_at_its_limit_waits_and_others_pass() {
    let mut placement = Placement::default();
    worker(&mut placement, "w", 100, 0.0);
    placement.limit_tenants(BTreeMap::from([(TenantId::known("acme"), 1)]));
    for (id, tenant) in [("a1", "acme"), ("a2", "acme"), ("z1", "zeta")] {
        wait(&mut placement, id, tenant, Priority::Batch);
    }
    assert_eq!(placed(&mut placement), ["a1@w", "z1@w"]);
    assert_eq!(placement.wait_of(&JobId::known("a2")).unwrap().reason, Reason::TenantLimit);
    placement.remove(&JobId::known("a1"));
    assert_eq!(placed(&mut placement), ["a2@w"]);
}

#[test]
fn a_preferred_worker_is_taken_if_it_has_room() {
    let mut placement = Placement::default();
    worker(&mut placement, "idle", 10, 0.0);
    worker(&mut placement, "liked", 2, 80.0);
    let mut job = Request::plain("j1", "job.echo");
    job.labels.insert("preferred_worker_id".into(), "liked".into());
    assert_eq!(placement.reserve(&Arc::new(job.clone()), NOW).unwrap().worker.unwrap().as_str(), "liked");
    job.id = JobId::known("j2");
    assert_eq!(placement.reserve(&Arc::new(job.clone()), NOW).unwrap().worker.unwrap().as_str(), "liked");
    job.id = JobId::known("j3");
    assert_eq!(placement.reserve(&Arc::new(job), NOW).unwrap().worker.unwrap().as_str(), "idle");
}

#[test]
fn the_dead_leave_their_jobs_behind() {
    let mut placement = Placement::default();
    worker(&mut placement, "w", 10, 0.0);
    placement.reserve(&request("j", "t", Priority::Batch), NOW).unwrap();
    assert_eq!(placement.expire(NOW + 29_000), []);
    let gone = placement.expire(NOW + 30_050);
    assert_eq!(gone, [LostMember { member: Some(cap("w")), restored: false, jobs: vec![JobId::known("j")] }]);
    assert!(placement.fleet().is_empty());
    assert_eq!(placement.reserve(&request("k", "t", Priority::Batch), NOW), Err(Reason::NoWorkers));
}

#[test]
fn a_job_found_at_a_worker_we_do_not_know_is_expected_for_one_ttl() {
    let mut placement = Placement::default();
    let job = scheduled(&request("j", "t", Priority::Batch));
    let attempt = Attempt {
        number: 1,
        worker: Some(WorkerId::known("w")),
        pool: None,
        dispatched_at: NOW - 5,
        progress: None,
    };
    placement.apply(&Job { phase: Phase::Running(attempt), ..job }, NOW);
    assert_eq!(
        placement.reserve(&request("k", "t", Priority::Batch), NOW),
        Err(Reason::NoWorkers),
        "expected is not here"
    );
    worker(&mut placement, "w", 1, 0.0);
    assert_eq!(
        placement.reserve(&request("k", "t", Priority::Batch), NOW),
        Err(Reason::PoolOverloaded),
        "it holds j"
    );
    assert_eq!(placement.expire(NOW + 30_050)[0].jobs, [JobId::known("j")]);
}

#[test]
fn an_idle_worker_has_forgotten_what_it_was_given() {
    let mut placement = Placement::default();
    worker(&mut placement, "w", 10, 0.0);
    placement.reserve(&request("j", "t", Priority::Batch), NOW).unwrap();
    let mut beat_at = |ms| {
        placement.beat(&WorkerId::known("w"), &tenant(), &beat("p", 10, 0.0), NOW + ms).unwrap().forgotten
    };
    assert_eq!(beat_at(5_000), []);
    assert_eq!(beat_at(9_999), [], "the packet may still be on its way");
    assert_eq!(beat_at(15_000), [JobId::known("j")]);
}

#[test]
fn nameless_listeners_take_one_job_each() {
    let mut placement = Placement::default();
    let topic = Topic::known("job.echo");
    wait(&mut placement, "a", "t", Priority::Batch);
    wait(&mut placement, "b", "t", Priority::Batch);
    placement.set_listeners(&topic, listeners(1));
    assert_eq!(placed(&mut placement), ["a@-"]);
    assert_eq!(placement.wait_of(&JobId::known("b")).unwrap().reason, Reason::PoolOverloaded);
    placement.remove(&JobId::known("a"));
    assert_eq!(placed(&mut placement), ["b@-"]);
    worker(&mut placement, "w", 10, 0.0);
    assert_eq!(
        placement.reserve(&request("c", "t", Priority::Batch), NOW).unwrap().worker.unwrap().as_str(),
        "w"
    );
}

#[test]
fn a_nameless_listener_that_is_gone_leaves_its_job_behind_after_one_ttl() {
    let mut placement = Placement::default();
    placement.set_listeners(&Topic::known("job.echo"), listeners(2));
    for id in ["a", "b"] {
        placement.reserve(&request(id, "t", Priority::Batch), NOW).unwrap();
    }
    placement.note_connection(&JobId::known("a"), 7);
    placement.note_connection(&JobId::known("b"), 8);
    placement.connection_gone(7, NOW);
    assert_eq!(placement.expire(NOW + 29_999), []);
    assert_eq!(
        placement.expire(NOW + 30_000),
        [LostMember { member: None, restored: false, jobs: vec![JobId::known("a")] }]
    );
    placement.connection_gone(8, NOW);
    placement.remove(&JobId::known("b"));
    assert_eq!(placement.expire(NOW + 60_000), [], "it ended in time");
}

#[test]
fn the_same_id_offered_again_takes_nothing_from_the_first() {
    let mut placement = Placement::default();
    worker(&mut placement, "w", 10, 0.0);
    let job = request("j", "t", Priority::Batch);
    placement.reserve(&job, NOW).unwrap();
    assert!(placement.reserve(&job, NOW).is_err());
    assert_eq!(placement.held_by(Who::Worker("w")), [JobId::known("j")]);
}

#[test]
fn a_new_map_moves_the_waiting_jobs() {
    let mut placement = Placement::default();
    placement.reroute(Arc::new(Routing::mapped([("job.other", vec!["p"])], [("p", vec![])])));
    placement.beat(&WorkerId::known("w"), &tenant(), &beat("p", 10, 0.0), NOW).unwrap();
    wait(&mut placement, "j", "t", Priority::Batch);
    assert_eq!(placed(&mut placement), Vec::<String>::new());
    assert_eq!(placement.wait_of(&JobId::known("j")).unwrap().reason, Reason::NoPoolMapping);
    placement.reroute(Arc::new(Routing::mapped([("job.echo", vec!["p"])], [("p", vec![])])));
    assert_eq!(placed(&mut placement), ["j@w"]);
}

/// The lanes are an index; a plain search over all workers must always agree with them.
#[test]
fn the_index_agrees_with_a_search_over_all_workers() {
    let mut random = 7u64;
    let mut roll = |sides: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % sides
    };
    let mut placement = Placement::default();
    let mut live: Vec<JobId> = Vec::new();
    for round in 0..20_000u64 {
        let id = WorkerId::known(format!("w{}", roll(40)));
        match roll(10) {
            0..=3 => {
                let mut told = beat(&format!("p{}", roll(3)), 1 + roll(5) as u32, roll(100) as f32);
                told.labels.insert("region".into(), format!("r{}", roll(3)));
                told.load.active_jobs = roll(4) as u32;
                placement.beat(&id, &tenant(), &told, NOW).unwrap();
            }
            4 => drop(placement.announce_topics(
                &id,
                &tenant(),
                [Topic::known(if roll(2) == 0 { "job.echo" } else { "job.other" })],
                NOW,
            )),
            5 => placement.mark_unreachable(Who::Worker(id.as_str())),
            6 if roll(5) == 0 => drop(placement.remove_member(Who::Worker(id.as_str()))),
            7 if !live.is_empty() => {
                let job = live.swap_remove(roll(live.len() as u64) as usize);
                placement.remove(&job);
            }
            _ => {
                let mut wanted = Request::plain(&format!("j{round}"), "job.echo");
                if roll(2) == 0 {
                    wanted.labels.insert("placement.region".into(), format!("r{}", roll(3)));
                }
                let selector = Selector::of(&wanted, &Routing::Discovered);
                let fit = placement
                    .fleet()
                    .iter()
                    .filter(|(_, worker)| selector.fits(placement.fleet().profile(worker.profile)));
                let ready = fit.filter(|(_, worker)| !worker.unreachable && !worker.is_overloaded());
                let lowest = ready.map(|(_, worker)| worker.score()).min();
                let wanted = Arc::new(wanted);
                let given = placement.reserve(&wanted, NOW).ok().map(|to| {
                    let slot = placement.fleet().find(Who::Worker(to.worker.unwrap().as_str())).unwrap();
                    placement.fleet().get(slot).unwrap().score() - 1000
                });
                assert_eq!(given, lowest, "round {round}");
                live.extend(given.map(|_| wanted.id.clone()));
            }
        }
    }
    assert!(live.len() > 10, "the test placed jobs");
}

#[test]
fn a_topic_is_tried_once_for_each_worker_that_has_not_said_what_it_serves() {
    let mut placement = Placement::default();
    wait(&mut placement, "j", "t", Priority::Batch);
    let heard = |placement: &mut Placement, id: &str| {
        placement.beat(&WorkerId::known(id), &tenant(), &beat("p", 1, 0.0), NOW).unwrap();
        placed(placement)
    };
    assert_eq!(heard(&mut placement, "w"), [""; 0]);
    assert_eq!(heard(&mut placement, "w"), [""; 0], "the transport shows who listens");
    placement.try_topics();
    assert_eq!(heard(&mut placement, "w"), ["j@-"]);
    // Nobody listened: it is not tried again and again.
    placement.end_pending(&JobId::known("j"));
    wait(&mut placement, "j", "t", Priority::Batch);
    assert_eq!(placed(&mut placement), [""; 0]);
    assert_eq!(heard(&mut placement, "w"), [""; 0]);
    assert_eq!(fitting(&placement, "j").unannounced, 1);
    assert_eq!(heard(&mut placement, "v"), [""; 0], "its introduction may follow its first beat");
    assert_eq!(heard(&mut placement, "v"), ["j@-"]);
    // Somebody did: whoever sends the result gets the next by name.
    wait(&mut placement, "k", "t", Priority::Batch);
    assert_eq!(placed(&mut placement), [""; 0], "nothing is known yet");
    let learn =
        |placement: &mut Placement| placement.learn_topic(&WorkerId::known("v"), &Topic::known("job.echo"));
    assert!(learn(&mut placement) && !learn(&mut placement), "once is enough");
    assert_eq!(placed(&mut placement), ["k@v"]);
    // It may serve more than that.
    let other = Arc::new(Request { tenant: tenant(), ..Request::plain("l", "job.other") });
    placement.apply(&scheduled(&other), NOW);
    assert_eq!(placed(&mut placement), ["l@-"]);
}
