//! Looking at what a job is to work on. It can only make a judgement stricter.

use super::content::{ContentRule, Sheet, Sureness};
use super::document::{self, FailMode, InputPolicy, RequireHuman};
use super::{BadPolicy, Decision};
use crate::request::Request;
use crate::scan::{Library, SCAN_LEN_MAX};

#[derive(Debug)]
pub struct Input {
    fail_mode: FailMode,
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

    pub fn has_rules(&self) -> bool {
        !self.rules.is_empty()
    }

    /// Whether a rule might be about this job.
    pub fn reads(&self, request: &Request) -> bool {
        let sheet = Sheet { len: u64::MAX, has_error: false };
        self.rules.iter().any(|rule| rule.fits(request, sheet))
    }

    /// What makes the judgement stricter, if something does.
    pub fn stop(
        &self,
        request: &Request,
        input: &[u8],
        so_far: Decision,
    ) -> Option<(Decision, &str, String)> {
        let sheet = Sheet { len: input.len() as u64, has_error: false };
        let part = &input[..input.len().min(self.len_max)];
        for rule in self.rules.iter().filter(|rule| rule.fits(request, sheet)) {
            let is_cut = rule.reads() && part.len() < input.len() && self.fail_mode == FailMode::Closed;
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
            let is_stricter = so_far.lets_run() || decision == Decision::Deny;
            return is_stricter.then(|| (decision, rule.id.as_str(), rule.words(&found)));
        }
        None
    }
}
