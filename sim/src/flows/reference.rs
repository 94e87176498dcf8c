//! What every run must have come to: the fault-free reference is asked the same, and gives the same answer.

use super::history::FlowHistory;
use super::script::{self, Script};
use super::workflows::FlowsPlan;
use crate::invariants::InvariantResult;
use crate::plan::DENIED;
use reveille_core::flow::{
    Compensation, Flow, NodeKey, PendingWork, Run, RunHead, RunOrigin, RunState, StepKind, StepOutcome,
    StepState, SubmittedWork, interpret,
};
use reveille_core::id::{JobId, RunId, StepId};
use reveille_engine::rollback_id;
use serde_json::Value as Json;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How often a rollback tries each thing.
const UNDO_TRIES: u32 = 4;

/// How many runs the reference had a say in.
#[derive(Debug, Default)]
pub struct Compared {
    pub runs: u64,
    /// Those of which a job was given up. They end, and are undone once and in order.
    pub spared: u64,
}

/// Compares everything that was committed with what should have been.
pub fn compare(plan: &FlowsPlan, history: &FlowHistory) -> Result<Compared, String> {
    let (mut expected, mut compared) = (BTreeMap::new(), Compared::default());
    for run in history.runs.values().filter(|run| run.head.origin == RunOrigin::Started) {
        let reference = Reference { plan, runs: RefCell::default() };
        let answer = reference.of(run);
        expected.insert(answer.head.id.clone(), answer);
        expected.extend(reference.runs.into_inner());
    }
    let spared: BTreeSet<&RunId> = history.given_up.iter().map(|id| root(history, &expected, id)).collect();
    let is_spared = |id: &RunId| spared.contains(root(history, &expected, id));
    for run in history.runs.values() {
        let id = &run.head.id;
        if run.is_live() || run.head.due.is_some() {
            return Err(format!("the run {id} is {} and still owes something", run.head.state));
        }
        let is_spared = is_spared(id);
        *(if is_spared { &mut compared.spared } else { &mut compared.runs }) += 1;
        if let RunOrigin::Rollback { of } = &run.head.origin {
            let undone = history.runs.get(of).ok_or_else(|| format!("{id} undoes {of}, which is no run"))?;
            once_and_in_order(history, undone, run)?;
            if !is_spared {
                undone_well(history, undone, run)?;
            }
            continue;
        }
        rolled_back(plan, history, run)?;
        let answer = expected.get(id);
        let verdict = match answer {
            _ if run.head.state == RunState::Cancelled && was_called_off(history, run) => {
                cut_short(run, answer)
            }
            _ if is_spared => Ok(()),
            Some(answer) => same(run, answer),
            None => Err("should not be there".to_owned()),
        };
        verdict.map_err(|words| format!("the run {id} of {} {words}", run.head.workflow))?;
    }
    let is_missing = |id: &&RunId| {
        !history.runs.contains_key(*id) && !is_spared(id) && !is_of_a_cancelled(history, &expected[*id])
    };
    match expected.keys().find(is_missing) {
        Some(id) => Err(format!("the run {id} should be there and is not")),
        None => Ok(compared),
    }
}

/// The run that somebody started and that this one is a part of; what undoes a run stands for itself.
fn root<'a>(history: &'a FlowHistory, expected: &'a BTreeMap<RunId, Run>, id: &'a RunId) -> &'a RunId {
    match history.runs.get(id).or_else(|| expected.get(id)).map(|run| &run.head.origin) {
        Some(RunOrigin::Step { run, .. }) => root(history, expected, run),
        _ => id,
    }
}

struct Reference<'a> {
    plan: &'a FlowsPlan,
    /// The runs within runs.
    runs: RefCell<BTreeMap<RunId, Run>>,
}

impl Reference<'_> {
    /// The same run as it would be if nothing went wrong.
    fn of(&self, run: &Run) -> Run {
        let head = &run.head;
        self.run(head.id.clone(), head, head.origin.clone(), run.input.clone())
    }

    fn run(&self, id: RunId, like: &RunHead, origin: RunOrigin, input: Arc<Json>) -> Run {
        let document = self.plan.document(&like.workflow);
        let flow = document.and_then(|document| Flow::read(document, like.version).ok());
        let Some(flow) = flow else { unreachable!("{} was saved", like.workflow) };
        let head = RunHead {
            origin,
            ..RunHead::new(id, like.tenant.clone(), like.workflow.clone(), like.version, like.created_at)
        };
        let now = head.created_at;
        interpret(Run::new(head.clone(), input), &flow, now, |asked| self.answer(&flow, &head, asked))
    }

    fn answer(&self, flow: &Flow, head: &RunHead, asked: &PendingWork<'_>) -> Option<StepOutcome> {
        match (&flow.step(&asked.node.step).kind, asked.sent) {
            (StepKind::Approval, _) => script::decided(asked.input),
            (StepKind::Worker(worker), _) if worker.topic.as_str() == DENIED => {
                Some(StepOutcome::Denied(String::new()))
            }
            (StepKind::Subworkflow(sub), SubmittedWork::Run(id)) => {
                let like = RunHead { workflow: sub.workflow.clone(), version: 1, ..head.clone() };
                let (run, node) = (head.id.clone(), asked.node.clone());
                let origin = RunOrigin::Step { run, node, attempt: asked.attempt, depth: 1 };
                let child = self.run(id.clone(), &like, origin, Arc::new(asked.input.clone()));
                let outcome = outcome_of(&child);
                self.runs.borrow_mut().insert(id.clone(), child);
                Some(outcome)
            }
            (_, SubmittedWork::Notice) => Some(StepOutcome::Succeeded(None)),
            _ => Script::read(asked.input).and_then(|script| script.outcome(asked.attempt)),
        }
    }
}

fn outcome_of(run: &Run) -> StepOutcome {
    match run.head.state {
        RunState::Succeeded => StepOutcome::Succeeded(run.output.as_deref().cloned()),
        RunState::Denied => StepOutcome::Denied(String::new()),
        RunState::TimedOut => StepOutcome::TimedOut(String::new()),
        state => {
            StepOutcome::Failed { words: String::new(), is_worth_another_try: state == RunState::Failed }
        }
    }
}

/// Somebody cancelled it, or the run that it is a step of.
fn was_called_off(history: &FlowHistory, run: &Run) -> bool {
    match &run.head.origin {
        RunOrigin::Step { run: parent, .. } => {
            history.runs.get(parent).is_some_and(|parent| parent.head.state == RunState::Cancelled)
        }
        _ => history.cancels_asked.contains(&run.head.id),
    }
}

fn is_of_a_cancelled(history: &FlowHistory, child: &Run) -> bool {
    let RunOrigin::Step { run: parent, .. } = &child.head.origin else { return false };
    history.runs.get(parent).is_some_and(|parent| parent.head.state == RunState::Cancelled)
}

/// Equal in everything that does not depend on when things happened.
fn same(run: &Run, answer: &Run) -> InvariantResult {
    if run.head.state != answer.head.state {
        return Err(format!("is {} ({}), not {}", run.head.state, run.head.error, answer.head.state));
    }
    let states = |run: &Run| {
        let states = run.nodes.iter().map(|(key, node)| (key.clone(), (node.state, node.attempt)));
        states.collect::<BTreeMap<NodeKey, (StepState, u32)>>()
    };
    let (is, should) = (states(run), states(answer));
    if is != should {
        return Err(format!("went through {is:?}, not through {should:?}"));
    }
    for (key, node) in &answer.nodes {
        let given = &run.nodes[key].output;
        if *given != node.output {
            return Err(format!("has {given:?} from {key}, not {:?}", node.output));
        }
    }
    if (&run.output, &run.context) != (&answer.output, &answer.context) {
        return Err(format!("gave {:?}, not {:?}", run.output, answer.output));
    }
    let undo = |run: &Run| {
        let mut undo: Vec<Compensation> = run.compensations.iter().map(|undo| (**undo).clone()).collect();
        undo.sort_by(|a, b| a.node.cmp(&b.node));
        undo
    };
    if undo(run) != undo(answer) {
        return Err(format!("would be undone by {:?}, not by {:?}", undo(run), undo(answer)));
    }
    Ok(())
}

/// It was cancelled: what was done until then was done right, and nothing is under way.
fn cut_short(run: &Run, answer: Option<&Run>) -> InvariantResult {
    for (key, node) in &run.nodes {
        if !node.state.is_settled() {
            return Err(format!("is cancelled and its {key} is {}", node.state));
        }
        let should = answer.and_then(|answer| answer.nodes.get(key));
        let Some(should) = should.filter(|_| node.state == StepState::Succeeded) else { continue };
        if (node.state, &node.output) != (should.state, &should.output) {
            return Err(format!("has {:?} from {key}, not {:?}", node.output, should.output));
        }
    }
    Ok(())
}

/// A run is undone if its workflow says so of its end, and only then.
fn rolled_back(plan: &FlowsPlan, history: &FlowHistory, run: &Run) -> InvariantResult {
    let head = &run.head;
    let document = plan.document(&head.workflow);
    let flow = document.and_then(|document| Flow::read(document, head.version).ok());
    let wants = flow.is_some_and(|flow| flow.undoes(head.state)) && !run.compensations.is_empty();
    let has = history.runs.contains_key(&rollback_id(&head.id));
    match (wants, has) {
        (true, false) => Err(format!("{} is {} and nothing undoes it", head.id, head.state)),
        (false, true) => Err(format!("{} is {} and was undone", head.id, head.state)),
        _ => Ok(()),
    }
}

/// Whatever became of it: it goes through what was done, last first, and does nothing twice.
fn once_and_in_order(history: &FlowHistory, of: &Run, rollback: &Run) -> InvariantResult {
    let id = &rollback.head.id;
    let listed = rollback.input["undo"].as_array().into_iter().flatten();
    let listed: Vec<_> = listed.map(|undo| undo["node"].as_str().unwrap_or_default().to_owned()).collect();
    let due: Vec<_> = of.compensations.iter().rev().map(|undo| undo.node.to_string()).collect();
    if listed != due {
        return Err(format!("{id} undoes {listed:?}, where {due:?} is due"));
    }
    let round =
        |job: &JobId| rollback.nodes.iter().find(|(key, _)| is_of(id, key, job)).map(|(key, _)| key.round);
    let undone = history.undone.get(id).map_or_else(Vec::new, |jobs| jobs.iter().map(round).collect());
    if undone.iter().any(Option::is_none) || !undone.is_sorted_by(|one, next| one < next) {
        return Err(format!("{id} did {:?}", history.undone.get(id)));
    }
    Ok(())
}

/// Whether the job is a try of this step.
fn is_of(run: &RunId, key: &NodeKey, job: &JobId) -> bool {
    job.as_str().rsplit_once('@').is_some_and(|(of, _)| of == format!("{run}:{key}"))
}

/// Last first, each once, and on when one fails.
fn undone_well(history: &FlowHistory, of: &Run, rollback: &Run) -> InvariantResult {
    let (id, step) = (&rollback.head.id, StepId::known("undo"));
    let mut done = Vec::new();
    let mut state = RunState::Succeeded;
    for (round, undo) in of.compensations.iter().rev().enumerate() {
        let key = NodeKey::round(&step, round as u32);
        let listed = &rollback.input["undo"][round];
        if (listed["node"].as_str(), &listed["input"]) != (Some(&*undo.node.to_string()), &undo.input) {
            return Err(format!("{id} undoes {listed} as number {round}, where {} is due", undo.node));
        }
        let ends = |attempt| Script::read(&undo.input).and_then(|script| script.outcome(attempt));
        let tries = (1..=UNDO_TRIES).find(|attempt| match ends(*attempt) {
            Some(StepOutcome::Failed { is_worth_another_try, .. }) => !is_worth_another_try,
            _ => true,
        });
        let tries = tries.unwrap_or(UNDO_TRIES);
        let should = match ends(tries) {
            Some(StepOutcome::Succeeded(_)) => StepState::Succeeded,
            _ => StepState::Failed,
        };
        let is = rollback.nodes.get(&key).map(|node| (node.state, node.attempt));
        if is != Some((should, tries)) {
            return Err(format!(
                "{key} of {id}, which undoes {}, is {is:?}, not {should} in {tries}",
                undo.node
            ));
        }
        match should {
            StepState::Succeeded => done.push(JobId::known(format!("{id}:{key}@{tries}"))),
            _ => state = RunState::Failed,
        }
    }
    if rollback.input["undo"].as_array().map(Vec::len) != Some(of.compensations.len()) {
        return Err(format!("{id} undoes more than was done: {}", rollback.input["undo"]));
    }
    if rollback.head.state != state {
        return Err(format!("the rollback {id} is {}, not {state}", rollback.head.state));
    }
    let undone = history.undone.get(id).cloned().unwrap_or_default();
    if undone == done { Ok(()) } else { Err(format!("{id} was to do {done:?} and did {undone:?}")) }
}
