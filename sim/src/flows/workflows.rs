//! Workflows and who starts them, drawn from the seed. Each is a chain of pieces; within a piece things go on side by
//! side, and whatever order faults bring them into, every step ends the same way. That is what makes the reference's
//! answer the only right one: where a run fails, nothing else of it is under way.

mod pieces;

use crate::rng::SimRng;
use pieces::Sketch;
use reveille_core::flow::WorkflowDocument;
use reveille_core::id::{TenantId, WorkflowId};
use serde_json::{Value as Json, json};

/// What steps of runs are asked of, and what undoes them. Only careful workers serve these.
pub const STEP: &str = "job.step";
pub const UNDO: &str = "job.undo";

const ENDS: [&[&str]; 5] = [
    &["failed"],
    &["failed", "denied"],
    &["failed", "denied", "cancelled"],
    &["failed", "cancelled"],
    &["denied"],
];

#[derive(Clone)]
pub struct FlowsPlan {
    pub tenant: TenantId,
    /// In the order in which they can be saved.
    pub documents: Vec<WorkflowDocument>,
    pub starts: Vec<StartPlan>,
}

#[derive(Clone)]
pub struct StartPlan {
    pub workflow: WorkflowId,
    pub input: Json,
    pub key: String,
    /// Asked for again although it was answered, this often.
    pub repeats: u32,
    /// Somebody changes their mind.
    pub cancelled_after_ms: Option<i64>,
}

impl FlowsPlan {
    /// `gates` says whether people have all the time they want.
    pub fn draw(rng: &SimRng, tenant: TenantId, gates: bool) -> Self {
        let mut documents = vec![child(rng, "child", false), child(rng, "bad-child", true)];
        let count = rng.between(2, 4);
        for number in 0..count {
            let mut sketch = Sketch::new(rng, gates);
            for _ in 0..rng.between(1, 4) {
                sketch.piece();
            }
            if rng.percent(55) {
                sketch.fails();
            } else {
                sketch.work();
            }
            documents.push(document(rng, &format!("flow{number}"), &sketch.steps()));
        }
        let starts = (0..rng.between(3, 6))
            .map(|number| StartPlan {
                workflow: WorkflowId::known(format!("flow{}", rng.below(count as u64))),
                input: json!({"n": rng.between(0, 9), "list": (0..rng.between(0, 4)).collect::<Vec<_>>()}),
                key: format!("start{number}"),
                repeats: u32::from(rng.percent(30)),
                cancelled_after_ms: rng.percent(20).then(|| rng.skewed(1, 60_000)),
            })
            .collect();
        Self { tenant, documents, starts }
    }

    pub fn document(&self, workflow: &WorkflowId) -> Option<&WorkflowDocument> {
        self.documents.iter().find(|document| document.id == workflow.as_str())
    }
}

/// A workflow that others run as a step.
fn child(rng: &SimRng, id: &str, fails: bool) -> WorkflowDocument {
    let mut sketch = Sketch::new(rng, false);
    sketch.work();
    if fails {
        sketch.fatal();
    }
    document(rng, id, &sketch.steps())
}

fn document(rng: &SimRng, id: &str, steps: &Json) -> WorkflowDocument {
    let document = json!({
        "id": id, "name": id, "compensate_on": *rng.pick(&ENDS), "parameters": { "limit": 7 }, "steps": steps,
    });
    serde_json::from_value(document).unwrap_or_else(|error| unreachable!("it is a document: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_core::flow::Flow;
    use reveille_core::time::Millis;

    #[test]
    fn whatever_is_drawn_can_be_saved() {
        for seed in 0..2_000 {
            let plan = FlowsPlan::draw(&SimRng::new(seed), TenantId::known("t"), seed % 2 == 0);
            for document in &plan.documents {
                let read = Flow::check(document, 1, Millis(0));
                assert!(read.is_ok(), "seed {seed}: {:?}\n{document:?}", read.err());
            }
        }
    }
}
