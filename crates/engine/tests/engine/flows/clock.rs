//! Runs whose server comes back with another time.

use super::*;

/// ADR 0019: after a clock was set back, a wait takes its whole length once more at most.
#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_makes_no_delay_longer() {
    let world = World::echo();
    let engine = world.start().await;
    let steps = json!({
        "wait": {"type": "delay", "delay_sec": 30},
        "a": {"topic": "job.a", "depends_on": ["wait"]},
        "again": {"topic": "job.b", "depends_on": ["a"], "delay_sec": 5},
    });
    world.save_with(&engine, steps, json!({"timeout_sec": 300})).await;
    let id = begin(&engine, json!({})).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    engine.kill();
    world.clock.shift(-3_600_000);
    let started = Instant::now();
    let engine = world.start().await;
    let run = over(&engine, &id).await;
    assert_eq!(states(&run), "succeeded: a=succeeded again=succeeded wait=succeeded");
    let took = started.elapsed();
    assert!(took >= Duration::from_secs(35) && took < Duration::from_secs(37), "{took:?}");
    assert!(run.head.created_at <= run.head.ended_at.unwrap(), "it ended after it began");

    // One that is to end at a date does, however the clock came to show it.
    let noon = engine.now() + 60_000;
    let steps = json!({"wait": {"type": "delay", "delay_until": "${input.at}"}});
    world.save(&engine, steps).await;
    let at = noon.rfc3339();
    let id = begin(&engine, json!({"at": at})).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    engine.kill();
    world.clock.shift(-30_000);
    let engine = world.start().await;
    let run = over(&engine, &id).await;
    let late_ms = run.head.ended_at.unwrap().since(noon);
    assert!(run.head.ended_at.unwrap() >= noon && late_ms < 1_000, "{late_ms}");
}

/// The limit on a whole run is not an hour later either.
#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_gives_a_run_no_more_time() {
    let world = World::echo();
    let engine = world.start().await;
    world.save_with(&engine, json!({"a": {"topic": "job.nobody"}}), json!({"timeout_sec": 60})).await;
    let id = begin(&engine, json!({})).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    engine.kill();
    world.clock.shift(-3_600_000);
    let started = Instant::now();
    let engine = world.start().await;
    assert_eq!(over(&engine, &id).await.head.state, RunState::TimedOut);
    assert!(started.elapsed() < Duration::from_secs(62), "{:?}", started.elapsed());
}
