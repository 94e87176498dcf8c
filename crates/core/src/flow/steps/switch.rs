//! A switch compares one value with its cases and lets one step begin. The others are skipped.

use super::super::definition::FlowProblem;
use super::super::document::StepDocument;
use super::super::draft::RunDraft;
use super::super::node::NodeKey;
use crate::expression::{Expression, Names};
use crate::id::StepId;
use serde_json::Value as Json;

pub const CASES_MAX: usize = 100;

#[derive(Debug, Clone)]
pub struct SwitchStep {
    pub on: Expression,
    pub cases: Vec<(Json, StepId)>,
    pub default: Option<StepId>,
}

impl SwitchStep {
    pub(super) fn read(document: &StepDocument, names: Names<'_>) -> Result<Self, FlowProblem> {
        super::only(document, &["on", "cases", "default"])?;
        let on = super::part(document, &["on"]).and_then(Json::as_str).or(document.condition.as_deref());
        let on =
            on.ok_or_else(|| FlowProblem::new("condition", "a switch needs the value that it is about"))?;
        let cases = super::part(document, &["cases"]).and_then(Json::as_array);
        let cases = cases.filter(|cases| !cases.is_empty() && cases.len() <= CASES_MAX);
        let cases = cases
            .ok_or_else(|| FlowProblem::new("input", format!("cases: a switch has 1 to {CASES_MAX}")))?;
        let case = |case: &Json| {
            let of = |names: &[&str]| names.iter().find_map(|name| case.get(name));
            let value = of(&["when", "match", "value"]);
            let value = value.ok_or_else(|| FlowProblem::new("input", "a case has no `when`"))?;
            let next = of(&["next", "step", "target"]);
            let next = next.ok_or_else(|| FlowProblem::new("input", "a case has no `next`"))?;
            Ok((value.clone(), super::step_id("input", next)?))
        };
        let cases = cases.iter().map(case).collect::<Result<_, _>>()?;
        let default =
            super::part(document, &["default"]).map(|step| super::step_id("input", step)).transpose()?;
        Ok(Self { on: super::expression("condition", on, names)?, cases, default })
    }

    pub fn targets(&self) -> Vec<StepId> {
        self.cases.iter().map(|(_, step)| step).chain(&self.default).cloned().collect()
    }

    /// The step that goes with a value, or null.
    pub(in super::super) fn choose(&self, value: &Json) -> Json {
        let case = self.cases.iter().find(|(when, _)| is_same(when, value));
        let chosen = case.map(|(_, step)| step).or(self.default.as_ref());
        chosen.map_or(Json::Null, |step| Json::String(step.to_string()))
    }

    /// Its output is the step it has chosen, or null.
    pub(super) fn begin(&self, draft: &mut RunDraft<'_>, key: &NodeKey) {
        let value = draft.value(key, &self.on);
        match value {
            Ok(value) => draft.succeed(key, Some(self.choose(&value))),
            Err(problem) => draft.fail(key, &problem),
        }
    }
}

/// JSON tells 2 from 2.0; people do not.
fn is_same(a: &Json, b: &Json) -> bool {
    a == b || a.as_f64().zip(b.as_f64()).is_some_and(|(a, b)| a.to_bits() == b.to_bits())
}
