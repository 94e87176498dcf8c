//! Section 5: advanced routing.

use super::{NOW, dispatched, judged, recorded};
use proptest::prelude::*;
use reveille_core::backoff;
use reveille_core::fleet::{Beat, Load};
use reveille_core::id::{JobId, PoolId, TenantId, WorkerId};
use reveille_core::job::{Job, State};
use reveille_core::life::{self, Due, Limits};
use reveille_core::placement::Placement;
use reveille_core::placement::routing::Routing;
use reveille_core::policy::Decision;
use reveille_core::reason::Reason;
use reveille_core::request::Request;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Two pools serve `job.echo`; only one of them has GPUs. A third serves something else.
fn placement() -> Placement {
    let mut placement = Placement::default();
    let topics = [("job.echo", vec!["plain", "gpu"]), ("job.other", vec!["other"])];
    let pools = [("plain", vec![]), ("gpu", vec!["cuda"]), ("other", vec![])];
    placement.reroute(Arc::new(Routing::mapped(topics, pools)));
    placement
}

/// A worker that says this of itself.
struct Tells {
    pool: &'static str,
    load: Load,
    labels: &'static [(&'static str, &'static str)],
    capabilities: &'static [&'static str],
}

const IDLE: Load = Load { active_jobs: 0, max_parallel_jobs: 100, cpu: 0.0, gpu: 0.0, memory: 0.0 };
const PLAIN: Tells = Tells { pool: "plain", load: IDLE, labels: &[], capabilities: &[] };

fn beat(placement: &mut Placement, id: &str, told: &Tells) {
    let beat = Beat {
        pool: PoolId::parse(told.pool).ok(),
        load: told.load,
        labels: told.labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        capabilities: told.capabilities.iter().map(|name| (*name).to_owned()).collect(),
        ..Beat::default()
    };
    placement.beat(&WorkerId::known(id), &TenantId::known("t"), &beat, NOW).unwrap();
}

fn asks(labels: &[(&str, &str)], requires: &[&str]) -> Arc<Request> {
    let mut request = Request::plain("j", "job.echo");
    request.labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    request.needs.requires = requires.iter().map(|name| (*name).to_owned()).collect();
    Arc::new(request)
}

/// Where the job goes: a worker's name, or the code of the reason.
fn goes(placement: &mut Placement, request: &Arc<Request>) -> String {
    let placed = placement.reserve(request, NOW);
    placement.remove(&request.id);
    placed.map_or_else(|reason| reason.code().to_owned(), |place| place.worker.unwrap().to_string())
}

fn busy(active_jobs: u32, cpu: f32, gpu: f32) -> Load {
    Load { active_jobs, cpu, gpu, ..IDLE }
}

/// What the row shows, who is there, what is asked for, and where it goes.
type Row = (&'static str, Vec<(&'static str, Tells)>, Arc<Request>, &'static str);

#[test]
fn a_subject_is_picked_step_by_step() {
    let gpu = |load| Tells { pool: "gpu", load, ..PLAIN };
    let plain = |load| Tells { load, ..PLAIN };
    let other = || Tells { pool: "other", ..PLAIN };
    let liked = |worker: &str| asks(&[("preferred_worker_id", worker)], &[]);
    let rows: Vec<Row> = vec![
        ("a pool of the topic", vec![("o", other()), ("p", plain(busy(9, 0.0, 0.0)))], asks(&[], &[]), "p"),
        ("no other pool", vec![("o", other())], asks(&[], &[]), "no_workers"),
        (
            "the preferred pool only",
            vec![("p", plain(IDLE)), ("g", gpu(busy(5, 0.0, 0.0)))],
            asks(&[("preferred_pool", "gpu")], &[]),
            "g",
        ),
        (
            "a preferred pool of another topic",
            vec![("o", other()), ("p", plain(IDLE))],
            asks(&[("preferred_pool", "other")], &[]),
            "no_pool_mapping",
        ),
        (
            "a pool that has what is required",
            vec![("p", plain(IDLE)), ("g", gpu(busy(5, 0.0, 0.0)))],
            asks(&[], &["cuda"]),
            "g",
        ),
        (
            "no pool has it",
            vec![("p", plain(IDLE)), ("g", gpu(IDLE))],
            asks(&[], &["tpu"]),
            "no_pool_mapping",
        ),
        (
            "the preferred worker at once",
            vec![("p", plain(IDLE)), ("q", plain(busy(50, 80.0, 80.0)))],
            liked("q"),
            "q",
        ),
        (
            "not if it is overloaded",
            vec![("p", plain(IDLE)), ("q", plain(busy(0, 90.0, 0.0)))],
            liked("q"),
            "p",
        ),
        ("nor from another pool", vec![("p", plain(IDLE)), ("o", other())], liked("o"), "p"),
        ("nor if it is not there", vec![("p", plain(IDLE))], liked("nobody"), "p"),
        (
            "the fewest jobs",
            vec![("p", plain(busy(3, 0.0, 0.0))), ("q", plain(busy(2, 0.0, 0.0)))],
            asks(&[], &[]),
            "q",
        ),
        (
            "CPU counts as a fraction of a job",
            vec![("p", plain(busy(2, 50.0, 0.0))), ("q", plain(busy(2, 49.0, 0.0)))],
            asks(&[], &[]),
            "q",
        ),
        (
            "so does GPU",
            vec![("p", plain(busy(2, 10.0, 50.0))), ("q", plain(busy(2, 50.0, 9.0)))],
            asks(&[], &[]),
            "q",
        ),
        (
            "a whole job outweighs either",
            vec![("p", plain(busy(3, 0.0, 0.0))), ("q", plain(busy(2, 89.0, 0.0)))],
            asks(&[], &[]),
            "q",
        ),
        (
            "though not both",
            vec![("p", plain(busy(3, 0.0, 0.0))), ("q", plain(busy(2, 89.0, 89.0)))],
            asks(&[], &[]),
            "p",
        ),
        (
            "overloaded ones are skipped",
            vec![("p", plain(busy(80, 0.0, 0.0))), ("q", plain(busy(0, 0.0, 90.0)))],
            asks(&[], &[]),
            "p",
        ),
    ];
    for (what, workers, request, expected) in rows {
        let mut placement = placement();
        for (id, told) in &workers {
            beat(&mut placement, id, told);
        }
        assert_eq!(goes(&mut placement, &request), expected, "{what}");
    }
}

#[test]
fn label_hints_do_what_the_table_says() {
    let near = Tells {
        load: busy(50, 0.0, 0.0),
        labels: &[("region", "eu"), ("node.disk", "ssd"), ("tier", "gold")],
        capabilities: &["ocr"],
        ..PLAIN
    };
    let rows: [(&[(&str, &str)], &str); 9] = [
        (&[], "far"),
        (&[("preferred_pool", "gpu")], "g"),
        (&[("preferred_worker_id", "near")], "near"),
        (&[("placement.region", "eu")], "near"),
        (&[("placement.region", "us")], "no_workers"),
        (&[("constraint.tier", "gold")], "near"),
        (&[("constraint.ocr", "true")], "near"),
        (&[("node.disk", "ssd")], "near"),
        (&[("colour", "red")], "far"),
    ];
    for (labels, expected) in rows {
        let mut placement = placement();
        beat(&mut placement, "near", &near);
        beat(&mut placement, "far", &PLAIN);
        beat(&mut placement, "g", &Tells { pool: "gpu", load: busy(60, 0.0, 0.0), ..PLAIN });
        assert_eq!(goes(&mut placement, &asks(labels, &[])), expected, "{labels:?}");
    }
}

#[test]
fn a_worker_is_overloaded_at_ninety_per_cent_and_not_just_below() {
    let rows = [
        (busy(89, 0.0, 0.0), false),
        (busy(90, 0.0, 0.0), true),
        (Load { max_parallel_jobs: 10, ..busy(8, 0.0, 0.0) }, false),
        (Load { max_parallel_jobs: 10, ..busy(9, 0.0, 0.0) }, true),
        (Load { max_parallel_jobs: 99, ..busy(89, 0.0, 0.0) }, false),
        (Load { max_parallel_jobs: 1, ..busy(0, 0.0, 0.0) }, false),
        (Load { max_parallel_jobs: 1, ..busy(1, 0.0, 0.0) }, true),
        (busy(0, 89.9, 0.0), false),
        (busy(0, 90.0, 0.0), true),
        (busy(0, 0.0, 89.9), false),
        (busy(0, 0.0, 90.0), true),
        (busy(89, 89.9, 89.9), false),
    ];
    for (load, is_overloaded) in rows {
        let mut placement = placement();
        beat(&mut placement, "w", &Tells { load, ..PLAIN });
        let expected = if is_overloaded { "pool_overloaded" } else { "w" };
        assert_eq!(goes(&mut placement, &asks(&[], &[])), expected, "{load:?}");
    }
}

/// The dead letter of a job that waited in vain on this placement.
fn given_up(placement: &mut Placement, request: Request) -> Job {
    let recorded = recorded(Decision::Allow);
    let job = life::judge(&life::submit(request, NOW), recorded, NOW).unwrap();
    placement.apply(&job, NOW);
    assert!(placement.reserve_waiting(NOW).is_empty(), "it has found a worker");
    let reason = placement.wait_of(job.id()).unwrap().reason;
    let end = backoff::exhausted_at(NOW);
    match life::pass_time(&job, &Limits::default(), Some(reason), end) {
        Ok(Due::Change(job)) => *job,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_dead_letter_carries_its_reason_code() {
    let mut empty = placement();
    let mut loaded = placement();
    beat(&mut loaded, "w", &Tells { load: busy(95, 0.0, 0.0), ..PLAIN });
    let mut limited = placement();
    beat(&mut limited, "w", &PLAIN);
    limited.limit_tenants(BTreeMap::from([(TenantId::known("default"), 1)]));
    let first = Arc::new(Request { id: JobId::known("first"), ..Request::plain("j", "job.echo") });
    limited.reserve(&first, NOW).unwrap();
    let mut unheard = dispatched();
    for number in 1..=backoff::TRIES_MAX {
        unheard = life::unheard(&unheard, number, NOW, 0).unwrap();
        if let Some(not_before) = life::due(&unheard, &Limits::default(), NOW) {
            let to = life::Destination { worker: Some(WorkerId::known("w")), pool: None };
            unheard = life::assign(&unheard, &to, not_before.max(NOW)).unwrap_or(unheard);
        }
    }
    let plain = || Request::plain("j", "job.echo");
    let rows = [
        ("no_pool_mapping", given_up(&mut empty, Request::plain("k", "job.unmapped"))),
        ("no_workers", given_up(&mut empty, plain())),
        ("pool_overloaded", given_up(&mut loaded, plain())),
        ("tenant_limit", given_up(&mut limited, plain())),
        ("safety_denied", judged(Decision::Deny)),
        ("dispatch_failed", unheard),
    ];
    for (code, job) in rows {
        assert_eq!(Reason::parse(code).map(Reason::code), Some(code));
        let letter = job.dead_letter().unwrap_or_else(|| panic!("{code}: {} is none", job.state()));
        assert_eq!(letter.reason_code.map(Reason::code), Some(code));
        let expected = if code == "safety_denied" { State::Denied } else { State::Failed };
        assert_eq!(job.state(), expected, "{code}");
    }
}

#[test]
fn the_backoff_has_the_numbers_of_the_formula() {
    assert_eq!((backoff::BASE_MS, backoff::MAX_MS), (1_000, 30_000));
    assert_eq!((backoff::JITTER_MS, backoff::TRIES_MAX), (500, 50));
}

proptest! {
    /// delay = min(base × 2^attempt + jitter, max), jitter in [0, 500 ms).
    #[test]
    fn every_delay_follows_the_formula(attempt in 0u32..200, random: u64) {
        let jitter = (random % 500) as i64;
        let doubled = 1_000i64.saturating_mul(1i64.checked_shl(attempt.min(40)).unwrap());
        prop_assert_eq!(backoff::delay_ms(attempt, random), doubled.saturating_add(jitter).min(30_000));
    }

    /// Jitter never shortens a delay and never takes it past the cap; all of it is used.
    #[test]
    fn jitter_stays_within_its_bounds(attempt in 0u32..200, random: u64) {
        let (least, delay) = (backoff::delay_ms(attempt, 0), backoff::delay_ms(attempt, random));
        prop_assert!((least..least + 500).contains(&delay) && delay <= 30_000);
    }
}

#[test]
fn jitter_reaches_both_of_its_ends() {
    let delays: Vec<i64> = (0..1_000).map(|random| backoff::delay_ms(0, random)).collect();
    assert_eq!((delays.iter().min(), delays.iter().max()), (Some(&1_000), Some(&1_499)));
}
