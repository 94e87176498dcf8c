//! A run without a shell: somebody says how each job ends, time jumps to whatever is due, and nothing goes
//! wrong. The simulation compares what came out of a run under faults with what comes out here.

use super::{Flow, NodeKey, Run, RunEvent, StepOutcome, SubmittedWork, advance, start};
use crate::cost::{CostLimit, Meter};
use crate::time::Millis;

/// What a step has sent off.
pub struct PendingWork<'a> {
    pub node: &'a NodeKey,
    pub attempt: u32,
    pub sent: &'a SubmittedWork,
    pub input: &'a serde_json::Value,
}

/// Takes a run to its end. `answer` says how what was sent off ends; nothing, if it never does: then only time
/// can end the run.
pub fn interpret(
    mut run: Run,
    flow: &Flow,
    now: Millis,
    mut answer: impl FnMut(&PendingWork<'_>) -> Option<StepOutcome>,
) -> Run {
    let mut now = now;
    let meter = || Meter::new(CostLimit::RUN_EVENT);
    let begun = start(&run, flow, now, &meter());
    run.apply(begun);
    while run.is_live() {
        let change = match next(&run, &mut answer) {
            Some(event) => advance(&run, flow, &event, now, &meter()),
            None if run.head.owes_rollback => {
                let upto = run.head.compensations;
                advance(&run, flow, &RunEvent::RollbackMade { upto }, now, &meter())
            }
            None => match run.head.due {
                Some(due) => {
                    now = now.max(due);
                    advance(&run, flow, &RunEvent::Time, now, &meter())
                }
                None => return run,
            },
        };
        match change {
            Ok(change) => run.apply(change),
            Err(refusal) => unreachable!("what was asked is answered: {refusal}"),
        }
    }
    run
}

fn next(run: &Run, answer: &mut impl FnMut(&PendingWork<'_>) -> Option<StepOutcome>) -> Option<RunEvent> {
    run.live().find_map(|(key, node)| {
        let sent = node.sent.as_ref()?;
        let nothing = serde_json::Value::Null;
        let input = node.input.as_deref().unwrap_or(&nothing);
        let outcome = if node.owes_cancel {
            Some(StepOutcome::Succeeded(None))
        } else if node.due.is_some() && *sent == SubmittedWork::Notice {
            None
        } else {
            answer(&PendingWork { node: key, attempt: node.attempt, sent, input })
        };
        Some(RunEvent::Over { node: key.clone(), attempt: node.attempt, outcome: outcome? })
    })
}
