//! Workflows and runs over HTTP: what is refused, and who sees what.

use super::support::{Api, USER, eventually};
use reveille_core::flow::{Run, RunChange, RunHead, RunState};
use reveille_core::id::{RunId, TenantId, WorkflowId};
use reveille_core::time::Millis;
use reveille_engine::{LimitSettings, Settings};
use reveille_roster::Scope;
use reveille_store::workflows::{RunCommit, RunStep, WorkflowStore};
use serde_json::{Value, json};
use std::sync::Arc;

fn workflow(id: &str) -> Value {
    json!({"id": id, "name": "a workflow", "steps": {"d": {"type": "delay", "delay_sec": 600}, "a": {"topic": "job.a", "depends_on": ["d"]}}})
}

#[tokio::test]
async fn a_workflow_is_saved_read_and_deleted() {
    let api = Api::open().await;
    let key = api.key("acme", USER).await;
    let (status, reply) = api.call(&key, "POST", "/api/v1/workflows", &workflow("w").to_string()).await;
    assert_eq!((status, reply), (201, json!({"id": "w", "version": 1})));
    let (status, read) = api.call(&key, "GET", "/api/v1/workflows/w", "").await;
    assert_eq!(
        (status, &read["version"], &read["org_id"], &read["saved_by"]),
        (200, &json!(1), &json!("acme"), &json!("acme"))
    );
    assert_eq!(read["steps"]["d"]["delay_sec"], json!(600.0));
    // What was read can be saved again, and is the same version.
    let mut again = read.clone();
    again.as_object_mut().unwrap().retain(|name, _| name != "saved_at" && name != "saved_by");
    assert_eq!(api.call(&key, "POST", "/api/v1/workflows", &again.to_string()).await.1["version"], 1);
    let (_, list) = api.call(&key, "GET", "/api/v1/workflows", "").await;
    assert_eq!(list.as_array().unwrap().len(), 1);
    assert_eq!(api.call(&key, "DELETE", "/api/v1/workflows/w", "").await.0, 204);
    assert_eq!(api.call(&key, "DELETE", "/api/v1/workflows/w", "").await.0, 404);
    assert_eq!(api.call(&key, "GET", "/api/v1/workflows/w", "").await.0, 404);
    assert_eq!(api.call(&key, "GET", "/api/v1/workflows/w?version=1", "").await.0, 200);
}

#[tokio::test]
async fn a_bad_workflow_is_refused_with_step_and_field_and_nothing_is_stored() {
    let api = Api::open().await;
    let key = api.key("acme", USER).await;
    for (steps, step, field) in [
        (
            json!({"a": {"topic": "job.a", "depends_on": ["b"]}, "b": {"topic": "job.b", "depends_on": ["a"]}}),
            "a",
            "depends_on",
        ),
        (json!({"a": {"topic": "job.a", "depends_on": ["gone"]}}), "a", "depends_on"),
        (json!({"a": {"type": "subworkflow", "input": {"workflow_id": "w"}}}), "a", "input"),
        (json!({"a": {"topic": "job.a", "condition": "input.n +"}}), "a", "condition"),
        (json!({"a": {"topic": "job.a", "for_each": vec![0; 10_000]}}), "a", "for_each"),
        (json!({"a": {"type": "delay", "delay_until": "2020-01-01T00:00:00Z"}}), "a", "delay_until"),
        (json!({"a": {"type": "delay", "delay_until": "+010000-01-01T00:00:00Z"}}), "a", "delay_until"),
        (json!({"a": {"type": "magic"}}), "a", "type"),
    ] {
        let document = json!({"id": "w", "name": "n", "steps": steps});
        let (status, reply) = api.call(&key, "POST", "/api/v1/workflows", &document.to_string()).await;
        assert_eq!(
            (status, &reply["code"], &reply["step"], &reply["field"]),
            (400, &json!("invalid_workflow"), &json!(step), &json!(field)),
            "{reply}"
        );
    }
    let long = json!({"id": "w", "name": "n", "description": "d".repeat(600 * 1024), "steps": {"a": {"topic": "job.a"}}});
    assert_eq!(api.call(&key, "POST", "/api/v1/workflows", &long.to_string()).await.0, 400);
    assert_eq!(api.call(&key, "POST", "/api/v1/workflows", "{").await.0, 400);
    let (status, reply) =
        api.call(&key, "POST", "/api/v1/workflows", r#"{"id": "w", "steps": {"a": {"topik": 1}}}"#).await;
    assert_eq!(status, 400);
    assert!(reply["error"].as_str().unwrap().contains("topik"), "{reply}");
    assert_eq!(api.call(&key, "GET", "/api/v1/workflows", "").await.1, json!([]));
}

#[tokio::test]
async fn a_run_is_started_listed_cancelled_and_told() {
    let api = Api::open().await;
    let key = api.key("acme", USER).await;
    api.call(&key, "POST", "/api/v1/workflows", &workflow("w").to_string()).await;
    let body = json!({"input": {"n": 1}, "idempotency_key": "k"}).to_string();
    let (status, first) = api.call(&key, "POST", "/api/v1/workflows/w/runs", &body).await;
    assert_eq!((status, &first["existing"]), (200, &json!(false)), "{first}");
    let (_, second) = api.call(&key, "POST", "/api/v1/workflows/w/runs", &body).await;
    assert_eq!((&second["run_id"], &second["existing"]), (&first["run_id"], &json!(true)));
    let id = first["run_id"].as_str().unwrap().to_owned();
    let (_, run) = api.call(&key, "GET", &format!("/api/v1/workflow-runs/{id}"), "").await;
    assert_eq!(
        (&run["status"], &run["steps"]["d"]["status"], &run["input"]),
        (&json!("waiting"), &json!("waiting"), &json!({"n": 1})),
        "{run}"
    );
    assert!(run["steps"]["d"]["due_at"].is_string());
    assert_eq!(
        api.call(&key, "GET", "/api/v1/workflow-runs?status=waiting", "").await.1["items"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(api.call(&key, "GET", "/api/v1/workflow-runs?status=nonsense", "").await.0, 400);
    assert_eq!(api.call(&key, "GET", "/api/v1/workflows/w/runs", "").await.1.as_array().unwrap().len(), 1);
    assert_eq!(api.call(&key, "DELETE", &format!("/api/v1/workflow-runs/{id}"), "").await.0, 409);
    assert_eq!(api.call(&key, "POST", &format!("/api/v1/workflow-runs/{id}/rerun"), "").await.0, 409);
    assert_eq!(api.call(&key, "POST", &format!("/api/v1/workflows/other/runs/{id}/cancel"), "").await.0, 404);
    assert_eq!(
        api.call(&key, "POST", &format!("/api/v1/workflows/w/runs/{id}/cancel"), r#"{"reason": "enough"}"#)
            .await
            .0,
        204
    );
    let (status, reply) = api.call(&key, "POST", &format!("/api/v1/workflow-runs/{id}/cancel"), "").await;
    assert_eq!((status, &reply["code"]), (409, &json!("RUN_NOT_CANCELLABLE")));
    let (_, lines) = api.call(&key, "GET", &format!("/api/v1/workflow-runs/{id}/timeline"), "").await;
    let last = lines.as_array().unwrap().last().unwrap().clone();
    assert_eq!(
        (&last["type"], &last["status"], &last["message"]),
        (&json!("run_status"), &json!("cancelled"), &json!("cancelled by acme: enough"))
    );
    let (status, again) =
        api.call(&key, "POST", &format!("/api/v1/workflow-runs/{id}/rerun"), r#"{"from_step": "a"}"#).await;
    assert_eq!((status, &again["field"]), (400, &json!("from_step")), "d has not succeeded");
    assert_eq!(api.call(&key, "POST", &format!("/api/v1/workflow-runs/{id}/rerun"), "").await.0, 200);
    eventually(async || api.call(&key, "DELETE", &format!("/api/v1/workflow-runs/{id}"), "").await.0 == 204)
        .await;
    assert_eq!(api.call(&key, "GET", &format!("/api/v1/workflow-runs/{id}"), "").await.0, 404);
    assert_eq!(api.call(&key, "POST", "/api/v1/workflows/gone/runs", "").await.0, 404);
    assert_eq!(api.call(&key, "POST", "/api/v1/workflows/w/runs?dry_run=true", "").await.0, 400);
}

/// One that is over cannot be cancelled again, so nobody is told to.
#[tokio::test]
async fn a_run_that_owes_something_is_not_deleted_and_says_what_it_waits_for() {
    let api = Api::open().await;
    let key = api.key("acme", USER).await;
    api.call(&key, "POST", "/api/v1/workflows", &workflow("w").to_string()).await;
    let new = RunHead::new(RunId::known("r"), TenantId::known("acme"), WorkflowId::known("w"), 1, Millis(1));
    let over = RunHead { revision: 1, state: RunState::Cancelled, ..new };
    for (id, head, status, words) in [
        (
            "a",
            RunHead { state: RunState::Running, ..over.clone() },
            409,
            "the run is not over; cancel it first",
        ),
        ("b", RunHead { cancels: 2, owes_rollback: true, ..over.clone() }, 409, "2 jobs or runs of it"),
        ("c", RunHead { owes_rollback: true, ..over.clone() }, 409, "what undoes it has yet to begin"),
        ("d", over, 204, ""),
    ] {
        let head = RunHead { id: RunId::known(id), ..head };
        let run = Run::new(head.clone(), Arc::new(json!({})));
        let change = RunChange {
            head,
            nodes: Vec::new(),
            context: Vec::new(),
            items: Vec::new(),
            compensations: Vec::new(),
            timeline: Vec::new(),
            output: None,
        };
        let stored = api.world.workflows.commit(RunStep::insert(Arc::new(run), Arc::new(change))).await;
        assert_eq!(stored.unwrap(), RunCommit::Done);
        let (told, reply) = api.call(&key, "DELETE", &format!("/api/v1/workflow-runs/{id}"), "").await;
        assert_eq!(told, status, "{id}: {reply}");
        assert!(reply["error"].as_str().unwrap_or_default().contains(words), "{id}: {reply}");
    }
}

#[tokio::test]
async fn other_tenants_see_none_of_it() {
    let api = Api::open().await;
    let (key, other) = (api.key("acme", USER).await, api.key("zeta", USER).await);
    api.call(&key, "POST", "/api/v1/workflows", &workflow("w").to_string()).await;
    let (_, started) =
        api.call(&key, "POST", "/api/v1/workflows/w/runs", r#"{"idempotency_key": "k"}"#).await;
    let id = started["run_id"].as_str().unwrap();
    for (method, path) in [
        ("GET", "/api/v1/workflows/w".to_owned()),
        ("DELETE", "/api/v1/workflows/w".to_owned()),
        ("POST", "/api/v1/workflows/w/runs".to_owned()),
        ("GET", format!("/api/v1/workflow-runs/{id}")),
        ("GET", format!("/api/v1/workflow-runs/{id}/timeline")),
        ("DELETE", format!("/api/v1/workflow-runs/{id}")),
        ("POST", format!("/api/v1/workflow-runs/{id}/cancel")),
        ("POST", format!("/api/v1/workflow-runs/{id}/rerun")),
    ] {
        assert_eq!(api.call(&other, method, &path, "").await.0, 404, "{method} {path}");
    }
    assert_eq!(api.call(&other, "GET", "/api/v1/workflows", "").await.1, json!([]));
    assert_eq!(api.call(&other, "GET", "/api/v1/workflow-runs", "").await.1["items"], json!([]));
    assert_eq!(api.call(&other, "GET", "/api/v1/workflow-runs?org_id=acme", "").await.0, 403);
    assert_eq!(api.call(&other, "GET", "/api/v1/workflows?tenant=acme", "").await.0, 403);
    // The same names and keys are another tenant's own.
    api.call(&other, "POST", "/api/v1/workflows", &workflow("w").to_string()).await;
    let (status, own) =
        api.call(&other, "POST", "/api/v1/workflows/w/runs", r#"{"idempotency_key": "k"}"#).await;
    assert_eq!((status, own["run_id"] == started["run_id"]), (200, false));
    let reader = api.key("acme", &[Scope::Read]).await;
    assert_eq!(api.call(&reader, "POST", "/api/v1/workflows", &workflow("v").to_string()).await.0, 403);
    assert_eq!(api.call(&reader, "POST", "/api/v1/workflows/w/runs", "").await.0, 403);
    assert_eq!(api.call(&reader, "GET", &format!("/api/v1/workflow-runs/{id}"), "").await.0, 200);
}

#[tokio::test]
async fn a_workflow_is_drawn_as_numbers_or_as_a_picture() {
    let api = Api::open().await;
    let (key, other) = (api.key("acme", USER).await, api.key("zeta", USER).await);
    api.call(&key, "POST", "/api/v1/workflows", &workflow("w").to_string()).await;
    let (status, graph) = api.call(&key, "GET", "/api/v1/workflows/w/graph", "").await;
    assert_eq!(status, 200, "{graph}");
    let nodes: Vec<_> = graph["nodes"].as_array().unwrap().iter().map(|node| &node["step_id"]).collect();
    assert_eq!(nodes, [&json!("d"), &json!("a")]);
    assert_eq!(
        (&graph["nodes"][1]["layer"], &graph["nodes"][1]["about"], &graph["nodes"][1]["notes"]),
        (&json!(1), &json!("job.a"), &json!(["after d"]))
    );
    assert_eq!(graph["edges"], json!([{"from": "d", "to": "a", "type": "after", "label": ""}]));
    let (status, kind, picture) =
        api.fetch(&key, "/api/v1/workflows/w/graph", "text/html, image/svg+xml;q=0.9").await;
    assert_eq!((status, kind.as_str()), (200, "image/svg+xml"));
    assert!(picture.starts_with("<svg ") && picture.contains(">worker job.a</text>"), "{picture}");
    assert_eq!(api.fetch(&key, "/api/v1/workflows/w/graph", "*/*").await.1, "application/json");
    assert_eq!(api.call(&key, "GET", "/api/v1/workflows/gone/graph", "").await.0, 404);
    assert_eq!(api.call(&key, "GET", "/api/v1/workflows/w/graph?version=2", "").await.0, 404);
    assert_eq!(api.call(&other, "GET", "/api/v1/workflows/w/graph", "").await.0, 404);
    assert_eq!(api.call(&other, "GET", "/api/v1/workflows/w/graph?tenant=acme", "").await.0, 403);
    let blind = api.key("acme", &[Scope::Ingest]).await;
    assert_eq!(api.call(&blind, "GET", "/api/v1/workflows/w/graph", "").await.0, 403);
}

#[tokio::test]
async fn a_tenant_has_as_many_workflows_as_it_may_and_no_more() {
    let limits = LimitSettings { workflows_per_tenant: 2, ..LimitSettings::default() };
    let settings = Settings { limits, ..Settings::default() };
    let api = Api::start_with(json!({"rules": [{"id": "all", "decision": "allow"}]}), settings).await;
    let (key, other) = (api.key("acme", USER).await, api.key("zeta", USER).await);
    let save = async |key: &str, id: &str| {
        api.call(key, "POST", "/api/v1/workflows", &workflow(id).to_string()).await
    };
    assert_eq!((save(&key, "a").await.0, save(&key, "b").await.0), (201, 201));
    let (status, reply) = save(&key, "c").await;
    assert_eq!(
        (status, &reply["code"], &reply["max"]),
        (429, &json!("too_many_workflows"), &json!(2)),
        "{reply}"
    );
    assert_eq!(save(&key, "b").await.0, 201, "it is there");
    assert_eq!(save(&other, "c").await.0, 201);
    assert_eq!(api.call(&key, "DELETE", "/api/v1/workflows/a", "").await.0, 204);
    assert_eq!(save(&key, "c").await.0, 201);
}

#[tokio::test]
async fn an_approval_step_is_in_the_inbox_whatever_policy_says_of_it() {
    let api = Api::open().await;
    let (ann, bob) = (api.named_key("ann", "acme", USER).await, api.named_key("bob", "acme", USER).await);
    let document =
        json!({"id": "w", "name": "n", "steps": {"ask": {"type": "approval", "input": {"what": "go on?"}}}});
    assert_eq!(api.call(&ann, "POST", "/api/v1/workflows", &document.to_string()).await.0, 201);
    let (_, started) = api.call(&ann, "POST", "/api/v1/workflows/w/runs", "{}").await;
    let run = started["run_id"].as_str().unwrap();
    eventually(async || {
        let (_, page) = api.call(&bob, "GET", "/api/v1/approvals", "").await;
        let item = page["items"][0].clone();
        item["policy_reason"] == format!("step ask of run {run} asks") && item["approval_required"] == true
    })
    .await;
    let (_, page) = api.call(&bob, "GET", "/api/v1/approvals", "").await;
    let job = page["items"][0]["approval_ref"].as_str().unwrap();
    let (status, shown) = api.call(&bob, "GET", &format!("/api/v1/approvals/{job}/context"), "").await;
    assert_eq!((status, &shown["input"]["value"]["what"]), (200, &json!("go on?")), "{shown}");
    let (_, why) = api.call(&bob, "GET", &format!("/api/v1/jobs/{job}/explain"), "").await;
    assert_eq!(why["explanation"], format!("A person must approve it: step ask of run {run} asks."));
    let answer = json!({"job_hash": page["items"][0]["job_hash"], "policy_snapshot": page["items"][0]["policy_snapshot"]});
    let (status, reply) =
        api.call(&bob, "POST", &format!("/api/v1/approvals/{job}/approve"), &answer.to_string()).await;
    assert_eq!(status, 200, "{reply}");
    eventually(async || {
        api.call(&ann, "GET", &format!("/api/v1/workflow-runs/{run}"), "").await.1["status"] == "succeeded"
    })
    .await;
}
