//! Nothing runs unjudged: whatever the policy says and however jobs come in, are tried again, lose their
//! worker or outlive the server, no job is at a worker without a verdict that lets it be there.
//!
//! Policies, jobs and everything that people, workers and operators do are drawn at random. The rule is
//! checked on every commit and on every packet that a worker gets (`ledger.rs`), never only at the end. The
//! simulation asks the same of fewer rules under many more faults.

use super::draw;
use super::ledger::{Met, WAYS};
use super::world::World;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use std::cell::RefCell;

/// Stories in one batch.
const CASES: u32 = 64;
/// Some ways to a worker are rare; batches are drawn until each was met, and this often in vain means that
/// one is not there.
const BATCHES_MAX: usize = 8;

#[test]
fn no_path_reaches_a_worker_without_a_judgement_that_lets_it() {
    let met = RefCell::new(Met::default());
    let missed = || WAYS.into_iter().filter(|way| !met.borrow().contains(way)).collect::<Vec<_>>();
    for _ in 0..BATCHES_MAX {
        let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
        let done = TestRunner::new(config).run(&draw::story(), |story| {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
            let found = runtime.unwrap().block_on(World::live_through(&story));
            met.borrow_mut().extend(found.met);
            match found.broken.as_slice() {
                [] => Ok(()),
                [first, ..] => Err(TestCaseError::fail(first.clone())),
            }
        });
        if let Err(failure) = done {
            panic!("{failure}");
        }
        if missed().is_empty() {
            return;
        }
    }
    panic!("no job came to a worker by these ways, so nothing is shown of them: {:?}", missed());
}
