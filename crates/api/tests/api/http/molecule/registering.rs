//! Who gets in, as whom, and how often.

use super::platform::{NOWHERE, Platform, Setup, id};
use reveille_core::id::TenantId;
use reveille_roster::{Roster, Scope};
use serde_json::{Value, json};

#[tokio::test]
async fn a_token_is_given_once_demanded_afterwards_and_kept_as_a_hash() {
    let mut setup = Setup::new();
    let platform = setup.start().await;
    let key = platform.key("acme", &[Scope::Ingest]).await;
    platform.register("", &id(1), NOWHERE).await.is(401, "missing workspace auth token");
    let first = platform.register(&key, &id(1), NOWHERE).await.ok();
    assert_eq!(first["status"], "registered");
    let token = first["auth_token"].as_str().unwrap();
    assert_eq!(token.len(), 43);
    platform.register("", &id(1), NOWHERE).await.is(401, "missing workspace auth token");
    platform.register("wrong", &id(1), NOWHERE).await.is(401, "invalid workspace auth token");
    platform.beat("", &id(1), json!({})).await.is(401, "missing workspace auth token");
    platform.beat("wrong", &id(1), json!({})).await.is(401, "invalid workspace auth token");
    let again = platform.register(token, &id(1), NOWHERE).await.ok();
    assert_eq!(again, json!({ "status": "registered" }), "no second token");
    let beat = platform.beat(token, &id(1), json!({})).await.ok();
    assert_eq!(beat, json!({ "status": "ok", "next_beat_s": 30 }));
    platform.beat(&key, &id(1), json!({})).await.ok();

    let stored = setup.roster().workspaces(None, 10).await.unwrap();
    assert!(!format!("{stored:?}").contains(token));
    assert!(stored[0].token_hash.is_some());
    let seen = platform.get(&key, "/workspaces").await;
    assert_eq!(seen.status, 403, "an ingest key reads nothing");

    platform.die().await;
    let platform = setup.start().await;
    platform.beat(token, &id(1), json!({})).await.ok();
    platform.beat("", &id(1), json!({})).await.is(401, "missing workspace auth token");
}

#[tokio::test]
async fn where_a_setting_allows_it_a_workspace_that_was_set_up_registers_once_without_a_credential() {
    let mut setup = Setup::new();
    setup.settings.open_registration = true;
    let platform = setup.start().await;
    let key = platform.user("acme").await;
    let made =
        platform.post(&key, "/workspaces", json!({ "name": "seo", "canvas": { "x": 1, "y": 2 } })).await;
    assert_eq!((made.status, made.body["status"].as_str()), (201, Some("provisioning")));
    let id = made.body["id"].as_str().unwrap().to_owned();
    platform.beat("", &id, json!({})).await.is(401, "missing workspace auth token");
    platform.get("", &format!("/registry/{id}/peers")).await.is(401, "missing workspace auth token");
    let token = platform.join("", &id, NOWHERE).await;
    platform.register("", &id, NOWHERE).await.is(401, "missing workspace auth token");
    let seen = platform.get(&token, &format!("/workspaces/{id}")).await.ok();
    assert_eq!((seen["name"].as_str(), seen["status"].as_str()), (Some("seo"), Some("online")));
    assert_eq!(seen["agent_card"]["x-extra"], json!([1, { "deep": null }]), "cards are kept verbatim");

    let minted = platform.post(&key, &format!("/workspaces/{id}/tokens"), Value::Null).await.ok();
    platform.beat(&token, &id, json!({})).await.is(401, "invalid workspace auth token");
    platform.beat(minted["auth_token"].as_str().unwrap(), &id, json!({})).await.ok();
    assert_eq!(platform.post(&token, &format!("/workspaces/{id}/tokens"), Value::Null).await.status, 401);

    let elsewhere = json!({ "name": "far", "external": true });
    let made = platform.post(&key, "/workspaces", elsewhere).await.ok();
    assert_eq!(made["status"], "awaiting_agent");
    let token = made["connection"]["auth_token"].as_str().unwrap();
    assert_eq!(platform.register(token, made["id"].as_str().unwrap(), NOWHERE).await.status, 200);
}

#[tokio::test]
async fn a_workspace_speaks_only_for_itself() {
    let platform = Platform::open().await;
    let key = platform.user("acme").await;
    let one = platform.join(&key, &id(1), NOWHERE).await;
    platform.join(&key, &id(2), NOWHERE).await;
    let wrong = "invalid workspace auth token";
    platform.register(&one, &id(2), NOWHERE).await.is(401, wrong);
    platform.register(&one, &id(3), NOWHERE).await.is(401, wrong);
    platform.beat(&one, &id(2), json!({})).await.is(401, wrong);
    let two = format!("/workspaces/{}", id(2));
    for (method, path, body) in [
        ("PATCH", two.clone(), json!({ "name": "mine" })),
        ("POST", format!("{two}/delegate"), json!({ "target_id": id(1), "task": "t" })),
        ("GET", format!("{two}/delegations"), Value::Null),
        (
            "POST",
            format!("{two}/delegations/record"),
            json!({ "target_id": id(1), "task": "t", "delegation_id": "d" }),
        ),
        ("POST", format!("{two}/delegations/d/update"), json!({ "status": "failed" })),
        ("POST", format!("{two}/notify"), json!({ "message": "m" })),
        ("POST", format!("{two}/activity"), json!({ "activity_type": "a" })),
    ] {
        platform.send(&one, method, &path, body.clone()).await.is(401, wrong);
        platform.send("", method, &path, body).await.is(401, "missing workspace auth token");
    }
    let card = json!({ "workspace_id": id(2), "agent_card": {} });
    platform.post(&one, "/registry/update-card", card).await.is(401, wrong);
    let a2a = json!({ "method": "message/send", "params": { "message": { "parts": [] } } });
    let as_two =
        platform.send_as(Some(&id(2)), &one, "POST", &format!("/workspaces/{}/a2a", id(1)), a2a).await;
    as_two.is(401, wrong);
    assert_eq!(platform.get(&one, &two).await.status, 200, "it may look at whom it may talk to");
    assert_eq!(platform.send(&one, "DELETE", &two, Value::Null).await.status, 403);
    assert_eq!(platform.post(&one, "/workspaces", json!({ "name": "x" })).await.status, 403);
    let own = format!("/workspaces/{}", id(1));
    assert_eq!(platform.send(&one, "PATCH", &own, json!({ "parent_id": id(2) })).await.status, 403);
    platform.send(&one, "PATCH", &own, json!({ "name": "one", "x": 4 })).await.ok();
}

#[tokio::test]
async fn another_tenants_workspace_does_not_exist() {
    let platform = Platform::open().await;
    let (ann, bob) = (platform.user("acme").await, platform.user("zeta").await);
    let operator = platform.key("default", &[Scope::Admin]).await;
    let token = platform.join(&ann, &id(1), NOWHERE).await;
    let foreign = platform.join(&bob, &id(2), NOWHERE).await;
    let one = format!("/workspaces/{}", id(1));
    for credential in [&bob, &foreign, &operator] {
        for (method, path, body) in [
            ("GET", one.clone(), Value::Null),
            ("PATCH", one.clone(), json!({ "name": "x" })),
            ("GET", format!("{one}/delegations"), Value::Null),
            ("GET", format!("/events/{}", id(1)), Value::Null),
            ("GET", format!("{one}/events/stream"), Value::Null),
            ("GET", format!("{one}/state"), Value::Null),
            ("POST", format!("{one}/notify"), json!({ "message": "m" })),
            ("POST", format!("{one}/a2a"), json!({ "method": "x" })),
        ] {
            assert_eq!(platform.send(credential, method, &path, body).await.status, 404, "{method} {path}");
        }
    }
    platform.beat(&bob, &id(1), json!({})).await.is(404, "workspace not registered");
    platform.register(&bob, &id(1), NOWHERE).await.is(404, "workspace not registered");
    let discovered = format!("/registry/discover/{}", id(1));
    platform
        .send_as(Some(&id(2)), &foreign, "GET", &discovered, Value::Null)
        .await
        .is(404, "workspace not found");
    let delegated = json!({ "target_id": id(1), "task": "t" });
    let answer = platform.post(&foreign, &format!("/workspaces/{}/delegate", id(2)), delegated).await;
    answer.is(404, "workspace not found");
    let access = json!({ "caller_id": id(2), "target_id": id(1) });
    assert_eq!(platform.post(&bob, "/registry/check-access", access).await.ok(), json!({ "allowed": false }));
    assert_eq!(platform.get(&bob, "/workspaces").await.ok().as_array().unwrap().len(), 1);
    assert!(!platform.get(&bob, "/events").await.ok().to_string().contains(&id(1)));
    assert_eq!(platform.send(&bob, "DELETE", &one, Value::Null).await.status, 404);
    assert_eq!(platform.get(&token, &one).await.status, 200);
    let as_acme = [("x-api-key", operator.as_str()), ("x-tenant-id", "acme")];
    assert_eq!(
        platform.http.send("GET", &one, &as_acme, "").await.status,
        200,
        "an operator names the tenant"
    );
}

#[tokio::test]
async fn what_cannot_be_an_id_or_an_address_is_refused() {
    let mut setup = Setup::new();
    setup.networks.clear();
    let platform = setup.start().await;
    let key = platform.user("acme").await;
    for url in [
        "http://169.254.169.254/latest/meta-data",
        "http://metadata.google.internal/",
        "http://127.0.0.1:80/",
        "http://localhost:6379/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://10.0.0.1/",
        "http://0x7f000001/",
        "file:///etc/passwd",
        "gopher://x/",
        "http://user:pw@example.com/",
        "",
        "x",
        "http://0.0.0.0/",
        "http://100.64.0.1/",
    ] {
        let answer = platform.register(&key, &id(1), url).await;
        assert_eq!((answer.status, answer.error()), (400, "invalid request body"), "{url}");
        let made = platform.post(&key, "/workspaces", json!({ "name": "n", "url": url })).await;
        assert!(made.status == 400 || url.is_empty(), "{url}");
    }
    assert!(
        platform.engine.workspaces().workspaces_of(&TenantId::known("acme")).len() <= 1,
        "nothing was made"
    );
    for bad in ["nope", "1", "../../etc", &"x".repeat(300)] {
        platform
            .register(&key, bad.get(..36).unwrap_or("not-a-uuid-but-of-the-right-length!!"), NOWHERE)
            .await
            .is(400, "invalid workspace ID");
        platform.beat(&key, bad, json!({})).await.is(400, "invalid workspace ID");
    }
    platform.get(&key, "/workspaces/nope").await.is(400, "invalid workspace ID");
    platform.get(&key, "/registry/nope/peers").await.is(400, "invalid workspace ID");
    platform.beat(&key, &id(9), json!({})).await.is(404, "workspace not registered");
    platform.post(&key, "/registry/register", json!({ "id": id(1) })).await.is(400, "invalid request body");
    platform.post(&key, "/registry/heartbeat", json!([1])).await.is(400, "invalid request body");
    let huge =
        json!({ "id": id(1), "url": "http://93.184.216.34/", "agent_card": { "x": "y".repeat(100_000) } });
    assert_eq!(platform.post(&key, "/registry/register", huge).await.status, 400);
    let body = json!({ "workspace_id": id(1), "current_task": "y".repeat(600_000) });
    assert_eq!(platform.post(&key, "/registry/heartbeat", body).await.status, 413);
}

#[tokio::test(start_paused = true)]
async fn a_storm_of_beats_is_shed_and_others_are_not_held_to_it() {
    let platform = Platform::open().await;
    let key = platform.user("acme").await;
    let (one, two) = (platform.join(&key, &id(1), NOWHERE).await, platform.join(&key, &id(2), NOWHERE).await);
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    let mut taken = 0;
    for _ in 0..100 {
        let answer = platform.beat(&one, &id(1), json!({})).await;
        if answer.status == 200 {
            taken += 1;
            continue;
        }
        answer.is(429, "rate limit exceeded");
        assert_eq!(answer.header("retry-after"), "1");
        assert_eq!(answer.body["retry_after"], 1);
    }
    assert_eq!(taken, 20);
    assert_eq!(platform.register(&one, &id(1), NOWHERE).await.status, 429);
    platform.beat(&two, &id(2), json!({})).await.ok();
    platform.beat("wrong", &id(1), json!({})).await.is(401, "invalid workspace auth token");
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    platform.beat(&one, &id(1), json!({})).await.ok();
    let mut shed = 0;
    for number in 0..3_000 {
        shed += u32::from(platform.beat("", &id(1_000 + number), json!({})).await.status == 429);
    }
    assert!(shed > 500, "ids that nobody knows share one bucket: {shed}");
    platform.beat(&two, &id(2), json!({})).await.ok();
}

#[tokio::test]
async fn where_no_key_is_needed_a_token_still_is() {
    let mut setup = Setup::new();
    setup.settings.open_tenant = Some(TenantId::known("default"));
    let platform = setup.start().await;
    let token = platform.join("", &id(1), NOWHERE).await;
    platform.register("", &id(1), NOWHERE).await.is(401, "missing workspace auth token");
    platform.beat("", &id(1), json!({})).await.is(401, "missing workspace auth token");
    platform.beat(&token, &id(1), json!({})).await.ok();
    assert_eq!(platform.get("", "/workspaces").await.ok().as_array().unwrap().len(), 1);
    assert_eq!(platform.get("", "/health").await.ok(), json!({ "status": "ok" }));
}

#[tokio::test]
async fn a_registration_whose_caller_hangs_up_is_whole_or_not_at_all() {
    let mut setup = Setup::new();
    let platform = setup.start().await;
    let key = platform.user("acme").await;
    {
        let one = id(1);
        let call = platform.register(&key, &one, NOWHERE);
        tokio::pin!(call);
        assert!(futures_util::poll!(call.as_mut()).is_pending());
    }
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
    assert_eq!(platform.status(&key, &id(1)).await, "online");
    assert!(
        platform.engine.fleet().worker(reveille_core::fleet::Who::Workspace(&id(1))).is_some(),
        "its silence counts"
    );
    let stored = setup.roster().workspaces(None, 10).await.unwrap();
    let held = platform.engine.workspaces().any_workspace(&stored[0].id).unwrap();
    assert_eq!(*held, stored[0], "what is known here is what is on the disk");
}
