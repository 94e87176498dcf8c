//! People with tokens of an identity provider: who they are, what their groups are worth, and where.

use super::described;
use super::support::{USER, eventually};
use reveille_core::id::{KeyId, TenantId};
use reveille_core::rate::Rate;
use reveille_engine::{Engine, LimitSettings, Settings};
use reveille_kernel::cordum::cordum_api_client::CordumApiClient;
use reveille_roster::{Reach, Role, RoleGrant};
use reveille_test_kit::{TestAlgorithm, TestHttp, TestPerson, TestProvider, TestWorld, create_key};
use reveille_wire::cordum::SubmitJobRequest;
use serde_json::{Value, json};
use std::ops::Deref;
use std::time::Duration;
use tonic::Code;

struct Office {
    world: TestWorld,
    engine: Engine,
    provider: TestProvider,
    http: TestHttp,
}

impl Deref for Office {
    type Target = TestHttp;
    fn deref(&self) -> &TestHttp {
        &self.http
    }
}

/// Groups are named after what they are worth: the tenant, and the role.
fn grants() -> Vec<RoleGrant> {
    let reaches = ["acme", "beta"].map(|name| Reach::Tenant(TenantId::known(name)));
    let reaches = reaches.into_iter().chain([Reach::Everywhere]);
    let of_reach = |reach: Reach| {
        let name = match &reach {
            Reach::Tenant(tenant) => tenant.to_string(),
            Reach::Everywhere => "all".to_owned(),
        };
        Role::ALL.map(|role| RoleGrant {
            group: format!("{name}-{}", role.as_str()),
            reach: reach.clone(),
            role,
        })
    };
    reaches.flat_map(of_reach).collect()
}

impl Office {
    async fn open() -> Self {
        Self::with(Settings::default()).await
    }

    async fn with(settings: Settings) -> Self {
        let world = TestWorld::new();
        let provider = TestProvider::start(world.clock.clone()).await;
        let policy = json!({"rules": [
            {"id": "ask", "match": {"topics": ["job.ask"]}, "decision": "require_approval", "reason": "it costs"},
            {"id": "rest", "decision": "allow"},
        ]});
        let settings = Settings { role_grants: grants(), ..settings };
        let server = world.engine().policy_of(policy).settings(settings).oidc(provider.oidc()).start().await;
        let http = TestHttp::checked(reveille_api::router(server.engine.clone()), described::check);
        Self { world, engine: server.engine, provider, http }
    }

    /// A call with a token, in this tenant if one is named.
    async fn call_as(&self, token: &str, tenant: &str, method: &str, path: &str, body: &str) -> (u16, Value) {
        let bearer = format!("Bearer {token}");
        let mut headers = vec![("authorization", bearer.as_str())];
        headers.extend((!tenant.is_empty()).then_some(("x-tenant-id", tenant)));
        self.send(method, path, &headers, body.to_owned()).await.status_and_json()
    }

    /// Somebody of the provider, by name, with a token.
    fn token(&self, subject: &str, name: &str, groups: &[&str]) -> String {
        self.provider.token(&TestPerson::new(subject, name, groups))
    }

    async fn ask(&self, token: &str) -> String {
        let body = json!({"topic": "job.ask", "context": {}}).to_string();
        let (status, reply) = self.call_as(token, "", "POST", "/api/v1/jobs", &body).await;
        assert_eq!(status, 200, "{reply}");
        reply["job_id"].as_str().unwrap().to_owned()
    }

    async fn approve(&self, token: &str, id: &str) -> (u16, Value) {
        self.call_as(token, "", "POST", &format!("/api/v1/approvals/{id}/approve"), "{}").await
    }
}

const JOB: &str = r#"{"topic":"job.echo","context":{}}"#;

#[tokio::test]
async fn each_role_opens_its_own_acts_in_its_own_tenant() {
    let office = Office::open().await;
    let acts = [
        ("GET", "/api/v1/jobs", "", &["viewer", "submitter", "approver", "operator", "admin"][..]),
        ("POST", "/api/v1/jobs", JOB, &["submitter", "admin"]),
        ("POST", "/api/v1/approvals/gone/approve", "{}", &["approver", "admin"]),
        ("POST", "/api/v1/quarantine/gone/release", "{}", &["operator", "admin"]),
        ("DELETE", "/api/v1/dlq/gone", "", &["operator", "admin"]),
        ("GET", "/openorca/snapshot", "", &["viewer", "submitter", "approver", "operator", "admin"]),
        ("POST", "/api/v1/pools/p/drain", "{}", &[]),
        ("GET", "/api/v1/auth/keys", "", &[]),
        ("GET", "/api/v1/system", "", &[]),
    ];
    for role in Role::ALL.map(Role::as_str) {
        let token = office.token(role, role, &[&format!("acme-{role}")]);
        for (method, path, body, roles) in acts {
            for tenant in ["", "acme"] {
                let (status, reply) = office.call_as(&token, tenant, method, path, body).await;
                assert_eq!(
                    status != 403,
                    roles.contains(&role),
                    "{role} {tenant:?} {method} {path}: {status} {reply}"
                );
            }
            let (status, _) = office.call_as(&token, "beta", method, path, body).await;
            assert_eq!(status, 403, "{role} in another tenant: {method} {path}");
        }
    }
}

#[tokio::test]
async fn roles_in_several_tenants_are_kept_apart() {
    let office = Office::open().await;
    let both = office.token("1", "ann", &["acme-submitter", "beta-viewer", "no such group"]);
    let (status, reply) = office.call_as(&both, "", "POST", "/api/v1/jobs", JOB).await;
    assert_eq!((status, reply["code"].as_str()), (400, Some("tenant_required")), "nobody guesses");
    assert!(reply["error"].as_str().unwrap().contains("acme, beta"), "{reply}");
    let (status, reply) = office.call_as(&both, "acme", "POST", "/api/v1/jobs", JOB).await;
    assert_eq!(status, 200, "{reply}");
    let job = format!("/api/v1/jobs/{}", reply["job_id"].as_str().unwrap());
    assert_eq!(office.call_as(&both, "beta", "POST", "/api/v1/jobs", JOB).await.0, 403);
    assert_eq!(office.call_as(&both, "acme", "GET", &job, "").await.0, 200);
    assert_eq!(office.call_as(&both, "beta", "GET", &job, "").await.0, 404, "it is another tenant's");
    assert_eq!(office.call_as(&both, "gamma", "GET", "/api/v1/jobs", "").await.0, 403);

    let viewer = office.token("2", "bob", &["all-viewer", "beta-submitter"]);
    assert_eq!(office.call_as(&viewer, "", "GET", &job, "").await.0, 200, "in every tenant");
    assert_eq!(office.call_as(&viewer, "beta", "GET", &job, "").await.0, 404, "in this one");
    assert_eq!(office.call_as(&viewer, "", "POST", "/api/v1/jobs", JOB).await.0, 403);
    assert_eq!(office.call_as(&viewer, "beta", "POST", "/api/v1/jobs", JOB).await.0, 200);
    let operator = office.token("3", "eve", &["all-operator"]);
    assert_ne!(office.call_as(&operator, "", "POST", "/api/v1/pools/p/drain", "{}").await.0, 403);
    assert_eq!(office.call_as(&operator, "", "GET", "/api/v1/auth/keys", "").await.0, 403);
    let admin = office.token("4", "root", &["all-admin"]);
    assert_eq!(office.call_as(&admin, "", "GET", "/api/v1/auth/keys", "").await.0, 200);
    assert_eq!(office.call_as(&admin, "gamma", "POST", "/api/v1/jobs", JOB).await.0, 200);
}

#[tokio::test]
async fn a_person_approves_nothing_of_their_own_whatever_they_come_with() {
    let office = Office::open().await;
    let both = ["acme-submitter", "acme-approver", "acme-operator"];
    let ann = office.token("1", "ann", &both);
    let id = office.ask(&ann).await;
    let own = |(status, reply): (u16, Value)| {
        assert_eq!((status, reply["code"].as_str()), (403, Some("self_approval_denied")), "{reply}");
    };
    own(office.approve(&ann, &id).await);
    own(office.approve(&office.token("1", "another name", &both), &id).await);
    own(office.approve(&office.token("1", "ann", &["acme-admin"]), &id).await);
    // Another person of the same name is another person.
    let namesake = office.token("2", "ann", &both);
    assert_eq!(office.approve(&namesake, &id).await.0, 200);

    // A key of the same name may be the same person's, and so is one that they made.
    let key = create_key(&office.engine, "ann", "acme", USER).await;
    let asked = json!({"topic": "job.ask", "context": {}}).to_string();
    let with_key =
        office.call(&key, "POST", "/api/v1/jobs", &asked).await.1["job_id"].as_str().unwrap().to_owned();
    own(office.approve(&ann, &with_key).await);
    let root = office.token("9", "root", &["all-admin"]);
    let body = r#"{"name":"ci","tenant":"acme","scopes":["submit"]}"#;
    let made = office.call_as(&root, "", "POST", "/api/v1/auth/keys", body).await.1;
    let by_made = office.call(made["secret"].as_str().unwrap(), "POST", "/api/v1/jobs", &asked).await.1;
    let by_made = by_made["job_id"].as_str().unwrap();
    own(office.approve(&root, by_made).await);
    assert_eq!(office.approve(&namesake, by_made).await.0, 200);
}

#[tokio::test]
async fn a_run_is_its_starters_and_so_are_its_jobs() {
    let office = Office::open().await;
    let (ann, bob) = (office.token("1", "ann", &["acme-admin"]), office.token("2", "bob", &["acme-admin"]));
    let flow = json!({"id": "w", "name": "w", "steps": {"a": {"topic": "job.ask"}}}).to_string();
    assert_eq!(office.call_as(&ann, "", "POST", "/api/v1/workflows", &flow).await.0, 201);
    assert_eq!(office.call_as(&ann, "", "POST", "/api/v1/workflows/w/runs", "{}").await.0, 200);
    eventually(async || {
        let page = office.call_as(&bob, "", "GET", "/api/v1/approvals", "").await.1;
        !page["items"].as_array().unwrap().is_empty()
    })
    .await;
    let page = office.call_as(&bob, "", "GET", "/api/v1/approvals", "").await.1;
    let id = page["items"][0]["job"]["id"].as_str().unwrap();
    assert_eq!(office.approve(&ann, id).await.1["code"], "self_approval_denied");
    assert_eq!(office.approve(&bob, id).await.0, 200);
}

#[tokio::test]
async fn the_trail_names_the_person_by_issuer_and_subject() {
    let office = Office::open().await;
    let (ann, bob) =
        (office.token("1", "ann", &["acme-submitter"]), office.token("2", "bob", &["acme-approver"]));
    let id = office.ask(&ann).await;
    assert_eq!(office.approve(&bob, &id).await.0, 200);
    let path = format!("/api/v1/audit/events?job_id={id}");
    let trail = office.call_as(&bob, "", "GET", &path, "").await.1;
    let named = |event: &str, name: &str, subject: &str| {
        let key = KeyId::person(&office.provider.issuer, subject).unwrap();
        assert_eq!(key.as_str(), format!("oidc:{}#{subject}", office.provider.issuer));
        let entries = trail["items"].as_array().unwrap();
        let entry =
            entries.iter().rfind(|entry| entry["event_type"] == event).unwrap_or_else(|| panic!("{trail}"));
        assert_eq!(
            (&entry["identity"], &entry["extra"]["by_key"]),
            (&json!(name), &json!(key.as_str())),
            "{entry}"
        );
    };
    named("safety.decision", "ann", "1");
    named("safety.approval", "bob", "2");
}

#[tokio::test]
async fn a_token_that_is_not_good_opens_nothing_on_any_surface() {
    let office = Office::open().await;
    let ann = TestPerson::new("1", "ann", &["acme-admin"]);
    let mut expired = office.provider.claims(&ann);
    expired["exp"] = json!(reveille_test_kit::NOON.0 / 1000 - 60);
    let mut for_another = office.provider.claims(&ann);
    for_another["aud"] = json!("another");
    let claims = office.provider.claims(&ann);
    let stranger = TestProvider::start(office.world.clock.clone()).await;
    for (token, words) in [
        (office.provider.sign(TestAlgorithm::Es256, &expired), "it has expired"),
        (office.provider.sign(TestAlgorithm::Es256, &for_another), "it is not for this server"),
        (office.provider.sign(TestAlgorithm::Hs256, &claims), "none of RS256, ES256, EdDSA"),
        (office.provider.sign(TestAlgorithm::None, &claims), "no signed token"),
        (stranger.sign(TestAlgorithm::Es256, &claims), "the signature is wrong"),
    ] {
        let (status, reply) = office.call_as(&token, "", "GET", "/api/v1/jobs", "").await;
        assert_eq!((status, reply["code"].as_str()), (401, Some("unauthorized")));
        assert!(reply["error"].as_str().unwrap().contains(words), "{reply}");
        for path in ["/v1/agents", "/openorca/snapshot", "/workspaces"] {
            assert_eq!(office.call_as(&token, "", "GET", path, "").await.0, 401, "{path}");
        }
        assert!(office.engine.access().authenticate(&token).is_none(), "nor does it open a door");
    }
    let good = office.provider.token(&ann);
    assert_eq!(office.call_as(&good, "", "GET", "/v1/agents", "").await.0, 200);
    assert!(office.engine.access().authenticate(&good).is_none(), "doors are for keys");
}

#[tokio::test]
async fn somebody_without_a_role_is_told_which_groups_they_came_with() {
    let office = Office::open().await;
    let nobody = office.token("1", "ann", &["sales", "everyone"]);
    for path in ["/api/v1/jobs", "/v1/agents", "/openorca/snapshot", "/workspaces"] {
        assert_eq!(office.call_as(&nobody, "", "GET", path, "").await.0, 403, "{path}");
    }
    let (_, reply) = office.call_as(&nobody, "", "GET", "/api/v1/jobs", "").await;
    assert_eq!(reply["code"], "no_role");
    assert!(reply["error"].as_str().unwrap().contains("sales, everyone"), "{reply}");
}

#[tokio::test]
async fn a_person_has_one_rate_whatever_tokens_they_show() {
    let limits = LimitSettings { calls: Some(Rate::new(1, 2)), ..LimitSettings::default() };
    let office = Office::with(Settings { limits, ..Settings::default() }).await;
    let call = async |subject: &str, name: &str| {
        let token = office.token(subject, name, &["acme-viewer"]);
        office.call_as(&token, "", "GET", "/api/v1/jobs", "").await.0
    };
    assert_eq!([call("1", "a").await, call("1", "b").await, call("1", "c").await], [200, 200, 429]);
    assert_eq!(call("2", "a").await, 200);
}

#[tokio::test]
async fn a_stream_ends_with_the_token_that_opened_it() {
    let office = Office::open().await;
    let ann = office.token("1", "ann", &["acme-viewer"]);
    let mut stream = office.http.open(&ann, "/api/v1/events", &[]).await;
    assert_eq!(stream.event().await.1, "snapshot");
    // Nothing waits for a socket any more.
    tokio::time::pause();
    office.world.clock.shift(3_600_000);
    let ended = tokio::time::timeout(Duration::from_secs(2), stream.end()).await;
    assert!(ended.is_ok(), "it went on for more than two seconds");
}

#[tokio::test]
async fn a_token_is_taken_over_grpc_for_what_its_roles_say() {
    let office = Office::open().await;
    let call = async |token: &str| {
        let body = SubmitJobRequest {
            prompt: "hello".to_owned(),
            topic: "job.echo".to_owned(),
            ..SubmitJobRequest::default()
        };
        let mut request = tonic::Request::new(body);
        request.metadata_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        let services = reveille_api::grpc::services(office.engine.clone());
        CordumApiClient::new(services).submit_job(request).await.map_err(|status| status.code())
    };
    assert!(call(&office.token("1", "ann", &["acme-submitter"])).await.is_ok());
    assert_eq!(call(&office.token("1", "ann", &["acme-viewer"])).await.unwrap_err(), Code::PermissionDenied);
    assert_eq!(call(&office.token("1", "ann", &["sales"])).await.unwrap_err(), Code::PermissionDenied);
    let claims = office.provider.claims(&TestPerson::new("1", "ann", &["acme-submitter"]));
    let forged = office.provider.sign(TestAlgorithm::Hs256, &claims);
    assert_eq!(call(&forged).await.unwrap_err(), Code::Unauthenticated);
}
