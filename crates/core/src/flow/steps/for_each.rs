//! `for_each`: the same step for every item of a list, a few rounds at a time.

use super::super::definition::{FlowProblem, ForEach};
use super::super::document::StepDocument;
use super::super::draft::{DraftWork, RunDraft};
use super::super::node::{Fan, NodeKey};
use super::super::table::StepState;
use super::super::template::Template;
use crate::expression::{Names, ValueKind};
use crate::id::StepId;
use serde_json::Value as Json;

pub const ITEMS_MAX: usize = 1000;

pub(in super::super) fn read(
    document: &StepDocument,
    names: Names<'_>,
) -> Result<Option<ForEach>, FlowProblem> {
    let Some(items) = &document.for_each else {
        return match document.max_parallel {
            Some(_) => Err(FlowProblem::new("max_parallel", "means something only beside for_each")),
            None => Ok(None),
        };
    };
    let problem = |problem| FlowProblem::new("for_each", problem);
    let items = match items {
        Json::String(source) if !source.contains("${") => {
            Template::Value(super::expression("for_each", source, names)?)
        }
        other => Template::parse(other, names).map_err(problem)?,
    };
    match (&items, items.kind()) {
        (Template::Fixed(Json::Array(list)), _) if list.len() > ITEMS_MAX => {
            return Err(problem(format!("has {} items; at most {ITEMS_MAX} are allowed", list.len())));
        }
        (Template::List(list), _) if list.len() > ITEMS_MAX => {
            return Err(problem(format!("has {} items; at most {ITEMS_MAX} are allowed", list.len())));
        }
        (Template::Fixed(Json::Array(_)) | Template::List(_), _)
        | (Template::Value(_), ValueKind::List(_) | ValueKind::Json | ValueKind::Any) => {}
        (Template::Value(_), kind) => return Err(problem(format!("is {kind}, not a list"))),
        _ => return Err(problem("is not a list".to_owned())),
    }
    let parallel_max = document.max_parallel.unwrap_or(ITEMS_MAX as u32);
    if parallel_max == 0 {
        return Err(FlowProblem::new("max_parallel", "must be at least 1"));
    }
    Ok(Some(ForEach { items, parallel_max, is_tolerant: false }))
}

/// Works out the list and begins as many rounds as may run at once.
pub(in super::super) fn begin(draft: &mut RunDraft<'_>, id: &StepId, for_each: &ForEach) {
    let key = NodeKey::of(id);
    let items = match draft.fill(&key, &for_each.items) {
        Ok(Json::Array(items)) => items,
        Ok(_) => return draft.fail(&key, "for_each: is not a list"),
        Err(problem) => return draft.fail(&key, &format!("for_each: {problem}")),
    };
    // A rollback goes through whatever was recorded: nothing of it may be left done for being much.
    if items.len() > ITEMS_MAX && !for_each.is_tolerant {
        let words = format!("for_each: has {} items; at most {ITEMS_MAX} are allowed", items.len());
        return draft.fail(&key, &words);
    }
    let mut node = draft.node(&key);
    node.state = StepState::Running;
    node.started_at = Some(draft.now);
    node.due = None;
    node.fan = Some(Fan { count: items.len() as u32, ..Fan::default() });
    draft.put(&key, node);
    draft.set_items(id, items);
    draft.work(DraftWork::Rounds(id.clone()));
}

/// Begins further rounds, or ends the step when all are over.
pub(in super::super) fn feed(draft: &mut RunDraft<'_>, id: &StepId, for_each: &ForEach) {
    let key = NodeKey::of(id);
    loop {
        let mut node = draft.node(&key);
        let Some(fan) = node.fan.filter(|_| node.state == StepState::Running) else { return };
        if fan.failed > 0 && !for_each.is_tolerant {
            return draft.fail(&key, &format!("{} of {} rounds failed", fan.failed, fan.count));
        }
        if fan.begun == fan.count && fan.live == 0 {
            if fan.failed > 0 {
                return draft.fail(&key, &format!("{} of {} rounds failed", fan.failed, fan.count));
            }
            return draft.succeed(&key, None);
        }
        if fan.begun == fan.count || fan.live >= for_each.parallel_max {
            return;
        }
        let round = NodeKey::round(id, fan.begun);
        node.fan = Some(Fan { begun: fan.begun + 1, live: fan.live + 1, ..fan });
        draft.put(&key, node);
        draft.begin_now(&round);
    }
}

/// A round of a `for_each` or a loop is over: its step counts it.
pub(in super::super) fn round_over(draft: &mut RunDraft<'_>, id: &StepId, state: StepState) {
    let key = NodeKey::of(id);
    let mut node = draft.node(&key);
    let is_tolerant = draft.flow.step(id).for_each.as_ref().is_some_and(|for_each| for_each.is_tolerant);
    if let Some(fan) = &mut node.fan {
        fan.live = fan.live.saturating_sub(1);
        match state {
            StepState::Succeeded => fan.succeeded += 1,
            // Of what is undone, policy may leave something done.
            StepState::Denied if is_tolerant => {}
            _ => fan.failed += 1,
        }
        draft.put(&key, node);
    }
}
