//! The promises of the port, for every adapter.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed check is a failed test")]

pub mod hooked;

use crate::workflows::{RunCommit, RunQuery, RunStep, Saved, WorkflowStore};
use reveille_core::cost::{CostLimit, Meter};
use reveille_core::flow::{
    ClientUndo, Compensation, Flow, NodeKey, Run, RunEvent, RunHead, RunState, SagaFailure, StepOutcome,
    WorkflowDocument, advance, stack, stack_flow, start,
};
use reveille_core::id::{JobId, RunId, TenantId, WorkflowId};
use reveille_core::request::{Actor, Request};
use reveille_core::time::Millis;
use serde_json::json;
use std::sync::Arc;

fn meter() -> Meter {
    Meter::new(CostLimit::RUN_EVENT)
}

/// Runs every case, each on new flows.
pub async fn run<F>(open: &impl Fn() -> F)
where
    F: Future<Output = Arc<dyn WorkflowStore>>,
{
    versions_are_counted_and_pinned(&*open().await).await;
    tenants_do_not_mix(&*open().await).await;
    a_run_is_what_was_committed(&*open().await).await;
    a_revision_is_swapped_once(&*open().await).await;
    a_run_is_asked_for_once(&*open().await).await;
    a_tenant_has_so_many_runs_and_no_more(&*open().await).await;
    a_tenant_has_so_many_workflows_and_no_more(&*open().await).await;
    pages_neither_skip_nor_repeat(&*open().await).await;
    what_is_live_is_found_and_what_is_old_goes(&*open().await).await;
    a_timeline_keeps_its_end(&*open().await).await;
    what_is_due_is_found(&*open().await).await;
    a_run_begins_with_a_version_that_is_there(&*open().await).await;
    a_clients_stack_is_kept_through_every_failure(&*open().await).await;
}

fn document(id: &str, topic: &str) -> WorkflowDocument {
    let undo = json!({"topic": "job.undo", "input": "${steps.a.output}"});
    let steps = json!({
        "a": {"topic": topic, "output_path": "kept", "compensation": undo},
        "each": {"topic": "job.each", "depends_on": ["a"], "for_each": [1, 2], "max_parallel": 1},
    });
    serde_json::from_value(json!({"id": id, "name": id, "steps": steps}))
        .unwrap_or_else(|error| panic!("{error}"))
}

fn saved(tenant: &str, document: WorkflowDocument) -> Saved {
    let tenant = TenantId::known(tenant);
    Saved { tenant, version: 0, document, saved_at: Millis(1), saved_by: "ada".to_owned() }
}

/// Where there is room.
async fn save(flows: &dyn WorkflowStore, saved: Saved) -> u32 {
    flows.save(saved, 1000).await.unwrap().expect("there is room")
}

fn new_run(id: &str, tenant: &str, key: Option<&str>) -> Run {
    let (id, tenant) = (RunId::known(id), TenantId::known(tenant));
    let head = RunHead::new(id.clone(), tenant.clone(), WorkflowId::known("w"), 1, Millis(1));
    let actor = Actor { team: tenant.to_string(), ..Actor::default() };
    let head = RunHead { actor, idempotency_key: key.map(str::to_owned), ..head };
    Run::new(head, json!({"of": id.as_str()}).into())
}

fn flow() -> Flow {
    Flow::read(&document("w", "job.a"), 1).unwrap_or_else(|problem| panic!("{problem}"))
}

async fn begin(
    flows: &dyn WorkflowStore,
    id: &str,
    tenant: &str,
    key: Option<&str>,
    max: Option<u32>,
) -> (RunCommit, Run) {
    let mut run = new_run(id, tenant, key);
    if flows.workflow(&run.head.tenant, &run.head.workflow, Some(1)).await.unwrap().is_none() {
        save(flows, saved(tenant, document("w", "job.a"))).await;
    }
    let change = start(&run, &flow(), Millis(2), &meter());
    let step = RunStep { runs_max: max, ..RunStep::insert(Arc::new(run.clone()), Arc::new(change.clone())) };
    run.apply(change);
    (flows.commit(step).await.unwrap(), run)
}

async fn go_on(flows: &dyn WorkflowStore, run: &mut Run, event: &RunEvent) -> RunCommit {
    let change = advance(run, &flow(), event, Millis(3), &meter()).unwrap();
    let committed = flows.commit(RunStep::change(&run.head, Arc::new(change.clone()))).await.unwrap();
    run.apply(change);
    committed
}

fn over(node: &str) -> RunEvent {
    let node = NodeKey::parse(node).unwrap();
    RunEvent::Over {
        node,
        attempt: 1,
        outcome: StepOutcome::Succeeded(Some(json!({"big": [12_345_678_901_234_567_i64, [], {}]}))),
    }
}

/// A run with everything in it: steps, rounds, a context, items, a compensation. It waits for its first round.
pub async fn one_run(flows: &dyn WorkflowStore, id: &str) -> Run {
    let (committed, mut run) = begin(flows, id, "t", None, None).await;
    assert_eq!(committed, RunCommit::Done);
    assert_eq!(go_on(flows, &mut run, &over("a")).await, RunCommit::Done);
    run
}

/// Calls a run back, and its steps with it.
pub async fn end(flows: &dyn WorkflowStore, run: &mut Run) -> RunCommit {
    let mut change = advance(run, &flow(), &cancel(), Millis(3), &meter()).unwrap();
    (change.head.cancels, change.head.due) = (0, None);
    let committed = flows.commit(RunStep::change(&run.head, Arc::new(change.clone()))).await.unwrap();
    run.apply(change);
    committed
}

/// A run is to be looked at again then.
pub async fn wait_until(flows: &dyn WorkflowStore, run: &mut Run, due: Millis) {
    let mut change = advance(run, &flow(), &over("each[0]"), Millis(3), &meter()).unwrap();
    change.head.due = Some(due);
    let committed = flows.commit(RunStep::change(&run.head, Arc::new(change.clone()))).await.unwrap();
    assert_eq!(committed, RunCommit::Done);
    run.apply(change);
}

fn cancel() -> RunEvent {
    RunEvent::Cancel { by: "ada".to_owned(), reason: String::new() }
}

async fn versions_are_counted_and_pinned(flows: &dyn WorkflowStore) {
    let (tenant, id) = (TenantId::known("t"), WorkflowId::known("w"));
    assert_eq!(flows.workflow(&tenant, &id, None).await.unwrap(), None);
    assert_eq!(save(flows, saved("t", document("w", "job.a"))).await, 1);
    assert_eq!(save(flows, saved("t", document("w", "job.a"))).await, 1, "the same again");
    begin(flows, "r", "t", None, None).await;
    assert_eq!(save(flows, saved("t", document("w", "job.b"))).await, 2);
    let last = flows.workflow(&tenant, &id, None).await.unwrap().unwrap();
    assert_eq!((last.version, &last.document), (2, &document("w", "job.b")));
    let first = flows.workflow(&tenant, &id, Some(1)).await.unwrap().unwrap();
    assert_eq!(
        (first.version, &first.document, first.saved_by.as_str()),
        (1, &document("w", "job.a"), "ada")
    );
    assert!(flows.delete_workflow(&tenant, &id).await.unwrap());
    assert!(!flows.delete_workflow(&tenant, &id).await.unwrap());
    assert_eq!(flows.workflow(&tenant, &id, None).await.unwrap(), None);
    assert!(flows.workflow(&tenant, &id, Some(1)).await.unwrap().is_some(), "a run needs it");
    assert_eq!(save(flows, saved("t", document("w", "job.b"))).await, 3, "a number is not given out twice");
    flows.prune(Millis(0), 10).await.unwrap();
    assert!(flows.workflow(&tenant, &id, Some(1)).await.unwrap().is_some(), "a run needs it");
    assert!(flows.workflow(&tenant, &id, Some(2)).await.unwrap().is_none(), "nobody needs it");
}

async fn tenants_do_not_mix(flows: &dyn WorkflowStore) {
    let id = WorkflowId::known("w");
    save(flows, saved("t", document("w", "job.a"))).await;
    save(flows, saved("t", document("v", "job.a"))).await;
    save(flows, saved("u", document("w", "job.b"))).await;
    let of = |tenant: &str| TenantId::known(tenant);
    assert_eq!(
        flows.workflow(&of("u"), &id, None).await.unwrap().unwrap().document.steps["a"].topic,
        "job.b"
    );
    let names =
        |list: Vec<Arc<Saved>>| list.iter().map(|saved| saved.document.id.clone()).collect::<Vec<_>>();
    assert_eq!(names(flows.workflows(&of("t"), None, 10).await.unwrap()), ["v", "w"]);
    assert_eq!(names(flows.workflows(&of("t"), Some(&WorkflowId::known("v")), 10).await.unwrap()), ["w"]);
    assert_eq!(names(flows.workflows(&of("t"), None, 1).await.unwrap()), ["v"]);
    let (first, _) = begin(flows, "r1", "t", Some("key"), None).await;
    let (second, _) = begin(flows, "r2", "u", Some("key"), None).await;
    assert_eq!((first, second), (RunCommit::Done, RunCommit::Done), "a key is a tenant's own");
    flows.delete_workflow(&of("t"), &id).await.unwrap();
    assert!(flows.workflow(&of("u"), &id, None).await.unwrap().is_some());
}

async fn a_run_is_what_was_committed(flows: &dyn WorkflowStore) {
    let run = one_run(flows, "r").await;
    let stored = flows.run(&RunId::known("r")).await.unwrap().unwrap();
    assert_eq!(stored, run);
    assert!(!stored.context.is_empty() && !stored.items.is_empty() && !stored.compensations.is_empty());
    assert_eq!(flows.run(&RunId::known("none")).await.unwrap(), None);
    for (key, node) in &run.nodes {
        assert_eq!(flows.node(&run.head.id, key).await.unwrap().as_ref(), Some(node));
    }
    let key = NodeKey::parse("none").unwrap();
    assert_eq!(flows.node(&run.head.id, &key).await.unwrap(), None);
    assert_eq!(flows.node(&RunId::known("none"), &key).await.unwrap(), None);
}

async fn a_revision_is_swapped_once(flows: &dyn WorkflowStore) {
    let mut run = one_run(flows, "r").await;
    let mut other = run.clone();
    assert_eq!(go_on(flows, &mut run, &over("each[0]")).await, RunCommit::Done);
    assert_eq!(go_on(flows, &mut other, &cancel()).await, RunCommit::Conflict);
    assert_eq!(flows.run(&RunId::known("r")).await.unwrap(), Some(run), "nothing of it stayed");
    let mut never = new_run("never", "t", None);
    let change = start(&never, &flow(), Millis(2), &meter());
    never.head.revision = 7;
    let step = RunStep::change(&never.head, Arc::new(change));
    assert_eq!(flows.commit(step).await.unwrap(), RunCommit::Conflict, "there is no such run");
}

async fn a_run_is_asked_for_once(flows: &dyn WorkflowStore) {
    assert_eq!(begin(flows, "r", "t", Some("key"), None).await.0, RunCommit::Done);
    assert_eq!(begin(flows, "r", "t", None, None).await.0, RunCommit::Duplicate(RunId::known("r")));
    assert_eq!(begin(flows, "s", "t", Some("key"), None).await.0, RunCommit::Duplicate(RunId::known("r")));
    assert_eq!(flows.run(&RunId::known("s")).await.unwrap(), None);
}

async fn a_tenant_has_so_many_runs_and_no_more(flows: &dyn WorkflowStore) {
    let (_, mut run) = begin(flows, "r1", "t", None, Some(2)).await;
    assert_eq!(begin(flows, "r2", "t", None, Some(2)).await.0, RunCommit::Done);
    assert_eq!(begin(flows, "r3", "t", None, Some(2)).await.0, RunCommit::QuotaExceeded);
    assert_eq!(begin(flows, "r3", "u", None, Some(2)).await.0, RunCommit::Done);
    go_on(flows, &mut run, &cancel()).await;
    assert_eq!(begin(flows, "r4", "t", None, Some(2)).await.0, RunCommit::Done, "one is over");
}

async fn a_tenant_has_so_many_workflows_and_no_more(flows: &dyn WorkflowStore) {
    let save = async |tenant: &str, id: &str, topic: &str| {
        flows.save(saved(tenant, document(id, topic)), 2).await.unwrap()
    };
    assert_eq!((save("t", "a", "job.a").await, save("t", "b", "job.a").await), (Some(1), Some(1)));
    assert_eq!(save("t", "c", "job.a").await, None, "two are there");
    let (tenant, c) = (TenantId::known("t"), WorkflowId::known("c"));
    assert_eq!(flows.workflow(&tenant, &c, None).await.unwrap(), None, "nothing of it is stored");
    assert_eq!(save("t", "b", "job.b").await, Some(2), "another version is no other workflow");
    assert_eq!(save("t", "b", "job.b").await, Some(2));
    assert_eq!(save("u", "c", "job.a").await, Some(1), "another tenant has its own");
    assert!(flows.delete_workflow(&tenant, &WorkflowId::known("a")).await.unwrap());
    assert_eq!(save("t", "c", "job.a").await, Some(1), "one has gone");
    assert_eq!(save("t", "a", "job.a").await, None, "and does not come back while two are there");
}

async fn pages_neither_skip_nor_repeat(flows: &dyn WorkflowStore) {
    for n in 0..7 {
        begin(flows, &format!("r{n}"), if n % 2 == 0 { "t" } else { "u" }, None, None).await;
    }
    let mut query = RunQuery { tenant: Some(TenantId::known("t")), limit: 3, ..RunQuery::default() };
    let mut seen = Vec::new();
    loop {
        let page = flows.runs(&query).await.unwrap();
        seen.extend(page.items.iter().map(|head| head.id.to_string()));
        query.cursor = page.next;
        if page.next.is_none() {
            break;
        }
    }
    assert_eq!(seen, ["r6", "r4", "r2", "r0"]);
    let of = |query: RunQuery| async move { flows.runs(&query).await.unwrap().items.len() };
    assert_eq!(of(RunQuery { state: Some(RunState::Running), limit: 10, ..RunQuery::default() }).await, 7);
    assert_eq!(of(RunQuery { state: Some(RunState::Failed), limit: 10, ..RunQuery::default() }).await, 0);
    assert_eq!(
        of(RunQuery { workflow: Some(WorkflowId::known("x")), limit: 10, ..RunQuery::default() }).await,
        0
    );
    assert_eq!(of(RunQuery { team: Some("u".to_owned()), limit: 10, ..RunQuery::default() }).await, 3);
    assert_eq!(of(RunQuery { updated_after: Some(Millis(3)), limit: 10, ..RunQuery::default() }).await, 0);
    assert_eq!(of(RunQuery { updated_before: Some(Millis(2)), limit: 10, ..RunQuery::default() }).await, 7);
}

async fn what_is_live_is_found_and_what_is_old_goes(flows: &dyn WorkflowStore) {
    let (_, mut run) = begin(flows, "r1", "t", Some("key"), None).await;
    begin(flows, "r2", "t", None, None).await;
    let ids = |page: &crate::Page<RunId>| page.items.iter().map(ToString::to_string).collect::<Vec<_>>();
    let first = flows.live(None, 1).await.unwrap();
    assert_eq!(ids(&first), ["r1"]);
    assert_eq!(ids(&flows.live(first.next, 1).await.unwrap()), ["r2"]);
    go_on(flows, &mut run, &cancel()).await;
    assert_eq!(ids(&flows.live(None, 10).await.unwrap()), ["r1", "r2"], "its job has to be called back");
    assert!(!flows.delete_run(&run.head.id).await.unwrap(), "it owes something");
    assert_eq!(flows.prune(Millis(100), 10).await.unwrap(), 0);
    go_on(flows, &mut run, &over("a")).await;
    assert_eq!(ids(&flows.live(None, 10).await.unwrap()), ["r2"]);
    assert_eq!(flows.prune(Millis(3), 10).await.unwrap(), 0, "it is not old enough");
    assert_eq!(flows.prune(Millis(4), 10).await.unwrap(), 1);
    assert_eq!(flows.run(&run.head.id).await.unwrap(), None);
    assert_eq!(flows.timeline(&run.head.id, 0, 10).await.unwrap(), []);
    assert_eq!(begin(flows, "r3", "t", Some("key"), None).await.0, RunCommit::Done, "its key is free again");
}

async fn a_timeline_keeps_its_end(flows: &dyn WorkflowStore) {
    let run = one_run(flows, "r").await;
    let lines = flows.timeline(&run.head.id, 0, 100).await.unwrap();
    assert_eq!(lines.iter().map(|(n, _)| *n).collect::<Vec<_>>(), (1..=run.head.lines).collect::<Vec<_>>());
    assert_eq!(lines[0].1.node, Some(NodeKey::parse("a").unwrap()));
    let rest = flows.timeline(&run.head.id, 2, 1).await.unwrap();
    assert_eq!(rest, lines[2..3]);
}

async fn what_is_due_is_found(flows: &dyn WorkflowStore) {
    let mut run = one_run(flows, "r").await;
    one_run(flows, "other").await;
    assert_eq!(flows.due(Millis(1_000_000), 10).await.unwrap(), []);
    wait_until(flows, &mut run, Millis(5_001)).await;
    assert_eq!(flows.due(Millis(5_000), 10).await.unwrap(), []);
    assert_eq!(flows.due(Millis(5_001), 10).await.unwrap(), [run.head.id.clone()]);
    assert_eq!(flows.due(Millis(9_000), 10).await.unwrap(), [run.head.id.clone()], "until it was looked at");
    assert_eq!(end(flows, &mut run).await, RunCommit::Done);
    assert_eq!(flows.due(Millis(9_000), 10).await.unwrap(), []);
}

async fn a_run_begins_with_a_version_that_is_there(flows: &dyn WorkflowStore) {
    let run = new_run("r", "t", Some("key"));
    let change = Arc::new(start(&run, &flow(), Millis(2), &meter()));
    let step = RunStep::insert(Arc::new(run.clone()), change);
    assert_eq!(flows.commit(step.clone()).await.unwrap(), RunCommit::Conflict);
    assert_eq!(flows.run(&run.head.id).await.unwrap(), None);
    save(flows, saved("t", document("w", "job.a"))).await;
    assert_eq!(flows.commit(step).await.unwrap(), RunCommit::Done, "nothing of the first try stayed");
}

/// A stack is over from its first commit and changes all the same; it is live while it owes a rollback, and goes by age.
async fn a_clients_stack_is_kept_through_every_failure(flows: &dyn WorkflowStore) {
    let tenant = TenantId::known("t");
    let mut run = stack(&tenant, "trip", Millis(1));
    let change = start(&run, &stack_flow(), Millis(2), &meter());
    let step = RunStep::insert(Arc::new(run.clone()), Arc::new(change.clone()));
    assert_eq!(flows.commit(step.clone()).await.unwrap(), RunCommit::Done, "it goes by no version");
    assert_eq!(flows.commit(step).await.unwrap(), RunCommit::Duplicate(run.head.id.clone()));
    run.apply(change);
    let record = |job: &str| {
        let request =
            Request { labels: [("big".into(), "[]".into())].into(), ..Request::plain("x", "job.undo") };
        let undo = ClientUndo { asked_at: Millis(1), request };
        RunEvent::Record(Arc::new(Compensation::of_client(&JobId::known(job), undo)))
    };
    let fail = |job: &str, at: i64| {
        let failed = SagaFailure { job: JobId::known(job), at: Millis(at) };
        RunEvent::Fail { failed, words: "no cars left".to_owned() }
    };
    let live = async || flows.live(None, 10).await.unwrap().items;
    for (event, owes) in [
        (record("a"), false),
        (record("b"), false),
        (fail("c", 3), true),
        (RunEvent::RollbackMade { upto: 2 }, false),
        (fail("d", 4), false),
    ] {
        let change = advance(&run, &stack_flow(), &event, Millis(5), &meter()).unwrap();
        let step = RunStep::change(&run.head, Arc::new(change.clone()));
        assert_eq!(flows.commit(step).await.unwrap(), RunCommit::Done, "{event:?}");
        run.apply(change);
        let stored = flows.run(&run.head.id).await.unwrap().unwrap();
        assert_eq!(stored, run, "{event:?}");
        assert_eq!(live().await.len(), usize::from(owes), "{event:?}");
        assert_eq!(flows.due(Millis(i64::MAX), 10).await.unwrap(), []);
    }
    let jobs: Vec<_> = run.compensations.iter().filter_map(|undo| undo.job.clone()).collect();
    assert_eq!(jobs, [JobId::known("a"), JobId::known("b")], "in the order in which they were done");
    let failed = RunQuery { state: Some(RunState::Failed), limit: 10, ..RunQuery::default() };
    let told = flows.runs(&failed).await.unwrap().items;
    assert_eq!(told, [run.head.clone()]);
    assert_eq!(flows.prune(Millis(6), 10).await.unwrap(), 1);
    assert_eq!(flows.run(&run.head.id).await.unwrap(), None);
}
