//! Looking at what a job is to work on. It can only make a verdict stricter.

use super::content::{ContentRule, OutputMetadata, Sureness};
use super::document::{self, FailMode, InputPolicy, RequireHuman};
use super::{BadPolicy, Decision};
use crate::request::Request;
use crate::scan::{Library, SCAN_LEN_MAX};

#[derive(Debug)]
pub struct Input {
    pub fail_mode: FailMode,
    /// How much of an input is looked at.
    len_max: usize,
    rules: Vec<ContentRule<Decision>>,
    sureness: Sureness,
}

impl Input {
    pub fn new(
        policy: &InputPolicy,
        written: Vec<document::ContentRule>,
        human: &RequireHuman,
        library: &Library,
    ) -> Result<Self, BadPolicy> {
        let decision = |word: &str| {
            document::decision(word).filter(|d| matches!(d, Decision::Deny | Decision::RequireApproval))
        };
        let mut rules = Vec::new();
        for (index, written) in written.into_iter().enumerate() {
            let rule = format!("{} of input_rules ({:?})", index + 1, written.id);
            let made = ContentRule::new(written, decision, library);
            rules.push(made.map_err(|problem| BadPolicy::Rule { rule, problem })?);
        }
        if !policy.enabled {
            rules.clear();
        }
        let sureness =
            Sureness::new(human).map_err(|problem| BadPolicy::Head(format!("require_human: {problem}")))?;
        let len_max = policy.max_scan_bytes.min(SCAN_LEN_MAX);
        Ok(Self { fail_mode: policy.fail_mode, len_max, rules, sureness })
    }

    /// Whether a rule might be about this job.
    pub fn reads(&self, request: &Request) -> bool {
        let sheet = OutputMetadata { len: u64::MAX, has_error: false };
        self.rules.iter().any(|rule| rule.fits(request, sheet))
    }

    /// What the rules find, whatever else is said of the job.
    pub fn look(&self, request: &Request, input: Contents<'_>) -> Option<Stop> {
        let (input, len) = match input {
            Contents::Whole(input) => (input, input.len() as u64),
            Contents::Part(part, len) => (part, len),
            Contents::Missing => return self.look_in_vain(request),
        };
        let sheet = OutputMetadata { len, has_error: false };
        let part = &input[..input.len().min(self.len_max)];
        for rule in self.rules.iter().filter(|rule| rule.fits(request, sheet)) {
            let is_cut = rule.reads() && (part.len() as u64) < len && self.fail_mode == FailMode::Closed;
            let mut found = match rule.look(part, self.fail_mode) {
                Some(found) => found,
                None if is_cut => super::content::Match::default(),
                None => continue,
            };
            found.truncated |= is_cut;
            let decision = match rule.decision {
                Decision::Deny if self.sureness.denies(&found) => Decision::Deny,
                _ => Decision::RequireApproval,
            };
            return Some(Stop { decision, rule_id: rule.id.clone(), reason: rule.words(&found) });
        }
        None
    }

    /// An input that cannot be read may be anything: the first rule that might be about it decides.
    fn look_in_vain(&self, request: &Request) -> Option<Stop> {
        let sheet = OutputMetadata { len: u64::MAX, has_error: false };
        let rule = self.rules.iter().find(|rule| rule.fits(request, sheet))?;
        let reason = format!("rule {} wants to look at its input, which is not to be had", rule.id);
        let stop = Stop { decision: rule.decision, rule_id: rule.id.clone(), reason };
        (self.fail_mode == FailMode::Closed).then_some(stop)
    }
}

/// What a job is to work on, as far as it is to be had.
#[derive(Debug, Clone, Copy)]
pub enum Contents<'a> {
    Whole(&'a [u8]),
    /// Its beginning, and how long it is.
    Part(&'a [u8], u64),
    Missing,
}

/// What an input rule found, and what that comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    pub(super) decision: Decision,
    pub(super) rule_id: String,
    pub(super) reason: String,
}

impl Stop {
    /// It can only make a verdict stricter.
    pub(super) fn stops(&self, so_far: Decision) -> bool {
        so_far.lets_run() || self.decision == Decision::Deny
    }
}
