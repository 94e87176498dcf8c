//! How a step ends follows from what it was given, and from nothing else: its input says so. So the workers of the
//! simulation and the reference can be asked the same question.

use reveille_core::flow::StepOutcome;
use reveille_core::id::JobId;
use serde_json::{Value as Json, json};

#[derive(Debug, Clone, PartialEq)]
pub enum Script {
    /// It fails this often, each time with hope, and then gives something.
    Gives {
        after: u32,
        what: Json,
    },
    Fatal,
    /// Nobody ever says how it went: somebody has to call it back.
    Hangs,
    /// The same, and its own timeout ends it.
    TooLate,
}

/// Who decides about a gate, and how.
pub const APPROVER: &str = "ann";
pub const REJECTER: &str = "bob";

pub fn gives(what: &Json) -> Json {
    json!({"do": "give", "what": what})
}

pub fn fails_first(times: u32, what: &Json) -> Json {
    json!({"do": "give", "after": times, "what": what})
}

pub fn told(word: &str) -> Json {
    json!({"do": word})
}

impl Script {
    /// Reads what a worker was given. What undoes a step comes wrapped in the list it is on.
    pub fn read(input: &Json) -> Option<Self> {
        let input = if input.get("do").is_some() { input } else { input.get("input")? };
        match input.get("do")?.as_str()? {
            "give" => {
                let after = input.get("after").and_then(Json::as_u64).unwrap_or_default();
                Some(Self::Gives { after: u32::try_from(after).ok()?, what: input.get("what")?.clone() })
            }
            "fatal" => Some(Self::Fatal),
            "hang" => Some(Self::Hangs),
            "late" => Some(Self::TooLate),
            _ => None,
        }
    }

    /// How this attempt of the step ends; nothing, if it does not end by itself.
    pub fn outcome(&self, attempt: u32) -> Option<StepOutcome> {
        let failed =
            |is_worth_another_try| StepOutcome::Failed { words: String::new(), is_worth_another_try };
        match self {
            Self::Gives { after, .. } if attempt <= *after => Some(failed(true)),
            Self::Gives { what, .. } => Some(StepOutcome::Succeeded(Some(what.clone()))),
            Self::Fatal => Some(failed(false)),
            Self::TooLate => Some(StepOutcome::TimedOut(String::new())),
            Self::Hangs => None,
        }
    }

    /// The same, as the worker says it: one that is too late says nothing.
    pub fn said(&self, attempt: u32) -> Option<StepOutcome> {
        self.outcome(attempt).filter(|_| *self != Self::TooLate)
    }
}

/// What a person says at a gate, if anything: yes, or no.
pub fn decision(input: &Json) -> Option<bool> {
    match input.get("decide")?.as_str()? {
        "approve" => Some(true),
        "reject" => Some(false),
        _ => None,
    }
}

pub fn decided(input: &Json) -> Option<StepOutcome> {
    let passed = || StepOutcome::Succeeded(Some(json!({"approved_by": APPROVER, "comment": ""})));
    decision(input).map(|yes| if yes { passed() } else { StepOutcome::Denied(String::new()) })
}

/// The step's own attempt that a job is for: `run:step@attempt`.
pub fn attempt_of(job: &JobId) -> u32 {
    job.as_str().rsplit_once('@').and_then(|(_, attempt)| attempt.parse().ok()).unwrap_or(1)
}
