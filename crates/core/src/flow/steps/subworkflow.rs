//! A subworkflow step is a run of another workflow. It is over when that run is.

use super::super::child_id;
use super::super::definition::FlowProblem;
use super::super::document::StepDocument;
use super::super::draft::RunDraft;
use super::super::node::{NodeDue, NodeKey, SubmittedWork};
use super::super::table::StepState;
use super::super::template::Template;
use crate::expression::Names;
use crate::id::WorkflowId;
use serde_json::{Value as Json, json};

/// Runs within runs.
pub const DEPTH_MAX: u32 = 8;

#[derive(Debug, Clone)]
pub struct SubworkflowStep {
    pub workflow: WorkflowId,
    /// The input of the other run.
    pub input: Template,
    /// What is taken from its output, each under a name; all of it, if nothing is said.
    output: Vec<(String, Vec<String>)>,
}

impl SubworkflowStep {
    pub(super) fn read(document: &StepDocument, names: Names<'_>) -> Result<Self, FlowProblem> {
        super::only(document, &["workflow_id", "input_mapping", "output_mapping"])?;
        let workflow = super::part(document, &["workflow_id"]).and_then(Json::as_str).unwrap_or_default();
        let workflow =
            WorkflowId::parse(workflow).map_err(|problem| FlowProblem::new("input", problem.to_string()))?;
        let mapping = super::part(document, &["input_mapping"]).cloned().unwrap_or_else(|| json!({}));
        let input = Template::parse(&mapping, names);
        let input =
            input.map_err(|problem| FlowProblem::new("input", format!("input_mapping: {problem}")))?;
        let parts = match super::part(document, &["output_mapping"]) {
            None => Vec::new(),
            Some(mapping) => mapping.as_object().into_iter().flatten().collect(),
        };
        let path = |(name, path): (&String, &Json)| match path.as_str() {
            Some(text) => Ok((name.clone(), super::super::read::path(Some(text)))),
            None => Err(FlowProblem::new("input", format!("output_mapping: {name} is no path"))),
        };
        let output = parts.into_iter().map(path).collect::<Result<_, _>>()?;
        Ok(Self { workflow, input, output })
    }

    /// The other run's output as this step gives it.
    pub(in super::super) fn mapped(&self, output: Json) -> Result<Json, String> {
        if self.output.is_empty() {
            return Ok(output);
        }
        let part = |(name, path): &(String, Vec<String>)| {
            let part = path.iter().try_fold(&output, |value, part| value.get(part));
            let part = part.ok_or_else(|| format!("output_mapping: the run gave no {}", path.join(".")))?;
            Ok((name.clone(), part.clone()))
        };
        self.output.iter().map(part).collect::<Result<serde_json::Map<_, _>, String>>().map(Json::Object)
    }

    pub(super) fn begin(&self, draft: &mut RunDraft<'_>, key: &NodeKey) {
        let input = match draft.fill(key, &self.input) {
            Ok(input) => input,
            Err(problem) => return draft.fail(key, &problem),
        };
        let mut node = draft.node(key);
        node.attempt += 1;
        node.state = StepState::Running;
        node.started_at.get_or_insert(draft.now);
        node.sent = Some(SubmittedWork::Run(child_id(&draft.run.head.id, key, node.attempt)));
        node.input = Some(input.into());
        node.due = draft.flow.step(&key.step).timeout_ms.map(|ms| NodeDue::TimeOut(draft.now + ms));
        draft.put(key, node);
    }
}
