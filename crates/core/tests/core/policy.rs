//! Documents, requests, and what is decided of them.

use reveille_core::id::TenantId;
use reveille_core::policy::{
    Counting, Decision, Document, InputContent, Policy, Question, Trace, Verdict, Windows,
};
use reveille_core::request::Request;
use reveille_core::time::Millis;
use serde_json::json;
use std::collections::BTreeMap;

fn policy(document: serde_json::Value) -> Policy {
    let source = document.to_string();
    Policy::new(serde_json::from_value(document).unwrap(), source.as_bytes()).unwrap()
}

fn explained(policy: &Policy, request: &Request) -> (Verdict, Trace) {
    let question = Question { request, input_verdict: None, counting: Counting::DryRun, now: Millis(0) };
    policy.explain(&question, &mut Windows::default())
}

#[test]
fn the_first_rule_that_matches_decides_and_the_default_is_deny() {
    let policy = policy(json!({
        "version": "7",
        "rules": [
            {"id": "no-prod", "match": {"topics": ["job.deploy.*"], "risk_tags": ["prod", "money"]}, "decision": "deny", "reason": "not here"},
            {"id": "ask", "match": {"topics": ["job.deploy.*"]}, "decision": "require_human"},
            {"id": "small", "match": {"labels": {"size": "s"}}, "decision": "allow_with_constraints",
             "constraints": {"budgets": {"max_runtime_ms": 500}}},
            {"id": "slow", "match": {"tenants": ["acme"], "capabilities": ["pay"]}, "decision": "throttle"},
            {"id": "echo", "match": {"topics": ["job.echo"]}, "decision": "allow"},
        ],
    }));
    let check = |change: &dyn Fn(&mut Request), topic: &str, decision: Decision, rule: &str| {
        let mut request = Request::plain("j", topic);
        change(&mut request);
        let verdict = policy.evaluate(&request);
        assert_eq!((verdict.decision, verdict.rule_id.as_str()), (decision, rule));
        assert!(verdict.snapshot.starts_with("7:"));
    };
    check(&|r| r.needs.risk_tags = vec!["money".into()], "job.deploy.web", Decision::Deny, "no-prod");
    check(&|_| (), "job.deploy.web", Decision::RequireApproval, "ask");
    check(
        &|r| drop(r.labels.insert("size".into(), "s".into())),
        "job.x",
        Decision::AllowWithConstraints,
        "small",
    );
    check(&|_| (), "job.echo", Decision::Allow, "echo");
    check(&|_| (), "job.other", Decision::Deny, "default");
    check(&|_| (), "echo", Decision::Deny, "topic");
    check(
        &|r| {
            r.tenant = TenantId::known("acme");
            r.needs.capability = "pay".into();
        },
        "job.x",
        Decision::Throttle,
        "slow",
    );
}

#[test]
fn a_tenants_lists_narrow_what_rules_allow() {
    let policy = policy(json!({
        "rules": [{"id": "all", "decision": "allow"}],
        "tenants": {"default": {"deny_topics": ["job.secret.*"], "allow_topics": ["job.*", "job.*.*"], "max_concurrent_jobs": 2}},
    }));
    assert_eq!(policy.evaluate(&Request::plain("j", "job.secret.a")).decision, Decision::Deny);
    assert_eq!(policy.evaluate(&Request::plain("j", "job.a.b")).decision, Decision::Allow);
    assert_eq!(
        policy.evaluate(&Request::plain("j", "job.a.b.c")).decision,
        Decision::Allow,
        "* crosses dots"
    );
    assert_eq!(policy.tenant_limits(), BTreeMap::from([(TenantId::known("default"), 2)]));
}

#[test]
fn a_policy_that_cannot_be_honoured_is_refused() {
    let check = |document: serde_json::Value, part: &str| {
        let parsed = serde_json::from_value::<Document>(document).map_err(|error| error.to_string());
        let error = parsed.and_then(|document| Policy::new(document, b"").map_err(|error| error.to_string()));
        let error = error.err().unwrap_or_default();
        assert!(error.contains(part), "{error:?} should contain {part:?}");
    };
    check(json!({"rules": [{"id": "a", "decision": "maybe"}]}), "maybe");
    check(json!({"rules": [{"id": "", "decision": "allow"}]}), "has no id");
    check(json!({"rules": [{"id": "a", "decision": "allow"}, {"id": "a", "decision": "deny"}]}), "twice");
    check(json!({"rules": [{"id": "a", "decision": "allow", "velocity": {}}]}), "velocity");
    check(json!({"rules": [{"id": "a", "decision": "allow", "when": "job.topic > 5"}]}), "when");
    check(
        json!({"rules": [{"id": "a", "decision": "allow", "match": {"mcp": {"allow_tools": ["["]}}}]}),
        "mcp",
    );
    check(json!({"rules": [{"id": "a", "decision": "allow", "match": {"tpoics": []}}]}), "tpoics");
    check(json!({"rules": [{"id": "a", "decision": "allow", "match": {"topics": ["job.[a"]}}]}), "job.[a");
    let offers = |remediations: serde_json::Value| json!({"rules": [{"id": "a", "decision": "deny", "remediations": remediations}]});
    check(offers(json!([{"title": "do otherwise"}])), "no id");
    check(offers(json!([{"id": "x"}, {"id": "x"}])), "twice");
    check(offers(json!([{"id": "x", "replacement_topic": "two words"}])), "remediations");
    check(json!({"default_decision": "perhaps"}), "perhaps");
    check(json!({"tenants": {"acme": {"deny_topics": ["job.[a"]}}}), "acme");
}

fn job(topic: &str, change: impl Fn(&mut Request)) -> Request {
    let mut request = Request::plain("j", topic);
    change(&mut request);
    request
}

fn label(request: &mut Request, name: &str, value: &str) {
    request.labels.insert(name.to_owned(), value.to_owned());
}

#[test]
fn the_nearer_tier_is_asked_first() {
    let policy = policy(json!({
        "rules": [
            {"id": "all", "decision": "deny"},
            {"id": "flow", "tier": "workflow", "selector": {"workflow_id": "wf"}, "decision": "require_approval"},
            {"id": "one", "tier": "job", "selector": {"job_id": "j"}, "match": {"topics": ["job.a"]}, "decision": "allow"},
            {"id": "session", "tier": "job", "selector": {"session_id": "s"}, "decision": "throttle"},
        ],
    }));
    let rule = |request: &Request| policy.evaluate(request).rule_id;
    assert_eq!(rule(&job("job.a", |_| ())), "one");
    assert_eq!(rule(&job("job.b", |r| r.place.workflow_id = "wf".into())), "flow");
    assert_eq!(rule(&job("job.b", |r| label(r, "session_id", "s"))), "session");
    assert_eq!(rule(&job("job.b", |_| ())), "all");
}

#[test]
fn every_field_of_match_is_asked() {
    let rule = |matcher: serde_json::Value| {
        policy(json!({"rules": [{"id": "r", "match": matcher, "decision": "allow"}]}))
    };
    let labelled = |name: &'static str, value: &'static str| job("job.a", move |r| label(r, name, value));
    let plain = || job("job.a", |_| ());
    let cases = vec![
        (json!({"tenants": ["default"]}), plain(), job("job.a", |r| r.tenant = TenantId::known("x"))),
        (json!({"topics": ["job.a*"]}), plain(), job("job.b", |_| ())),
        (json!({"capabilities": ["c"]}), job("job.a", |r| r.needs.capability = "c".into()), plain()),
        (json!({"risk_tags": ["x", "y"]}), job("job.a", |r| r.needs.risk_tags = vec!["y".into()]), plain()),
        (
            json!({"requires": ["x", "y"]}),
            job("job.a", |r| r.needs.requires = vec!["y".into(), "x".into()]),
            job("job.a", |r| r.needs.requires = vec!["y".into()]),
        ),
        (json!({"pack_ids": ["p"]}), job("job.a", |r| r.needs.pack_id = "p".into()), plain()),
        (json!({"actor_ids": ["a"]}), job("job.a", |r| r.actor.actor_id = "a".into()), plain()),
        (json!({"actor_types": ["human"]}), job("job.a", |r| r.actor.actor_type = "human".into()), plain()),
        (json!({"agent_risk_tiers": ["high"]}), labelled("agent_risk_tier", "high"), plain()),
        (
            json!({"agent_data_classifications": ["pii"]}),
            labelled("agent_data_classification", "pii"),
            labelled("agent_data_classification", "public"),
        ),
        (json!({"labels": {"env": "prod"}}), labelled("env", "prod"), labelled("env", "dev")),
        (json!({"label_allowlist": {"env": ["dev"]}}), labelled("env", "prod"), labelled("env", "dev")),
        (json!({"label_threshold": {"amount": 100}}), labelled("amount", "100.5"), labelled("amount", "100")),
        (json!({"secrets_present": true}), labelled("secrets_present", "true"), plain()),
        (
            json!({"secrets_present": false}),
            plain(),
            job("job.a", |r| r.needs.risk_tags = vec!["secrets".into()]),
        ),
        (json!({"predicate": "job.labels.env == 'prod'"}), labelled("env", "prod"), plain()),
        (
            json!({"delegation": false}),
            plain(),
            job("job.a", |r| {
                r.delegated = Some(reveille_core::request::Delegated {
                    from: reveille_core::id::WorkspaceId::known("a"),
                    to: reveille_core::id::WorkspaceId::known("b"),
                });
            }),
        ),
        (json!({"mcp": {"deny_tools": ["rm"]}}), labelled("mcp.tool", "ls"), labelled("mcp.tool", "rm")),
        (json!({"mcp": {"allow_servers": ["git"]}}), labelled("mcp.server", "git"), plain()),
    ];
    for (matcher, hit, miss) in cases {
        let policy = rule(matcher.clone());
        assert_eq!(policy.evaluate(&hit).decision, Decision::Allow, "{matcher}");
        assert_eq!(policy.evaluate(&miss).rule_id, "default", "{matcher}");
    }
}

#[test]
fn leaving_a_label_out_or_writing_nonsense_does_not_slip_past_a_restriction() {
    let policy = policy(json!({
        "default_decision": "allow",
        "rules": [
            {"id": "where", "match": {"label_allowlist": {"env": ["dev", "test"]}}, "decision": "deny"},
            {"id": "dear", "match": {"label_threshold": {"amount": 100}}, "decision": "require_approval"},
        ],
    }));
    let rule = |labels: &[(&str, &str)]| {
        policy
            .evaluate(&job("job.a", |r| labels.iter().for_each(|(name, value)| label(r, name, value))))
            .rule_id
    };
    assert_eq!(rule(&[]), "where");
    assert_eq!(rule(&[("env", "dev")]), "default");
    assert_eq!(rule(&[("env", "dev"), ("amount", "a lot")]), "dear");
}

#[test]
fn a_condition_that_cannot_be_told_allows_nothing_and_restricts() {
    let rule = |decision: &str| {
        policy(json!({
            "default_decision": "throttle",
            "rules": [{"id": "r", "when": "int(job.labels.amount) < 10", "decision": decision}],
        }))
    };
    let broken = job("job.a", |r| label(r, "amount", "x"));
    assert_eq!(rule("allow").evaluate(&broken).rule_id, "default");
    let verdict = rule("deny").evaluate(&broken);
    assert_eq!((verdict.rule_id.as_str(), verdict.decision), ("r", Decision::Deny));
    assert!(verdict.reason.contains("could not be told"));
}

#[test]
fn too_often_is_a_matter_of_the_window() {
    let policy = policy(json!({
        "rules": [
            {"id": "flood", "velocity": {"max_requests": 2, "window_seconds": 10, "key": "tenant"}, "decision": "throttle"},
            {"id": "ok", "decision": "allow"},
        ],
    }));
    let mut windows = Windows::default();
    let mut ask = |counting, at| {
        let request = job("job.a", |_| ());
        policy
            .judge(
                &Question { request: &request, input_verdict: None, counting, now: Millis(at) },
                &mut windows,
            )
            .rule_id
    };
    assert_eq!((ask(Counting::New, 0), ask(Counting::New, 1)), ("ok".into(), "ok".into()));
    assert_eq!((ask(Counting::DryRun, 2), ask(Counting::New, 3)), ("flood".into(), "flood".into()));
    assert_eq!(ask(Counting::AlreadyCounted, 5), "flood");
    assert_eq!(ask(Counting::AlreadyCounted, 10_002), "ok");
    assert!(policy.has_velocity());
}

#[test]
fn a_tenants_filters_turn_an_allowance_into_a_denial() {
    let policy = policy(json!({
        "rules": [{"id": "all", "decision": "allow"}],
        "tenants": {"default": {"mcp": {"deny_servers": ["admin"]}, "allowed_repo_hosts": ["github.com"]}},
    }));
    let rule = |name: &str, value: &str| policy.evaluate(&job("job.a", |r| label(r, name, value))).rule_id;
    assert_eq!(rule("mcp.server", "admin"), "tenant-mcp");
    assert_eq!(rule("repo_url", "https://evil.example/x"), "tenant-repo-hosts");
    assert_eq!(rule("repo_url", "https://github.com/x"), "all");
}

#[test]
fn without_rules_a_tenants_list_allows() {
    let policy = policy(json!({"tenants": {"default": {"allow_topics": ["job.a"]}}}));
    assert_eq!(policy.evaluate(&job("job.a", |_| ())).decision, Decision::Allow);
    assert_eq!(policy.evaluate(&job("job.b", |_| ())).decision, Decision::Deny);
    assert_eq!(policy.evaluate(&job("job.a", |r| r.tenant = TenantId::known("x"))).decision, Decision::Deny);
}

#[test]
fn explain_says_of_every_rule_why() {
    let policy = policy(json!({
        "rules": [
            {"id": "prod", "match": {"labels": {"env": "prod"}}, "decision": "deny"},
            {"id": "gpu", "match": {"topics": ["job.gpu.*"]}, "decision": "deny"},
            {"id": "big", "when": "job.max_input_tokens > 100", "decision": "deny"},
            {"id": "ok", "decision": "allow"},
            {"id": "late", "match": {"topics": ["job.b"]}, "decision": "deny"},
        ],
    }));
    let request = job("job.a", |r| label(r, "env", "dev"));
    let (verdict, trace) = explained(&policy, &request);
    assert_eq!(verdict, policy.evaluate(&request));
    let told: Vec<(&str, bool, &str)> =
        trace.lines.iter().map(|line| (line.rule_id.as_str(), line.matched, line.why.as_str())).collect();
    assert_eq!(
        told,
        [
            ("prod", false, "label env: the job has \"dev\""),
            ("gpu", false, "topics: the job has \"job.a\""),
            ("big", false, "when: not so: job.max_input_tokens > 100"),
            ("ok", true, "everything it asks for holds"),
            ("late", false, "not asked: an earlier rule had decided"),
        ]
    );
    let (_, trace) = explained(&policy, &Request::plain("j", "nojob"));
    assert_eq!(trace.lines.last().map(|line| (line.rule_id.as_str(), line.matched)), Some(("topic", true)));
}

#[test]
fn rules_that_never_decide_are_remarked_on() {
    let remarks = |document: serde_json::Value| {
        policy(document).remarks().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let found = remarks(json!({
        "rules": [
            {"id": "a", "match": {"topics": ["job.x.*"], "tenants": ["acme", "zeta"]}, "decision": "allow"},
            {"id": "b", "match": {"topics": ["job.x.y"], "tenants": ["acme"], "labels": {"k": "v"}}, "decision": "deny"},
            {"id": "c", "match": {"topics": ["job.x.y"]}, "decision": "deny"},
            {"id": "d", "when": "job.team == 'x'", "decision": "deny"},
            {"id": "e", "decision": "deny"},
            {"id": "f", "match": {"risk_tags": ["x"]}, "decision": "allow"},
            {"id": "near", "tier": "job", "decision": "deny", "match": {"requires": ["q"]}},
        ],
    }));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].starts_with("rule b never decides: a,") && found[1].starts_with("rule f never decides: e,")
    );
    assert_eq!(remarks(json!({"rules": [{"id": "a", "decision": "deny"}]})).len(), 1);
    assert!(remarks(json!({"default_decision": "allow"}))[0].contains("default_decision"));
    assert!(remarks(json!({"rules": [{"id": "a", "decision": "allow"}]})).is_empty());
}

/// What cannot be read may be anything: closed stops it, open lets it pass, and a job that no input rule is
/// about is no concern of theirs.
#[test]
fn an_input_that_is_not_to_be_had_stops_the_job_unless_the_file_says_otherwise() {
    let judged = |fail_mode: &str, topic: &str| {
        let policy = policy(json!({
            "rules": [{"id": "all", "decision": "allow"}],
            "input_policy": {"fail_mode": fail_mode},
            "input_rules": [{"id": "secrets", "match": {"topics": ["job.echo"], "scanners": ["secret"]}, "decision": "deny"}],
        }));
        let request = Request::plain("j", topic);
        let input_verdict = policy.scan_input(&request, InputContent::Missing);
        let (counting, now) = (Counting::DryRun, Millis(0));
        let question = Question { request: &request, input_verdict: input_verdict.as_ref(), counting, now };
        policy.judge(&question, &mut Windows::default())
    };
    let stopped = judged("closed", "job.echo");
    assert_eq!((stopped.decision, stopped.rule_id.as_str()), (Decision::Deny, "secrets"));
    assert!(stopped.reason.contains("not to be had"), "{}", stopped.reason);
    assert_eq!(judged("open", "job.echo").decision, Decision::Allow);
    assert_eq!(judged("closed", "job.other").decision, Decision::Allow);
}
