//! Who looked at what is held back, and who signed in, is in the audit trail.

use crate::browser::Browser;
use crate::house::{House, SECRET, USER};
use reveille_core::audit::Draft;
use reveille_roster::Scope;
use reveille_store::suite::hooked::{HookedStore, StoreHook};
use reveille_store::{AuditOrder, AuditQuery, AuditTrail, StoreError};
use reveille_test_kit::create_key;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What was recorded under this word, oldest first.
async fn entries(house: &House, action: &str) -> Vec<Draft> {
    let query = AuditQuery { order: AuditOrder::OldestFirst, limit: 500, ..AuditQuery::default() };
    let all = house.world.store.audit(&query).await.unwrap().items.into_iter().map(|entry| entry.draft);
    all.filter(|draft| draft.action == action).collect()
}

#[tokio::test(start_paused = true)]
async fn whoever_is_shown_a_held_result_is_in_the_trail_and_who_is_not_shown_it_is_not() {
    let house = House::full().await;
    let viewer = house.browser("viewer", "acme", &[Scope::Read]).await;
    assert!(viewer.page("/ui/quarantine").await.contains("The text is not shown"));
    assert!(entries(&house, "held_result_read").await.is_empty());

    let (ann, root) = (house.ann().await, house.operator().await);
    for reader in [&ann, &ann, &root, &ann] {
        let page = reader.page("/ui/quarantine").await;
        assert!(page.contains("<mark>") && !page.contains(SECRET), "{page}");
    }
    let read = entries(&house, "held_result_read").await;
    let who: Vec<&str> = read.iter().map(|draft| draft.identity.as_str()).collect();
    assert_eq!(who, ["ann", "root"], "the same again within ten minutes is the same entry");
    let key = house.server.access().list_keys().into_iter().find(|key| key.name == "ann").unwrap();
    let ann_read = &read[0];
    assert_eq!(ann_read.extra["by_key"], key.id.as_str());
    assert_eq!(ann_read.job_id.as_ref().unwrap().as_str(), house.held);
    assert_eq!((ann_read.tenant.as_str(), ann_read.matched_rule.as_str()), ("acme", "leak"));
    assert_eq!(ann_read.event_type.as_str(), "system.read");

    house.world.clock.shift(10 * 60 * 1000);
    ann.page("/ui/quarantine").await;
    assert_eq!(entries(&house, "held_result_read").await.len(), 3, "and later it is another");
}

/// A store whose audit trail takes nothing while it is told so.
#[derive(Default, Clone)]
struct Full(Arc<AtomicBool>);

impl StoreHook for Full {
    fn before_record(&self) -> Result<(), StoreError> {
        let is_full = self.0.load(Ordering::SeqCst);
        if is_full { Err(StoreError::Full("the disk is full")) } else { Ok(()) }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_held_back_is_not_shown_while_the_trail_cannot_be_written() {
    let full = Full::default();
    let hook = full.clone();
    let house =
        House::over(|world, engine| engine.store(Arc::new(HookedStore::new(world.store.clone(), hook))))
            .await;
    let ann = house.ann().await;
    full.0.store(true, Ordering::SeqCst);
    let reply = ann.get("/ui/quarantine").await;
    assert_eq!(reply.status, 503);
    assert!(
        reply.text().contains("the audit trail cannot be written now; nothing was shown"),
        "{}",
        reply.text()
    );
    assert!(!reply.text().contains("<mark>"));
    full.0.store(false, Ordering::SeqCst);
    assert!(ann.page("/ui/quarantine").await.contains("<mark>"));
    assert_eq!(entries(&house, "held_result_read").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_sign_in_is_recorded_and_strangers_who_fail_do_not_make_the_trail_grow() {
    let house = House::full().await;
    let key = create_key(&house.server, "ann", "acme", USER).await;
    let before = entries(&house, "signed_in").await.len();
    let nobody = Browser::new(house.http.clone());
    for _ in 0..50 {
        assert_eq!(nobody.post("/ui/sign-in", &[("key", "vk_wrong")]).await.status, 401);
    }
    for _ in 0..3 {
        let ann = Browser::sign_in(house.http.clone(), &key).await;
        let seal = ann.seal().await;
        assert_eq!(ann.post("/ui/sign-out", &[("seal", &seal)]).await.status, 303);
    }
    let signed_in = entries(&house, "signed_in").await;
    assert_eq!(signed_in.len(), before + 1);
    let last = signed_in.last().unwrap();
    assert_eq!((last.identity.as_str(), last.event_type.as_str()), ("ann", "system.auth"));
    assert_eq!(entries(&house, "signed_out").await.len(), 1);
    let metrics = house.http.send("GET", "/metrics", &[], "").await;
    assert!(metrics.text().contains("sign_ins_failed_total 50"), "{}", metrics.text());
}
