//! Steps and compensations that policy has a say in.

use super::*;
use reveille_core::policy::{Decision, Verdict};
use reveille_core::request::Request;
use reveille_engine::rollback_id;
use reveille_kernel::{Kernel, NoAnswer, OutputQuestion, OutputScan, Purpose};
use reveille_test_kit::rules;

/// Two steps that are to be undone, and one that fails.
async fn fail(world: &World, engine: &Engine) -> Run {
    let steps = json!({
        "a": {"topic": "job.a", "compensation": {"topic": "job.undo.a"}},
        "b": {"topic": "job.b", "depends_on": ["a"], "compensation": {"topic": "job.undo.b"}},
        "c": {"topic": "job.c", "depends_on": ["b"]},
    });
    world.save(engine, steps).await;
    let id = begin(engine, json!({})).await;
    assert_eq!(states(&over(engine, &id).await), "failed: a=succeeded b=succeeded c=failed");
    tokio::time::sleep(Duration::from_secs(1)).await;
    over(engine, &rollback_id(&id)).await
}

/// Seed 004, section 4: a compensation that is denied is skipped, and the rollback goes on.
#[tokio::test(start_paused = true)]
async fn a_compensation_that_policy_denies_is_skipped_and_the_others_go_on() {
    let world = World::failing_at_c();
    let rules = rules(json!({"rules": [
        {"id": "no", "match": {"topics": ["job.undo.b"]}, "decision": "deny", "reason": "not that"},
        {"id": "rest", "match": {"topics": ["job.*"]}, "decision": "allow"},
    ]}));
    let engine = world.start_as(|engine| engine.rules(rules)).await;
    let rollback = fail(&world, &engine).await;
    assert_eq!(states(&rollback), "succeeded: undo=succeeded undo[0]=denied undo[1]=succeeded");
    assert_eq!(world.topics_done(), ["job.a", "job.b", "job.c", "job.undo.a"]);
    let denied =
        engine.jobs().job(&JobId::known(format!("{}:undo[0]@1", rollback.head.id))).await.unwrap().unwrap();
    assert_eq!((denied.state(), denied.attempts.len()), (State::Denied, 0));
    assert_eq!(rollback.nodes.values().map(|node| node.attempt).max(), Some(1), "it is not tried again");
}

/// Answers until it is told to be away.
struct Away(std::sync::atomic::AtomicBool);

#[async_trait::async_trait]
impl Kernel for Away {
    fn address(&self) -> &'static str {
        "away:1"
    }

    async fn judge(&self, request: &Request, _: Option<&Bytes>, _: Purpose) -> Result<Verdict, NoAnswer> {
        // The step that fails is the last that it hears of.
        if self.0.fetch_or(request.topic.as_str() == "job.c", Ordering::Relaxed) {
            return Err(NoAnswer::Down("it is away".to_owned()));
        }
        Ok(Verdict {
            decision: Decision::Allow,
            reason: String::new(),
            rule_id: "kernel".to_owned(),
            snapshot: "away:1".to_owned(),
            constraints: None,
            remediations: Vec::new(),
        })
    }

    async fn scan_output(&self, _: OutputQuestion<'_>) -> Result<OutputScan, NoAnswer> {
        Err(NoAnswer::Down("it never looks".to_owned()))
    }
}

/// Seed 004, section 4: where the safety kernel cannot be asked, compensations run all the same, and nothing else does.
#[tokio::test(start_paused = true)]
async fn compensations_run_while_the_safety_kernel_is_away() {
    let world = World::failing_at_c();
    let kernel: Arc<dyn Kernel> = Arc::new(Away(false.into()));
    let engine = world.start_as(|engine| engine.kernel(kernel)).await;
    let rollback = fail(&world, &engine).await;
    assert_eq!(states(&rollback), "succeeded: undo=succeeded undo[0]=succeeded undo[1]=succeeded");
    assert_eq!(world.topics_done(), ["job.a", "job.b", "job.c", "job.undo.b", "job.undo.a"]);
    let undone =
        engine.jobs().job(&JobId::known(format!("{}:undo[0]@1", rollback.head.id))).await.unwrap().unwrap();
    assert!(undone.verdicts[0].verdict.reason.contains("unreachable"), "{:?}", undone.verdicts);
    let id = begin(&engine, json!({})).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let job = engine.jobs().job(&JobId::known(format!("{id}:a@1"))).await.unwrap().unwrap();
    assert_eq!((job.state(), job.verdicts.len()), (State::Pending, 0), "a step waits for the kernel");
}

/// Whether its content has to be read for that or not.
#[tokio::test(start_paused = true)]
async fn fault_8_3_16_a_step_whose_output_is_quarantined_fails_and_nobody_waits_for_ever() {
    for leak in [json!({"topics": ["job.a"], "keywords": ["secret"]}), json!({"topics": ["job.a"]})] {
        let world = World::echo();
        let rules = rules(json!({
            "rules": [{"id": "rest", "match": {"topics": ["job.*"]}, "decision": "allow"}],
            "output_policy": {"enabled": true, "hold": true},
            "output_rules": [{"id": "leak", "match": leak, "decision": "quarantine"}],
        }));
        let engine = world.start_as(|engine| engine.rules(rules)).await;
        let steps = json!({
            "a": {"topic": "job.a", "input": "${input.say}", "retry": {"max_retries": 3}, "on_error": "mend"},
            "b": {"topic": "job.b", "depends_on": ["a"], "input": "${steps.a.output}"},
            "mend": {"topic": "job.c", "input": {"why": "${steps.a.error}"}},
        });
        world.save(&engine, steps).await;
        let run = over(&engine, &begin(&engine, json!({"say": "a secret"})).await).await;
        assert_eq!(states(&run), "succeeded: a=failed b=skipped mend=succeeded", "{leak}");
        let job = engine.jobs().job(&JobId::known(format!("{}:a@1", run.head.id))).await.unwrap().unwrap();
        assert_eq!(job.state(), State::OutputQuarantined);
        let why = run.output.as_deref().unwrap()["mend"]["why"].as_str().unwrap();
        assert!(why.starts_with("its output is quarantined"), "{why}");
        assert_eq!(world.topics_done(), ["job.a", "job.c"], "it was tried once, and nothing of it went on");
        if !leak["keywords"].is_null() {
            let run = over(&engine, &begin(&engine, json!({"say": "hello"})).await).await;
            assert_eq!(states(&run), "succeeded: a=succeeded b=succeeded mend=skipped");
        }
        engine.kill();
    }
}
