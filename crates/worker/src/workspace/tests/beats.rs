//! Registering, beating, ending.

use super::*;

#[tokio::test]
async fn a_workspace_registers_keeps_its_token_and_beats() {
    let stub = Stub::start(|asked| ordinary(asked, &json!([]))).await;
    let home = Home::new();
    let (_, running) = home.start(&stub, QUICK);
    let beats = stub.wait_for(BEAT, 3).await;
    stub.wait_for(LIST, 2).await;
    running.abort();

    let registered = stub.asked_to(REGISTER);
    assert_eq!(registered.len(), 1);
    assert_eq!(
        registered[0].body,
        json!({ "id": "w-1", "url": "http://agent:8000", "agent_card": { "name": "n", "skills": ["x"] } })
    );
    assert_eq!(
        beats[0].body,
        json!({ "workspace_id": "w-1", "error_rate": 0.0, "sample_error": "", "active_tasks": 0,
                "uptime_seconds": 0, "current_task": "" })
    );
    assert!(beats.iter().all(|beat| beat.bearer.as_deref() == Some("Bearer t-1")));
    assert_eq!(fs::read_to_string(home.folder.path().join(".auth_token")).unwrap(), "t-1");

    let (_, running) = home.start(&stub, QUICK);
    let registered = stub.wait_for(REGISTER, 2).await;
    assert_eq!(registered[1].bearer.as_deref(), Some("Bearer t-1"), "the token outlives the agent");
    running.abort();
}

#[tokio::test]
async fn a_task_is_told_at_once_and_the_errors_with_it() {
    let stub = Stub::start(|asked| ordinary(asked, &json!([]))).await;
    let settings = WorkspaceSettings { pace: Pace { beat_every: NEVER, ..QUICK.pace }, ..QUICK };
    let home = Home::new();
    let (agent, _running) = home.start(&stub, settings);
    stub.wait_for(BEAT, 1).await;
    agent.errors().ok();
    agent.errors().error(404);
    agent.errors().error(503);
    agent.errors().error("connect timeout");
    let task = agent.task("answer the mail");
    stub.wait_for(BEAT, 2).await;
    drop(task);
    let beats = stub.wait_for(BEAT, 3).await;
    let told = |beat: &StubRequest| {
        let Value::Object(beat) = beat.body.clone() else { panic!("{beat:?}") };
        ["error_rate", "sample_error", "active_tasks", "current_task"].map(|key| beat[key].clone())
    };
    assert_eq!(told(&beats[1]), [json!(0.5), json!("connect timeout"), json!(1), json!("answer the mail")]);
    assert_eq!(told(&beats[2])[2..], [json!(0), json!("")]);
}

#[tokio::test]
async fn registration_is_tried_until_it_works() {
    let mut tries = 0;
    let stub = Stub::start(move |asked| {
        tries += 1;
        if tries <= 4 { StubReply::new(500, json!({})) } else { ordinary(asked, &json!([])) }
    })
    .await;
    let home = Home::new();
    let (_, _running) = home.start(&stub, QUICK);
    stub.wait_for(BEAT, 1).await;
    assert_eq!(stub.asked_to(REGISTER).len(), 5);
}

#[tokio::test]
async fn a_token_that_is_no_longer_good_leads_to_a_new_registration_but_to_no_hot_loop() {
    let stub = Stub::start(|asked| match asked.what.as_str() {
        BEAT => StubReply::new(401, json!({ "error": "invalid workspace auth token" })),
        _ => ordinary(asked, &json!([])),
    })
    .await;
    let home = Home::new();
    let (_, running) = home.start(&stub, QUICK);
    stub.wait_for(REGISTER, 3).await;
    // An operator puts a new token where the old one was.
    fs::write(home.folder.path().join(".auth_token"), "t-2").unwrap();
    stub.wait_until(|asked| asked.iter().any(|asked| asked.bearer.as_deref() == Some("Bearer t-2"))).await;
    let before = stub.asked().len();
    sleep(Duration::from_millis(400)).await;
    let more = stub.asked().len() - before;
    assert!(more <= 2 * (400 / 20 + 1), "{more} requests in 400 ms");
    assert!(!running.is_finished());
    assert!(stub.asked_to(LIST).is_empty(), "only a beat that was taken is followed by a look");
}

#[tokio::test]
async fn a_retired_workspace_ends_and_says_who_took_its_place() {
    for (what, body, expected) in [
        (BEAT, json!({ "error": "gone", "forwarded_to": "w-9" }), Some("w-9")),
        (BEAT, json!("gone"), None),
        (REGISTER, json!({ "forwarded_to": null }), None),
    ] {
        let stub = Stub::start(move |asked| {
            if asked.what == what { StubReply::new(410, body.clone()) } else { ordinary(asked, &json!([])) }
        })
        .await;
        let home = Home::new();
        let (_, running) = home.start(&stub, QUICK);
        let error = running.await.unwrap().unwrap_err();
        let Error::Retired { forwarded_to } = error else { panic!("{error}") };
        assert_eq!(forwarded_to.as_deref(), expected);
    }
}

#[tokio::test]
async fn shutdown_ends_the_loops() {
    let stub = Stub::start(|asked| ordinary(asked, &json!([]))).await;
    let enrolment = Enrolment {
        platform_url: stub.url(),
        id: "w-1".into(),
        url: "http://agent".into(),
        agent_card: json!({}),
    };
    let folder = tempfile::tempdir().unwrap();
    let workspace = Workspace::new(enrolment.clone()).results_file(folder.path().join("r"));
    workspace.run(async { drop(stub.wait_for(BEAT, 1).await) }).await.unwrap();

    let nowhere = Workspace::new(Enrolment { platform_url: "platform".into(), ..enrolment.clone() });
    let error = nowhere.run(std::future::pending()).await.unwrap_err().to_string();
    assert_eq!(error, "platform_url: expected http[s]://host[:port], got \"platform\"");
    for id in ["", "../admin", "a b", "é"] {
        let nobody = Workspace::new(Enrolment { id: id.into(), ..enrolment.clone() });
        let error = nobody.run(std::future::pending()).await.unwrap_err();
        assert!(matches!(error, Error::WorkspaceId(_)), "{error}");
    }
}
