//! A condition step says yes or no, and that is its output.

use super::super::definition::FlowProblem;
use super::super::document::StepDocument;
use super::super::draft::RunDraft;
use super::super::node::NodeKey;
use crate::expression::{Expression, Names};
use serde_json::Value as Json;

#[derive(Debug, Clone)]
pub struct ConditionStep {
    pub asks: Expression,
}

impl ConditionStep {
    pub(super) fn read(document: &StepDocument, names: Names<'_>) -> Result<Self, FlowProblem> {
        super::only(document, &["expression", "condition"])?;
        let inner = super::part(document, &["expression", "condition"]).and_then(Json::as_str);
        let source = inner.or(document.condition.as_deref());
        let source = source.ok_or_else(|| FlowProblem::new("condition", "a condition step needs one"))?;
        Ok(Self { asks: super::expression("condition", source, names)? })
    }

    pub(super) fn begin(&self, draft: &mut RunDraft<'_>, key: &NodeKey) {
        match draft.holds(key, &self.asks) {
            Ok(yes) => draft.succeed(key, Some(Json::Bool(yes))),
            Err(problem) => draft.fail(key, &problem),
        }
    }
}
