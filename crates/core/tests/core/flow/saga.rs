//! The stack of a client's workflow, as a table: what happens to it, and what follows.

use super::{advance, document, new_run, start};
use reveille_core::flow::{
    ClientUndo, Compensation, Flow, Run, RunChange, RunEvent, RunRefusal, RunState, STACK_MAX, SagaFailure,
    stack, stack_flow, stack_id,
};
use reveille_core::id::{JobId, TenantId};
use reveille_core::request::Request;
use reveille_core::time::Millis;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

fn undo(job: &str, asked_at: i64) -> RunEvent {
    let request = Request::plain(job, "job.undo");
    let undo = ClientUndo { asked_at: Millis(asked_at), request };
    RunEvent::Record(Arc::new(Compensation::of_client(&JobId::known(job), undo)))
}

fn fails(job: &str, at: i64) -> RunEvent {
    RunEvent::Fail {
        failed: SagaFailure { job: JobId::known(job), at: Millis(at) },
        words: "broke".to_owned(),
    }
}

/// A stack, and the parts that a store would have of it.
struct Kept {
    run: Run,
    parts: BTreeMap<String, String>,
}

impl Kept {
    fn new() -> Self {
        let run = stack(&TenantId::known("t"), "trip", Millis(0));
        let mut kept =
            Self { parts: BTreeMap::from([run.input_part()].map(|(name, body)| (name, body.unwrap()))), run };
        let begun = start(&kept.run, &stack_flow(), Millis(0));
        kept.apply(begun);
        assert_eq!((kept.run.head.state, kept.run.is_live()), (RunState::Succeeded, false));
        kept
    }

    fn apply(&mut self, change: RunChange) {
        self.parts.extend(change.parts().into_iter().map(|(name, body)| (name, body.unwrap())));
        self.run.apply(change);
        let parts = self.parts.iter().map(|(name, body)| (name.as_str(), body.as_str()));
        let head = serde_json::from_str(&serde_json::to_string(&self.run.head).unwrap()).unwrap();
        assert_eq!(Run::of_parts(head, parts).unwrap(), self.run, "it is stored as it is");
    }

    fn tell(&mut self, event: &RunEvent) -> Result<(), RunRefusal> {
        let change = advance(&self.run, &stack_flow(), event, Millis(100))?;
        self.apply(change);
        Ok(())
    }

    /// What the rollback undoes that is owed now, last first; then it is there.
    fn made(&mut self) -> String {
        let list: Vec<_> = self.run.to_undo().iter().rev().map(|undo| undo.job.clone().unwrap()).collect();
        let upto = self.run.head.stack.as_ref().unwrap().undo_to;
        let wrong = self.tell(&RunEvent::RollbackMade { upto: upto + 1 });
        assert_eq!(wrong, Err(RunRefusal::Stale), "another rollback says nothing of this one");
        match self.tell(&RunEvent::RollbackMade { upto }) {
            Ok(()) => list.iter().map(JobId::as_str).collect::<Vec<_>>().join("+"),
            Err(refusal) => word(refusal).to_owned(),
        }
    }
}

fn word(refusal: RunRefusal) -> &'static str {
    match refusal {
        RunRefusal::Stale => "stale",
        RunRefusal::TooEarly => "early",
        RunRefusal::Failed => "late",
        RunRefusal::Full => "full",
        RunRefusal::Over(_) => "over",
    }
}

/// `a@1`: job a, asked for at 1, has succeeded. `!x@5`: job x has failed for good at 5. `made`: the rollback is.
fn check(events: &str, expected: &str) {
    let mut kept = Kept::new();
    let mut said = Vec::new();
    for event in events.split(' ') {
        let told = match event.split_once('@') {
            None => {
                said.push(kept.made());
                continue;
            }
            Some((job, at)) => match job.strip_prefix('!') {
                Some(job) => kept.tell(&fails(job, at.parse().unwrap())),
                None => kept.tell(&undo(job, at.parse().unwrap())),
            },
        };
        said.push(told.map_or_else(word, |()| "ok").to_owned());
    }
    assert_eq!(said.join(" "), expected, "{events}");
}

#[test]
fn a_stack_is_undone_last_first_and_every_job_of_it_once() {
    check("a@1 b@2 c@3 !x@5 made made", "ok ok ok ok c+b+a stale");
    check("a@1 a@1 !x@5 made a@1 !x@5 made", "ok stale ok a stale stale stale");
    check("a@1 !x@5 !x@5", "ok ok stale");
    check("!x@5 made", "ok stale");
    check("made a@1 made", "stale ok stale");
}

#[test]
fn a_workflow_may_fail_more_than_once() {
    check("a@1 !x@5 made b@6 c@7 !y@9 made", "ok ok a ok ok ok c+b");
    // The second waits until the rollback of the first is there.
    check("a@1 !x@5 !y@6 b@7 made !y@8 made", "ok ok early ok a ok b");
    // What an earlier failure could undo, the later one has undone.
    check("a@1 !y@9 made b@10 !x@5 made", "ok ok a ok stale stale");
}

#[test]
fn what_was_asked_for_before_the_failure_belongs_to_it() {
    check("a@1 !x@5 made b@3", "ok ok a late");
    check("!x@5 b@3", "ok late");
    // Asked for afterwards, it is another try, also if the failure is told of late.
    check("a@1 b@7 !x@5 made !y@9 made", "ok ok ok a ok b");
    check("a@1 b@7 c@2 !x@5 made b@7 !y@9 made", "ok ok ok ok c+a stale ok b");
    // In the same millisecond nobody knows: what is there is undone, what comes is kept.
    check("a@5 !x@5 made b@5 !y@5 made", "ok ok a ok ok b");
}

#[test]
fn a_stack_that_failed_says_so_and_takes_so_much() {
    let mut kept = Kept::new();
    for n in 0..STACK_MAX {
        let change = advance(&kept.run, &stack_flow(), &undo(&format!("j{n}"), 1), Millis(1)).unwrap();
        assert_eq!(change.parts().len(), 1, "one is written, however many there are");
        kept.run.apply(change);
    }
    assert_eq!(advance(&kept.run, &stack_flow(), &undo("more", 1), Millis(1)), Err(RunRefusal::Full));
    assert_eq!(advance(&kept.run, &stack_flow(), &undo("j7", 1), Millis(1)), Err(RunRefusal::Stale));
    let change = advance(&kept.run, &stack_flow(), &fails("x", 5), Millis(6)).unwrap();
    kept.run.apply(change);
    let head = &kept.run.head;
    assert_eq!((head.state, head.error.as_str()), (RunState::Failed, "job x: broke"));
    assert!(kept.run.is_live() && kept.run.to_undo().len() == STACK_MAX);
    let cancel = RunEvent::Cancel { by: "ada".into(), reason: String::new() };
    assert_eq!(
        advance(&kept.run, &stack_flow(), &cancel, Millis(7)),
        Err(RunRefusal::Over(RunState::Failed)),
        "it is not ours to cancel"
    );
}

#[test]
fn stacks_are_told_apart_by_tenant_and_workflow() {
    let id = |tenant: &str, workflow: &str| stack_id(&TenantId::known(tenant), workflow);
    let all = [id("t", "w"), id("u", "w"), id("t", "v"), id("t:w", "x"), id("t", "w:x"), id("t", "1:t:w")];
    for (n, one) in all.iter().enumerate() {
        assert!(all[n + 1..].iter().all(|other| other != one), "{n}");
    }
    // Whatever a client calls its workflow, there is a stack for it.
    let odd = stack(&TenantId::known("t"), &"two words ".repeat(99), Millis(0));
    assert_eq!(odd.head.workflow.as_str(), odd.head.id.as_str());
}

#[test]
fn a_run_of_ours_takes_no_notes_of_a_client() {
    let flow = Flow::check(&document(json!({"a": {"topic": "job.a"}})), 1, Millis(0)).unwrap();
    let mut run = new_run(json!({}));
    let begun = start(&run, &flow, Millis(0));
    run.apply(begun);
    for event in [undo("j", 1), fails("j", 1), RunEvent::RollbackMade { upto: 0 }] {
        assert_eq!(advance(&run, &flow, &event, Millis(1)), Err(RunRefusal::Stale));
    }
}
