//! Why a job is where it is: a code, words, since when, and what would unblock it.

use super::Jobs;
use crate::observe::metrics::Circuit;
use reveille_core::id::JobId;
use reveille_core::job::{Job, Phase, State};
use reveille_core::placement::Selector;
use reveille_core::placement::{AHEAD_MAX, Fitting, Wait};
use reveille_core::reason::Reason;
use reveille_core::time::Millis;
use reveille_core::{approval, backoff};
use rustc_hash::FxHashMap;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    pub code: &'static str,
    pub words: String,
    pub since: Millis,
    /// What would let it go on; nothing for a job that has ended or is running.
    pub unblock: Option<String>,
}

impl Jobs {
    pub fn explain(&self, job: &Job) -> Explanation {
        self.explainer().explain(job)
    }

    /// For whoever asks about many jobs at once.
    pub fn explainer(&self) -> Explainer<'_> {
        Explainer { jobs: self, fitting: FxHashMap::default() }
    }
}

/// Counts the workers that fit once for all jobs that wait for the same ones.
pub struct Explainer<'a> {
    jobs: &'a Jobs,
    fitting: FxHashMap<Selector, Fitting>,
}

impl Explainer<'_> {
    pub fn explain(&mut self, job: &Job) -> Explanation {
        let now = self.jobs.runtime.now();
        let explained = |code, words: String, unblock: Option<&str>| Explanation {
            code,
            words,
            since: job.since(),
            unblock: unblock.map(str::to_owned),
        };
        match &job.phase {
            Phase::Pending { judge_at, unanswered: 0, throttled } => {
                let words = format!(
                    "Policy throttles it; this was try {throttled} of {}. It is judged again in {}.",
                    backoff::TRIES_MAX,
                    seconds(judge_at.since(now))
                );
                explained("throttled", words, Some("Wait, or loosen the throttle rule."))
            }
            Phase::Pending { judge_at, unanswered, .. } => {
                let problem = job.marks.last().map_or("", |mark| mark.note.as_str());
                let words = format!(
                    "It is not judged yet: {problem}. Tried {}; the circuit is {}; next try in {}.",
                    if *unanswered == 1 { "once".to_owned() } else { format!("{unanswered} times") },
                    self.jobs.policy.kernel().circuit(Circuit::Input).name(),
                    seconds(judge_at.since(now))
                );
                explained(
                    "safety_unavailable",
                    words,
                    Some("Bring the safety kernel back, or check safety.address and safety.key_file."),
                )
            }
            Phase::ApprovalRequired => {
                let rule = job.last_verdict().map_or("policy", |recorded| recorded.verdict.rule_id.as_str());
                let words = if job.request.is_gate() {
                    format!("A person must approve it: {}.", approval::why(job))
                } else {
                    format!("A person must approve it: rule {rule}.")
                };
                explained("approval_required", words, Some("Approve or reject it."))
            }
            Phase::Scheduled { not_before, .. } if *not_before > now => {
                let last = job.marks.last().map_or("", |mark| mark.note.as_str());
                let words = format!(
                    "The last try did not work ({last}); the next is in {}.",
                    seconds(not_before.since(now))
                );
                explained("backoff", words, Some("Wait for the delay to pass."))
            }
            Phase::Scheduled { waiting_since, .. } => {
                let tries = backoff::tries_by(*waiting_since, now) + 1;
                let wait = self.jobs.placement.lock().wait_of(job.id());
                waiting(job, wait.as_ref(), &self.fitting(job.id()), tries)
            }
            Phase::Dispatched(attempt) => {
                let to = attempt.worker.as_ref().map_or("the topic's queue group", |worker| worker.as_str());
                explained(
                    "dispatched",
                    format!("Attempt {} was sent to {to}; it has not started yet.", attempt.number),
                    None,
                )
            }
            Phase::Running(attempt) => {
                let on = attempt.worker.as_ref().map_or("a worker of the topic", |worker| worker.as_str());
                let progress = attempt
                    .progress
                    .as_ref()
                    .map_or(String::new(), |progress| format!(", {} % done", progress.percent));
                explained("running", format!("Attempt {} runs on {on}{progress}.", attempt.number), None)
            }
            Phase::Ended(ending) => {
                let code = ending.reason.map_or("ended", Reason::code);
                let words =
                    if ending.words.is_empty() { String::new() } else { format!(": {}", ending.words) };
                explained(code, format!("It ended as {}{words}.", ending.state), way_out(job).as_deref())
            }
        }
    }

    fn fitting(&mut self, job: &JobId) -> Fitting {
        let Some(selector) = self.jobs.placement.lock().selector_of(job).cloned() else {
            return Fitting::default();
        };
        if let Some(known) = self.fitting.get(&selector) {
            return *known;
        }
        let mut fitting = Fitting::default();
        // Placement is held for one part at a time.
        for part in 0.. {
            if !fitting.add_part(self.jobs.placement.lock().fleet(), part, &selector) {
                break;
            }
        }
        self.fitting.insert(selector, fitting);
        fitting
    }
}

/// What can still be done about a job that has ended.
fn way_out(job: &Job) -> Option<String> {
    match job.state() {
        State::Denied => {
            let offered = &job.last_verdict()?.verdict.remediations;
            let ids: Vec<&str> = offered.iter().map(|remediation| remediation.id.as_str()).collect();
            let path = format!("POST /api/v1/jobs/{}/remediate", job.id());
            (!ids.is_empty()).then(|| format!("Apply a remediation ({path}): {}.", ids.join(", ")))
        }
        State::OutputQuarantined if job.output.as_ref().is_some_and(|check| check.resolved.is_none()) => {
            Some("Somebody else than who submitted it releases or discards the result.".to_owned())
        }
        _ => None,
    }
}

/// Why a scheduled job has no worker yet.
fn waiting(job: &Job, wait: Option<&Wait>, fitting: &Fitting, tries: u32) -> Explanation {
    let topic = &job.request.topic;
    let explained = |code, words: String, unblock: String| Explanation {
        code,
        words,
        since: job.since(),
        unblock: Some(unblock),
    };
    let Some(wait) = wait else {
        return explained(
            "placing",
            "It is being placed.".to_owned(),
            "Nothing: it goes on in a moment.".to_owned(),
        );
    };
    let ahead = match wait.ahead {
        0 => String::new(),
        1 => " One job goes before it.".to_owned(),
        AHEAD_MAX.. => format!(" {AHEAD_MAX} jobs or more go before it."),
        number => format!(" {number} jobs go before it."),
    };
    let code = wait.reason.code();
    match wait.reason {
        Reason::NoPoolMapping => explained(
            code,
            format!("No pool in pools.yaml takes topic {topic} with what the job requires."),
            format!("Map {topic} to a pool that is active and lists what the job requires."),
        ),
        Reason::TenantLimit => explained(
            code,
            format!("Tenant {} has as many jobs running as it may.{ahead}", job.request.tenant),
            "Wait for one of its jobs to end, or raise max_concurrent_jobs.".to_owned(),
        ),
        Reason::TopicLimit => explained(
            code,
            format!("As many jobs of topic {topic} are at workers as may be.{ahead}"),
            "Wait for one of them to end, or raise the topic's max_concurrent_jobs in pools.yaml.".to_owned(),
        ),
        Reason::PoolOverloaded => match fitting {
            Fitting { ready: 0, busy: 0, drained: 0, away, .. }
                if job.request.delegated.is_some() && *away > 0 =>
            {
                explained(
                    "workspace_away",
                    "The workspace it was given to is offline or cannot be reached.".to_owned(),
                    "It goes when the workspace beats again.".to_owned(),
                )
            }
            Fitting { ready: 0, busy: 0, drained, away, .. } if *drained >= *away && *drained > 0 => {
                explained(
                    "workers_drained",
                    format!("All workers that fit are drained ({drained}) or away ({away}).{ahead}"),
                    "Undrain a worker or its pool, or start another worker.".to_owned(),
                )
            }
            Fitting { ready: 0, busy: 0, drained, away, .. } if *away > 0 => explained(
                "workers_away",
                format!("{away} workers fit and none is heard now ({drained} are drained).{ahead}"),
                "It goes when one of them is heard again.".to_owned(),
            ),
            Fitting { busy, hot, drained, away, .. } => explained(
                code,
                format!(
                    "{} workers fit: {busy} at their limit{}, {drained} drained, {away} away.{ahead}",
                    wait.fitting,
                    if *hot > 0 { format!(" ({hot} by CPU or GPU)") } else { String::new() },
                ),
                "It goes when one of them has room; more workers make that sooner.".to_owned(),
            ),
        },
        Reason::NoWorkers if fitting.barred > 0 => explained(
            "tenant_not_served",
            format!(
                "{} live workers fit topic {topic}, and none of them serves it for tenant {} (try {tries}).{ahead}",
                fitting.barred, job.request.tenant
            ),
            format!(
                "Start a worker with a key of {0}, or make a key that serves it: reveille key create NAME --scope worker \
                 --serves {0}.",
                job.request.tenant
            ),
        ),
        Reason::NoWorkers if fitting.unannounced > 0 => explained(
            code,
            format!(
                "No live worker is known to fit topic {topic}, its labels and what it requires (try {tries}). {} have \
                 not said what they serve.{ahead}",
                fitting.unannounced
            ),
            format!(
                "Start a worker that serves {topic}, or start one of those again so that it introduces itself."
            ),
        ),
        _ => explained(
            code,
            format!(
                "No live worker fits topic {topic}, its labels and what it requires (try {tries}).{ahead}"
            ),
            format!("Start a worker that serves {topic}; the job goes the moment it is heard."),
        ),
    }
}

fn seconds(ms: i64) -> String {
    format!("{}.{} s", ms / 1000, ms % 1000 / 100)
}
