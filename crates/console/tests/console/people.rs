//! People sign in with an identity provider.

use crate::browser::Browser;
use crate::house::{EVIL, House, WORKER};
use reveille_core::id::TenantId;
use reveille_core::job::State;
use reveille_engine::{Engine, Settings};
use reveille_roster::{Reach, Role, RoleGrant};
use reveille_test_kit::{Reply, TestClock, TestHttp, TestPerson, TestProvider, create_key};
use std::sync::Arc;

fn grants() -> Vec<RoleGrant> {
    let grant = |group: &str, tenant: &str, role| {
        let reach = if tenant == "*" { Reach::Everywhere } else { Reach::Tenant(TenantId::known(tenant)) };
        RoleGrant { group: group.to_owned(), reach, role }
    };
    vec![
        grant("dev", "acme", Role::Submitter),
        grant("leads", "acme", Role::Approver),
        grant("leads", "beta", Role::Viewer),
        grant("ops", "*", Role::Operator),
    ]
}

struct Office {
    house: House,
    provider: TestProvider,
}

impl Office {
    async fn open() -> Self {
        let provider = TestProvider::start(Arc::new(TestClock::default())).await;
        let settings = Settings { role_grants: grants(), ..Settings::default() };
        let house = House::over(|_, engine| engine.settings(settings).oidc(provider.oidc())).await;
        Self { house, provider }
    }

    fn nobody(&self) -> Browser {
        Browser::new(self.house.http.clone())
    }

    /// Begins a sign-in and goes to the provider: a browser with what it keeps, and where it is sent back to.
    async fn begin(&self, person: &TestPerson) -> (Browser, String) {
        self.provider.at_browser(person);
        let mut browser = self.nobody();
        let reply = browser.get("/ui/oidc/start?next=/ui/jobs").await;
        assert_eq!(reply.status, 303, "{}", reply.text());
        let kept = cookies(&reply);
        assert!(kept.starts_with("reveille_sign_in="), "{kept}");
        let flags = reply.header("set-cookie");
        assert!(
            flags.contains("HttpOnly") && flags.contains("SameSite=Lax") && flags.contains("Max-Age=600")
        );
        browser.cookie = kept;
        let back = self.provider.visit(reply.header("location")).await;
        let (_, path) = back.split_once(":8080").unwrap();
        (browser, path.to_owned())
    }

    async fn sign_in(&self, subject: &str, name: &str, groups: &[&str]) -> Browser {
        let (browser, path) = self.begin(&TestPerson::new(subject, name, groups)).await;
        let reply = browser.get(&path).await;
        assert_eq!((reply.status, reply.header("location")), (303, "/ui/jobs"), "{}", reply.text());
        Browser { cookie: cookies(&reply), ..browser }
    }
}

/// What a browser keeps of an answer.
fn cookies(reply: &Reply) -> String {
    let set = reply.headers.get_all("set-cookie").iter().map(|value| value.to_str().unwrap());
    let kept =
        set.filter(|cookie| !cookie.contains("Max-Age=0")).map(|cookie| cookie.split(';').next().unwrap());
    kept.collect::<Vec<_>>().join("; ")
}

#[tokio::test]
async fn a_person_signs_in_submits_and_cannot_approve_it_in_any_session() {
    let office = Office::open().await;
    let text = office.nobody().page("/ui/sign-in?next=/ui/jobs").await;
    assert!(text.contains("Sign in with 127.0.0.1") && text.contains("/ui/oidc/start?next="), "{text}");
    let ann = office.sign_in("1", "ann", &["dev", "leads"]).await;
    assert!(ann.page("/ui/jobs").await.contains("signed in as ann"));
    let seal = ann.seal().await;
    let form = [("seal", seal.as_str()), ("topic", "job.ask"), ("context", "{}")];
    let sent = ann.post("/ui/jobs/new", &form).await;
    assert_eq!(sent.status, 303, "{}", sent.text());
    let job = sent.header("location").rsplit('/').next().unwrap().to_owned();
    assert_eq!(office.house.state(&job).await, State::ApprovalRequired);

    let approve = format!("/ui/approvals/{job}/approve");
    for again in [&ann, &office.sign_in("1", "another name", &["leads"]).await] {
        let seal = again.seal().await;
        let reply = again.post(&approve, &[("seal", &seal)]).await;
        assert!(reply.text().contains("nobody approves what they asked for"), "{}", reply.text());
    }
    let token = office.provider.token(&TestPerson::new("1", "ann", &["leads"]));
    let path = format!("/api/v1/approvals/{job}/approve");
    let headers = [("authorization", format!("Bearer {token}")), ("x-tenant-id", "acme".to_owned())];
    let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
    let reply = office.house.http.send("POST", &path, &headers, "{}").await;
    assert_eq!(reply.json()["code"], "self_approval_denied");

    let namesake = office.sign_in("2", "ann", &["leads"]).await;
    let seal = namesake.seal().await;
    assert_eq!(namesake.post(&approve, &[("seal", &seal)]).await.status, 303);
    assert_ne!(office.house.state(&job).await, State::ApprovalRequired);
}

#[tokio::test]
async fn an_answer_to_another_sign_in_signs_nobody_in() {
    let office = Office::open().await;
    let person = TestPerson::new("1", "ann", &["dev"]);
    let (browser, path) = office.begin(&person).await;
    let (other, _) = office.begin(&person).await;
    let forged_state = path.replace("state=", "state=x");
    let tampered =
        Browser { http: office.house.http.clone(), cookie: browser.cookie.replacen("=ey", "=eY", 1) };
    for (who, path) in
        [(&office.nobody(), &path), (&other, &path), (&browser, &forged_state), (&tampered, &path)]
    {
        let reply = who.get(path).await;
        assert_eq!((reply.status, cookies(&reply).as_str()), (401, ""), "{}", reply.text());
        assert!(reply.text().contains("begun in another browser"), "{}", reply.text());
    }
    let another_issuer = format!("{path}&iss=https%3A%2F%2Fevil.example");
    assert_eq!(browser.get(&another_issuer).await.status, 401);
    let reply = browser.get(&path).await;
    assert_eq!(reply.status, 303, "the right one is still good: {}", reply.text());
    let replayed = browser.get(&path).await;
    assert_eq!((replayed.status, cookies(&replayed).as_str()), (401, ""), "a code is good once");

    let (late, path) = office.begin(&person).await;
    office.house.world.clock.shift(11 * 60 * 1000);
    assert_eq!(late.get(&path).await.status, 401, "ten minutes are over");
    let denied = format!(
        "/ui/oidc/callback?error=access_denied&error_description={}",
        "%3Cscript%3Ealert(1)%3C/script%3E"
    );
    let reply = office.nobody().get(&denied).await;
    assert!(reply.status == 401 && !reply.text().contains(EVIL), "{}", reply.text());
    let metrics = office.house.http.send("GET", "/metrics", &[], "").await;
    assert!(!metrics.text().contains("sign_ins_failed_total 0"), "{}", metrics.text());
}

#[tokio::test]
async fn a_nonce_of_another_sign_in_signs_nobody_in() {
    let office = Office::open().await;
    office.provider.mix_up_nonces();
    let (browser, path) = office.begin(&TestPerson::new("1", "ann", &["dev"])).await;
    let reply = browser.get(&path).await;
    assert_eq!((reply.status, cookies(&reply).as_str()), (401, ""));
    assert!(reply.text().contains("belongs to another sign-in"), "{}", reply.text());
}

#[tokio::test]
async fn whoever_has_no_role_is_shown_their_groups() {
    let office = Office::open().await;
    let (browser, path) = office.begin(&TestPerson::new("1", "ann", &["sales", EVIL])).await;
    let reply = browser.get(&path).await;
    assert_eq!((reply.status, cookies(&reply).as_str()), (403, ""));
    let text = reply.text();
    assert!(
        text.contains("You have no role here") && text.contains("sales") && !text.contains(EVIL),
        "{text}"
    );
}

#[tokio::test]
async fn a_person_of_several_tenants_chooses_one_of_theirs() {
    let office = Office::open().await;
    let lead = office.sign_in("1", "ann", &["leads"]).await;
    let page = lead.page("/ui/approvals").await;
    assert!(
        page.contains(r#"<option value="acme" selected"#) && page.contains(r#"<option value="beta""#),
        "{page}"
    );
    assert!(!page.contains("all tenants") && page.contains(&office.house.asked), "{page}");
    let seal = lead.seal().await;
    let choose = async |tenant: &str| lead.post("/ui/tenant", &[("seal", &seal), ("tenant", tenant)]).await;
    assert_eq!(choose("gamma").await.status, 403);
    let chosen = choose("beta").await;
    let in_beta =
        Browser { http: lead.http.clone(), cookie: format!("{}; {}", lead.cookie, cookies(&chosen)) };
    assert!(!in_beta.page("/ui/approvals").await.contains(&office.house.asked));
    let seal = in_beta.seal().await;
    let approve = format!("/ui/approvals/{}/approve", office.house.asked);
    let reply = in_beta.post(&approve, &[("seal", &seal)]).await;
    assert!(reply.text().contains("this person lacks the scope approve"), "a viewer there: {}", reply.text());
    // What is not theirs cannot be chosen by hand either.
    let by_hand =
        Browser { http: lead.http.clone(), cookie: format!("{}; reveille_tenant=gamma", lead.cookie) };
    assert!(by_hand.page("/ui/approvals").await.contains(r#"<option value="acme" selected"#));

    let everywhere = office.sign_in("2", "eve", &["ops"]).await;
    let worker = format!("/ui/workers/{WORKER}?contract=cap&tenant=acme");
    let page = everywhere.page(&worker).await;
    assert!(page.contains("all tenants") && page.contains("/drain"), "{page}");
    assert!(!lead.page(&worker).await.contains("/drain"), "it is everybody's");
    assert_eq!(everywhere.get("/ui/system").await.status, 403, "an operator of everything is no admin");
}

#[tokio::test]
async fn a_persons_session_ends_with_sign_out_its_time_and_its_seal() {
    let office = Office::open().await;
    let (here, there) =
        (office.sign_in("1", "ann", &["dev"]).await, office.sign_in("1", "ann", &["dev"]).await);
    let bob = office.sign_in("2", "bob", &["dev"]).await;
    let opened = [&here, &there, &bob];
    for browser in opened {
        assert_eq!(browser.get("/ui/jobs").await.status, 200);
    }
    let other = another_server(&office).await;
    let at_other = |browser: &Browser| Browser { http: other.1.clone(), cookie: browser.cookie.clone() };
    assert_eq!(at_other(&here).get("/ui/jobs").await.status, 200, "every server knows the session");

    let seal = here.seal().await;
    assert_eq!(there.post("/ui/sign-out", &[("seal", &seal)]).await.status, 403, "another session's form");
    assert_eq!(here.post("/ui/sign-out", &[("seal", &seal)]).await.status, 303);
    assert_eq!((here.get("/ui/jobs").await.status, there.get("/ui/jobs").await.status), (303, 200));
    let seal = there.seal().await;
    assert_eq!(there.post("/ui/sign-out", &[("seal", &seal), ("everywhere", "true")]).await.status, 303);
    assert_eq!((there.get("/ui/jobs").await.status, bob.get("/ui/jobs").await.status), (303, 200));
    let again = office.sign_in("1", "ann", &["dev"]).await;
    assert_eq!(again.get("/ui/jobs").await.status, 200, "they may come again");

    let forged = Browser { http: bob.http.clone(), cookie: bob.cookie.replacen("=p.ey", "=p.eY", 1) };
    assert_eq!(forged.get("/ui/jobs").await.status, 303);
    office.house.world.clock.shift(13 * 3600 * 1000);
    assert_eq!(bob.get("/ui/jobs").await.status, 303, "half a day is over");
    other.0.kill();
    let late = another_server(&office).await;
    let late = Browser { http: late.1, cookie: again.cookie.clone() };
    assert_eq!(late.get("/ui/jobs").await.status, 303);
}

/// A second server on the same roster.
async fn another_server(office: &Office) -> (Engine, TestHttp) {
    let settings = Settings { role_grants: grants(), ..Settings::default() };
    let builder = office.house.world.engine().settings(settings).oidc(office.provider.oidc());
    let engine = builder.seed(7).start().await.engine;
    (engine.clone(), TestHttp::new(reveille_console::router(engine, Vec::new())))
}

#[tokio::test]
async fn a_sign_in_is_in_the_trail_with_issuer_and_subject() {
    let office = Office::open().await;
    let ann = office.sign_in("1", "ann", &["dev"]).await;
    let seal = ann.seal().await;
    assert_eq!(ann.post("/ui/sign-out", &[("seal", &seal)]).await.status, 303);
    let key = create_key(&office.house.server, "eve", "acme", crate::house::USER).await;
    let trail =
        office.house.http.call(&key, "GET", "/api/v1/audit/events?event_type=system.auth", "").await.1;
    for action in ["signed_in", "signed_out"] {
        let entries = trail["items"].as_array().unwrap();
        let entry =
            entries.iter().find(|entry| entry["action"] == action).unwrap_or_else(|| panic!("{trail}"));
        let by = format!("oidc:{}#1", office.provider.issuer);
        assert_eq!(
            (entry["identity"].as_str(), entry["extra"]["by_key"].as_str()),
            (Some("ann"), Some(by.as_str()))
        );
    }
}

#[tokio::test]
async fn a_provider_that_is_away_keeps_nobody_with_a_key_out() {
    let office = Office::open().await;
    office.provider.go_away();
    let reply = office.nobody().get("/ui/oidc/start").await;
    assert_eq!(reply.status, 503);
    assert!(reply.text().contains("cannot be used at present") && reply.text().contains("name=\"key\""));
    office.house.ann().await;
    office.provider.come_back();
    office.house.world.clock.shift(2_000);
    office.sign_in("1", "ann", &["dev"]).await;

    let plain = House::full().await;
    let nobody = Browser::new(plain.http.clone());
    assert!(!nobody.page("/ui/sign-in").await.contains("oidc"), "where nobody vouches for people");
    assert_eq!(nobody.get("/ui/oidc/start").await.status, 404);
}
