//! Which ends are to be noted in a saga, and until when.

use super::{LIMITS, NOW, report, to, verdict};
use reveille_core::flow::NodeKey;
use reveille_core::id::{RunId, StepId};
use reveille_core::job::{Job, State};
use reveille_core::life::{
    Limits, Status, assign, await_scan, check_output, finish, judge, saga_settled, settled, start, stillborn,
    submit,
};
use reveille_core::output::{OutputDecision, OutputVerdict, Stage};
use reveille_core::policy::Decision;
use reveille_core::reason::Reason;
use reveille_core::request::{OfRun, Request, Role};

fn ended(change: impl Fn(&mut Request), status: Status) -> Job {
    let mut request = Request::plain("j", "job.book");
    "trip".clone_into(&mut request.place.workflow_id);
    request.compensation = "undo".into();
    change(&mut request);
    let judged = judge(&submit(request, NOW), verdict(Decision::Allow), NOW).unwrap();
    let job = start(&assign(&judged, &to("w"), NOW).unwrap(), 1, None, NOW).unwrap();
    let limits = Limits { retries_max: 1, ..LIMITS };
    finish(&job, &report("w", None, status), &limits, NOW, 0).unwrap()
}

fn as_it_is(_: &mut Request) {}

#[test]
fn what_was_done_and_what_failed_for_good_concern_the_saga() {
    for (status, concerns) in [
        (Status::Succeeded, true),
        (Status::Fatal, true),
        (Status::Failed, false),
        (Status::Retryable, false),
        (Status::Cancelled, false),
        (Status::Timeout, false),
        (Status::Denied, false),
    ] {
        let job = ended(as_it_is, status);
        assert!(job.state().is_terminal());
        assert_eq!(job.owed.saga, concerns, "{status:?}");
        assert!(!concerns || job.is_live(), "a restart finds it");
    }
}

#[test]
fn a_job_that_is_part_of_no_saga_owes_it_nothing() {
    let none = |request: &mut Request| request.place.workflow_id.clear();
    let step = |request: &mut Request| {
        request.place.of_run = Some(Box::new(OfRun {
            run: RunId::known("r"),
            node: NodeKey::of(&StepId::known("s")),
            attempt: 1,
            role: Role::Compensation,
        }));
    };
    for status in [Status::Succeeded, Status::Fatal] {
        assert!(!ended(none, status).owed.saga);
        assert!(!ended(step, status).owed.saga, "a run looks after its own");
    }
    let nothing = |request: &mut Request| request.compensation.clear();
    assert!(!ended(nothing, Status::Succeeded).owed.saga, "there is nothing to keep");
    assert!(ended(nothing, Status::Fatal).owed.saga, "there may be something to undo");
}

#[test]
fn it_is_owed_until_it_is_noted_whatever_else_is_paid() {
    let fatal = ended(as_it_is, Status::Fatal);
    assert!(fatal.owed.dead_letter);
    let told = settled(&fatal);
    assert!(told.owed.saga && !told.owed.dead_letter);
    let noted = saga_settled(&fatal);
    assert!(!noted.owed.saga && noted.owed.dead_letter);
    assert!(!saga_settled(&told).is_live());

    // A result that is held back was worked for all the same.
    let done = await_scan(&ended(as_it_is, Status::Succeeded));
    let verdict = OutputVerdict {
        decision: OutputDecision::Quarantine,
        stage: Stage::Async,
        rule_id: "leak".into(),
        reason: "secret".into(),
        snapshot: String::new(),
        findings: Vec::new(),
    };
    let held = check_output(&done, verdict, None, NOW).unwrap();
    assert!(held.owed.saga && held.owed.dead_letter && !held.owed.output_scan);
    assert!(settled(&held).owed.saga);
    assert!(saga_settled(&done).owed.output_scan);
}

#[test]
fn a_compensation_that_nobody_could_keep_is_a_dead_letter() {
    let request = Request::plain("comp-1", "job.cancel");
    let job = stillborn(request, Reason::SagaNotRecorded, "there is no room", NOW);
    let letter = job.dead_letter().unwrap();
    assert_eq!((letter.reason_code, letter.status), (Some(Reason::SagaNotRecorded), State::Failed));
    assert!(job.owed.dead_letter && !job.owed.saga && job.attempts.is_empty());
}
