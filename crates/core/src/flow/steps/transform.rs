//! A transform step works out its input, and that is its output.

use super::super::draft::RunDraft;
use super::super::node::NodeKey;

pub(super) fn begin(draft: &mut RunDraft<'_>, key: &NodeKey) {
    match draft.input(key) {
        Ok(output) => draft.succeed(key, Some(output)),
        Err(problem) => draft.fail(key, &problem),
    }
}
