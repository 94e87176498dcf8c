//! What workers make: a result for every job that went well, and a secret in some of them.

use crate::invariants::InvariantResult;
use crate::plan;
use crate::world::World;
use reveille_core::id::JobId;
use reveille_core::job::{Job, State};
use reveille_core::output::OutputDecision;
use reveille_store::{BlobKey, Blobs, PutMode};
use std::collections::BTreeSet;

const SECRET: &str = "AKIAIOSFODNN7EXAMPLE";
const KEEP_MS: i64 = 24 * 3600 * 1000;

/// The same every time, so that it does not matter which attempt wrote it.
fn says_too_much(id: &str) -> bool {
    id.bytes().fold(7u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte))) % 4 == 0
}

/// Writes a step's result through the server's door. Says whether it is there.
pub async fn put(world: &World, id: &str, text: String) -> bool {
    let (Ok(key), Some((engine, life))) = (BlobKey::parse(&format!("res:{id}")), world.engine()) else {
        return false;
    };
    let until = world.server(life.server).clock.now() + KEEP_MS;
    let put =
        life.answer(engine.jobs().readable_blobs().put_blob(key, text.into(), until, PutMode::Always)).await;
    matches!(put, Some(Ok(true)))
}

/// Writes the result through the server's door, if the server is there; a shared store has a door of its own.
pub async fn write(world: &World, id: &str) {
    let Ok(key) = BlobKey::parse(&format!("res:{id}")) else { return };
    let text = if says_too_much(id) { format!("{{\"key\":\"{SECRET}\"}}") } else { "{}".to_owned() };
    let put = if world.plan.is_shared() {
        Some(world.store.put_blob(key, text.into(), world.now() + KEEP_MS, PutMode::Always).await)
    } else {
        let Some((engine, life)) = world.engine() else { return };
        let until = world.server(life.server).clock.now() + KEEP_MS;
        life.answer(engine.jobs().readable_blobs().put_blob(key, text.into(), until, PutMode::Always)).await
    };
    if matches!(put, Some(Ok(true))) && says_too_much(id) && world.plan.looks_at_results() {
        world.check(|ledger| {
            ledger.leaks.insert(JobId::known(id));
            Ok(())
        });
    }
}

/// A result that says too much can be read by nobody, unless somebody released it.
pub fn committed(leaks: &BTreeSet<JobId>, job: &Job) -> InvariantResult {
    if job.state() != State::Succeeded
        || job.owed.output_scan
        || !leaks.contains(job.id())
        || job.was_released()
    {
        return Ok(());
    }
    let decision = job.output.as_ref().map(|check| check.verdict.decision);
    let topic = job.request.topic.as_str();
    let wanted = if topic == plan::LEAKY {
        OutputDecision::Quarantine
    } else if topic == plan::BOUNDED {
        OutputDecision::Redact
    } else {
        return Ok(());
    };
    if decision == Some(wanted) {
        return Ok(());
    }
    Err(format!("{} says too much, and output policy said {decision:?}", job.id()))
}
