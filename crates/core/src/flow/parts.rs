//! A run in parts, as stores keep it: each under a name, so that a change writes only what it changes.

use super::RunChange;
use super::node::{Node, NodeKey};
use super::run::{Compensation, Run, RunHead};
use crate::id::StepId;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use std::sync::Arc;

/// A part's name, and what it is now; nothing, if it is gone.
pub type RunPart = (String, Option<String>);

impl RunChange {
    /// The parts that change, the head not among them.
    pub fn parts(&self) -> Vec<RunPart> {
        let mut parts = Vec::new();
        parts.extend(self.nodes.iter().map(|(key, node)| (key.part_name(), Some(json(node)))));
        let context =
            self.context.iter().map(|(name, value)| (format!("ctx:{name}"), value.as_ref().map(json)));
        parts.extend(context);
        parts.extend(self.items.iter().map(|(step, items)| (format!("items:{step}"), Some(json(items)))));
        let first = self.head.compensations as usize - self.compensations.len();
        let undo = self.compensations.iter().zip(first..);
        // Numbered so that they sort in the order in which they were recorded.
        parts.extend(undo.map(|(undo, n)| (format!("undo:{n:08}"), Some(json(undo)))));
        parts.extend(self.output.iter().map(|output| ("output".to_owned(), Some(json(output)))));
        parts
    }
}

impl NodeKey {
    /// The name of the part that this step is.
    pub fn part_name(&self) -> String {
        format!("step:{self}")
    }
}

impl Run {
    /// The part that never changes: what the run was given.
    pub fn input_part(&self) -> RunPart {
        ("input".to_owned(), Some(json(&self.input)))
    }

    /// Puts a run together again. `parts` come in the order of their names.
    pub fn of_parts<'a>(
        head: RunHead,
        parts: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, String> {
        let mut run = Self::new(head, Arc::new(Json::Null));
        for (name, body) in parts {
            let bad = |problem: String| format!("part {name} of run {}: {problem}", run.head.id);
            match name.split_once(':').unwrap_or((name, "")) {
                ("input", _) => run.input = read(body).map_err(bad)?,
                ("output", _) => run.output = Some(read(body).map_err(bad)?),
                ("step", key) => {
                    let key = NodeKey::parse(key).ok_or_else(|| bad("names no step".to_owned()))?;
                    let node: Node = read(body).map_err(bad)?;
                    run.put(key, node);
                }
                ("ctx", of) => drop(run.context.insert(of.to_owned(), read(body).map_err(bad)?)),
                ("items", of) => {
                    let step = StepId::parse(of).map_err(|problem| bad(problem.to_string()))?;
                    let items: Arc<Vec<Json>> = read(body).map_err(bad)?;
                    run.items.insert(step, items);
                }
                ("undo", _) => {
                    let undo: Arc<Compensation> = read(body).map_err(bad)?;
                    run.compensations.push(undo);
                }
                _ => return Err(bad("is unknown".to_owned())),
            }
        }
        Ok(run)
    }
}

/// None of these can fail to be JSON: their maps have texts for keys, and their numbers are finite.
fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| unreachable!("a part is JSON: {error}"))
}

fn read<T: DeserializeOwned>(body: &str) -> Result<T, String> {
    serde_json::from_str(body).map_err(|error| error.to_string())
}
