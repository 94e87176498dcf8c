//! Constants of the scheduler's internals page that live in the shell, by their names there. The others are in
//! `crates/core/tests/core/seed_004`.

use crate::{dispatch, drive, lease, output, run_lock};
use std::time::Duration;

#[test]
fn section_2_the_content_scan_has_thirty_seconds() {
    assert_eq!(output::LOOK_WITHIN, Duration::from_secs(30));
}

#[test]
fn section_7_the_shell_pauses_as_long_as_the_page_says() {
    for (name, ours, given_ms) in
        [("retryDelayStore", drive::STORE_PAUSE, 1_000), ("retryDelayPublish", dispatch::BUS_PAUSE, 2_000)]
    {
        assert_eq!(ours, Duration::from_millis(given_ms), "{name}");
    }
}

#[test]
fn section_8_locks_last_as_long_as_the_page_says() {
    assert_eq!(lease::STRIKES_MAX, 3, "maxRenewalFailures");
    assert_eq!(run_lock::TTL_MS, 30_000, "cordum:wf:run:lock:<runID>");
}
