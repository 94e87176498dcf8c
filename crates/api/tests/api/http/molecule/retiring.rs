//! What is left of a workspace that was retired.

use super::agent::{Agent, Manner};
use super::platform::{NOWHERE, Platform, id};
use serde_json::{Value, json};

async fn remove(platform: &Platform, key: &str, number: u32, query: &str) -> super::platform::Answer {
    platform.send(key, "DELETE", &format!("/workspaces/{}?{query}", id(number)), Value::Null).await
}

#[tokio::test]
async fn whoever_asks_for_a_retired_workspace_is_sent_on() {
    let platform = Platform::open().await;
    let key = platform.user("acme").await;
    let agent = Agent::start(Manner::Answers("hello")).await;
    let mut tokens = Vec::new();
    for number in 1..=8 {
        tokens.push(platform.join(&key, &id(number), &agent.url).await);
    }
    // A chain of five: 1 -> 2 -> 3 -> 4 -> 5 -> 6.
    for number in 1..=5 {
        let gone = remove(&platform, &key, number, &format!("forwarded_to={}", id(number + 1))).await.ok();
        assert_eq!(gone, json!({ "status": "removed", "cascade_deleted": 0 }));
    }
    let moved = platform.get(&key, &format!("/workspaces/{}", id(1))).await;
    assert_eq!((moved.status, moved.header("location")), (301, &*format!("/workspaces/{}", id(6))));
    assert_eq!(moved.body, json!({ "id": id(1), "forwarded_to": id(6), "url": agent.url }));
    let found = format!("/registry/discover/{}", id(3));
    let moved = platform.send_as(Some(&id(7)), &tokens[6], "GET", &found, Value::Null).await;
    assert_eq!((moved.status, moved.header("location")), (301, &*format!("/registry/discover/{}", id(6))));
    let a2a = json!({ "method": "message/send", "params": { "message": { "parts": [] } } });
    let told = platform.post(&tokens[6], &format!("/workspaces/{}/a2a", id(2)), a2a.clone()).await;
    told.is(410, "workspace was removed");
    assert_eq!((&told.body["forwarded_to"], &told.body["url"]), (&json!(id(6)), &json!(agent.url)));
    for (bearer, number) in [(&tokens[0], 1), (&key, 2)] {
        let beat = platform.beat(bearer, &id(number), json!({})).await;
        beat.is(410, "workspace was removed");
        assert_eq!(beat.body["forwarded_to"], id(6));
        platform.register(bearer, &id(number), &agent.url).await.is(410, "workspace was removed");
    }
    // One more hop than is followed.
    remove(&platform, &key, 6, &format!("forwarded_to={}", id(7))).await.ok();
    assert_eq!(platform.get(&key, &format!("/workspaces/{}", id(1))).await.status, 410);
    assert_eq!(platform.get(&key, &format!("/workspaces/{}", id(2))).await.status, 301);
    let state = platform.get(&key, &format!("/workspaces/{}/state", id(1))).await;
    assert_eq!((state.status, &state.body["deleted"]), (404, &json!(true)));
    assert_eq!(platform.get(&key, "/workspaces").await.ok().as_array().unwrap().len(), 2);
    // What is delegated to an old id goes to whoever took its place; not if that is the giver itself.
    let given = json!({ "target_id": id(6), "task": "t" });
    let taken =
        platform.post(&tokens[7], &format!("/workspaces/{}/delegate", id(8)), given.clone()).await.ok();
    assert_eq!(taken["target_id"], id(7));
    let own = platform.post(&tokens[6], &format!("/workspaces/{}/delegate", id(7)), given).await;
    own.is(400, "self-delegation not permitted");
}

#[tokio::test]
async fn whoever_leads_in_circles_or_nowhere_is_refused_when_it_is_written() {
    let platform = Platform::open().await;
    let key = platform.user("acme").await;
    for number in 1..=4 {
        platform.join(&key, &id(number), NOWHERE).await;
    }
    let other = platform.user("zeta").await;
    platform.join(&other, &id(9), NOWHERE).await;
    for to in [id(1), id(77), id(9), "nope".to_owned()] {
        assert_eq!(remove(&platform, &key, 1, &format!("forwarded_to={to}")).await.status, 400, "{to}");
    }
    remove(&platform, &key, 1, &format!("forwarded_to={}", id(2))).await.ok();
    let back = remove(&platform, &key, 2, &format!("forwarded_to={}", id(1))).await;
    assert_eq!(back.status, 400, "1 leads to 2 already: {}", back.body);
    remove(&platform, &key, 3, "").await.ok();
    assert_eq!(remove(&platform, &key, 4, &format!("forwarded_to={}", id(3))).await.status, 400);
    let body = json!({ "forwarded_to": id(4) });
    platform.send(&key, "DELETE", &format!("/workspaces/{}", id(2)), body).await.ok();
    assert_eq!(platform.get(&key, &format!("/workspaces/{}", id(1))).await.status, 301);
    assert_eq!(remove(&platform, &key, 2, "").await.status, 410, "once is enough");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_that_replace_each_other_at_once_close_no_circle() {
    let platform = Platform::open().await;
    let key = platform.user("acme").await;
    for round in 0..10 {
        let (a, b) = (round * 2 + 1, round * 2 + 2);
        platform.join(&key, &id(a), NOWHERE).await;
        platform.join(&key, &id(b), NOWHERE).await;
        let (to_b, to_a) = (format!("forwarded_to={}", id(b)), format!("forwarded_to={}", id(a)));
        let (one, other) = tokio::join!(remove(&platform, &key, a, &to_b), remove(&platform, &key, b, &to_a));
        let mut statuses = [one.status, other.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 400], "{} {}", one.body, other.body);
    }
}

#[tokio::test]
async fn whoever_was_not_replaced_is_gone_with_its_last_event_and_its_parent_hears_of_it() {
    let platform = Platform::open().await;
    let key = platform.user("acme").await;
    let make = |name: &'static str, parent: Option<String>| {
        let (platform, key) = (&platform, &key);
        async move {
            let made =
                platform.post(key, "/workspaces", json!({ "name": name, "parent_id": parent })).await.ok();
            made["id"].as_str().unwrap().to_owned()
        }
    };
    let root = make("root", None).await;
    let lead = make("lead", Some(root.clone())).await;
    let dev = make("dev", Some(lead.clone())).await;
    let token = platform.join(&key, &root, NOWHERE).await;
    let dev_token = platform.join(&key, &dev, NOWHERE).await;
    let mut watcher = platform.watch("acme");
    let path = format!("/workspaces/{lead}");
    let asked = platform.send(&key, "DELETE", &path, Value::Null).await;
    assert_eq!((asked.status, &asked.body["status"]), (409, &json!("confirmation_required")));
    assert_eq!(asked.body["children"], json!([{ "id": dev, "name": "dev" }]));
    assert_eq!(asked.body["children_count"], 1);
    let inside =
        platform.send(&key, "DELETE", &format!("{path}?confirm=true&forwarded_to={dev}"), Value::Null).await;
    assert_eq!(inside.status, 400, "it goes with it");
    let gone = platform.send(&key, "DELETE", &format!("{path}?confirm=true"), Value::Null).await.ok();
    assert_eq!(gone, json!({ "status": "removed", "cascade_deleted": 1 }));
    assert_eq!(watcher.names(), ["WORKSPACE_REMOVED", "WORKSPACE_REMOVED"]);
    assert_eq!((&watcher.heard[0].0, &watcher.heard[1].0), (&dev, &lead));
    assert_eq!(watcher.heard[1].2["parent_id"], json!(root));
    let answer = platform.get(&token, &path).await;
    answer.is(410, "workspace was removed");
    assert_eq!((&answer.body["id"], &answer.body["status"]), (&json!(lead), &json!("removed")));
    assert_eq!(answer.body["last_event"]["event_type"], "WORKSPACE_REMOVED");
    assert_eq!(answer.body["last_event"]["payload"]["cascade_deleted"], 1);
    let events = platform.get(&token, "/events").await.ok();
    assert_eq!(events[0]["event_type"], "WORKSPACE_REMOVED", "the parent finds it");
    platform.beat(&dev_token, &dev, json!({})).await.is(410, "workspace was removed");
    assert_eq!(platform.status(&key, &dev).await, "removed", "a late beat revives nobody");

    platform.send(&key, "DELETE", &format!("{path}?purge=true"), Value::Null).await.ok();
    platform.get(&key, &path).await.is(404, "workspace not found");
    let purged =
        platform.send(&key, "DELETE", &format!("/workspaces/{root}?purge=true"), Value::Null).await.ok();
    assert_eq!(purged["status"], "purged");
    platform.beat(&token, &root, json!({})).await.is(404, "workspace not registered");
}
