//! Looking at what a job is to work on. It can only make a judgement stricter.

use super::content::{ContentRule, Sheet, Sureness};
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
        let sheet = Sheet { len: u64::MAX, has_error: false };
        self.rules.iter().any(|rule| rule.fits(request, sheet))
    }

    /// What makes the judgement stricter, if something does.
    pub fn stop(
        &self,
        request: &Request,
        input: Option<&[u8]>,
        so_far: Decision,
    ) -> Option<(Decision, &str, String)> {
        let Some(input) = input else { return self.stop_unread(request, so_far) };
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
            return is_stricter(so_far, decision).then(|| (decision, rule.id.as_str(), rule.words(&found)));
        }
        None
    }

    /// An input that cannot be read may be anything: the first rule that might be about it decides.
    fn stop_unread(&self, request: &Request, so_far: Decision) -> Option<(Decision, &str, String)> {
        let sheet = Sheet { len: u64::MAX, has_error: false };
        let rule = self.rules.iter().find(|rule| rule.fits(request, sheet))?;
        let stops = self.fail_mode == FailMode::Closed && is_stricter(so_far, rule.decision);
        let words = || format!("rule {} wants to look at its input, which is not to be had", rule.id);
        stops.then(|| (rule.decision, rule.id.as_str(), words()))
    }
}

fn is_stricter(so_far: Decision, decision: Decision) -> bool {
    so_far.lets_run() || decision == Decision::Deny
}
