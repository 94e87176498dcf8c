//! What can be known of a run before there is one: which steps would begin, what they would be given, and
//! whether that fits. What rests on a worker's answer is not known; then it says on what it rests.
//!
//! What policy says of a step is not here: it is asked with the request that the step would send off.

use super::definition::{Flow, Owner, RunWhen, Step};
use super::scope::map;
use super::steps::{Delay, ITEMS_MAX, StepKind, moment};
use super::table::StepState;
use super::template::Template;
use crate::cost::Meter;
use crate::expression::{Bindings, Expression, from_json, to_json};
use crate::id::StepId;
use crate::time::Millis;
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is foreseen of one step.
#[derive(Debug, Clone, PartialEq)]
pub struct Foreseen {
    pub step: StepId,
    pub fate: Fate,
    /// What its condition says.
    pub condition: Option<Forecast<bool>>,
    /// What it would be given; one for each round of a list that is known.
    pub inputs: Vec<Forecast<Json>>,
    /// What the job that undoes it would be given; one for each of its inputs.
    pub undo_inputs: Vec<Forecast<Json>>,
    /// How many rounds a `for_each` would have.
    pub rounds: Option<Forecast<usize>>,
    /// What it would give, if that needs no worker.
    pub output: Option<Json>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It begins if nothing goes wrong before.
    Begins,
    /// It begins or not, and that rests on these.
    Depends(BTreeSet<String>),
    /// It is skipped, and why.
    Skipped(String),
    /// It fails as soon as it begins, and why.
    Fails(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Forecast<T> {
    Yes(T),
    /// Only once these are known.
    Depends(BTreeSet<String>),
    /// It cannot be worked out.
    Fails(String),
}

/// Everything that can be known of a run with this input (or of any, if that is not known), in the order in which the
/// steps could run, and how long it takes at least: what the delays that are known add up to.
pub fn dry_run(flow: &Flow, input: Option<&Json>, now: Millis, meter: &Meter) -> (Vec<Foreseen>, i64) {
    let mut ahead = DryRun { flow, input, now, meter, foreseen: BTreeMap::new(), over_at: BTreeMap::new() };
    let mut order = Vec::new();
    for step in flow.in_order() {
        let foreseen = ahead.foresee(step);
        let over_at = ahead.over_at(step, &foreseen);
        ahead.over_at.insert(step.id.clone(), over_at);
        ahead.foreseen.insert(step.id.clone(), foreseen);
        order.push(&step.id);
    }
    let last = ahead.over_at.values().copied().max().unwrap_or(now);
    (order.into_iter().filter_map(|step| ahead.foreseen.remove(step)).collect(), last.since(now))
}

struct DryRun<'a> {
    flow: &'a Flow,
    input: Option<&'a Json>,
    now: Millis,
    meter: &'a Meter,
    /// Of the steps so far. What a step depends on comes before it.
    foreseen: BTreeMap<StepId, Foreseen>,
    over_at: BTreeMap<StepId, Millis>,
}

impl DryRun<'_> {
    fn foresee(&self, step: &Step) -> Foreseen {
        let mut foreseen = Foreseen {
            step: step.id.clone(),
            fate: self.gate(step),
            condition: None,
            inputs: Vec::new(),
            undo_inputs: Vec::new(),
            rounds: None,
            output: None,
        };
        if let Fate::Skipped(_) = foreseen.fate {
            return foreseen;
        }
        if let Some(condition) = &step.condition {
            let known = self.holds(condition);
            foreseen.condition = Some(known.clone());
            match known {
                Forecast::Yes(true) => {}
                Forecast::Yes(false) => {
                    foreseen.fate = Fate::Skipped("its condition is false".to_owned());
                    return foreseen;
                }
                Forecast::Depends(on) => foreseen.fate = also(foreseen.fate, on),
                Forecast::Fails(words) => {
                    return Foreseen { fate: Fate::Fails(format!("condition: {words}")), ..foreseen };
                }
            }
        }
        self.give(step, &mut foreseen);
        if let Some(Forecast::Fails(words)) =
            foreseen.inputs.iter().find(|input| matches!(input, Forecast::Fails(_)))
        {
            foreseen.fate = Fate::Fails(words.clone());
        } else if foreseen.fate == Fate::Begins {
            foreseen.output = self.output(step, &foreseen);
        }
        foreseen
    }

    /// Whether those before it let a step begin.
    fn gate(&self, step: &Step) -> Fate {
        let mut fate = match &step.owner {
            None if step.handles.is_empty() => Fate::Begins,
            None => self.handles(step),
            Some(owner) => match self.fate(owner.step()) {
                Fate::Skipped(_) => return Fate::Skipped(format!("{} is skipped", owner.step())),
                Fate::Fails(_) => return Fate::Skipped(format!("{} would fail", owner.step())),
                fate => self.let_in(step, owner, fate),
            },
        };
        if let Fate::Skipped(_) = fate {
            return fate;
        }
        for on in &step.depends_on {
            match (self.fate(on), step.run_when) {
                (Fate::Skipped(_), RunWhen::Succeeded) => return Fate::Skipped(format!("{on} is skipped")),
                (Fate::Fails(_), RunWhen::Succeeded) => return Fate::Skipped(format!("{on} would fail")),
                (Fate::Depends(on), RunWhen::Succeeded) => fate = also(fate, on),
                _ => {}
            }
        }
        fate
    }

    /// A handler begins if one of those that it is for fails.
    fn handles(&self, step: &Step) -> Fate {
        let fates: Vec<Fate> = step.handles.iter().map(|of| self.fate(of)).collect();
        if fates.iter().any(|fate| matches!(fate, Fate::Fails(_))) {
            return Fate::Begins;
        }
        let open = step.handles.iter().zip(&fates).filter(|(of, fate)| {
            !matches!(fate, Fate::Skipped(_)) && self.foreseen.get(*of).is_none_or(|of| of.output.is_none())
        });
        let open: BTreeSet<String> = open.map(|(of, _)| format!("whether {of} fails")).collect();
        if open.is_empty() {
            Fate::Skipped("nothing before it would fail".to_owned())
        } else {
            Fate::Depends(open)
        }
    }

    fn let_in(&self, step: &Step, owner: &Owner, fate: Fate) -> Fate {
        let kind = &self.flow.step(owner.step()).kind;
        match (owner, kind) {
            (Owner::Switch(owner), StepKind::Switch(_)) => {
                match self.foreseen.get(owner).and_then(|owner| owner.output.as_ref()) {
                    Some(Json::String(chosen)) if chosen == step.id.as_str() => fate,
                    Some(_) => Fate::Skipped("switch_branch_not_taken".to_owned()),
                    None => also(fate, [format!("what {owner} finds")].into()),
                }
            }
            (Owner::Loop(owner), StepKind::Loop(looping)) if looping.as_long_as.is_some() => {
                also(fate, [format!("how often {owner} goes round")].into())
            }
            _ => fate,
        }
    }

    fn fate(&self, step: &StepId) -> Fate {
        self.foreseen.get(step).map_or(Fate::Begins, |foreseen| foreseen.fate.clone())
    }

    /// What the step is given, round by round if its list is known.
    fn give(&self, step: &Step, foreseen: &mut Foreseen) {
        let template = match &step.kind {
            StepKind::Subworkflow(sub) => &sub.input,
            _ => &step.input,
        };
        let Some(for_each) = &step.for_each else {
            let is_body = matches!(step.owner, Some(Owner::Loop(_)));
            // The first round of a loop stands for all of them.
            let index = is_body.then_some(0);
            foreseen.inputs.push(self.fitting(step, template, None, index));
            return foreseen.undo_inputs.extend(self.undoing(step, None, index));
        };
        let items = match self.fill(&for_each.items, None, None) {
            Forecast::Yes(Json::Array(items)) if items.len() <= ITEMS_MAX => items,
            Forecast::Yes(Json::Array(items)) => {
                let words = format!("for_each: has {} items; at most {ITEMS_MAX} are allowed", items.len());
                foreseen.rounds = Some(Forecast::Fails(words.clone()));
                return foreseen.inputs.push(Forecast::Fails(words));
            }
            Forecast::Yes(_) => {
                return foreseen.inputs.push(Forecast::Fails("for_each: is not a list".to_owned()));
            }
            Forecast::Fails(words) => {
                return foreseen.inputs.push(Forecast::Fails(format!("for_each: {words}")));
            }
            Forecast::Depends(on) => {
                foreseen.rounds = Some(Forecast::Depends(on.clone()));
                return foreseen.inputs.push(Forecast::Depends(on));
            }
        };
        foreseen.rounds = Some(Forecast::Yes(items.len()));
        let rounds = items.iter().zip(0..).map(|(item, index)| {
            match self.fitting(step, template, Some(item), Some(index)) {
                Forecast::Fails(words) => Forecast::Fails(format!("round {index}: {words}")),
                known => known,
            }
        });
        foreseen.inputs.extend(rounds);
        let undo =
            items.iter().zip(0..).filter_map(|(item, index)| self.undoing(step, Some(item), Some(index)));
        foreseen.undo_inputs.extend(undo);
    }

    fn undoing(&self, step: &Step, item: Option<&Json>, index: Option<i64>) -> Option<Forecast<Json>> {
        step.compensation.as_ref().map(|undo| self.fill(&undo.input, item, index))
    }

    fn fitting(
        &self,
        step: &Step,
        template: &Template,
        item: Option<&Json>,
        index: Option<i64>,
    ) -> Forecast<Json> {
        match (self.fill(template, item, index), &step.input_schema) {
            (Forecast::Yes(input), Some(schema)) => match schema.check(&input, self.meter) {
                Ok(()) => Forecast::Yes(input),
                Err(problem) => Forecast::Fails(format!("input: {problem}")),
            },
            (known, _) => known,
        }
    }

    /// What a step that needs no worker would give.
    fn output(&self, step: &Step, foreseen: &Foreseen) -> Option<Json> {
        if step.for_each.is_some() || !step.result_data_path.is_empty() {
            return None;
        }
        match &step.kind {
            StepKind::Transform => match foreseen.inputs.first() {
                Some(Forecast::Yes(input)) => Some(input.clone()),
                _ => None,
            },
            StepKind::Condition(condition) => match self.holds(&condition.asks) {
                Forecast::Yes(yes) => Some(Json::Bool(yes)),
                _ => None,
            },
            StepKind::Switch(switch) => match self.value(&switch.on) {
                Forecast::Yes(value) => Some(switch.choose(&value)),
                _ => None,
            },
            _ => None,
        }
    }

    fn over_at(&self, step: &Step, foreseen: &Foreseen) -> Millis {
        let before = step.depends_on.iter().chain(step.owner.as_ref().map(Owner::step));
        let begun = before.filter_map(|before| self.over_at.get(before)).copied().max().unwrap_or(self.now);
        if !matches!(foreseen.fate, Fate::Begins) {
            return begun;
        }
        match &step.delay {
            Some(Delay::For(ms)) => begun + *ms,
            Some(Delay::Until(at)) => match self.fill(at, None, None) {
                Forecast::Yes(at) => moment(&at).map_or(begun, |at| at.max(begun)),
                _ => begun,
            },
            None => begun,
        }
    }

    // Expressions, as far as what they ask for is known.

    fn holds(&self, expression: &Expression) -> Forecast<bool> {
        self.with(&[expression], None, None, |scope| expression.holds(scope))
    }

    fn value(&self, expression: &Expression) -> Forecast<Json> {
        self.with(&[expression], None, None, |scope| to_json(&expression.value(scope)?, self.meter))
    }

    fn fill(&self, template: &Template, item: Option<&Json>, index: Option<i64>) -> Forecast<Json> {
        self.with(&template.expressions(), item, index, |scope| template.fill(scope))
    }

    fn with<T>(
        &self,
        expressions: &[&Expression],
        item: Option<&Json>,
        index: Option<i64>,
        work_out: impl Fn(&Bindings<'_>) -> Result<T, String>,
    ) -> Forecast<T> {
        let (mut scope, mut unknown) = (Bindings::new(self.meter), BTreeSet::new());
        let (mut context, mut steps) = (Vec::new(), Vec::new());
        for asked in expressions.iter().flat_map(|expression| expression.asks()) {
            match (asked.name.as_str(), asked.part.as_deref()) {
                ("input", _) => match self.input {
                    Some(input) => scope.set("input", from_json(input, self.meter)),
                    None => _ = unknown.insert("input".to_owned()),
                },
                ("item", _) => {
                    let item = item.map_or(cel::Value::Null, |item| from_json(item, self.meter));
                    scope.set("item", item);
                }
                ("index", _) => scope.set("index", cel::Value::Int(index.unwrap_or(0))),
                ("ctx", Some(name)) if !self.is_written(name) => {
                    context.extend(
                        self.flow
                            .parameters
                            .get(name)
                            .map(|value| (name.to_owned(), from_json(value, self.meter))),
                    );
                }
                ("steps", Some(step)) => match self.step_seen(&StepId::known(step)) {
                    Some(value) => steps.push((step.to_owned(), value)),
                    None => _ = unknown.insert(format!("steps.{step}")),
                },
                (name, Some(part)) => _ = unknown.insert(format!("{name}.{part}")),
                (name, None) => _ = unknown.insert(name.to_owned()),
            }
        }
        if !unknown.is_empty() {
            return Forecast::Depends(unknown);
        }
        scope.set("ctx", map(context));
        scope.set("steps", map(steps));
        work_out(&scope).map_or_else(Forecast::Fails, Forecast::Yes)
    }

    /// Whether any step puts something there.
    fn is_written(&self, name: &str) -> bool {
        self.flow.steps.values().any(|step| {
            let stores = matches!(&step.kind, StepKind::Storage(storage) if storage.key == name);
            stores || step.output_path.as_deref() == Some(name)
        })
    }

    /// A step as expressions see it, if all of that is known.
    fn step_seen(&self, step: &StepId) -> Option<cel::Value> {
        let foreseen = self.foreseen.get(step)?;
        let (output, state, error) = match (&foreseen.fate, &foreseen.output) {
            (Fate::Skipped(_), _) => (cel::Value::Null, StepState::Skipped, ""),
            (Fate::Fails(words), _) => (cel::Value::Null, StepState::Failed, words.as_str()),
            (Fate::Begins, Some(output)) => (from_json(output, self.meter), StepState::Succeeded, ""),
            _ => return None,
        };
        let text = |text: &str| cel::Value::String(Arc::new(text.to_owned()));
        let parts = [("output", output), ("status", text(state.as_str())), ("error", text(error))];
        Some(map(parts.map(|(name, value)| (name.to_owned(), value))))
    }
}

fn also(fate: Fate, on: BTreeSet<String>) -> Fate {
    match fate {
        Fate::Begins => Fate::Depends(on),
        Fate::Depends(mut before) => {
            before.extend(on);
            Fate::Depends(before)
        }
        other => other,
    }
}
