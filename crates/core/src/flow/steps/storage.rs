//! A storage step reads, writes or deletes one value of the run's context.

use super::super::definition::FlowProblem;
use super::super::document::StepDocument;
use super::super::draft::RunDraft;
use super::super::node::NodeKey;
use super::super::template::Template;
use crate::expression::Names;
use crate::words::words;
use serde_json::Value as Json;

words! {
    StorageOp {
        Read = "read",
        Write = "write",
        Delete = "delete",
    }
}

#[derive(Debug, Clone)]
pub struct StorageStep {
    pub op: StorageOp,
    pub key: String,
    pub value: Template,
}

impl StorageStep {
    pub(super) fn read(document: &StepDocument, names: Names<'_>) -> Result<Self, FlowProblem> {
        super::only(document, &["operation", "op", "key", "value"])?;
        let op = super::part(document, &["operation", "op"]);
        let op = op.and_then(Json::as_str).and_then(StorageOp::parse);
        let op =
            op.ok_or_else(|| FlowProblem::new("input", "operation: is none of read, write and delete"))?;
        let key = super::part(document, &["key"]).and_then(Json::as_str).unwrap_or_default();
        context_key(key).map_err(|problem| FlowProblem::new("input", format!("key: {problem}")))?;
        let value = super::part(document, &["value"]).unwrap_or(&Json::Null);
        let value = Template::parse(value, names)
            .map_err(|problem| FlowProblem::new("input", format!("value: {problem}")))?;
        Ok(Self { op, key: key.to_owned(), value })
    }

    pub(super) fn begin(&self, draft: &mut RunDraft<'_>, key: &NodeKey) {
        match self.op {
            StorageOp::Read => {
                let value = draft.context(&self.key).map(|value| (*value).clone());
                draft.succeed(key, Some(value.unwrap_or(Json::Null)));
            }
            StorageOp::Delete => {
                draft.set_context(&self.key, None);
                draft.succeed(key, None);
            }
            StorageOp::Write => match draft.fill(key, &self.value) {
                Ok(value) => match draft.keep(&self.key, value) {
                    Ok(()) => draft.succeed(key, None),
                    Err(problem) => draft.fail(key, &problem),
                },
                Err(problem) => draft.fail(key, &problem),
            },
        }
    }
}

/// A name within `ctx` that an expression can ask for.
pub fn context_key(key: &str) -> Result<(), String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if key.is_empty()
        || key.len() > 64
        || !key.chars().all(is_name)
        || key.starts_with(|c: char| c.is_ascii_digit())
    {
        return Err(format!("{key:?} is no name of letters, digits and _ (at most 64)"));
    }
    Ok(())
}
