//! The table: which state follows which event. A test prints it to `docs/life.md`.

use crate::approval::Conflict;
use crate::words::words;

words! {
    /// Where a job stands, spelled as on the wire.
    State {
        Pending = "PENDING",
        ApprovalRequired = "APPROVAL_REQUIRED",
        Scheduled = "SCHEDULED",
        Dispatched = "DISPATCHED",
        Running = "RUNNING",
        Succeeded = "SUCCEEDED",
        Failed = "FAILED",
        Timeout = "TIMEOUT",
        Cancelled = "CANCELLED",
        Denied = "DENIED",
        OutputQuarantined = "OUTPUT_QUARANTINED",
    }
}

words! {
    /// What can happen to a job.
    Event {
        Submit = "submit",
        Allow = "allow",
        Throttle = "throttle",
        Unjudged = "unjudged",
        RequireApproval = "require_approval",
        Deny = "deny",
        Approve = "approve",
        Pass = "pass",
        Reject = "reject",
        Assign = "assign",
        Open = "open",
        Start = "start",
        Progress = "progress",
        Unheard = "unheard",
        Succeed = "succeed",
        Fail = "fail",
        Retry = "retry",
        LoseWorker = "lose_worker",
        Cancel = "cancel",
        Expire = "expire",
        GiveUp = "give_up",
        Quarantine = "quarantine",
        Redact = "redact",
        Release = "release",
        Discard = "discard",
    }
}

impl State {
    pub fn is_terminal(self) -> bool {
        use State::{Cancelled, Denied, Failed, OutputQuarantined, Succeeded, Timeout};
        matches!(self, Succeeded | Failed | Timeout | Cancelled | Denied | OutputQuarantined)
    }

    /// Whether a job that ended so is listed among the dead letters.
    pub fn is_dead_letter(self) -> bool {
        matches!(self, Self::Failed | Self::Timeout | Self::Denied | Self::OutputQuarantined)
    }
}

/// The table says no. That is an answer, not a fault: late and repeated messages meet it all the time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("a job that is {state} takes no {event}")]
    NotNow { state: State, event: Event },
    #[error("worker {0} does not hold this job")]
    ForeignWorker(String),
    #[error("the message belongs to attempt {got}; the job is at attempt {now}")]
    StaleAttempt { got: u64, now: u32 },
    #[error("the job waits out its delay")]
    TooEarly,
    #[error(transparent)]
    Approval(#[from] Conflict),
}

/// The state that follows, or a refusal.
#[expect(clippy::match_same_arms, reason = "one line for each thing that happens reads as a table")]
pub fn next(state: State, event: Event) -> Result<State, Refusal> {
    use Event as E;
    use State as S;
    Ok(match (state, event) {
        (S::Pending, E::Submit | E::Throttle | E::Unjudged) => S::Pending,
        (S::Pending, E::Allow) => S::Scheduled,
        (S::Pending, E::RequireApproval) => S::ApprovalRequired,
        (S::Pending, E::Deny) => S::Denied,
        // A compensation that could not be kept: it is there to be seen, and goes nowhere.
        (S::Pending, E::GiveUp) => S::Failed,

        (S::ApprovalRequired, E::Approve) => S::Pending,
        (S::ApprovalRequired, E::Reject) => S::Denied,
        // A gate: there is nothing to run once somebody has said yes.
        (S::ApprovalRequired, E::Pass) => S::Succeeded,
        // Policy has changed while nobody decided, or nobody decided in time.
        (S::ApprovalRequired, E::Allow) => S::Scheduled,
        (S::ApprovalRequired, E::RequireApproval) => S::ApprovalRequired,
        (S::ApprovalRequired, E::Throttle) => S::Pending,
        (S::ApprovalRequired, E::Deny) => S::Denied,

        (S::Scheduled, E::Assign) => S::Dispatched,
        (S::Scheduled, E::GiveUp) => S::Failed,

        (S::Dispatched, E::Open) => S::Dispatched,
        (S::Dispatched, E::Start) => S::Running,
        (S::Dispatched | S::Running, E::Progress) => S::Running,
        (S::Dispatched, E::Unheard) => S::Scheduled,
        (S::Dispatched | S::Running, E::LoseWorker | E::Retry) => S::Scheduled,

        // A result may come from an attempt that was given up for lost: work that was done counts.
        (S::Scheduled | S::Dispatched | S::Running, E::Succeed) => S::Succeeded,
        (S::Dispatched | S::Running, E::Fail) => S::Failed,

        (S::Pending | S::ApprovalRequired | S::Scheduled | S::Dispatched | S::Running, E::Cancel) => {
            S::Cancelled
        }
        (S::Pending | S::ApprovalRequired | S::Scheduled | S::Dispatched | S::Running, E::Expire) => {
            S::Timeout
        }

        (S::Succeeded, E::Quarantine) => S::OutputQuarantined,
        (S::Succeeded, E::Redact) => S::Succeeded,
        (S::OutputQuarantined, E::Release) => S::Succeeded,
        (S::OutputQuarantined, E::Discard) => S::OutputQuarantined,

        (state, event) => return Err(Refusal::NotNow { state, event }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    /// The page is checked in; a change of the table shows up as a change of the page.
    #[test]
    fn the_page_shows_the_table() {
        let mut page = String::from(
            "# A job's life\n\nPrinted from `core::job` by a test. An empty cell means that the event is refused.\n\n|",
        );
        for event in Event::ALL {
            write!(page, " | {event}").unwrap();
        }
        page.push_str(" |\n|---");
        page.push_str(&"|---".repeat(Event::ALL.len()));
        page.push_str("|\n");
        for state in State::ALL {
            let mark = if state.is_terminal() { "**" } else { "" };
            write!(page, "| {mark}{state}{mark}").unwrap();
            for event in Event::ALL {
                let cell = next(*state, *event).map_or(String::new(), |to| to.to_string());
                write!(page, " | {cell}").unwrap();
            }
            page.push_str(" |\n");
        }
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/life.md");
        if std::env::var_os("REVEILLE_BLESS").is_some() {
            std::fs::write(path, &page).unwrap();
        }
        let checked_in = std::fs::read_to_string(path).unwrap_or_default();
        assert!(checked_in == page, "docs/life.md is out of date; run the tests with REVEILLE_BLESS=1");
    }

    #[test]
    fn an_ended_job_stays_ended_except_for_what_becomes_of_its_output() {
        for state in State::ALL.iter().filter(|state| state.is_terminal()) {
            for event in Event::ALL {
                let allowed = matches!(
                    (state, event),
                    (State::Succeeded, Event::Quarantine | Event::Redact)
                        | (State::OutputQuarantined, Event::Release | Event::Discard)
                );
                assert_eq!(next(*state, *event).is_ok(), allowed, "{state} {event}");
            }
        }
    }

    #[test]
    fn every_live_state_can_be_cancelled_and_can_expire() {
        for state in State::ALL.iter().filter(|state| !state.is_terminal()) {
            assert_eq!(next(*state, Event::Cancel), Ok(State::Cancelled));
            assert_eq!(next(*state, Event::Expire), Ok(State::Timeout));
        }
    }
}
