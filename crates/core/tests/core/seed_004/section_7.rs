//! Section 7: the scheduler's constants, by their names there.

use super::assert_is_page;
use reveille_core::backoff;

enum Ours {
    /// The same number, here.
    Same(i64),
    /// The same number, in the shell: `crates/engine/src/seed_004.rs` asserts it.
    InTheShell,
    /// We do without; the page says why.
    Without(&'static str),
}

#[test]
fn every_constant_is_the_same_or_has_a_page_that_says_why_not() {
    use Ours::{InTheShell, Same, Without};
    const JOB_LOCK: &str = "docs/adr/0009-per-job-lock-over-compare-and-swap.md";
    let rows = [
        // One file in the same process: a commit ends with its sync, and a full queue makes callers wait.
        ("storeOpTimeout", 2_000, Without("docs/adr/0001-sqlite-with-group-commit.md")),
        ("jobLockTTL", 60_000, Without(JOB_LOCK)),
        ("maxSchedulingRetries", 50, Same(i64::from(backoff::TRIES_MAX))),
        ("retryDelayBusy", 500, Without(JOB_LOCK)),
        ("retryDelayStore", 1_000, InTheShell),
        ("retryDelayPublish", 2_000, InTheShell),
        ("retryDelayNoWorkers", 2_000, Without("docs/adr/0004-waiting-costs-no-writes.md")),
        ("safetyThrottleDelay", 5_000, Same(backoff::THROTTLE_MS)),
        ("backoffBase", 1_000, Same(backoff::BASE_MS)),
        ("backoffMax", 30_000, Same(backoff::MAX_MS)),
        ("maxRenewalFailures", 3, Without(JOB_LOCK)),
    ];
    for (name, value, ours) in rows {
        match ours {
            Same(ours) => assert_eq!(ours, value, "{name}"),
            InTheShell => assert_is_page("crates/engine/src/seed_004.rs"),
            Without(page) => assert_is_page(page),
        }
    }
}
