//! Workers with a credential: whose jobs they get, and who may speak for them.

use super::*;
use reveille_core::fleet::{WorkerCredential, WorkerGrant};
use reveille_core::id::KeyId;
use reveille_core::placement::{Claim, ClaimRefused, WORKERS_PER_KEY_MAX};

fn credential(key: &str, tenants: &[&str], topics: &[&str]) -> Arc<WorkerCredential> {
    let tenants = match tenants {
        ["*"] => ServedTenants::Everyone,
        names => ServedTenants::Only(names.iter().map(|name| TenantId::known(*name)).collect()),
    };
    let topics = topics.iter().map(ToString::to_string).collect();
    let grant = WorkerGrant { tenants, topics, ..WorkerGrant::default() };
    Arc::new(WorkerCredential { key: KeyId::known(key), grant, signs_as: None })
}

fn nobody_else(_: &KeyId, _: &KeyId) -> bool {
    false
}

fn claim(
    placement: &mut Placement,
    id: &str,
    tenant: &str,
    credential: Option<&Arc<WorkerCredential>>,
) -> Result<Claim, ClaimRefused> {
    placement.claim(&WorkerId::known(id), &TenantId::known(tenant), credential, nobody_else, NOW)
}

/// A worker of tenant `acme` that came with this credential.
fn limited(placement: &mut Placement, id: &str, credential: &Arc<WorkerCredential>) {
    claim(placement, id, "acme", Some(credential)).unwrap();
    worker(placement, id, 10, 0.0);
}

fn goes_to(placement: &mut Placement, id: &str, tenant: &str) -> Result<String, Reason> {
    let to = placement.reserve(&request(id, tenant, Priority::Batch), NOW)?;
    Ok(to.worker.unwrap().to_string())
}

#[test]
fn a_worker_of_one_tenant_gets_that_tenants_jobs_only() {
    let mut placement = Placement::default();
    limited(&mut placement, "ours", &credential("k", &["acme"], &[]));
    assert_eq!(goes_to(&mut placement, "a", "acme").unwrap(), "ours");
    assert_eq!(goes_to(&mut placement, "b", "beta"), Err(Reason::NoWorkers));

    worker(&mut placement, "anybodys", 10, 0.0);
    assert_eq!(goes_to(&mut placement, "c", "beta").unwrap(), "anybodys");
    limited(&mut placement, "shared", &credential("s", &["*"], &[]));
    placement.remove_member(Who::Worker("anybodys"));
    assert_eq!(goes_to(&mut placement, "d", "beta").unwrap(), "shared", "sharing is an explicit choice");
}

#[test]
fn a_grants_topics_hold_whatever_the_pool_serves() {
    let mut placement = Placement::default();
    placement.reroute(Arc::new(Routing::mapped(
        [("job.echo", vec!["p"]), ("job.secret", vec!["p"])],
        [("p", vec![])],
    )));
    limited(&mut placement, "w", &credential("k", &["*"], &["job.e*"]));
    assert_eq!(goes_to(&mut placement, "a", "beta").unwrap(), "w");
    let secret = Arc::new(Request::plain("s", "job.secret"));
    assert_eq!(placement.reserve(&secret, NOW), Err(Reason::NoWorkers));
}

#[test]
fn a_worker_outside_the_pools_of_its_grant_gets_nothing() {
    let mut placement = Placement::default();
    let grant = WorkerGrant {
        pools: [PoolId::known("gpu")].into(),
        tenants: ServedTenants::Everyone,
        ..WorkerGrant::default()
    };
    limited(
        &mut placement,
        "w",
        &Arc::new(WorkerCredential { key: KeyId::known("k"), grant, signs_as: None }),
    );
    assert_eq!(goes_to(&mut placement, "a", "acme"), Err(Reason::NoWorkers), "it says that it is in p");
    placement.beat(&WorkerId::known("w"), &tenant(), &beat("gpu", 1, 0.0), NOW).unwrap();
    assert_eq!(goes_to(&mut placement, "a", "acme").unwrap(), "w");
}

#[test]
fn jobs_that_already_wait_go_to_a_worker_that_serves_only_their_tenant() {
    let mut placement = Placement::default();
    for (id, tenant) in [("a", "acme"), ("b", "beta"), ("c", "acme")] {
        wait(&mut placement, id, tenant, Priority::Batch);
    }
    limited(&mut placement, "w", &credential("k", &["acme"], &[]));
    assert_eq!(placed(&mut placement), ["a@w", "c@w"]);
    assert_eq!(placement.wait_of(&JobId::known("b")).unwrap().reason, Reason::NoWorkers);
    let fitting = fitting(&placement, "b");
    assert_eq!((fitting.barred, fitting.ready), (1, 0), "one would fit if it served the tenant");
}

#[test]
fn a_credential_does_not_speak_for_anothers_worker() {
    let mut placement = Placement::default();
    let (ours, theirs) = (credential("k", &["acme"], &[]), credential("x", &["beta"], &[]));
    limited(&mut placement, "w", &ours);
    assert_eq!(claim(&mut placement, "w", "beta", Some(&theirs)), Err(ClaimRefused::NameTaken));
    assert_eq!(claim(&mut placement, "w", "default", None), Err(ClaimRefused::NameTaken));
    let reports = |placement: &Placement, credential: Option<&Arc<WorkerCredential>>| {
        placement.may_report(&WorkerId::known("w"), credential, nobody_else).is_ok()
    };
    assert!(reports(&placement, Some(&ours)) && !reports(&placement, Some(&theirs)));
    assert!(!reports(&placement, None));

    worker(&mut placement, "open", 1, 0.0);
    assert_eq!(claim(&mut placement, "open", "beta", Some(&theirs)), Err(ClaimRefused::NameTaken));
}

#[test]
fn a_name_follows_its_holder_to_a_new_key_and_is_free_when_nobody_listens() {
    let mut placement = Placement::default();
    let (old, new) = (credential("k1", &["acme"], &[]), credential("k2", &["acme"], &[]));
    limited(&mut placement, "w", &old);
    let acme = TenantId::known("acme");
    let rotated = placement.claim(
        &WorkerId::known("w"),
        &acme,
        Some(&new),
        |a, b| (a.as_str(), b.as_str()) == ("k1", "k2"),
        NOW,
    );
    assert_eq!(rotated, Ok(Claim::default()));
    assert_eq!(placement.credential_of(&WorkerId::known("w")), Some(&new));

    placement.mark_unreachable(Who::Worker("w"));
    let theirs = credential("x", &["beta"], &[]);
    assert_eq!(
        claim(&mut placement, "w", "beta", Some(&theirs)),
        Err(ClaimRefused::NameTaken),
        "not for another tenant"
    );
    assert!(claim(&mut placement, "w", "acme", Some(&old)).is_ok());
}

#[test]
fn what_a_worker_had_and_may_not_have_any_longer_is_taken_from_it() {
    let mut placement = Placement::default();
    worker(&mut placement, "w", 10, 0.0);
    assert_eq!(goes_to(&mut placement, "a", "acme").unwrap(), "w");
    assert_eq!(goes_to(&mut placement, "b", "beta").unwrap(), "w");
    placement.mark_unreachable(Who::Worker("w"));
    let claimed = claim(&mut placement, "w", "acme", Some(&credential("k", &["acme"], &[]))).unwrap();
    assert_eq!(claimed.unserved, [JobId::known("b")]);
}

#[test]
fn with_grants_too_the_index_agrees_with_a_search_over_all_workers() {
    let mut random = 11u64;
    let mut roll = |sides: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % sides
    };
    let tenants = ["t", "acme", "beta"];
    let credentials = [
        None,
        Some(credential("a", &["acme"], &[])),
        Some(credential("b", &["acme", "beta"], &["job.echo"])),
        Some(credential("c", &["*"], &["job.other"])),
    ];
    let (mut placement, mut live) = (Placement::default(), Vec::new());
    for round in 0..10_000u64 {
        let id = WorkerId::known(format!("w{}", roll(20)));
        match roll(8) {
            0..=1 => {
                drop(placement.beat(&id, &tenant(), &beat("p", 1 + roll(5) as u32, roll(100) as f32), NOW));
            }
            2 => drop(placement.announce_topics(&id, &tenant(), [Topic::known("job.echo")], NOW)),
            3 => {
                placement.mark_unreachable(Who::Worker(id.as_str()));
                // None has the name for good: everybody is of one tenant here.
                let shown = credentials[roll(4) as usize].as_ref();
                placement.claim(&id, &tenant(), shown, nobody_else, NOW).unwrap();
            }
            4 if roll(3) == 0 => drop(placement.remove_member(Who::Worker(id.as_str()))),
            5 if !live.is_empty() => {
                let job = live.swap_remove(roll(live.len() as u64) as usize);
                placement.remove(&job);
            }
            _ => {
                let wanted = request(&format!("j{round}"), tenants[roll(3) as usize], Priority::Batch);
                let serves = |credential: &Option<Arc<WorkerCredential>>| {
                    credential.as_ref().is_none_or(|own| own.grant.serves(&wanted.tenant, &wanted.topic))
                };
                let fleet = placement.fleet();
                let ready = fleet.iter().filter(|(_, worker)| {
                    let profile = fleet.profile(worker.profile);
                    profile.topics.contains(&wanted.topic) && serves(&profile.credential) && worker.can_take()
                });
                let lowest = ready.map(|(_, worker)| worker.score()).min();
                let given = placement.reserve(&wanted, NOW).ok().map(|to| {
                    let worker = placement.fleet().lookup(Who::Worker(to.worker.unwrap().as_str()));
                    worker.unwrap().score() - 1000
                });
                assert_eq!(given, lowest, "round {round}");
                live.extend(given.map(|_| wanted.id.clone()));
            }
        }
    }
    assert!(live.len() > 10, "the test placed jobs");
}

#[test]
fn one_key_does_not_fill_the_fleet() {
    let mut placement = Placement::default();
    let ours = credential("k", &["acme"], &[]);
    for number in 0..WORKERS_PER_KEY_MAX {
        claim(&mut placement, &format!("w{number}"), "acme", Some(&ours)).unwrap();
    }
    assert_eq!(claim(&mut placement, "more", "acme", Some(&ours)), Err(ClaimRefused::TooMany));
    assert!(claim(&mut placement, "w0", "acme", Some(&ours)).is_ok(), "those that are here stay");
    assert!(claim(&mut placement, "other", "acme", Some(&credential("k2", &["acme"], &[]))).is_ok());
    placement.remove_member(Who::Worker("w0"));
    assert!(claim(&mut placement, "more", "acme", Some(&ours)).is_ok());
}

#[test]
fn nameless_listeners_of_one_tenant_get_that_tenants_jobs() {
    let mut placement = Placement::default();
    let topic = Topic::known("job.echo");
    let only = |tenant: &str| ServedTenants::Only([TenantId::known(tenant)].into());
    wait(&mut placement, "theirs", "beta", Priority::Batch);
    wait(&mut placement, "ours", "acme", Priority::Batch);
    let mut here = TopicListeners::default();
    here.add(&only("acme"));
    placement.set_listeners(&topic, here.clone());
    assert_eq!(placed(&mut placement), ["ours@-"]);
    assert_eq!(placement.wait_of(&JobId::known("theirs")).unwrap().reason, Reason::NoWorkers);
    wait(&mut placement, "more", "acme", Priority::Batch);
    assert_eq!(placed(&mut placement), [""; 0], "the one that serves acme has a job");
    here.add(&ServedTenants::Everyone);
    placement.set_listeners(&topic, here);
    assert_eq!(placed(&mut placement), ["theirs@-"]);
    placement.remove(&JobId::known("ours"));
    assert_eq!(placed(&mut placement), ["more@-"]);
    placement.set_listeners(&topic, TopicListeners::default());
    placement.remove(&JobId::known("more"));
    wait(&mut placement, "last", "acme", Priority::Batch);
    assert_eq!(placed(&mut placement), [""; 0]);
}

#[test]
fn who_signs_as_a_worker_has_its_name_from_anybody_who_does_not() {
    let mut placement = Placement::default();
    let signs = |key: &str| {
        let signs_as = Some(WorkerId::known("w"));
        Arc::new(WorkerCredential { signs_as, ..(*credential(key, &["acme"], &[])).clone() })
    };
    worker(&mut placement, "w", 10, 0.0);
    assert!(claim(&mut placement, "w", "acme", Some(&credential("k", &["acme"], &[]))).is_err());
    assert!(claim(&mut placement, "w", "acme", Some(&signs("s"))).is_ok());
    assert_eq!(claim(&mut placement, "w", "acme", None), Err(ClaimRefused::NameTaken));
    assert_eq!(claim(&mut placement, "w", "beta", Some(&signs("t"))), Err(ClaimRefused::NameTaken));
}
