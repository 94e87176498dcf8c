//! Runs as a whole: waiting, cancelled, too slow, undone, and what a change costs.

use super::{
    Script, advance, check, document, document_with, failed, fatal, job, new_run, ok, play, start, states,
};
use reveille_core::flow::{
    Flow, NodeDue, NodeKey, Run, RunEvent, RunRefusal, RunState, StepOutcome, StepState, UNDO_IN_ORDER,
    UNDO_STEP, Undoing, interpret, rollback_flow,
};
use reveille_core::id::StepId;
use reveille_core::time::Millis;
use serde_json::{Value as Json, json};

#[test]
fn a_run_waits_when_nothing_of_it_works() {
    let steps = json!({"ask": {"type": "approval"}, "a": job("job.a", &[])});
    let flow = Flow::check(&document(steps), 1, Millis(0)).unwrap();
    let mut run = new_run(json!({}));
    let begun = start(&run, &flow, Millis(0));
    run.apply(begun);
    assert_eq!(run.head.state, RunState::Running);
    let over = |node: &str| RunEvent::Over {
        node: NodeKey::parse(node).unwrap(),
        attempt: 1,
        outcome: ok(json!(1)),
    };
    let change = advance(&run, &flow, &over("a"), Millis(1)).unwrap();
    run.apply(change);
    assert_eq!(run.head.state, RunState::Waiting);
    assert_eq!(advance(&run, &flow, &over("a"), Millis(1)), Err(RunRefusal::Stale), "twice is once");
    let late = RunEvent::Over { node: NodeKey::parse("ask").unwrap(), attempt: 2, outcome: ok(json!(1)) };
    assert_eq!(advance(&run, &flow, &late, Millis(1)), Err(RunRefusal::Stale));
    assert_eq!(advance(&run, &flow, &RunEvent::Time, Millis(1)), Err(RunRefusal::TooEarly));
    let change = advance(&run, &flow, &over("ask"), Millis(2)).unwrap();
    run.apply(change);
    assert_eq!(run.head.state, RunState::Succeeded);
    assert_eq!(advance(&run, &flow, &RunEvent::Time, Millis(1)), Err(RunRefusal::Over(RunState::Succeeded)));
}

#[test]
fn a_cancelled_run_owes_a_cancel_until_its_jobs_are_over() {
    let steps =
        json!({"a": job("job.a", &[]), "b": {"type": "delay", "delay_sec": 60}, "c": job("job.c", &["a"])});
    let flow = Flow::check(&document(steps), 1, Millis(0)).unwrap();
    let mut run = new_run(json!({}));
    let begun = start(&run, &flow, Millis(0));
    run.apply(begun);
    let cancel = RunEvent::Cancel { by: "ada".into(), reason: "enough".into() };
    let change = advance(&run, &flow, &cancel, Millis(1)).unwrap();
    run.apply(change);
    assert_eq!(states(&run), "run=cancelled a=cancelled b=cancelled");
    assert_eq!(run.head.error, "cancelled by ada: enough");
    assert!(run.is_live() && run.head.cancels == 1 && run.head.due.is_none());
    let over = RunEvent::Over { node: NodeKey::parse("a").unwrap(), attempt: 1, outcome: ok(json!(1)) };
    let change = advance(&run, &flow, &over, Millis(2)).unwrap();
    run.apply(change);
    assert_eq!(states(&run), "run=cancelled a=cancelled b=cancelled");
    assert!(!run.is_live());
}

#[test]
fn a_run_that_takes_too_long_is_timed_out() {
    let document = document_with(json!({"a": job("job.a", &[])}), json!({"timeout_sec": 60}));
    let flow = Flow::check(&document, 1, Millis(0)).unwrap();
    let run = interpret(new_run(json!({})), &flow, Millis(1_000), |_| None);
    assert_eq!(states(&run), "run=timed_out a=cancelled");
    assert_eq!(run.head.updated_at, Millis(61_000));
}

/// After a clock was set back by an hour, what a run waits for is as far away as it was; but noon is noon.
#[test]
fn a_clock_that_is_set_back_makes_no_wait_longer() {
    let steps = json!({
        "wait": {"type": "delay", "delay_sec": 30},
        "noon": {"type": "delay", "delay_until": "1970-01-01T12:00:00Z"},
        "a": {"topic": "job.a", "retry": {"max_retries": 1, "initial_backoff_sec": 40}},
        "sub": {"type": "subworkflow", "timeout_sec": 50, "input": {"workflow_id": "other"}},
    });
    let flow = Flow::check(&document_with(steps, json!({"timeout_sec": 60})), 1, Millis(0)).unwrap();
    let (at_first, back) = (Millis(5_000_000), Millis(5_000_000 - 3_600_000));
    let mut run = new_run(json!({}));
    let begun = start(&run, &flow, at_first);
    run.apply(begun);
    let over = RunEvent::Over { node: NodeKey::parse("a").unwrap(), attempt: 1, outcome: failed() };
    let change = advance(&run, &flow, &over, at_first + 10_000).unwrap();
    run.apply(change);

    let dues = |run: &Run| {
        let at = |key: &str| run.nodes[&NodeKey::parse(key).unwrap()].due.unwrap().at();
        ["wait", "a", "sub", "noon"].map(at)
    };
    let expected = [back + 20_000, back + 40_000, back + 40_000, Millis(12 * 3_600_000)];
    // Time itself sets it back, and so does whatever happens before that.
    let cancel = RunEvent::Over { node: NodeKey::parse("sub").unwrap(), attempt: 2, outcome: failed() };
    assert_eq!(advance(&run, &flow, &cancel, back), Err(RunRefusal::Stale));
    let change = advance(&run, &flow, &RunEvent::Time, back).unwrap();
    let mut in_our_time = run.clone();
    in_our_time.apply(change);
    assert_eq!(dues(&in_our_time), expected);
    let head = &in_our_time.head;
    assert_eq!((head.created_at, head.updated_at), (Millis(0), back));
    assert_eq!((head.deadline, head.due), (Some(back + 50_000), Some(back + 20_000)));
    assert_eq!(
        advance(&in_our_time, &flow, &RunEvent::Time, back + 1),
        Err(RunRefusal::TooEarly),
        "once is enough"
    );
    let change = advance(&in_our_time, &flow, &RunEvent::Time, back + 20_000).unwrap();
    in_our_time.apply(change);
    assert_eq!(in_our_time.state_of(&StepId::known("wait")), StepState::Succeeded);

    let over = RunEvent::Over { node: NodeKey::parse("sub").unwrap(), attempt: 1, outcome: ok(json!({})) };
    let change = advance(&run, &flow, &over, back).unwrap();
    run.apply(change);
    let at = |key: &str| run.nodes[&NodeKey::parse(key).unwrap()].due.map(NodeDue::at);
    assert_eq!((at("wait"), at("sub"), run.head.due), (Some(expected[0]), None, Some(expected[0])));
}

/// Servers whose clocks are a little apart do not move each other's timers.
#[test]
fn clocks_that_are_a_little_apart_move_nothing() {
    let flow = Flow::check(
        &document(json!({"wait": {"type": "delay", "delay_sec": 30}, "a": job("job.a", &[])})),
        1,
        Millis(0),
    );
    let flow = flow.unwrap();
    let mut run = new_run(json!({}));
    let begun = start(&run, &flow, Millis(20_000));
    run.apply(begun);
    assert_eq!(advance(&run, &flow, &RunEvent::Time, Millis(10_000)), Err(RunRefusal::TooEarly));
    let over = RunEvent::Over { node: NodeKey::parse("a").unwrap(), attempt: 1, outcome: ok(json!({})) };
    let change = advance(&run, &flow, &over, Millis(10_000)).unwrap();
    assert_eq!(change.head.due, Some(Millis(50_000)));
}

#[test]
fn what_succeeded_is_remembered_with_what_undoes_it() {
    let undo = |topic: &str, id: &str| json!({"topic": topic, "input": {"undo": id}});
    let steps = json!({
        "a": {"topic": "job.a", "compensation": undo("job.undo.a", "${steps.a.output.id}")},
        "each": {"topic": "job.each", "depends_on": ["a"], "for_each": [1, 2], "max_parallel": 1, "compensation": undo("job.undo.each", "${item}")},
        "b": job("job.b", &["each"]),
    });
    let script = [("a", ok(json!({"id": "a1"}))), ("b", fatal())];
    let run = check(
        "failed",
        steps.clone(),
        json!({}),
        &script,
        "run=failed a=succeeded b=failed each=succeeded each[0]=succeeded each[1]=succeeded",
    );
    let undone: Vec<_> =
        run.compensations.iter().map(|undo| (undo.node.to_string(), undo.input["undo"].clone())).collect();
    assert_eq!(
        undone,
        [("a".into(), json!("a1")), ("each[0]".into(), json!(1)), ("each[1]".into(), json!(2))]
    );

    let ends = |on: Json, script: Script<'_>| {
        let document = document_with(steps.clone(), json!({"compensate_on": on}));
        let flow = Flow::check(&document, 1, Millis(0)).unwrap();
        let mut owed = false;
        let run = interpret(new_run(json!({})), &flow, Millis(0), |asked| {
            let told = script.iter().find(|(of, _)| *of == asked.node.to_string());
            Some(told.map_or_else(|| ok(json!({"id": "a1"})), |(_, outcome)| outcome.clone()))
        });
        owed |= flow.undoes(run.head.state) && run.head.compensations > 0;
        owed
    };
    assert!(ends(json!(["failed"]), &[("b", fatal())]));
    assert!(!ends(json!(["cancelled"]), &[("b", fatal())]));
    assert!(ends(json!(["denied"]), &[("b", StepOutcome::Denied("no".into()))]));
    assert!(!ends(json!(["failed"]), &[("a", fatal())]), "nothing was done");
    assert!(!ends(json!(["failed"]), &[]));
}

/// What undoes a step is tried again as its own `retry` says, whatever the others say; three times more if it says
/// nothing.
#[test]
fn a_compensation_is_tried_as_often_as_it_says() {
    let rollback_of = |retry: &Json, ends: &StepOutcome| {
        let mut undo = json!({"topic": "job.undo.a"});
        if !retry.is_null() {
            undo["retry"] = retry.clone();
        }
        let steps = json!({
            "a": {"topic": "job.a", "compensation": undo},
            "b": {"topic": "job.b", "depends_on": ["a"], "compensation": {"topic": "job.undo.b"}},
            "c": job("job.c", &["b"]),
        });
        let document = document(steps);
        let failed = play(&document, json!({}), &[("c", fatal())]);
        let flow = Flow::check(&document, 1, Millis(0)).unwrap();
        let undo: Vec<_> =
            failed.to_undo().into_iter().rev().filter_map(|undo| Undoing::of(&flow, undo)).collect();
        let rollback = new_run(json!({"undo": undo}));
        interpret(rollback, &rollback_flow(UNDO_IN_ORDER), Millis(0), |asked| {
            let is_first = asked.node.round == Some(0);
            Some(if is_first { ok(json!({})) } else { ends.clone() })
        })
    };
    let slow = StepOutcome::TimedOut("slow".into());
    for (retry, ends, attempts, took_ms) in [
        (json!(null), failed(), 4, 1_000 + 2_000 + 4_000),
        (json!(null), fatal(), 1, 0),
        (json!({"max_retries": 0}), failed(), 1, 0),
        (json!({"max_retries": 1}), failed(), 2, 1_000),
        (
            json!({"max_retries": 2, "initial_backoff_sec": 10, "multiplier": 3, "max_backoff_sec": 20}),
            slow,
            3,
            30_000,
        ),
        (json!({"max_retries": 5, "initial_backoff_sec": 0}), failed(), 6, 0),
        (json!({"max_retries": 5}), StepOutcome::Denied("no".into()), 1, 0),
    ] {
        let run = rollback_of(&retry, &ends);
        let tries = |round| run.nodes[&NodeKey::round(&StepId::known(UNDO_STEP), round)].attempt;
        assert_eq!((tries(0), tries(1)), (1, attempts), "{retry}, {ends:?}");
        assert_eq!(run.head.updated_at, Millis(took_ms), "{retry}, {ends:?}");
    }
}

#[test]
fn a_long_list_changes_as_much_per_round_as_a_short_one() {
    let bytes_of = |count: usize| {
        let steps = json!({"each": {"topic": "job.each", "for_each": "input.list", "max_parallel": 10, "input": "${item}"}});
        let flow = Flow::check(&document(steps), 1, Millis(0)).unwrap();
        let mut run = new_run(json!({"list": vec!["an item"; count]}));
        let begun = start(&run, &flow, Millis(0));
        run.apply(begun);
        let (mut commits, mut bytes) = (0, 0);
        let sent_off = |run: &Run| {
            run.live().find(|(_, node)| node.sent.is_some()).map(|(key, node)| (key.clone(), node.attempt))
        };
        while let Some((node, attempt)) = sent_off(&run) {
            let event = RunEvent::Over { node, attempt, outcome: ok(json!("done")) };
            let change = advance(&run, &flow, &event, Millis(1)).unwrap();
            commits += 1;
            bytes += serde_json::to_string(&change.head).unwrap().len();
            bytes +=
                change.nodes.iter().map(|node| serde_json::to_string(node).unwrap().len()).sum::<usize>();
            bytes +=
                change.timeline.iter().map(|line| serde_json::to_string(line).unwrap().len()).sum::<usize>();
            run.apply(change);
        }
        assert_eq!((run.head.state, commits), (RunState::Succeeded, count));
        bytes / count
    };
    let (short, long) = (bytes_of(100), bytes_of(1000));
    assert!(long <= short + short / 20, "{short} bytes a round of 100, {long} of 1000");
}
