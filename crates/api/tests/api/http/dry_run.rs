//! A workflow gone through without a run: what is told of each step, and that nothing comes of it.

use super::support::{Api, USER};
use reveille_roster::Scope;
use serde_json::{Value, json};

const SECRET: &str = "AKIAIOSFODNN7EXAMPLE";

async fn governed() -> (Api, String) {
    let api = Api::start(json!({
        "rules": [
            {"id": "no-prod", "match": {"labels": {"env": "prod"}}, "decision": "deny", "reason": "not in production"},
            {"id": "money", "match": {"risk_tags": ["money"]}, "decision": "require_approval"},
            {"id": "flood", "match": {"topics": ["job.flood"]}, "decision": "throttle",
             "velocity": {"max_requests": 2, "window_seconds": 60, "key": "tenant"}},
            {"id": "rest", "decision": "allow_with_constraints", "constraints": {"budgets": {"max_runtime_ms": 5000}}},
        ],
        "input_rules": [{"id": "no-keys", "match": {"scanners": ["secret"]}, "decision": "deny", "reason": "keep your keys"}],
    }))
    .await;
    let key = api.key("acme", USER).await;
    (api, key)
}

async fn save(api: &Api, key: &str, steps: Value) {
    let document = json!({"id": "w", "name": "w", "steps": steps, "input_schema": {"type": "object", "required": ["text"]}});
    let (status, reply) = api.call(key, "POST", "/api/v1/workflows", &document.to_string()).await;
    assert_eq!(status, 201, "{reply}");
}

async fn dry_run(api: &Api, key: &str, body: Value) -> (u16, Value) {
    api.call(key, "POST", "/api/v1/workflows/w/dry-run", &body.to_string()).await
}

/// `step=status` of all steps, in order.
fn told(reply: &Value) -> String {
    let step =
        |step: &Value| format!("{}={}", step["step_id"].as_str().unwrap(), step["status"].as_str().unwrap());
    reply["steps"].as_array().unwrap().iter().map(step).collect::<Vec<_>>().join(" ")
}

fn step<'a>(reply: &'a Value, id: &str) -> &'a Value {
    reply["steps"].as_array().unwrap().iter().find(|step| step["step_id"] == id).unwrap()
}

#[tokio::test]
async fn each_step_is_told_with_what_policy_would_say() {
    let (api, key) = governed().await;
    let steps = json!({
        "a": {"topic": "job.a", "input": {"text": "${input.text}"}},
        "ask": {"type": "approval", "depends_on": ["a"]},
        "pay": {"topic": "job.pay", "depends_on": ["ask"], "meta": {"risk_tags": ["money"]}, "input": "${steps.a.output}"},
        "prod": {"topic": "job.prod", "depends_on": ["a"], "route_labels": {"env": "prod"}},
        "maybe": {"topic": "job.maybe", "depends_on": ["a"], "condition": "steps.a.output.ok"},
        "never": {"topic": "job.never", "condition": "input.text == 'no'"},
        "each": {"topic": "job.each", "for_each": "${input.list}", "input": "${item}"},
        "wait": {"type": "delay", "delay_sec": 90},
    });
    save(&api, &key, steps).await;
    let (status, reply) =
        dry_run(&api, &key, json!({"input": {"text": "hello", "list": ["x", SECRET]}, "environment": {}}))
            .await;
    assert_eq!(status, 200, "{reply}");
    assert_eq!(
        told(&reply),
        "a=running ask=waiting each=denied maybe=pending never=skipped pay=waiting prod=denied wait=running"
    );
    let a = &step(&reply, "a");
    assert_eq!(
        (&a["input"], &a["policy"]["decision"]),
        (&json!({"text": "hello"}), &json!("ALLOW_WITH_CONSTRAINTS"))
    );
    assert_eq!(a["policy"]["constraints"]["budgets"]["max_runtime_ms"], 5000);
    let pay = step(&reply, "pay");
    assert_eq!(
        (&pay["policy"]["rule_id"], &pay["policy"]["approval_required"], &pay["input_on"]),
        (&json!("money"), &json!(true), &json!(["steps.a"]))
    );
    assert_eq!(pay["policy"]["is_unread"], json!(true), "its input will be looked at when it is known");
    let prod = &step(&reply, "prod")["policy"];
    assert_eq!((&prod["rule_id"], &prod["reason"]), (&json!("no-prod"), &json!("not in production")));
    assert_eq!(step(&reply, "maybe")["begins_on"], json!(["steps.a"]));
    assert_eq!(
        (&step(&reply, "never")["policy"], &step(&reply, "never")["error"]),
        (&Value::Null, &json!("its condition is false"))
    );
    let each = step(&reply, "each");
    assert_eq!(
        (&each["rounds"], &each["policy"]["rule_id"], &each["policy"]["round"]),
        (&json!(2), &json!("no-keys"), &json!(1)),
        "the second item is a secret"
    );
    assert_eq!((&reply["version"], &reply["estimated_duration_sec"]), (&json!(1), &json!(90.0)));
    let warnings = reply["warnings"].to_string();
    assert!(warnings.contains("step prod: policy would deny it: not in production"), "{warnings}");
    assert!(warnings.contains("environment"), "{warnings}");
}

#[tokio::test]
async fn nothing_comes_of_it() {
    let (api, key) = governed().await;
    let operator = api.key("ops", &[Scope::Read, Scope::Write, Scope::Admin]).await;
    save(
        &api,
        &key,
        json!({"a": {"topic": "job.flood"}, "b": {"type": "notify", "input": {"message": "hi"}}}),
    )
    .await;
    let trail =
        async || api.call(&operator, "GET", "/api/v1/audit/events?tenant=acme", "").await.1["items"].clone();
    let before = trail().await;
    for _ in 0..5 {
        let (status, reply) = dry_run(&api, &key, json!({"input": {"text": "t"}})).await;
        assert_eq!((status, told(&reply).as_str()), (200, "a=running b=running"), "{reply}");
    }
    assert_eq!(api.call(&key, "GET", "/api/v1/jobs", "").await.1["items"], json!([]));
    assert_eq!(api.call(&key, "GET", "/api/v1/workflow-runs", "").await.1["items"], json!([]));
    assert_eq!(trail().await, before, "nothing is written down");
    // The rule lets two through a minute: five dry runs were none of them.
    for (n, expected) in [(1, 200), (2, 200), (3, 429)] {
        let (status, reply) = api.submit(&key, json!({"topic": "job.flood", "prompt": "go"})).await;
        assert_eq!(status, expected, "submit {n}: {reply}");
    }
    let (_, reply) = dry_run(&api, &key, json!({"input": {"text": "t"}})).await;
    assert_eq!(told(&reply), "a=waiting b=running", "by now it would be told to come back");
}

#[tokio::test]
async fn a_document_that_is_not_saved_is_gone_through_too() {
    let (api, key) = governed().await;
    let document = json!({"id": "w", "name": "w", "steps": {"a": {"topic": "job.a"}}});
    let (status, reply) = dry_run(&api, &key, json!({"workflow": document})).await;
    assert_eq!(
        (status, told(&reply).as_str(), &reply["version"]),
        (200, "a=running", &Value::Null),
        "{reply}"
    );
    assert_eq!(api.call(&key, "GET", "/api/v1/workflows", "").await.1, json!([]), "it is not saved");
    let mut other = document.clone();
    other["id"] = json!("other");
    let mut bad = document.clone();
    bad["steps"]["a"]["depends_on"] = json!(["gone"]);
    for (workflow, field) in [(other, "workflow"), (bad, "workflow")] {
        let (status, reply) = dry_run(&api, &key, json!({"workflow": workflow})).await;
        assert_eq!((status, &reply["field"]), (400, &json!(field)), "{reply}");
    }
}

#[tokio::test]
async fn what_cannot_be_gone_through_is_refused() {
    let (api, key) = governed().await;
    assert_eq!(dry_run(&api, &key, json!({})).await.0, 404);
    save(&api, &key, json!({"a": {"topic": "job.a"}})).await;
    let (status, reply) = dry_run(&api, &key, json!({"input": {}})).await;
    assert_eq!((status, &reply["field"]), (400, &json!("input")), "text is required: {reply}");
    assert_eq!(dry_run(&api, &key, json!({"input": {"text": ""}, "sudo": true})).await.0, 400);
    let (reader, other) = (api.key("acme", &[Scope::Read]).await, api.key("zeta", USER).await);
    assert_eq!(dry_run(&api, &reader, json!({"input": {"text": ""}})).await.0, 403);
    assert_eq!(dry_run(&api, &other, json!({"input": {"text": ""}})).await.0, 404);
}

async fn save_as(api: &Api, key: &str, id: &str, steps: Value) -> (u16, Value) {
    let document = json!({"id": id, "name": id, "steps": steps});
    api.call(key, "POST", "/api/v1/workflows", &document.to_string()).await
}

#[tokio::test]
async fn a_run_within_a_run_is_looked_into_as_deep_as_runs_go() {
    let (api, key) = governed().await;
    let calls = |id: &str| json!({"type": "subworkflow", "input": {"workflow_id": id, "input_mapping": {"text": "${input.text}"}}});
    let prod = json!({"topic": "job.prod", "input": "${input.text}", "route_labels": {"env": "prod"}});
    save_as(&api, &key, "inner", json!({"b": prod})).await;
    let sub = json!({"type": "subworkflow", "depends_on": ["a"], "input": {"workflow_id": "inner", "input_mapping": {"text": "${steps.a.output}"}}});
    save(&api, &key, json!({"a": {"topic": "job.a"}, "known": calls("inner"), "later": sub})).await;
    let (status, reply) = dry_run(&api, &key, json!({"input": {"text": "t"}})).await;
    assert_eq!((status, told(&reply).as_str()), (200, "a=running known=running later=running"), "{reply}");
    for (id, input, on) in [("known", json!("t"), json!([])), ("later", Value::Null, json!(["input"]))] {
        let run = &step(&reply, id)["run"];
        assert_eq!((&run["workflow_id"], told(run).as_str()), (&json!("inner"), "b=denied"), "{run}");
        assert_eq!((&step(run, "b")["input"], &step(run, "b")["input_on"]), (&input, &on), "{id}");
    }
    let warnings = reply["warnings"].to_string();
    let expected = "step known: in inner: step b: policy would deny it: not in production";
    assert!(warnings.contains(expected), "{warnings}");

    // Eight below the first are looked into; the ninth would not begin.
    save_as(&api, &key, "d9", json!({"last": {"topic": "job.a"}})).await;
    for depth in (1..9).rev() {
        let (status, reply) =
            save_as(&api, &key, &format!("d{depth}"), json!({"s": calls(&format!("d{}", depth + 1))})).await;
        assert_eq!(status, 201, "{reply}");
    }
    save(&api, &key, json!({"s": calls("d1")})).await;
    let (_, reply) = dry_run(&api, &key, json!({"input": {"text": "t"}})).await;
    let mut run = &reply;
    for depth in 0..8 {
        assert_eq!(told(run), "s=running", "{depth}");
        run = &step(run, "s")["run"];
    }
    assert_eq!((told(run).as_str(), &step(run, "s")["run"]), ("s=failed", &Value::Null));
    assert!(step(run, "s")["error"].to_string().contains("8 deep at most"), "{run}");
}

#[tokio::test]
async fn a_run_within_a_run_that_would_not_begin_fails_its_step() {
    let (api, key) = governed().await;
    let schema = json!({"type": "object", "required": ["n"]});
    let inner =
        json!({"id": "inner", "name": "inner", "input_schema": schema, "steps": {"b": {"topic": "job.b"}}});
    assert_eq!(api.call(&key, "POST", "/api/v1/workflows", &inner.to_string()).await.0, 201);
    let calls = json!({"type": "subworkflow", "input": {"workflow_id": "inner", "input_mapping": {"m": 1}}});
    save(&api, &key, json!({"s": calls})).await;
    let (_, reply) = dry_run(&api, &key, json!({"input": {"text": "t"}})).await;
    assert_eq!(told(&reply), "s=failed");
    assert!(step(&reply, "s")["error"].as_str().unwrap().starts_with("input of inner: "), "{reply}");
    assert_eq!(api.call(&key, "DELETE", "/api/v1/workflows/inner", "").await.0, 204);
    let (_, reply) = dry_run(&api, &key, json!({"input": {"text": "t"}})).await;
    assert_eq!(
        (told(&reply).as_str(), &step(&reply, "s")["error"]),
        ("s=failed", &json!("there is no workflow inner"))
    );
}

#[tokio::test]
async fn what_undoes_a_step_is_judged_too() {
    let (api, key) = governed().await;
    let prod = json!({"topic": "job.undo", "route_labels": {"env": "prod"}});
    let secret = json!({"topic": "job.undo", "input": "${item}"});
    save(
        &api,
        &key,
        json!({
            "a": {"topic": "job.a", "compensation": prod},
            "each": {"topic": "job.b", "for_each": "${input.list}", "input": {}, "compensation": secret},
            "plain": {"topic": "job.c"},
        }),
    )
    .await;
    let (_, reply) = dry_run(&api, &key, json!({"input": {"text": "t", "list": ["x", SECRET]}})).await;
    assert_eq!(told(&reply), "a=running each=running plain=running", "a step runs, whatever undoes it");
    let rule = |id: &str| step(&reply, id)["compensation_policy"]["rule_id"].clone();
    assert_eq!((rule("a"), rule("each"), rule("plain")), (json!("no-prod"), json!("no-keys"), Value::Null));
    assert_eq!(step(&reply, "each")["compensation_policy"]["round"], 1);
    let warnings = reply["warnings"].to_string();
    assert!(warnings.contains("step a: policy would deny what undoes it: not in production"), "{warnings}");
}

#[tokio::test]
async fn a_document_that_would_run_itself_is_refused_as_it_is_when_it_is_saved() {
    let (api, key) = governed().await;
    let calls = |id: &str| json!({"s": {"type": "subworkflow", "input": {"workflow_id": id}}});
    let plain = json!({"a": {"topic": "job.a"}});
    assert_eq!(save_as(&api, &key, "w", plain).await.0, 201);
    assert_eq!(save_as(&api, &key, "v", calls("w")).await.0, 201);
    for (called, problem) in [("w", "run itself"), ("v", "run itself"), ("gone", "no workflow gone")] {
        let document = json!({"id": "w", "name": "w", "steps": calls(called)});
        let (status, reply) = dry_run(&api, &key, json!({"workflow": document})).await;
        assert_eq!((status, &reply["field"]), (400, &json!("workflow")), "{reply}");
        let (saved, refused) = save_as(&api, &key, "w", calls(called)).await;
        assert_eq!(saved, 400, "{refused}");
        for reply in [reply, refused] {
            assert!(reply.to_string().contains(problem), "{reply}");
        }
    }
}
