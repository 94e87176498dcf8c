//! What was in force when, and whether a job that is at a worker may be there.

use reveille_core::approval::Choice;
use reveille_core::id::JobId;
use reveille_core::job::{Event, Job, State};
use reveille_core::policy::{Counting, Decision, Policy, Question, RecordedVerdict, Windows};
use reveille_core::request::Request;
use reveille_core::time::Millis;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The ways to a worker that a run must have met.
pub const WAYS: [&str; 16] = [
    "http",
    "grpc",
    "bus",
    "retry",
    "redrive",
    "remedied",
    "as a step of a run",
    "as a compensation",
    "claiming to be a compensation",
    "approved",
    "with constraints",
    "throttled first",
    "another try",
    "another worker",
    "after a restart",
    "allowed by a policy that is gone",
];

/// The pack that jobs over gRPC say they come from.
pub const GRPC_PACK: &str = "over-grpc";

pub type Met = BTreeSet<&'static str>;

#[derive(Default)]
pub struct Ledger {
    /// Every policy there was, and since when each held.
    in_force: Vec<(Millis, Policy)>,
    /// Each job's request as it was first stored, and the life of the server in which that was.
    first: BTreeMap<JobId, (Arc<Request>, u32)>,
    life: u32,
    at_workers: BTreeSet<JobId>,
    pub met: Met,
    pub broken: Vec<String>,
}

impl Ledger {
    pub fn put_in_force(&mut self, policy: &Policy, now: Millis) {
        self.in_force.push((now, policy.clone()));
    }

    pub fn latest(&self) -> Policy {
        self.in_force.last().map(|(_, policy)| policy.clone()).unwrap()
    }

    pub fn restarted(&mut self) {
        self.life += 1;
    }

    /// The store holds this now.
    pub fn committed(&mut self, job: &Job, now: Millis) {
        let (first, born) =
            self.first.entry(job.id().clone()).or_insert_with(|| (job.request.clone(), self.life));
        if **first != *job.request {
            self.broken.push(format!("the request of {} changed after it was judged", job.id()));
        }
        let is_older = *born < self.life;
        if matches!(job.state(), State::Dispatched | State::Running) {
            let found = self.check(job, now);
            self.broken.extend(found.err());
            self.at_workers.insert(job.id().clone());
            self.note_ways(job, is_older);
        }
    }

    /// A worker has this job's packet, and the store this job.
    pub fn delivered(&mut self, id: &str, stored: Option<&Job>, now: Millis) {
        let found = match stored {
            None => Err(format!("{id} is at a worker and was never stored")),
            Some(job) => self.check(job, now),
        };
        self.broken.extend(found.err());
    }

    /// These were made by a redrive of many.
    pub fn redriven(&mut self, ids: &[JobId]) {
        if ids.iter().any(|id| self.at_workers.contains(id)) {
            self.met.insert("redrive");
        }
    }

    /// Whether the job may be at a worker.
    pub fn check(&self, job: &Job, now: Millis) -> Result<(), String> {
        let id = job.id();
        let recorded =
            job.last_verdict().ok_or_else(|| format!("{id} is at a worker and was never judged"))?;
        let is_approved = job.decided.as_ref().is_some_and(|decided| decided.choice == Choice::Approve);
        match recorded.verdict.decision {
            Decision::Allow | Decision::AllowWithConstraints => {}
            Decision::RequireApproval if is_approved => {}
            decision => return Err(format!("{id} is at a worker and policy said {}", decision.as_str())),
        }
        let policy = self.policy_of(recorded, now).ok_or_else(|| {
            let snapshot = &recorded.verdict.snapshot;
            format!("{id} was judged by {snapshot}, which was not in force at {}", recorded.checked_at.0)
        })?;
        is_about(recorded, policy, &job.request).map_err(|problem| format!("{id} {problem}"))
    }

    /// The policy that spoke, if it was in force at some moment between the verdict and now.
    fn policy_of(&self, recorded: &RecordedVerdict, now: Millis) -> Option<&Policy> {
        self.in_force.iter().enumerate().find_map(|(number, (since, policy))| {
            let until = self.in_force.get(number + 1).map_or(now, |(next, _)| *next);
            let held = *since <= now && until >= recorded.checked_at;
            (held && policy.snapshot() == recorded.verdict.snapshot).then_some(policy)
        })
    }

    fn note_ways(&mut self, job: &Job, is_older: bool) {
        let id = job.id().as_str();
        let (is_of_run, is_compensation) =
            (job.request.place.of_run.is_some(), job.request.is_compensation());
        let is_first = !id.contains("-retry-") && !id.contains("-remedy-") && !is_of_run;
        let is_grpc = job.request.needs.pack_id == GRPC_PACK;
        let has = |event| job.marks.iter().any(|mark| mark.event == event);
        let judged_by = job.last_verdict().map(|recorded| recorded.verdict.snapshot.as_str());
        let in_force = self.in_force.last().map(|(_, policy)| policy.snapshot());
        let is_constrained = job
            .last_verdict()
            .is_some_and(|recorded| recorded.verdict.decision == Decision::AllowWithConstraints);
        let ways = [
            ("bus", id.starts_with("bus-") && is_first),
            ("http", !id.starts_with("bus-") && !is_grpc && is_first),
            ("grpc", is_grpc && is_first),
            ("retry", id.contains("-retry-")),
            ("remedied", id.contains("-remedy-")),
            ("as a step of a run", is_of_run && !is_compensation),
            ("as a compensation", is_compensation),
            (
                "claiming to be a compensation",
                !is_of_run && job.request.labels.contains_key("saga_compensation"),
            ),
            ("approved", has(Event::Approve)),
            ("with constraints", is_constrained),
            ("throttled first", has(Event::Throttle)),
            ("another try", has(Event::Retry)),
            ("another worker", has(Event::LoseWorker) || has(Event::Unheard)),
            ("after a restart", is_older),
            ("allowed by a policy that is gone", judged_by != in_force),
        ];
        self.met.extend(ways.iter().filter(|(_, is_so)| *is_so).map(|(way, _)| *way));
    }
}

/// Whether that policy says this of this request: the same rule, or one that asks how often.
fn is_about(recorded: &RecordedVerdict, policy: &Policy, request: &Request) -> Result<(), String> {
    let (said, would_say) = (&recorded.verdict, policy.evaluate(request));
    let (_, trace) = {
        let (counting, now) = (Counting::DryRun, Millis(0));
        let question = Question { request, input_verdict: None, counting, now };
        policy.explain(&question, &mut Windows::default())
    };
    let asks_how_often = trace.lines.iter().any(|line| {
        (line.rule_id.as_str(), line.decision) == (said.rule_id.as_str(), said.decision.as_str())
            && line.why.contains("within the window")
    });
    let is_same = (&said.rule_id, said.decision) == (&would_say.rule_id, would_say.decision);
    if is_same || asks_how_often {
        return Ok(());
    }
    Err(format!(
        "was let go by {} ({}); of its request the policy says {} ({})",
        said.rule_id,
        said.decision.as_str(),
        would_say.rule_id,
        would_say.decision.as_str()
    ))
}

/// The ledger itself must be able to say no.
#[cfg(test)]
mod tests {
    use super::*;
    use reveille_core::id::WorkerId;
    use reveille_core::life::{self, Destination};
    use reveille_core::policy::Document;
    use serde_json::json;

    const NOW: Millis = Millis(1_000);

    fn policy(version: &str, decision: &str) -> Policy {
        let document = json!({"version": version, "rules": [{"id": "r", "decision": decision}]});
        let source = document.to_string();
        let document: Document = serde_json::from_value(document).unwrap();
        Policy::new(document, source.as_bytes()).unwrap()
    }

    fn at_worker(recorded: RecordedVerdict) -> Job {
        let job = life::judge(&life::submit(Request::plain("j", "job.a"), NOW), recorded, NOW).unwrap();
        let to = Destination { worker: Some(WorkerId::known("w")), pool: None };
        life::assign(&job, &to, NOW).unwrap()
    }

    #[test]
    fn a_job_that_may_not_be_there_is_told_on() {
        let mut ledger = Ledger::default();
        let (now_gone, allows) = (policy("0", "allow"), policy("1", "allow"));
        ledger.put_in_force(&now_gone, Millis(0));
        ledger.put_in_force(&allows, Millis(500));
        let judged = |policy: &Policy| RecordedVerdict {
            verdict: policy.evaluate(&Request::plain("j", "job.a")),
            checked_at: NOW,
        };
        let good = at_worker(judged(&allows));
        assert_eq!(ledger.check(&good, NOW), Ok(()));
        let words = |change: &dyn Fn(&mut Job)| {
            let mut job = good.clone();
            change(&mut job);
            ledger.check(&job, NOW).unwrap_err()
        };
        assert!(words(&|job| job.verdicts.clear()).contains("never judged"));
        let last = |job: &mut Job, decision| job.verdicts[0].verdict.decision = decision;
        for decision in [Decision::Deny, Decision::Throttle, Decision::RequireApproval] {
            assert!(words(&|job| last(job, decision)).contains(decision.as_str()));
        }
        assert!(words(&|job| job.verdicts[0] = judged(&now_gone)).contains("not in force"));
        assert!(words(&|job| job.verdicts[0] = judged(&policy("2", "allow"))).contains("not in force"));
        assert!(words(&|job| job.verdicts[0].verdict.rule_id = "other".to_owned()).contains("let go by"));
        let other = Arc::new(Request::plain("j", "no-job-at-all"));
        assert!(words(&|job| job.request = other.clone()).contains("let go by"));
    }
}
