//! What a run has done is undone, once and last first, whatever happens to its server.

use super::*;
use reveille_engine::rollback_id;

#[tokio::test(start_paused = true)]
async fn what_was_done_is_undone_last_first_and_once() {
    let world = World::new(|topic, input| match topic {
        "job.c" => (JobStatus::FailedFatal, json!(null)),
        _ => (JobStatus::Succeeded, json!({"id": input})),
    });
    let engine = world.start().await;
    let undo = |topic: &str, of: &str| json!({"topic": topic, "input": {"undo": format!("${{steps.{of}.output.id}}")}});
    world
        .save(&engine, json!({
            "a": {"topic": "job.a", "input": "one", "compensation": undo("job.undo.a", "a")},
            "b": {"topic": "job.b", "input": "two", "depends_on": ["a"], "compensation": undo("job.undo.b", "b")},
            "c": {"topic": "job.c", "depends_on": ["b"], "retry": {"max_retries": 3}},
        }))
        .await;
    let id = begin(&engine, json!({})).await;
    let run = over(&engine, &id).await;
    assert_eq!(states(&run), "failed: a=succeeded b=succeeded c=failed");
    let rollback = over(&engine, &rollback_id(&id)).await;
    assert_eq!(states(&rollback), "succeeded: undo=succeeded undo[0]=succeeded undo[1]=succeeded");
    assert_eq!(world.topics_done(), ["job.a", "job.b", "job.c", "job.undo.b", "job.undo.a"]);
    let done = world.done.lock().unwrap().clone();
    assert_eq!(done[3].1, json!({"undo": "two"}), "the worker is given what the compensation says");
    let job =
        engine.jobs().job(&JobId::known(format!("{}:undo[0]@1", rollback_id(&id)))).await.unwrap().unwrap();
    let request = &job.request;
    assert_eq!(request.priority.as_str(), "critical");
    assert_eq!(
        (request.labels["saga_compensation"].as_str(), request.labels["is_compensation"].as_str()),
        ("true", "true")
    );
    assert_eq!(request.env["saga_workflow_id"], "w");
    assert!(request.idempotency_key.as_ref().is_some_and(|key| key.starts_with("saga:") && key.len() == 37));
    assert!(!job.verdicts.is_empty(), "a compensation is judged as every job is");
    assert!(!engine.workflows().run(&id).await.unwrap().unwrap().head.owes_rollback);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_was_no_job_is_undone_for_every_run() {
    let world = World::new(|topic, _| match topic {
        "job.c" => (JobStatus::FailedFatal, json!(null)),
        _ => (JobStatus::Succeeded, json!({})),
    });
    let engine = world.start().await;
    let undo = json!({"topic": "job.undo.a", "input": {"n": "${item}"}});
    world
        .save(
            &engine,
            json!({
                "a": {"type": "transform", "for_each": [1, 2], "input": "${item}", "compensation": undo},
                "c": {"topic": "job.c", "depends_on": ["a"]},
            }),
        )
        .await;
    for runs in 1..=2 {
        let id = begin(&engine, json!({})).await;
        over(&engine, &id).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let rollback = over(&engine, &rollback_id(&id)).await;
        assert_eq!(states(&rollback), "succeeded: undo=succeeded undo[0]=succeeded undo[1]=succeeded");
        let undone = world.topics_done().iter().filter(|topic| *topic == "job.undo.a").count();
        assert_eq!(undone, runs * 2, "each of them, and each once");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rollback_goes_on_after_a_kill() {
    for kill_after_ms in [0, 1, 2, 5, 10, 30, 60, 100] {
        let world = World::new(|topic, _| match topic {
            "job.c" => (JobStatus::FailedFatal, json!(null)),
            _ => (JobStatus::Succeeded, json!({})),
        });
        let engine = world.start().await;
        let undo = json!({"topic": "job.undo.a", "input": {"n": "${item}"}});
        world
            .save(
                &engine,
                json!({
                    "a": {"topic": "job.a", "for_each": [1, 2, 3], "max_parallel": 1, "compensation": undo},
                    "c": {"topic": "job.c", "depends_on": ["a"]},
                }),
            )
            .await;
        let id = begin(&engine, json!({})).await;
        over(&engine, &id).await;
        tokio::time::sleep(Duration::from_millis(kill_after_ms)).await;
        engine.kill();
        tokio::time::sleep(Duration::from_millis(50)).await;
        let engine = world.start().await;
        // The rollback may have to be made first.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let rollback = over(&engine, &rollback_id(&id)).await;
        assert_eq!(rollback.head.state, RunState::Succeeded, "killed after {kill_after_ms} ms");
        let undone: Vec<_> = rollback.input["undo"]
            .as_array()
            .unwrap()
            .iter()
            .map(|undo| undo["input"]["n"].clone())
            .collect();
        assert_eq!(undone, [3, 2, 1]);
        engine.kill();
    }
}
