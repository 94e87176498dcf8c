//! Constants of the scheduler's internals page that live in the shell, by their names there. The others are in
//! `crates/core/tests/core/seed_004`.

use crate::cluster::STRIKES_MAX;
use crate::jobs::LOOK_WITHIN;
use crate::runtime::{PUBLISH_PAUSE, RETRY_PAUSE};
use crate::workflows::RUN_LOCK_TTL_MS;
use std::time::Duration;

#[test]
fn section_2_the_content_scan_has_thirty_seconds() {
    assert_eq!(LOOK_WITHIN, Duration::from_secs(30));
}

#[test]
fn section_7_the_shell_pauses_as_long_as_the_page_says() {
    for (name, ours, given_ms) in
        [("retryDelayStore", RETRY_PAUSE, 1_000), ("retryDelayPublish", PUBLISH_PAUSE, 2_000)]
    {
        assert_eq!(ours, Duration::from_millis(given_ms), "{name}");
    }
}

#[test]
fn section_8_locks_last_as_long_as_the_page_says() {
    assert_eq!(STRIKES_MAX, 3, "maxRenewalFailures");
    assert_eq!(RUN_LOCK_TTL_MS, 30_000, "cordum:wf:run:lock:<runID>");
}
