//! What the fleet promises.

use reveille_core::fleet::{
    Beat, BeatSource, EXPIRED_MAX, Fleet, Load, NoRoom, PresenceChange, Seen, Slot, Who,
};
use reveille_core::id::TenantId;
use reveille_core::presence::About;
use reveille_core::presence::agent::{Agent, AgentBeat, AgentStatus};
use reveille_core::quota::{OverQuota, TenantQuota};
use reveille_core::time::Millis;

fn admit(fleet: &mut Fleet, name: &str, now: Millis) -> Slot {
    fleet.admit(Who::Worker(name), &TenantId::known("t"), now).unwrap()
}

#[test]
fn a_silent_worker_is_dead_after_its_ttl_and_a_beating_one_is_not() {
    let mut fleet = Fleet::default();
    let start = Millis(1_000_000);
    let quiet = admit(&mut fleet, "quiet", start);
    let loud = admit(&mut fleet, "loud", start);
    let mut dead = Vec::new();
    for ms in (0..=60_000).step_by(50) {
        let now = start + ms;
        if ms % 5_000 == 0 {
            admit(&mut fleet, "loud", now);
        }
        for slot in fleet.expire(now) {
            dead.push((fleet.remove(slot).unwrap().id, ms));
        }
    }
    assert_eq!(dead.len(), 1);
    assert_eq!(dead[0].0.as_str(), "quiet");
    assert!((30_000..=30_100).contains(&dead[0].1), "{dead:?}");
    assert!(fleet.get(quiet).is_none() && fleet.get(loud).is_some());
}

#[test]
fn a_slot_that_is_used_again_does_not_inherit_a_death() {
    let mut fleet = Fleet::default();
    let first = admit(&mut fleet, "first", Millis(0));
    fleet.expire(Millis(20_000));
    fleet.remove(first);
    let second = admit(&mut fleet, "second", Millis(20_000));
    assert_eq!(first, second);
    assert!(fleet.expire(Millis(40_000)).is_empty());
    assert_eq!(fleet.expire(Millis(50_100)), [second]);
}

#[test]
fn a_rack_that_falls_silent_is_buried_within_two_ticks() {
    let mut fleet = Fleet::default();
    for number in 0..10_000 {
        let name = format!("w{number}");
        let heard = if number < EXPIRED_MAX + 5 { Millis(0) } else { Millis(25_000) };
        admit(&mut fleet, &name, heard);
    }
    let first = fleet.expire(Millis(31_000));
    assert_eq!(first.len(), EXPIRED_MAX);
    for slot in first {
        fleet.remove(slot).unwrap();
    }
    assert_eq!(fleet.expire(Millis(31_050)).len(), 5);
}

#[test]
fn our_own_absence_kills_nobody() {
    let mut fleet = Fleet::default();
    admit(&mut fleet, "w", Millis(0));
    fleet.credit_downtime(60_000, Millis(60_000));
    assert!(fleet.expire(Millis(60_000)).is_empty());
    assert_eq!(fleet.expire(Millis(90_100)).len(), 1);
}

#[test]
fn load_is_what_we_gave_it_plus_what_others_did() {
    let mut fleet = Fleet::default();
    let slot = admit(&mut fleet, "w", Millis(0));
    fleet.get_mut(slot).unwrap().held = 2;
    let load = Load { active_jobs: 3, max_parallel_jobs: 10, cpu: 50.0, gpu: 25.0, memory: 0.0 };
    fleet.beat(slot, &Beat { load, ..Beat::default() });
    let worker = fleet.get_mut(slot).unwrap();
    assert_eq!((worker.active(), worker.score()), (3, 3750));
    worker.held = 0;
    assert_eq!(worker.active(), 1, "what we know to be finished no longer counts");
    worker.held = 8;
    assert!(worker.is_overloaded());
}

#[test]
fn most_of_a_silent_fleet_is_given_time_and_a_rack_of_it_is_not() {
    let mut fleet = Fleet::default();
    for number in 0..1_000 {
        admit(&mut fleet, &format!("w{number}"), Millis(0));
    }
    let expire = |fleet: &mut Fleet, from: i64, to: i64| {
        let mut expired = 0;
        for ms in (from..to).step_by(50) {
            for slot in fleet.expire(Millis(ms)) {
                fleet.remove(slot).unwrap();
                expired += 1;
            }
        }
        expired
    };
    assert!((1..=40).contains(&expire(&mut fleet, 29_000, 32_000)), "one in a hundred a second");
    assert!(fleet.is_mass_expiry());
    for number in 0..600 {
        if let Some(slot) = fleet.find(Who::Worker(&format!("w{number}"))) {
            fleet.get_mut(slot).unwrap().last_seen = Millis(32_000);
        }
    }
    let left = fleet.len();
    expire(&mut fleet, 32_000, 34_000);
    assert!(!fleet.is_mass_expiry(), "most are heard again");
    assert!(fleet.len() < left && fleet.len() <= 600, "and the others are dead: {}", fleet.len());
}

#[test]
fn each_contract_has_its_own_names_and_ttl() {
    let mut fleet = Fleet::default();
    let (acme, other) = (TenantId::known("acme"), TenantId::known("other"));
    let who = [Who::Worker("x"), Who::Workspace("x"), Who::Agent(&acme, "x"), Who::Agent(&other, "x")];
    let slots = who.map(|who| fleet.admit(who, &acme, Millis(0)).unwrap());
    assert_eq!(fleet.len(), 4);
    assert_eq!(fleet.agents_of(&acme).count(), 1);
    let mut died = Vec::new();
    for ms in (0..70_000).step_by(50) {
        for slot in fleet.expire(Millis(ms)) {
            fleet.set_offline(slot);
            died.push((ms, slots.iter().position(|own| *own == slot).unwrap()));
        }
    }
    assert_eq!(died.iter().map(|(_, who)| *who).collect::<Vec<_>>(), [0, 2, 3, 1]);
    for ((ms, _), ttl) in died.iter().zip([30_000, 45_000, 45_000, 60_000]) {
        assert!((ttl..ttl + 100).contains(ms), "{died:?}");
    }
    assert_eq!((fleet.alive(), fleet.len()), (0, 4));
    fleet.admit(Who::Agent(&acme, "x"), &acme, Millis(80_000)).unwrap();
    assert_eq!(fleet.alive(), 1);
    assert_eq!(fleet.expire(Millis(125_100)), [slots[2]], "who comes back can die again");
}

#[test]
fn an_agent_that_falls_silent_is_offline_without_sessions_until_it_beats() {
    let mut fleet = Fleet::default();
    let acme = TenantId::known("acme");
    let beat = AgentBeat {
        agent_id: "a".into(),
        name: "voice".into(),
        status: AgentStatus::Busy,
        active_sessions: 3,
        ..AgentBeat::default()
    };
    let first = fleet.agent_beat(&acme, &beat, BeatSource::ThisServer, Millis(0)).unwrap();
    assert_eq!(first, PresenceChange { joined: true, back: false, changed: true });
    let again = fleet.agent_beat(&acme, &beat, BeatSource::ThisServer, Millis(1)).unwrap();
    assert_eq!(again, PresenceChange::default());
    assert_eq!(fleet.take_unwritten(10).len(), 1, "two beats are one row");
    fleet.agent_beat(&acme, &beat, BeatSource::AnotherServer, Millis(2)).unwrap();
    assert!(fleet.take_unwritten(10).is_empty(), "whoever has heard it writes");
    for slot in fleet.expire(Millis(45_100)) {
        fleet.set_offline(slot);
    }
    let About::Agent(agent) = &fleet.lookup(Who::Agent(&acme, "a")).unwrap().about else { panic!() };
    assert_eq!((agent.status, agent.active_sessions), (AgentStatus::Offline, 0));
    let back = fleet.agent_beat(&acme, &beat, BeatSource::ThisServer, Millis(50_000)).unwrap();
    assert!(back.back && back.changed && !back.joined);
    assert!(fleet.lookup(Who::Agent(&acme, "a")).unwrap().is_online());
    fleet
        .agent_beat(
            &acme,
            &AgentBeat { status: AgentStatus::Offline, ..beat },
            BeatSource::ThisServer,
            Millis(50_001),
        )
        .unwrap();
    let away = fleet.lookup(Who::Agent(&acme, "a")).unwrap();
    assert!(!away.offline && !away.is_online(), "it is heard, and says that it is away");
}

#[test]
fn a_tenant_that_has_all_its_members_gets_no_more_and_others_do() {
    let mut fleet = Fleet::default();
    fleet.limit_members(2);
    let (acme, zeta) = (TenantId::known("acme"), TenantId::known("zeta"));
    let beat = |id: &'static str| AgentBeat { agent_id: id.into(), ..AgentBeat::default() };
    let mut heard = |tenant, id, source| fleet.agent_beat(tenant, &beat(id), source, Millis(0)).map(|_| ());
    let full = Err(NoRoom::Tenant(OverQuota { quota: TenantQuota::Members, max: 2 }));
    assert_eq!(heard(&acme, "a", BeatSource::ThisServer), Ok(()));
    assert_eq!(heard(&acme, "b", BeatSource::ThisServer), Ok(()));
    assert_eq!(heard(&acme, "c", BeatSource::ThisServer), full);
    assert_eq!(heard(&acme, "a", BeatSource::ThisServer), Ok(()), "who is there stays");
    assert_eq!(heard(&zeta, "a", BeatSource::ThisServer), Ok(()));
    assert_eq!(heard(&acme, "d", BeatSource::AnotherServer), Ok(()), "the other server had room");
    fleet.restore_agent(&acme, "e", Agent::default(), Seen::LongAgo(Millis(0)));
    assert!(fleet.lookup(Who::Agent(&acme, "e")).is_some(), "what was known is known again");
}

#[test]
fn cap_workers_count_among_the_members_of_their_tenant_until_they_are_gone() {
    let mut fleet = Fleet::default();
    fleet.limit_members(1);
    let acme = TenantId::known("acme");
    let (first, second) = (Who::Worker("first"), Who::Worker("second"));
    let slot = fleet.admit(first, &acme, Millis(0)).unwrap();
    assert_eq!(fleet.check_quota(first, &acme), Ok(()));
    assert!(fleet.check_quota(second, &acme).is_err());
    assert!(fleet.check_quota(Who::Agent(&acme, "a"), &acme).is_err());
    fleet.remove(slot);
    assert_eq!(fleet.check_quota(second, &acme), Ok(()));
    fleet.admit(Who::Workspace("w"), &acme, Millis(0)).unwrap();
    assert_eq!(fleet.check_quota(second, &acme), Ok(()), "workspaces have a quota of their own");
}
