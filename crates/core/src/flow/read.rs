//! From a document to a workflow. Everything that can be wrong with one is found here, when it is saved.

use super::definition::{
    CompensateOn, DOCUMENT_LEN_MAX, Flow, FlowProblem, NAME_LEN_MAX, RETRIES_MAX, Retry, RunWhen,
    STEP_ID_LEN_MAX, STEPS_MAX, Step, TIMEOUT_SEC_MAX, Undo, UndoJob, connect,
};
use super::document::{CompensationDocument, RetryDocument, StepDocument, WorkflowDocument};
use super::schema::Schema;
use super::steps::{self, Delay, StepKind};
use super::template::Template;
use crate::expression::{self, Expression};
use crate::id::{StepId, Topic, WorkflowId};
use crate::time::Millis;
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};

/// What names stand for, where a step is.
#[derive(Clone)]
struct StepNames {
    /// When it begins.
    begin: Vec<(&'static str, expression::ValueKind)>,
    /// While its branches or rounds come and go.
    inner: Vec<(&'static str, expression::ValueKind)>,
    /// When it has succeeded.
    after: Vec<(&'static str, expression::ValueKind)>,
}

pub(super) fn flow(document: &WorkflowDocument, version: u32, now: Millis) -> Result<Flow, FlowProblem> {
    head(document)?;
    let input_schema = schema("input_schema", document.input_schema.as_ref())?;
    let outputs = outputs(document)?;
    let input = input_schema.as_ref().map_or(expression::ValueKind::Json, Schema::kind);
    let all: BTreeSet<StepId> = outputs.keys().cloned().collect();
    let names_of = |over: &BTreeSet<StepId>, step: &StepDocument, is_body: bool| {
        names(&input, &outputs, over, step, is_body)
    };

    // Once with every step in sight, to see how they hang together; then with those that come before.
    let loose = |_: &StepId, step: &StepDocument| {
        let names = names_of(&all, step, true);
        StepNames { begin: names.clone(), inner: names.clone(), after: names }
    };
    let mut steps = read_steps(document, loose, now)?;
    let graph = connect(&mut steps)?;
    let strict = |id: &StepId, step: &StepDocument| {
        let is_body = matches!(steps[id].owner, Some(super::definition::Owner::Loop(_)));
        let (over_at_begin, mut over_at_end) = graph.over_before(id);
        let begin = names_of(&over_at_begin, step, is_body);
        let inner = names_of(&over_at_end, step, true);
        over_at_end.insert(id.clone());
        StepNames { begin, inner, after: names_of(&over_at_end, step, is_body) }
    };
    let mut read = read_steps(document, strict, now)?;
    connect(&mut read)?;
    let output = document.output.as_ref().map(|output| {
        Template::parse(output, &names_of(&all, &StepDocument::default(), false))
            .map_err(|problem| FlowProblem::new("output", problem))
    });
    Ok(Flow {
        id: WorkflowId::known(document.id.as_str()),
        version,
        name: document.name.clone(),
        timeout_ms: document.timeout_sec.map(|seconds| seconds as i64 * 1000),
        input_schema,
        parameters: document.parameters.clone(),
        output: output.transpose()?,
        compensate_on: compensate_on(document)?,
        undoes_at_once: document.rollback.is_some_and(|rollback| rollback.parallel),
        steps: read,
    })
}

fn head(document: &WorkflowDocument) -> Result<(), FlowProblem> {
    let len = serde_json::to_string(document).map_or(usize::MAX, |text| text.len());
    if len > DOCUMENT_LEN_MAX {
        return Err(FlowProblem::new(
            "steps",
            format!("the document has {len} bytes; at most {DOCUMENT_LEN_MAX} are allowed"),
        ));
    }
    WorkflowId::parse(&document.id).map_err(|problem| FlowProblem::new("id", problem.to_string()))?;
    // `:` keeps workflow and run apart in the names of timers.
    if document.id.contains(':') || document.id.len() > 128 {
        return Err(FlowProblem::new("id", "must have at most 128 bytes and no `:`"));
    }
    if document.name.chars().count() > NAME_LEN_MAX {
        return Err(FlowProblem::new("name", format!("has more than {NAME_LEN_MAX} characters")));
    }
    if document.timeout_sec.is_some_and(|seconds| seconds == 0 || seconds > TIMEOUT_SEC_MAX) {
        return Err(FlowProblem::new("timeout_sec", format!("must be from 1 to {TIMEOUT_SEC_MAX}")));
    }
    if document.steps.is_empty() {
        return Err(FlowProblem::new("steps", "a workflow has at least one step"));
    }
    if document.steps.len() > STEPS_MAX {
        return Err(FlowProblem::new(
            "steps",
            format!("has {} steps; at most {STEPS_MAX} are allowed", document.steps.len()),
        ));
    }
    for name in document.parameters.keys() {
        steps::context_key(name).map_err(|problem| FlowProblem::new("parameters", problem))?;
    }
    for (id, step) in &document.steps {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if id.is_empty() || id.len() > STEP_ID_LEN_MAX || !id.chars().all(is_plain) {
            let problem =
                format!("{id:?} is no name of letters, digits, _ and - (at most {STEP_ID_LEN_MAX})");
            return Err(FlowProblem::new("steps", problem));
        }
        if step.id.as_ref().is_some_and(|own| own != id) {
            return Err(FlowProblem::new(
                "id",
                format!("is {:?} here, and {id:?} in the list", step.id.as_deref().unwrap_or("")),
            )
            .of_step(id));
        }
    }
    Ok(())
}

fn compensate_on(document: &WorkflowDocument) -> Result<BTreeSet<CompensateOn>, FlowProblem> {
    let Some(words) = &document.compensate_on else { return Ok([CompensateOn::Failed].into()) };
    let parse = |word: &String| {
        CompensateOn::parse(word).ok_or_else(|| {
            FlowProblem::new(
                "compensate_on",
                format!("{word:?} is none of failed, denied, cancelled and timed_out"),
            )
        })
    };
    words.iter().map(parse).collect()
}

/// What each step gives, as far as its schema says.
fn outputs(document: &WorkflowDocument) -> Result<BTreeMap<StepId, expression::ValueKind>, FlowProblem> {
    let kind = |(id, step): (&String, &StepDocument)| {
        let schema =
            schema("output_schema", step.output_schema.as_ref()).map_err(|problem| problem.of_step(id))?;
        let kind = match (schema, step.kind.as_str()) {
            (Some(schema), _) => schema.kind(),
            (None, "condition") => expression::ValueKind::Truth,
            (None, _) => expression::ValueKind::Json,
        };
        let kind = if step.for_each.is_some() { expression::ValueKind::list(kind) } else { kind };
        Ok((StepId::known(id.as_str()), kind))
    };
    document.steps.iter().map(kind).collect()
}

fn names(
    input: &expression::ValueKind,
    outputs: &BTreeMap<StepId, expression::ValueKind>,
    over: &BTreeSet<StepId>,
    step: &StepDocument,
    is_body: bool,
) -> Vec<(&'static str, expression::ValueKind)> {
    use expression::ValueKind::{Int, Json, Text};
    let seen = over.iter().filter_map(|id| {
        let output = outputs.get(id)?.clone();
        let parts = [("output", output), ("status", Text), ("error", Text)];
        let parts = parts.into_iter().map(|(name, kind)| (name.to_owned(), kind));
        Some((id.to_string(), expression::ValueKind::record("a step", parts)))
    });
    let steps = expression::ValueKind::record("what comes before this step", seen);
    let mut names = vec![("input", input.clone()), ("ctx", Json), ("steps", steps)];
    if step.for_each.is_some() {
        names.push(("item", Json));
    }
    if step.for_each.is_some() || is_body {
        names.push(("index", Int));
    }
    names
}

fn read_steps(
    document: &WorkflowDocument,
    names: impl Fn(&StepId, &StepDocument) -> StepNames,
    now: Millis,
) -> Result<BTreeMap<StepId, Step>, FlowProblem> {
    let read = |(id, step): (&String, &StepDocument)| {
        let id = StepId::known(id.as_str());
        let step =
            read_step(&id, step, &names(&id, step), now).map_err(|problem| problem.of_step(id.as_str()))?;
        Ok((id, step))
    };
    document.steps.iter().map(read).collect()
}

fn read_step(
    id: &StepId,
    document: &StepDocument,
    names: &StepNames,
    now: Millis,
) -> Result<Step, FlowProblem> {
    let kind = StepKind::read(document, &names.begin, &names.inner)?;
    let for_each = steps::read_for_each(document, &names.begin)?;
    if for_each.is_some() && kind.is_composite() {
        return Err(FlowProblem::new("for_each", format!("a {} step cannot be gone through", kind.as_str())));
    }
    let is_own = matches!(kind, StepKind::Condition(_) | StepKind::Switch(_));
    let condition = match document.condition.as_ref().filter(|_| !is_own) {
        Some(source) => Some(condition(source, &names.begin)?),
        None => None,
    };
    let input = match &document.input {
        Some(input) if !kind.has_own_input() => {
            Template::parse(input, &names.begin).map_err(|problem| FlowProblem::new("input", problem))?
        }
        _ => Template::Fixed(json!({})),
    };
    if let Some(path) = &document.output_path {
        steps::context_key(path).map_err(|problem| FlowProblem::new("output_path", problem))?;
    }
    let on_error = document.on_error.as_deref().map(StepId::known).filter(|handler| handler != id);
    if document.on_error.is_some() && on_error.is_none() {
        return Err(FlowProblem::new("on_error", "a step cannot handle its own failure"));
    }
    let depends_on: BTreeSet<StepId> =
        document.depends_on.iter().map(|on| StepId::known(on.as_str())).collect();
    Ok(Step {
        id: id.clone(),
        name: document.name.clone(),
        index: 0,
        kind,
        depends_on: depends_on.into_iter().collect(),
        dependents: Vec::new(),
        run_when: run_when(document)?,
        owner: None,
        handles: Vec::new(),
        on_error,
        condition,
        for_each,
        delay: Delay::read(document, &names.begin, now)?,
        input,
        input_schema: schema("input_schema", document.input_schema.as_ref())?,
        output_schema: schema("output_schema", document.output_schema.as_ref())?,
        output_path: document.output_path.clone(),
        result_data_path: path(document.result_data_path.as_deref()),
        retry: document.retry.as_ref().map_or(Ok(Retry::default()), retry)?,
        timeout_ms: timeout(document.timeout_sec)?,
        meta: document.meta.clone().unwrap_or_default(),
        labels: document.route_labels.clone(),
        compensation: document.compensation.as_ref().map(|undo| read_undo(undo, names)).transpose()?,
    })
}

fn read_undo(document: &CompensationDocument, names: &StepNames) -> Result<Undo, FlowProblem> {
    let problem =
        |field: &str, problem: String| FlowProblem::new("compensation", format!("{field}: {problem}"));
    let topic = Topic::parse(&document.topic).map_err(|bad| problem("topic", bad.to_string()))?;
    let input = document.input.clone().unwrap_or_else(|| json!({}));
    let retry = document.retry.as_ref().map_or(Ok(Retry::of_undoing()), retry);
    let job = UndoJob {
        topic,
        meta: document.meta.clone().unwrap_or_default(),
        labels: document.route_labels.clone(),
        env: document.env.clone(),
        timeout_ms: timeout(document.timeout_sec)?,
        retry: retry.map_err(|bad| problem("retry", bad.problem))?,
    };
    Ok(Undo { input: Template::parse(&input, &names.after).map_err(|bad| problem("input", bad))?, job })
}

fn condition(source: &str, names: expression::Names<'_>) -> Result<Expression, FlowProblem> {
    let read = steps::expression("condition", source, names)?;
    match read.kind() {
        expression::ValueKind::Truth | expression::ValueKind::Json | expression::ValueKind::Any => Ok(read),
        other => Err(FlowProblem::new("condition", format!("is {other}, not yes or no"))),
    }
}

fn run_when(document: &StepDocument) -> Result<RunWhen, FlowProblem> {
    match document.run_when.as_deref() {
        None => Ok(RunWhen::Succeeded),
        Some(word) => RunWhen::parse(word).ok_or_else(|| {
            FlowProblem::new("run_when", format!("{word:?} is neither succeeded nor settled"))
        }),
    }
}

fn retry(document: &RetryDocument) -> Result<Retry, FlowProblem> {
    let plain = Retry::default();
    let problem =
        |field: &str, problem: String| Err(FlowProblem::new("retry", format!("{field}: {problem}")));
    if document.max_retries > RETRIES_MAX {
        return problem("max_retries", format!("must be at most {RETRIES_MAX}"));
    }
    let ms = |seconds: Option<f64>, plain: i64| seconds.map_or(plain, |seconds| (seconds * 1000.0) as i64);
    let read = Retry {
        retries_max: document.max_retries,
        initial_ms: ms(document.initial_backoff_sec, plain.initial_ms),
        max_ms: ms(document.max_backoff_sec, plain.max_ms),
        multiplier: document.multiplier.unwrap_or(plain.multiplier),
    };
    if !(0..=steps::DELAY_MS_MAX).contains(&read.initial_ms)
        || !(0..=steps::DELAY_MS_MAX).contains(&read.max_ms)
    {
        return problem(
            "initial_backoff_sec",
            "a delay must not be negative or longer than a year".to_owned(),
        );
    }
    if !(1.0..=100.0).contains(&read.multiplier) {
        return problem("multiplier", "must be from 1 to 100".to_owned());
    }
    Ok(read)
}

fn timeout(seconds: Option<u64>) -> Result<Option<i64>, FlowProblem> {
    match seconds {
        Some(seconds) if seconds == 0 || seconds > TIMEOUT_SEC_MAX => {
            Err(FlowProblem::new("timeout_sec", format!("must be from 1 to {TIMEOUT_SEC_MAX}")))
        }
        seconds => Ok(seconds.map(|seconds| seconds as i64 * 1000)),
    }
}

fn schema(field: &str, json: Option<&Json>) -> Result<Option<Schema>, FlowProblem> {
    json.map(Schema::parse).transpose().map_err(|problem| FlowProblem::new(field, problem))
}

/// `$.data.items`, or `data.items`.
pub(super) fn path(path: Option<&str>) -> Vec<String> {
    let path = path.unwrap_or_default().trim_start_matches("$.").trim_start_matches('$');
    path.split('.').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}
