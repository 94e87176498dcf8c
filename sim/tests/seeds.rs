//! A few seeds with every `cargo test`; `cargo xtask sim` runs a thousand.

use reveille_sim::{Breakage, Coverage, Verbosity, run};

#[test]
fn twenty_seeds_keep_every_promise() {
    let mut met = Coverage::default();
    for seed in 0..20 {
        let outcome = run(seed, None, Verbosity::Silent);
        if let Some(failure) = outcome.failure {
            panic!("seed {seed}: {}\n{}", failure.words, failure.last_lines.join("\n"));
        }
        met.merge(&outcome.coverage);
    }
    assert!(met.jobs > 300, "{} jobs are no test", met.jobs);
}

#[test]
fn the_same_seed_gives_the_same_run_to_the_byte() {
    for seed in [3, 4, 5, 6] {
        let hash = || run(seed, None, Verbosity::Silent).trace_hash;
        assert_eq!(hash(), hash(), "seed {seed}");
    }
    assert_ne!(run(3, None, Verbosity::Silent).trace_hash, run(4, None, Verbosity::Silent).trace_hash);
}

#[test]
fn every_broken_rule_is_noticed() {
    for (name, breakage) in Breakage::ALL {
        let caught = (0..200).find_map(|seed| run(seed, Some(breakage), Verbosity::Silent).failure);
        assert!(caught.is_some(), "nobody noticed {name}");
    }
}

/// The rules of runs, where several servers are at each of them.
#[test]
fn broken_rules_of_runs_are_noticed_where_servers_share_them() {
    let caught_where_shared = |seed, breakage| {
        let outcome = run(seed, Some(breakage), Verbosity::Silent);
        outcome.failure.filter(|_| outcome.coverage.shared_seeds > 0)
    };
    for breakage in [
        Breakage::ForgetRollback,
        Breakage::UndoTwice,
        Breakage::UndoInOrder,
        Breakage::FireTwice,
        Breakage::DropOutcome,
        Breakage::StartTwice,
    ] {
        let caught = (0..200).find_map(|seed| caught_where_shared(seed, breakage));
        assert!(caught.is_some(), "nobody noticed {breakage:?}");
    }
}

/// Without the net, and without comparing and swapping, these runs would break a promise: `no-net` and `skip-cas` are
/// among the rules that are noticed.
#[test]
fn some_broken_rules_are_made_good() {
    for (name, breakage) in Breakage::SURVIVED {
        let mut met = Coverage::default();
        for seed in 0..10 {
            let outcome = run(seed, Some(breakage), Verbosity::Silent);
            if let Some(failure) = outcome.failure {
                panic!("{name}, seed {seed}: {}\n{}", failure.words, failure.last_lines.join("\n"));
            }
            met.merge(&outcome.coverage);
        }
        assert!(!breakage.loses_timers() || met.caught > 0, "{name} was never met");
    }
}
