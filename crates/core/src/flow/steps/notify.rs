//! A notify step says something to whoever listens: an alert on `sys.workflow.event`. It is over when the
//! bus has it.

use super::super::definition::FlowProblem;
use super::super::document::StepDocument;
use super::super::draft::RunDraft;
use super::super::node::{NodeKey, SubmittedWork};
use super::super::table::StepState;
use super::super::template::Template;
use crate::expression::Names;
use crate::words::words;
use serde_json::Value as Json;

words! {
    Level {
        Info = "info",
        Warning = "warning",
        Error = "error",
        Critical = "critical",
    }
}

#[derive(Debug, Clone)]
pub struct NotifyStep {
    pub level: Level,
}

impl NotifyStep {
    pub(super) fn read(document: &StepDocument, names: Names<'_>) -> Result<Self, FlowProblem> {
        let message = super::part(document, &["message"]);
        let message =
            message.ok_or_else(|| FlowProblem::new("input", "message: a notify step says something"))?;
        Template::parse(message, names)
            .map_err(|problem| FlowProblem::new("input", format!("message: {problem}")))?;
        let level = match super::part(document, &["level"]) {
            None => Level::Info,
            Some(Json::String(word)) if Level::parse(word).is_some() => {
                Level::parse(word).unwrap_or(Level::Info)
            }
            Some(other) => {
                return Err(FlowProblem::new(
                    "input",
                    format!("level: {other} is none of info, warning, error, critical"),
                ));
            }
        };
        Ok(Self { level })
    }
}

pub(super) fn begin(draft: &mut RunDraft<'_>, key: &NodeKey) {
    match draft.input(key) {
        Ok(input) => {
            let mut node = draft.node(key);
            node.state = StepState::Running;
            node.attempt += 1;
            node.started_at.get_or_insert(draft.now);
            node.sent = Some(SubmittedWork::Notice);
            node.input = Some(input.into());
            draft.put(key, node);
        }
        Err(problem) => draft.fail(key, &problem),
    }
}
