//! Telling policy one thing and doing another, and learning what it says to others.

use crate::http::support::{Api, USER};
use reveille_roster::Scope;
use serde_json::{Value, json};

async fn api() -> Api {
    Api::start(json!({
        "tenants": {"acme": {"allowed_repo_hosts": ["github.com"]}},
        "rules": [
            {"id": "zeta-merger", "match": {"tenants": ["zeta"]}, "decision": "deny", "reason": "the zeta deal"},
            {"id": "acme-only", "match": {"tenants": ["acme"], "topics": ["job.none"]}, "decision": "deny"},
            {"id": "all", "decision": "allow"},
            {"id": "zeta-late", "match": {"tenants": ["zeta", "beta"]}, "decision": "deny"},
        ],
    }))
    .await
}

async fn ask(api: &Api, key: &str, what: &str, body: Value) -> Value {
    let (status, reply) = api.call(key, "POST", &format!("/api/v1/policy/{what}"), &body.to_string()).await;
    assert_eq!(status, 200, "{reply}");
    reply
}

#[tokio::test]
async fn a_repo_host_label_hides_where_the_repository_really_is() {
    let api = api().await;
    let acme = api.key("acme", USER).await;
    for (host, url, is_allowed) in [
        ("github.com", "https://evil.example/a/b.git", false),
        ("github.com", "https://github.com@evil.example/a", false),
        ("evil.example", "https://github.com/a", false),
        ("github.com", "https://evil.example\\@github.com/a", false),
        ("github.com", "", false),
        ("github.com", "https://github.com/a/b.git", true),
        ("GitHub.com", "ssh://git@GITHUB.com:22/a", true),
    ] {
        let labels = json!({"repo_host": host, "repo_url": url});
        let said = ask(&api, &acme, "evaluate", json!({"topic": "job.a", "labels": labels})).await;
        let expected = if is_allowed { "all" } else { "tenant-repo-hosts" };
        assert_eq!(said["ruleId"], expected, "{host} {url}: {said}");
    }
    let said =
        ask(&api, &acme, "evaluate", json!({"topic": "job.a", "labels": {"repo_host": "github.com"}})).await;
    assert_eq!(said["ruleId"], "all", "a host alone is what it says");
}

#[tokio::test]
async fn an_explanation_tells_a_tenant_which_rules_there_are_for_others() {
    let api = api().await;
    let (acme, operator) = (api.key("acme", USER).await, api.key("ops", &[Scope::Admin]).await);
    let question = json!({"topic": "job.a", "tenant": "acme"});
    let rules = |reply: &Value| {
        let lines = reply["trace"].as_array().unwrap().iter();
        lines.map(|line| line["ruleId"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let said = ask(&api, &acme, "explain", question.clone()).await;
    assert_eq!(rules(&said), ["acme-only", "all"]);
    assert!(!said.to_string().contains("zeta"), "{said}");
    let said = ask(&api, &operator, "explain", question).await;
    assert_eq!(rules(&said), ["zeta-merger", "acme-only", "all", "zeta-late"]);
}
