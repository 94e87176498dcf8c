//! What a commit adds to the trail, read off the marks it adds to the job.
//!
//! Whoever builds a step need not think of the trail, and so cannot forget it. What happens to a job
//! without anybody deciding about it (it was placed, it ran, it failed) is in the job's own past.

use super::{Draft, EventType, Severity};
use crate::identity::Identity;
use crate::job::{Event, Job, Mark};
use crate::policy::RecordedVerdict;
use crate::request::Request;
use std::collections::BTreeMap;

/// What is to be recorded when `before` becomes `after`, in the order in which it happened.
pub fn of_step(before: Option<&Job>, after: &Job) -> Vec<Draft> {
    // A verdict and its mark are made together, so they pair up from the end, where nothing is dropped.
    let mut verdicts = after.verdicts.as_slice();
    let mut drafts = Vec::new();
    for mark in after.marks_since(before).iter().rev() {
        drafts.extend(of_mark(after, mark, verdicts.last()));
        if matches!(mark.event, Event::Allow | Event::Throttle | Event::RequireApproval | Event::Deny) {
            verdicts = verdicts.split_last().map_or(verdicts, |(_, earlier)| earlier);
        }
    }
    drafts.reverse();
    drafts
}

/// What one mark adds, if anything. `verdict` is the latest there was when the mark had been made.
fn of_mark(job: &Job, mark: &Mark, recorded: Option<&RecordedVerdict>) -> Option<Draft> {
    Some(match mark.event {
        Event::Allow => judged(job, mark, recorded, Severity::Info),
        Event::Throttle => judged(job, mark, recorded, Severity::Low),
        Event::RequireApproval => judged(job, mark, recorded, Severity::Medium),
        Event::Deny => judged(job, mark, recorded, Severity::High),
        Event::Approve | Event::Pass => answered(job, mark, recorded, Severity::Medium),
        Event::Reject => answered(job, mark, recorded, Severity::Low),
        Event::Quarantine => of_output(job, mark, EventType::Violation, Severity::High),
        Event::Redact => of_output(job, mark, EventType::Violation, Severity::Medium),
        Event::Release => of_output(job, mark, EventType::Approval, Severity::High),
        Event::Discard => of_output(job, mark, EventType::Approval, Severity::Medium),
        Event::Cancel => cancelled(job, mark),
        Event::Submit
        | Event::Unjudged
        | Event::Assign
        | Event::Open
        | Event::Start
        | Event::Progress
        | Event::Unheard
        | Event::Succeed
        | Event::Fail
        | Event::Retry
        | Event::LoseWorker
        | Event::Expire
        | Event::GiveUp => return None,
    })
}

/// Policy spoke. Of more verdicts than a job keeps, the mark alone is left.
fn judged(job: &Job, mark: &Mark, recorded: Option<&RecordedVerdict>, severity: Severity) -> Draft {
    let mut draft = Draft { severity, ..draft(job, mark, EventType::Decision) };
    let Request { submitted_by, submitter_name, .. } = &*job.request;
    let submitter =
        Identity { key: submitted_by.clone(), ..submitter_name.as_deref().unwrap_or_default().into() };
    draft = draft.by(&submitter);
    // Who the submitter says it is stands beside that, as what was said.
    let actor = &job.request.actor;
    for (claim, name) in [("actor.principal_id", &actor.principal_id), ("actor.actor_id", &actor.actor_id)] {
        if !name.is_empty() && *name != draft.identity {
            draft.extra.insert(claim.to_owned(), name.clone());
        }
    }
    match recorded.map(|recorded| &recorded.verdict) {
        Some(verdict) => {
            draft.decision = Some(verdict.decision);
            draft.matched_rule.clone_from(&verdict.rule_id);
            draft.reason.clone_from(&verdict.reason);
            draft.policy_version.clone_from(&verdict.snapshot);
        }
        None => draft.reason.clone_from(&mark.note),
    }
    draft
}

/// Somebody did not want it any more.
fn cancelled(job: &Job, mark: &Mark) -> Draft {
    let draft =
        Draft { severity: Severity::Low, reason: mark.note.clone(), ..draft(job, mark, EventType::Act) };
    match job.ending().and_then(|ending| ending.cancelled_by.as_deref()) {
        Some(by) => draft.by(by),
        None => draft,
    }
}

/// A person answered the rule that asked.
fn answered(job: &Job, mark: &Mark, asked: Option<&RecordedVerdict>, severity: Severity) -> Draft {
    let mut draft = Draft { severity, ..draft(job, mark, EventType::Approval) };
    if let Some(decided) = &job.decided {
        draft = draft.by(&Identity { key: decided.key.clone(), ..decided.by.as_str().into() });
        draft.reason.clone_from(&decided.comment);
    }
    if let Some(RecordedVerdict { verdict, .. }) = asked {
        draft.matched_rule.clone_from(&verdict.rule_id);
        draft.policy_version.clone_from(&verdict.snapshot);
    }
    draft
}

/// Output policy spoke, or a person decided about what it holds back.
fn of_output(job: &Job, mark: &Mark, event_type: EventType, severity: Severity) -> Draft {
    let mut draft = Draft { severity, reason: mark.note.clone(), ..draft(job, mark, event_type) };
    let Some(check) = job.output.as_deref() else { return draft };
    draft.matched_rule.clone_from(&check.verdict.rule_id);
    draft.policy_version.clone_from(&check.verdict.snapshot);
    if let Some(resolved) = check.resolved.as_ref().filter(|_| event_type == EventType::Approval) {
        draft = draft.by(&Identity { key: resolved.key.clone(), ..resolved.by.as_str().into() });
        draft.reason.clone_from(&resolved.note);
    }
    draft
}

/// What all entries of a job say. The job itself may be gone long before they are.
fn draft(job: &Job, mark: &Mark, event_type: EventType) -> Draft {
    let request = &job.request;
    let mut extra = BTreeMap::from([("topic".to_owned(), request.topic.to_string())]);
    if !request.needs.capability.is_empty() {
        extra.insert("capability".to_owned(), request.needs.capability.clone());
    }
    if !request.needs.risk_tags.is_empty() {
        extra.insert("risk_tags".to_owned(), request.needs.risk_tags.join(","));
    }
    let draft = Draft::new(request.tenant.clone(), mark.at, event_type, mark.event.as_str());
    Draft { job_id: Some(job.id().clone()), extra, ..draft }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approval::Answer;
    use crate::audit::{BY_KEY, CLAIMED};
    use crate::id::{KeyId, WorkerId};
    use crate::job::{MARKS_MAX, Progress, VERDICTS_MAX};
    use crate::life::{self, Destination, Made, Report, Status};
    use crate::output::{OutputDecision, OutputVerdict, Stage};
    use crate::policy::{Decision, Policy, Verdict};
    use crate::time::Millis;

    const NOW: Millis = Millis(1_000_000);

    fn recorded(decision: Decision, rule: &str) -> RecordedVerdict {
        let verdict = Policy::builtin().evaluate(&Request::plain("j", "job.echo"));
        RecordedVerdict {
            verdict: Verdict { decision, rule_id: rule.to_owned(), ..verdict },
            checked_at: NOW,
        }
    }

    fn judge(job: &Job, decision: Decision, rule: &str) -> Job {
        life::judge(job, recorded(decision, rule), NOW).unwrap()
    }

    fn approve(job: &Job, decision: Decision, rule: &str) -> Job {
        life::approve(job, &Answer::by("ann"), recorded(decision, rule), NOW).unwrap()
    }

    /// It went well, and output policy holds the result back, in one step.
    fn quarantined(job: &Job) -> Job {
        let report = Report {
            worker: WorkerId::known("w"),
            attempt: None,
            status: Status::Succeeded,
            result_ptr: "redis://res:j".to_owned(),
            error_code: String::new(),
            error_message: String::new(),
            execution_ms: 1,
            trace: None,
            made: Made::default(),
        };
        let done = life::finish(job, &report, &life::Limits::default(), NOW, 0).unwrap();
        let verdict = OutputVerdict {
            decision: OutputDecision::Quarantine,
            stage: Stage::Sync,
            rule_id: "leak".to_owned(),
            reason: "a secret".to_owned(),
            snapshot: "s".to_owned(),
            findings: Vec::new(),
        };
        life::check_output(&done, verdict, None, NOW).unwrap()
    }

    fn submitted() -> Job {
        life::submit(Request::plain("j", "job.echo"), NOW)
    }

    fn running() -> Job {
        let to = Destination { worker: Some(WorkerId::known("w")), pool: None };
        let job = life::assign(&judge(&submitted(), Decision::Allow, "r"), &to, NOW).unwrap();
        life::start(&job, 1, None, NOW).unwrap()
    }

    fn progress(job: &Job) -> Job {
        let told = Progress { percent: 1, message: String::new() };
        life::progress(job, &WorkerId::known("w"), None, told, NOW).unwrap()
    }

    /// Each draft in short: what kind, what was done, by which rule, by whom.
    #[track_caller]
    fn check(before: Option<&Job>, after: &Job, expected: &[&str]) {
        let drafts = of_step(before, after);
        let short = |draft: &Draft| {
            let (kind, action) = (draft.event_type.as_str(), &draft.action);
            format!("{kind} {action} {} {}", draft.matched_rule, draft.identity).trim_end().to_owned()
        };
        assert_eq!(drafts.iter().map(short).collect::<Vec<_>>(), expected);
        assert!(drafts.iter().all(|draft| draft.tenant == after.request.tenant));
        assert!(drafts.iter().all(|draft| draft.job_id.as_ref() == Some(after.id())));
    }

    #[test]
    fn a_new_jobs_verdict_is_recorded_with_all_that_policy_said() {
        let mut request = Request::plain("j", "job.echo");
        request.submitter_name = Some("ann".to_owned());
        "bob".clone_into(&mut request.actor.principal_id);
        request.needs.risk_tags = vec!["prod".to_owned(), "money".to_owned()];
        let after = judge(&life::submit(request, NOW), Decision::Deny, "no-prod");
        let [draft] = &of_step(None, &after)[..] else { panic!() };
        assert_eq!((draft.event_type, draft.severity), (EventType::Decision, Severity::High));
        assert_eq!((draft.decision, draft.matched_rule.as_str()), (Some(Decision::Deny), "no-prod"));
        assert_eq!((draft.policy_version.as_str(), draft.identity.as_str()), ("builtin", "ann"));
        assert_eq!(draft.reason, after.last_verdict().unwrap().verdict.reason);
        assert_eq!(
            ["topic", "risk_tags", "actor.principal_id"].map(|name| draft.extra[name].as_str()),
            ["job.echo", "prod,money", "bob"]
        );
    }

    #[test]
    fn an_approval_and_the_verdict_after_it_are_two_entries_of_one_step() {
        let asked = judge(&submitted(), Decision::RequireApproval, "ask");
        check(None, &asked, &["safety.decision require_approval ask"]);
        let after = approve(&asked, Decision::Allow, "thawed");
        check(Some(&asked), &after, &["safety.approval approve ask ann", "safety.decision allow thawed"]);
        // And if the whole past is one step.
        let all = [
            "safety.decision require_approval ask",
            "safety.approval approve ask ann",
            "safety.decision allow thawed",
        ];
        check(None, &after, &all);
        check(Some(&asked), &approve(&asked, Decision::Deny, "frozen"), &["safety.decision deny frozen"]);
        let again =
            judge(&judge(&asked, Decision::RequireApproval, "ask"), Decision::RequireApproval, "ask2");
        let once_more = judge(&again, Decision::RequireApproval, "ask3");
        check(Some(&again), &once_more, &["safety.decision require_approval ask3"]);
    }

    #[test]
    fn rejections_quarantines_and_cancels_are_recorded_with_whoever_decided() {
        let asked = judge(&submitted(), Decision::RequireApproval, "ask");
        let rejected = life::reject(&asked, &Answer::by("bob"), NOW).unwrap();
        check(Some(&asked), &rejected, &["safety.approval reject ask bob"]);
        let held = quarantined(&running());
        check(Some(&running()), &held, &["safety.violation quarantine leak"]);
        assert_eq!(of_step(Some(&running()), &held)[0].reason, "a secret");
        let out = life::release(&held, "ann", "it is an example", NOW).unwrap();
        check(Some(&held), &out, &["safety.approval release leak ann"]);
        assert_eq!(of_step(Some(&held), &out)[0].reason, "it is an example");
        check(
            Some(&held),
            &life::discard(&held, "bob", "", NOW).unwrap(),
            &["safety.approval discard leak bob"],
        );
        check(Some(&asked), &life::cancel(&asked, "ann", "", NOW).unwrap(), &["system.act cancel  ann"]);
        let by = Identity { claim: "bob".to_owned(), ..Identity::of_key("ann", &KeyId::known("key_1")) };
        let [draft] = &of_step(Some(&asked), &life::cancel(&asked, &by, "late", NOW).unwrap())[..] else {
            panic!()
        };
        assert_eq!((draft.identity.as_str(), draft.reason.as_str()), ("ann", "cancelled by bob: late"));
        assert_eq!((draft.extra[BY_KEY].as_str(), draft.extra[CLAIMED].as_str()), ("key_1", "bob"));
    }

    #[test]
    fn a_step_without_marks_records_nothing() {
        let job = judge(&submitted(), Decision::Deny, "r");
        check(Some(&job), &life::settled(&job), &[]);
        check(Some(&job), &life::set_back(&job, NOW - 500).unwrap(), &[]);
        check(Some(&judge(&submitted(), Decision::Allow, "r")), &submitted(), &[]);
    }

    #[test]
    fn progress_that_overwrites_its_mark_uncovers_no_older_one() {
        let first = progress(&running());
        check(Some(&running()), &first, &[]);
        check(Some(&first), &progress(&progress(&progress(&first))), &[]);
        check(Some(&first), &quarantined(&progress(&first)), &["safety.violation quarantine leak"]);
    }

    #[test]
    fn a_clock_that_was_set_back_neither_hides_nor_repeats_a_verdict() {
        let throttled = judge(&submitted(), Decision::Throttle, "slow");
        let again = life::judge(&throttled, recorded(Decision::Throttle, "slow"), NOW - 700).unwrap();
        assert_ne!(throttled.marks[..], again.marks[..2], "the known marks moved");
        check(Some(&throttled), &again, &[]);
        let other = life::judge(&throttled, recorded(Decision::Throttle, "slower"), NOW - 700).unwrap();
        check(Some(&throttled), &other, &["safety.decision throttle slower"]);
    }

    #[test]
    fn a_throttle_that_is_repeated_is_recorded_once() {
        let first = judge(&submitted(), Decision::Throttle, "slow");
        check(None, &first, &["safety.decision throttle slow"]);
        let mut job = first;
        while !job.state().is_terminal() {
            let again = judge(&job, Decision::Throttle, "slow");
            check(Some(&job), &again, &[]);
            job = again;
        }
        check(None, &job, &["safety.decision throttle slow"]);
    }

    #[test]
    fn each_of_many_verdicts_is_recorded_once_also_when_older_ones_are_dropped() {
        let mut job = judge(&submitted(), Decision::RequireApproval, "ask");
        for _ in 0..2 * MARKS_MAX {
            let again = judge(&job, Decision::RequireApproval, "ask");
            check(Some(&job), &again, &["safety.decision require_approval ask"]);
            check(Some(&again), &again, &[]);
            job = again;
        }
        assert_eq!(job.verdicts.len(), VERDICTS_MAX);
        let approved = approve(&job, Decision::RequireApproval, "ask");
        check(Some(&job), &approved, &["safety.approval approve ask ann", "safety.decision allow ask"]);
    }

    #[test]
    fn of_more_verdicts_than_are_kept_the_marks_are_left() {
        let mut job = submitted();
        let asks = [Decision::RequireApproval, Decision::Throttle];
        for ask in asks.into_iter().cycle().take(VERDICTS_MAX + 1) {
            job = judge(&job, ask, "slow");
        }
        let drafts = of_step(None, &job);
        assert_eq!(drafts.len(), VERDICTS_MAX + 1);
        assert_eq!((drafts[0].decision, drafts[1].decision), (None, Some(Decision::Throttle)));
        assert!(drafts[0].reason.starts_with("slow: "), "{}", drafts[0].reason);
    }
}
