//! What becomes of delegated work.

use super::*;
use tokio::time::Instant;

#[tokio::test]
async fn a_result_is_written_announced_and_told() {
    let listing = Listing::default();
    listing.add("d-1");
    let rows = listing.clone();
    let stub = Stub::start(move |asked| ordinary(asked, &rows.rows())).await;
    let home = Home::new();
    let (_, running) = home.start(&stub, QUICK);
    let notices = stub.wait_for(NOTIFY, 1).await;
    let woken = stub.wait_for(WAKE, 1).await;
    assert_eq!(
        notices[0].body,
        json!({ "message": "Delegation completed: d-1", "type": "delegation_result" })
    );
    assert_eq!(
        (woken[0].bearer.as_deref(), woken[0].workspace.as_deref()),
        (Some("Bearer t-1"), Some("w-1"))
    );
    assert_eq!(woken[0].body["method"], "message/send");
    let [result] = &home.results()[..] else { panic!("{:?}", home.results()) };
    assert_eq!((&result["delegation_id"], &result["target_id"]), (&json!("d-1"), &json!("w-2")));
    running.abort();

    // A restart announces only what is new.
    let seen = stub.asked_to(LIST).len();
    let (_, _running) = home.start(&stub, QUICK);
    stub.wait_for(LIST, seen + 3).await;
    assert_eq!((stub.asked_to(WAKE).len(), stub.asked_to(NOTIFY).len(), home.results().len()), (1, 1, 1));
}

#[tokio::test]
async fn a_result_within_the_cooldown_is_announced_when_it_ends() {
    let listing = Listing::default();
    listing.add("d-1");
    let rows = listing.clone();
    let stub = Stub::start(move |asked| ordinary(asked, &rows.rows())).await;
    let home = Home::new();
    let began = Instant::now();
    let (_, _running) = home.start(&stub, QUICK);
    stub.wait_for(WAKE, 1).await;
    listing.add("d-2");
    stub.wait_for(NOTIFY, 2).await;
    listing.add("d-3");
    stub.wait_for(NOTIFY, 3).await;
    let woken = stub.wait_for(WAKE, 2).await;
    // The first was sent after the beginning, whenever it came.
    assert!(woken[1].at - began >= QUICK.wake_every, "{:?}", woken[1].at - began);
    sleep(QUICK.wake_every + Duration::from_millis(50)).await;
    assert_eq!(stub.asked_to(WAKE).len(), 2, "one message for both");
}

#[tokio::test]
async fn a_restart_within_the_cooldown_forgets_nothing() {
    let listing = Listing::default();
    listing.add("d-1");
    let rows = listing.clone();
    let stub = Stub::start(move |asked| ordinary(asked, &rows.rows())).await;
    let home = Home::new();
    let (_, running) = home.start(&stub, WorkspaceSettings { wake_every: NEVER, ..QUICK });
    stub.wait_for(WAKE, 1).await;
    listing.add("d-2");
    stub.wait_for(NOTIFY, 2).await;
    running.abort();
    let (_, _running) = home.start(&stub, QUICK);
    stub.wait_for(WAKE, 2).await;
    assert_eq!(stub.asked_to(NOTIFY).len(), 2);
}

#[tokio::test]
async fn an_agent_that_could_not_be_woken_is_woken_later() {
    let mut calls = 0;
    let stub = Stub::start(move |asked| {
        calls += usize::from(asked.what == WAKE);
        if asked.what == WAKE && calls == 1 {
            return StubReply::new(503, json!({ "error": "busy" }));
        }
        ordinary(asked, &json!([ended("d-1")]))
    })
    .await;
    let home = Home::new();
    let began = Instant::now();
    let (_, _running) = home.start(&stub, QUICK);
    let woken = stub.wait_for(WAKE, 2).await;
    assert!(woken[1].at - began >= QUICK.wake_every);
    sleep(QUICK.wake_every + Duration::from_millis(50)).await;
    assert_eq!(stub.asked_to(WAKE).len(), 2);
}

#[tokio::test]
async fn an_agent_that_thinks_for_long_does_not_delay_the_beats() {
    let stub = Stub::start(|asked| {
        let delay = if asked.what == WAKE { NEVER } else { Duration::ZERO };
        StubReply { delay, ..ordinary(asked, &json!([ended("d-1")])) }
    })
    .await;
    let settings = WorkspaceSettings { wake_wait_max: Duration::from_secs(1), ..QUICK };
    let home = Home::new();
    let (_, _running) = home.start(&stub, settings);
    let woken_at = stub.wait_for(WAKE, 1).await[0].at;
    let beats = stub.asked_to(BEAT).len();
    let beat_at = stub.wait_for(BEAT, beats + 4).await[beats + 3].at;
    assert!(beat_at - woken_at < settings.wake_wait_max, "{:?}", beat_at - woken_at);
    sleep(settings.wake_wait_max + QUICK.wake_every).await;
    assert_eq!(stub.asked_to(WAKE).len(), 1, "it has got the message");
}

#[tokio::test]
async fn results_that_cannot_be_written_come_again() {
    let stub = Stub::start(|asked| ordinary(asked, &json!([ended("d-1")]))).await;
    let home = Home::new();
    fs::create_dir(home.results_file()).unwrap();
    let (_, _running) = home.start(&stub, QUICK);
    stub.wait_for(LIST, 2).await;
    assert!(stub.asked_to(NOTIFY).is_empty());
    fs::remove_dir(home.results_file()).unwrap();
    stub.wait_for(NOTIFY, 1).await;
    assert_eq!(home.results().len(), 1);
}

#[tokio::test]
async fn a_platform_that_lists_nonsense_is_lived_with() {
    let mut lists = 0;
    let stub = Stub::start(move |asked| {
        lists += usize::from(asked.what == LIST);
        match lists {
            1 => ordinary(asked, &json!({ "delegations": [] })),
            2 if asked.what == LIST => StubReply::new(500, json!({ "error": "query failed" })),
            _ => ordinary(asked, &json!(["nonsense", null, { "status": 7 }, ended("d-1")])),
        }
    })
    .await;
    let home = Home::new();
    let (_, _running) = home.start(&stub, QUICK);
    stub.wait_for(NOTIFY, 1).await;
}
