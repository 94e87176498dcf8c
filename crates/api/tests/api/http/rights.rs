//! Submitting, approving, releasing and operating are rights of their own.

use super::support::Api;
use reveille_roster::Scope;

const SUBMIT: &[Scope] = &[Scope::Submit];
const APPROVE: &[Scope] = &[Scope::Approve];
const RELEASE: &[Scope] = &[Scope::Release];
const OPERATE: &[Scope] = &[Scope::Operate];
const TAKE_BACK: &[Scope] = &[Scope::Submit, Scope::Operate];

/// What somebody does, and which of the rights is enough for it.
const ACTS: &[(&str, &str, &str, &[Scope])] = &[
    ("POST", "/api/v1/jobs", r#"{"topic":"job.echo","context":{}}"#, SUBMIT),
    ("POST", "/api/v1/jobs/gone/remediate", r#"{"remediation_id":"x"}"#, SUBMIT),
    ("POST", "/api/v1/jobs/gone/cancel", "", TAKE_BACK),
    ("POST", "/api/v1/workflows/gone/runs", "{}", SUBMIT),
    ("POST", "/api/v1/workflows/gone/dry-run", "{}", TAKE_BACK),
    ("POST", "/api/v1/workflow-runs/gone/cancel", "{}", TAKE_BACK),
    ("POST", "/api/v1/workflow-runs/gone/rerun", "{}", SUBMIT),
    ("DELETE", "/api/v1/workflow-runs/gone", "", OPERATE),
    ("POST", "/api/v1/workflows", r#"{"id":"w","steps":{"a":{"type":"delay","delay_sec":1}}}"#, OPERATE),
    ("DELETE", "/api/v1/workflows/gone", "", OPERATE),
    ("POST", "/api/v1/approvals/gone/approve", "{}", APPROVE),
    ("POST", "/api/v1/approvals/gone/reject", "{}", APPROVE),
    ("POST", "/openorca/interventions/resolve", r#"{"interventionId":"gone"}"#, APPROVE),
    ("POST", "/api/v1/quarantine/gone/release", "{}", RELEASE),
    ("POST", "/api/v1/quarantine/gone/discard", "{}", RELEASE),
    ("POST", "/api/v1/dlq/gone/retry", "", OPERATE),
    ("DELETE", "/api/v1/dlq/gone", "", OPERATE),
    ("POST", "/workspaces", r#"{"name":"a"}"#, OPERATE),
    (
        "POST",
        "/workspaces/3f9a1c52-7d14-4a63-9a67-0f4f6f2a8b11/delegate",
        r#"{"target_id":"x","task":"t"}"#,
        SUBMIT,
    ),
    ("POST", "/workspaces/3f9a1c52-7d14-4a63-9a67-0f4f6f2a8b11/a2a", "{}", SUBMIT),
    ("POST", "/api/v1/auth/keys", r#"{"name":"mine"}"#, &[]),
    ("POST", "/api/v1/pools/p/drain", "{}", &[]),
];

#[tokio::test]
async fn each_right_opens_its_own_acts_and_none_of_the_others() {
    let api = Api::open().await;
    for held in [Scope::Read, Scope::Submit, Scope::Approve, Scope::Release, Scope::Operate, Scope::Write] {
        let key = api.named_key(held.as_str(), "acme", &[held]).await;
        for (method, path, body, enough) in ACTS {
            let (status, reply) = api.call(&key, method, path, body).await;
            let may = enough.iter().any(|scope| held.implies(*scope));
            assert_eq!(status != 403, may, "{held:?} {method} {path}: {status} {reply}");
            assert_ne!(status, 405, "{method} {path}: there is no such act");
        }
    }
}
