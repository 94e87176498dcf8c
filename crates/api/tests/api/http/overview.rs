//! How things are, on one page, and whose things.

use super::support::{Api, USER};
use reveille_roster::Scope;
use reveille_store::Locks;
use serde_json::{Value, json};

#[tokio::test]
async fn an_overview_says_what_waits_and_why() {
    let policy = json!({"rules": [
        {"id": "ask", "match": {"topics": ["job.careful"]}, "decision": "require_approval"},
        {"id": "all", "decision": "allow"},
    ]});
    let api = Api::start(policy).await;
    let (acme, other) = (api.key("acme", USER).await, api.key("other", USER).await);
    for topic in ["job.careful", "job.lonely", "job.lonely"] {
        let body = json!({"topic": topic, "context": {}}).to_string();
        assert_eq!(api.call(&acme, "POST", "/api/v1/jobs", &body).await.0, 200);
    }
    let (status, seen) = api.call(&acme, "GET", "/api/v1/overview", "").await;
    assert_eq!((status, &seen["approvals"], &seen["throughput"]), (200, &json!(1), &Value::Null));
    let wait = &seen["waits"][0];
    assert_eq!(
        (&wait["code"], &wait["jobs"], &wait["more"]),
        (&json!("no_workers"), &json!(2), &json!(false))
    );
    assert!(wait["examples"][0]["explanation"].as_str().unwrap().contains("job.lonely"), "{wait}");
    let (_, nothing) = api.call(&other, "GET", "/api/v1/overview", "").await;
    assert_eq!((&nothing["approvals"], &nothing["waits"]), (&json!(0), &json!([])), "another tenant's");
    let operator = api.key("default", &[Scope::Admin]).await;
    let (_, all) = api.call(&operator, "GET", "/api/v1/overview", "").await;
    assert_eq!(all["throughput"]["received"], 3);
}

#[tokio::test]
async fn operators_see_who_holds_what_and_what_is_owed() {
    let api = Api::open().await;
    let (ann, operator) = (api.key("acme", USER).await, api.key("default", &[Scope::Admin]).await);
    assert_eq!(api.call(&ann, "GET", "/api/v1/system", "").await.0, 403);
    assert_eq!(api.submit(&ann, json!({"topic": "job.lonely", "context": {}})).await.0, 200);
    let lock = api.world.store.lock("cordum:wf:run:lock:r1", 30_000).await.unwrap().unwrap();
    let ask = async || api.call(&operator, "GET", "/api/v1/system", "").await;
    let of_run = |system: &Value| {
        let locks = system["locks"].as_array().unwrap().clone();
        locks.into_iter().find(|lock| lock["name"] == "cordum:wf:run:lock:r1")
    };
    let (status, system) = ask().await;
    assert_eq!((status, &system["servers"], &system["cut_off"]), (200, &json!([]), &json!(false)));
    assert_eq!(system["job_timers"]["owed"], 1);
    assert!(system["job_timers"]["next_at"].is_string(), "{system}");
    assert_eq!(system["run_timers"], json!({"owed": 0, "next_at": null}));
    let held = of_run(&system).unwrap();
    assert_eq!((&held["purpose"], &held["holder"]), (&json!("decides about a run"), &json!("")));
    assert!(api.world.store.unlock(&lock).await.unwrap());
    assert_eq!(of_run(&ask().await.1), None);
}

#[tokio::test]
async fn an_operator_that_names_a_tenant_gets_that_tenants_lists() {
    let api = Api::open().await;
    let operator = api.key("default", &[Scope::Admin]).await;
    for tenant in ["acme", "other"] {
        let key = api.key(tenant, USER).await;
        let body = json!({"topic": "job.x", "context": {}}).to_string();
        assert_eq!(api.call(&key, "POST", "/api/v1/jobs", &body).await.0, 200);
    }
    let list = async |tenant: &str| {
        let headers = [("x-api-key", operator.as_str()), ("x-tenant-id", tenant)];
        let page = api.send("GET", "/api/v1/jobs", &headers, "").await.json();
        page["items"].as_array().unwrap().iter().map(|job| job["tenant"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(list("acme").await, ["acme"]);
    assert_eq!(list("").await.len(), 2, "no tenant is every tenant");
}
