mod shares;

use super::*;
use crate::fleet::{Beat, Load};
use crate::id::PoolId;
use crate::job::Attempt;
use crate::life;
use crate::policy::{Judgement, Policy};

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

fn worker(floor: &mut Floor, id: &str, max_parallel: u32, cpu: f32) {
    let id = WorkerId::known(id);
    floor.beat(&id, &tenant(), &beat("p", max_parallel, cpu), NOW).unwrap();
    floor.serves(&id, &tenant(), [Topic::known("job.echo")], NOW).unwrap();
}

fn request(id: &str, tenant: &str, priority: Priority) -> Arc<Request> {
    let plain = Request::plain(id, "job.echo");
    Arc::new(Request { tenant: TenantId::known(tenant), priority, ..plain })
}

fn scheduled(request: &Request) -> Job {
    let judgement = Judgement { verdict: Policy::builtin().evaluate(request), checked_at: NOW };
    life::judge(&life::submit(request.clone(), NOW), judgement, NOW).unwrap()
}

fn wait(floor: &mut Floor, id: &str, tenant: &str, priority: Priority) {
    floor.settle(&scheduled(&request(id, tenant, priority)), NOW);
}

fn placed(floor: &mut Floor) -> Vec<String> {
    let found = floor.matches(NOW).into_iter();
    found
        .map(|(job, to)| format!("{job}@{}", to.worker.map_or("-".to_owned(), |worker| worker.to_string())))
        .collect()
}

fn fitting(floor: &Floor, job: &str) -> Fitting {
    let selector = floor.selector_of(&JobId::known(job)).unwrap();
    let (mut fitting, mut part) = (Fitting::default(), 0);
    while fitting.look(floor.fleet(), part, selector) {
        part += 1;
    }
    fitting
}

#[test]
fn a_burst_is_spread_over_the_least_loaded_workers() {
    let mut floor = Floor::default();
    worker(&mut floor, "idle", 10, 0.0);
    worker(&mut floor, "warm", 10, 50.0);
    let places: Vec<String> = (0..4)
        .map(|n| {
            floor
                .offer(&request(&format!("j{n}"), "t", Priority::Batch), NOW)
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
        let mut floor = Floor::default();
        let job = request("j", "t", Priority::Batch);
        assert_eq!(floor.offer(&job, NOW), Err(Reason::NoWorkers));
        worker(&mut floor, "w", max_parallel, cpu);
        assert_eq!(floor.offer(&job, NOW), Err(Reason::PoolOverloaded));
    }
    let mut floor = Floor::default();
    worker(&mut floor, "w", 10, 0.0);
    let given = (0..20)
        .take_while(|n| floor.offer(&request(&format!("j{n}"), "t", Priority::Batch), NOW).is_ok())
        .count();
    assert_eq!(given, 9, "at nine of ten the worker is overloaded");
    let mut floor = Floor::default();
    worker(&mut floor, "hot", 10, 95.0);
    wait(&mut floor, "j", "t", Priority::Batch);
    let fitting = fitting(&floor, "j");
    assert_eq!((fitting.busy, fitting.hot), (1, 1), "it has room, and its CPU has none");
}

#[test]
fn waiting_jobs_go_the_moment_a_worker_appears_in_the_order_of_their_turns() {
    let mut floor = Floor::default();
    for (id, tenant, priority) in [
        ("a1", "acme", Priority::Batch),
        ("a2", "acme", Priority::Batch),
        ("z1", "zeta", Priority::Batch),
        ("c1", "zeta", Priority::Critical),
    ] {
        wait(&mut floor, id, tenant, priority);
    }
    assert_eq!(placed(&mut floor), Vec::<String>::new());
    assert_eq!(
        floor.wait_of(&JobId::known("a2")).unwrap(),
        Wait { reason: Reason::NoWorkers, ahead: 3, fitting: 0 }
    );
    worker(&mut floor, "w", 1, 0.0);
    assert_eq!(placed(&mut floor), ["c1@w"]);
    let later = request("late", "acme", Priority::Critical);
    assert_eq!(floor.offer(&later, NOW), Err(Reason::PoolOverloaded));
    for (done, next) in [("c1", "a1@w"), ("a1", "z1@w"), ("z1", "a2@w")] {
        floor.leave(&JobId::known(done));
        assert_eq!(placed(&mut floor), [next]);
    }
}

#[test]
fn a_newcomer_does_not_overtake_those_who_wait() {
    let mut floor = Floor::default();
    wait(&mut floor, "first", "t", Priority::Batch);
    worker(&mut floor, "w", 2, 0.0);
    assert!(floor.offer(&request("second", "t", Priority::Batch), NOW).is_err());
    assert_eq!(placed(&mut floor), ["first@w"]);
}

#[test]
fn a_tenant_at_its_limit_waits_and_others_pass() {
    let mut floor = Floor::default();
    worker(&mut floor, "w", 100, 0.0);
    floor.limit_tenants(BTreeMap::from([(TenantId::known("acme"), 1)]));
    for (id, tenant) in [("a1", "acme"), ("a2", "acme"), ("z1", "zeta")] {
        wait(&mut floor, id, tenant, Priority::Batch);
    }
    assert_eq!(placed(&mut floor), ["a1@w", "z1@w"]);
    assert_eq!(floor.wait_of(&JobId::known("a2")).unwrap().reason, Reason::TenantLimit);
    floor.leave(&JobId::known("a1"));
    assert_eq!(placed(&mut floor), ["a2@w"]);
}

#[test]
fn a_preferred_worker_is_taken_if_it_has_room() {
    let mut floor = Floor::default();
    worker(&mut floor, "idle", 10, 0.0);
    worker(&mut floor, "liked", 2, 80.0);
    let mut job = Request::plain("j1", "job.echo");
    job.labels.insert("preferred_worker_id".into(), "liked".into());
    assert_eq!(floor.offer(&Arc::new(job.clone()), NOW).unwrap().worker.unwrap().as_str(), "liked");
    job.id = JobId::known("j2");
    assert_eq!(floor.offer(&Arc::new(job.clone()), NOW).unwrap().worker.unwrap().as_str(), "liked");
    job.id = JobId::known("j3");
    assert_eq!(floor.offer(&Arc::new(job), NOW).unwrap().worker.unwrap().as_str(), "idle");
}

#[test]
fn the_dead_leave_their_jobs_behind() {
    let mut floor = Floor::default();
    worker(&mut floor, "w", 10, 0.0);
    floor.offer(&request("j", "t", Priority::Batch), NOW).unwrap();
    assert_eq!(floor.expire(NOW + 29_000), []);
    let gone = floor.expire(NOW + 30_050);
    assert_eq!(gone, [Gone { member: Some(cap("w")), restored: false, jobs: vec![JobId::known("j")] }]);
    assert!(floor.fleet().is_empty());
    assert_eq!(floor.offer(&request("k", "t", Priority::Batch), NOW), Err(Reason::NoWorkers));
}

#[test]
fn a_job_found_at_a_worker_we_do_not_know_is_expected_for_one_ttl() {
    let mut floor = Floor::default();
    let job = scheduled(&request("j", "t", Priority::Batch));
    let attempt = Attempt {
        number: 1,
        worker: Some(WorkerId::known("w")),
        pool: None,
        dispatched_at: NOW - 5,
        progress: None,
    };
    floor.settle(&Job { phase: Phase::Running(attempt), ..job }, NOW);
    assert_eq!(
        floor.offer(&request("k", "t", Priority::Batch), NOW),
        Err(Reason::NoWorkers),
        "expected is not here"
    );
    worker(&mut floor, "w", 1, 0.0);
    assert_eq!(
        floor.offer(&request("k", "t", Priority::Batch), NOW),
        Err(Reason::PoolOverloaded),
        "it holds j"
    );
    assert_eq!(floor.expire(NOW + 30_050)[0].jobs, [JobId::known("j")]);
}

#[test]
fn an_idle_worker_has_forgotten_what_it_was_given() {
    let mut floor = Floor::default();
    worker(&mut floor, "w", 10, 0.0);
    floor.offer(&request("j", "t", Priority::Batch), NOW).unwrap();
    let mut beat_at =
        |ms| floor.beat(&WorkerId::known("w"), &tenant(), &beat("p", 10, 0.0), NOW + ms).unwrap().forgotten;
    assert_eq!(beat_at(5_000), []);
    assert_eq!(beat_at(9_999), [], "the packet may still be on its way");
    assert_eq!(beat_at(15_000), [JobId::known("j")]);
}

#[test]
fn nameless_listeners_take_one_job_each() {
    let mut floor = Floor::default();
    let topic = Topic::known("job.echo");
    wait(&mut floor, "a", "t", Priority::Batch);
    wait(&mut floor, "b", "t", Priority::Batch);
    floor.listeners(&topic, 1);
    assert_eq!(placed(&mut floor), ["a@-"]);
    assert_eq!(floor.wait_of(&JobId::known("b")).unwrap().reason, Reason::PoolOverloaded);
    floor.leave(&JobId::known("a"));
    assert_eq!(placed(&mut floor), ["b@-"]);
    worker(&mut floor, "w", 10, 0.0);
    assert_eq!(floor.offer(&request("c", "t", Priority::Batch), NOW).unwrap().worker.unwrap().as_str(), "w");
}

#[test]
fn a_nameless_listener_that_is_gone_leaves_its_job_behind_after_one_ttl() {
    let mut floor = Floor::default();
    floor.listeners(&Topic::known("job.echo"), 2);
    for id in ["a", "b"] {
        floor.offer(&request(id, "t", Priority::Batch), NOW).unwrap();
    }
    floor.heard_by_connection(&JobId::known("a"), 7);
    floor.heard_by_connection(&JobId::known("b"), 8);
    floor.connection_gone(7, NOW);
    assert_eq!(floor.expire(NOW + 29_999), []);
    assert_eq!(
        floor.expire(NOW + 30_000),
        [Gone { member: None, restored: false, jobs: vec![JobId::known("a")] }]
    );
    floor.connection_gone(8, NOW);
    floor.leave(&JobId::known("b"));
    assert_eq!(floor.expire(NOW + 60_000), [], "it ended in time");
}

#[test]
fn the_same_id_offered_again_takes_nothing_from_the_first() {
    let mut floor = Floor::default();
    worker(&mut floor, "w", 10, 0.0);
    let job = request("j", "t", Priority::Batch);
    floor.offer(&job, NOW).unwrap();
    assert!(floor.offer(&job, NOW).is_err());
    assert_eq!(floor.held_by(Who::Worker("w")), [JobId::known("j")]);
}

#[test]
fn a_new_map_moves_the_waiting_jobs() {
    let mut floor = Floor::default();
    floor.reroute(Arc::new(Routing::mapped([("job.other", vec!["p"])], [("p", vec![])])));
    floor.beat(&WorkerId::known("w"), &tenant(), &beat("p", 10, 0.0), NOW).unwrap();
    wait(&mut floor, "j", "t", Priority::Batch);
    assert_eq!(placed(&mut floor), Vec::<String>::new());
    assert_eq!(floor.wait_of(&JobId::known("j")).unwrap().reason, Reason::NoPoolMapping);
    floor.reroute(Arc::new(Routing::mapped([("job.echo", vec!["p"])], [("p", vec![])])));
    assert_eq!(placed(&mut floor), ["j@w"]);
}

/// The lanes are an index; a plain search over all workers must always agree with them.
#[test]
fn the_index_agrees_with_a_search_over_all_workers() {
    let mut dice = 7u64;
    let mut roll = |sides: u64| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (dice >> 33) % sides
    };
    let mut floor = Floor::default();
    let mut live: Vec<JobId> = Vec::new();
    for round in 0..20_000u64 {
        let id = WorkerId::known(format!("w{}", roll(40)));
        match roll(10) {
            0..=3 => {
                let mut told = beat(&format!("p{}", roll(3)), 1 + roll(5) as u32, roll(100) as f32);
                told.labels.insert("region".into(), format!("r{}", roll(3)));
                told.load.active_jobs = roll(4) as u32;
                floor.beat(&id, &tenant(), &told, NOW).unwrap();
            }
            4 => drop(floor.serves(
                &id,
                &tenant(),
                [Topic::known(if roll(2) == 0 { "job.echo" } else { "job.other" })],
                NOW,
            )),
            5 => floor.deaf(Who::Worker(id.as_str())),
            6 if roll(5) == 0 => drop(floor.forget(Who::Worker(id.as_str()))),
            7 if !live.is_empty() => {
                let job = live.swap_remove(roll(live.len() as u64) as usize);
                floor.leave(&job);
            }
            _ => {
                let mut wanted = Request::plain(&format!("j{round}"), "job.echo");
                if roll(2) == 0 {
                    wanted.labels.insert("placement.region".into(), format!("r{}", roll(3)));
                }
                let selector = Selector::of(&wanted, &Routing::Discovered);
                let fit = floor
                    .fleet
                    .iter()
                    .filter(|(_, worker)| selector.fits(floor.fleet.profile(worker.profile)));
                let ready = fit.filter(|(_, worker)| !worker.deaf && !worker.is_overloaded());
                let lowest = ready.map(|(_, worker)| worker.score()).min();
                let wanted = Arc::new(wanted);
                let given = floor.offer(&wanted, NOW).ok().map(|to| {
                    let slot = floor.fleet.find(Who::Worker(to.worker.unwrap().as_str())).unwrap();
                    floor.fleet.get(slot).unwrap().score() - 1000
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
    let mut floor = Floor::default();
    wait(&mut floor, "j", "t", Priority::Batch);
    let heard = |floor: &mut Floor, id: &str| {
        floor.beat(&WorkerId::known(id), &tenant(), &beat("p", 1, 0.0), NOW).unwrap();
        placed(floor)
    };
    assert_eq!(heard(&mut floor, "w"), [""; 0]);
    assert_eq!(heard(&mut floor, "w"), [""; 0], "the transport shows who listens");
    floor.try_topics();
    assert_eq!(heard(&mut floor, "w"), ["j@-"]);
    // Nobody listened: it is not tried again and again.
    floor.unplace(&JobId::known("j"));
    wait(&mut floor, "j", "t", Priority::Batch);
    assert_eq!(placed(&mut floor), [""; 0]);
    assert_eq!(heard(&mut floor, "w"), [""; 0]);
    assert_eq!(fitting(&floor, "j").strangers, 1);
    assert_eq!(heard(&mut floor, "v"), [""; 0], "its introduction may follow its first beat");
    assert_eq!(heard(&mut floor, "v"), ["j@-"]);
    // Somebody did: whoever sends the result gets the next by name.
    wait(&mut floor, "k", "t", Priority::Batch);
    assert_eq!(placed(&mut floor), [""; 0], "nothing is known yet");
    let learn = |floor: &mut Floor| floor.learn_topic(&WorkerId::known("v"), &Topic::known("job.echo"));
    assert!(learn(&mut floor) && !learn(&mut floor), "once is enough");
    assert_eq!(placed(&mut floor), ["k@v"]);
    // It may serve more than that.
    let other = Arc::new(Request { tenant: tenant(), ..Request::plain("l", "job.other") });
    floor.settle(&scheduled(&other), NOW);
    assert_eq!(placed(&mut floor), ["l@-"]);
}
