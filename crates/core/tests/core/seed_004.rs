//! The scheduler's internals as they were given to us, section by section: each table and each arrow of that
//! page is a row here. Where we do something else on purpose, the row names the page that says why.
//!
//! What needs a running engine (the fail-open default, the pauses of section 7) is in the `seed_004` tests
//! of `crates/engine`.

mod section_1;
mod section_2;
mod section_5;
mod section_7;

use reveille_core::id::WorkerId;
use reveille_core::job::Job;
use reveille_core::life::{self, Destination, Made, Report, Status};
use reveille_core::policy::{Decision, Policy, RecordedVerdict, Verdict};
use reveille_core::request::Request;
use reveille_core::time::Millis;

const NOW: Millis = Millis(1_000_000);

fn recorded(decision: Decision) -> RecordedVerdict {
    let verdict = Policy::builtin().evaluate(&Request::plain("j", "job.echo"));
    RecordedVerdict { verdict: Verdict { decision, ..verdict }, checked_at: NOW }
}

fn judged(decision: Decision) -> Job {
    life::judge(&life::submit(Request::plain("j", "job.echo"), NOW), recorded(decision), NOW).unwrap()
}

fn dispatched() -> Job {
    let to = Destination { worker: Some(WorkerId::known("w")), pool: None };
    life::assign(&judged(Decision::Allow), &to, NOW).unwrap()
}

fn running() -> Job {
    life::start(&dispatched(), 1, None, NOW).unwrap()
}

fn report(status: Status) -> Report {
    Report {
        worker: WorkerId::known("w"),
        attempt: None,
        status,
        result_ptr: "redis://res:j".to_owned(),
        error_code: String::new(),
        error_message: "it broke".to_owned(),
        execution_ms: 5,
        made: Made::default(),
        trace: None,
    }
}

/// Whether a page that is named here is there, and so can be read by whoever asks why.
#[track_caller]
fn assert_is_page(page: &str) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../").to_owned() + page;
    assert!(std::path::Path::new(&path).is_file(), "{page} is named and is not there");
}
