//! A condition step says yes or no, and that is its output.

use super::super::definition::Problem;
use super::super::document::StepDocument;
use super::super::draft::Draft;
use super::super::node::NodeKey;
use crate::expression::{Expression, Names};
use serde_json::Value as Json;

#[derive(Debug, Clone)]
pub struct Condition {
    pub asks: Expression,
}

impl Condition {
    pub(super) fn read(document: &StepDocument, names: Names<'_>) -> Result<Self, Problem> {
        super::only(document, &["expression", "condition"])?;
        let inner = super::part(document, &["expression", "condition"]).and_then(Json::as_str);
        let source = inner.or(document.condition.as_deref());
        let source = source.ok_or_else(|| Problem::new("condition", "a condition step needs one"))?;
        Ok(Self { asks: super::expression("condition", source, names)? })
    }

    pub(super) fn begin(&self, draft: &mut Draft<'_>, key: &NodeKey) {
        match draft.holds(key, &self.asks) {
            Ok(yes) => draft.succeed(key, Some(Json::Bool(yes))),
            Err(problem) => draft.fail(key, &problem),
        }
    }
}
