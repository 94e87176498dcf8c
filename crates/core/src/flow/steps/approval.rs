//! An approval step asks a person. It is a job that no worker takes: whoever approves it lets it succeed. It
//! waits even where policy would let it pass, since asking is all it is for.

use super::super::draft::RunDraft;
use super::super::node::NodeKey;
use super::super::table::StepState;
use super::worker;

pub const GATE_TOPIC: &str = "job.cordum.approval-gate";

pub(super) fn begin(draft: &mut RunDraft<'_>, key: &NodeKey) {
    match draft.input(key) {
        Ok(input) => worker::send_off(draft, key, input, StepState::Waiting),
        Err(problem) => draft.fail(key, &problem),
    }
}
