//! Input rules: they scan what a job is to work on, and can only make a verdict stricter.

use super::content::{ContentMetadata, ContentRule, DenyThreshold};
use super::document::{self, FailMode, InputPolicy, RequireHuman};
use super::{BadPolicy, Decision};
use crate::cost::Meter;
use crate::request::Request;
use crate::scan::{Library, SCAN_LEN_MAX};

/// Bytes that a scanner looks through in one step.
const BYTES_PER_STEP: usize = 16;

#[derive(Debug)]
pub struct InputRules {
    pub fail_mode: FailMode,
    /// How much of an input is scanned.
    len_max: usize,
    rules: Vec<ContentRule<Decision>>,
    deny_threshold: DenyThreshold,
}

impl InputRules {
    pub fn new(
        policy: &InputPolicy,
        written: Vec<document::ContentRule>,
        human: &RequireHuman,
        library: &Library,
        meter: &Meter,
    ) -> Result<Self, BadPolicy> {
        let decision = |word: &str| {
            document::decision(word).filter(|d| matches!(d, Decision::Deny | Decision::RequireApproval))
        };
        let mut rules = Vec::new();
        for (index, written) in written.into_iter().enumerate() {
            let rule = format!("{} of input_rules ({:?})", index + 1, written.id);
            let made = ContentRule::new(written, decision, library, meter);
            rules.push(made.map_err(|problem| BadPolicy::Rule { rule, problem })?);
        }
        if !policy.enabled {
            rules.clear();
        }
        let deny_threshold = DenyThreshold::new(human)
            .map_err(|problem| BadPolicy::Head(format!("require_human: {problem}")))?;
        let len_max = policy.max_scan_bytes.min(SCAN_LEN_MAX);
        Ok(Self { fail_mode: policy.fail_mode, len_max, rules, deny_threshold })
    }

    /// Whether a rule might be about this job.
    pub fn reads(&self, request: &Request) -> bool {
        let metadata = ContentMetadata { len: u64::MAX, has_error: false };
        self.rules.iter().any(|rule| rule.fits(request, metadata))
    }

    /// What it takes to look through an input of that length.
    pub fn scan_steps(&self, request: &Request, len: usize) -> u64 {
        let metadata = ContentMetadata { len: len as u64, has_error: false };
        let reading = self.rules.iter().filter(|rule| rule.reads() && rule.fits(request, metadata));
        reading.count() as u64 * (len.min(self.len_max) / BYTES_PER_STEP) as u64
    }

    /// What the rules say of an input, whatever else is said of the job.
    pub fn scan(&self, request: &Request, input: InputContent<'_>) -> Option<InputVerdict> {
        let (input, len) = match input {
            InputContent::Whole(input) => (input, input.len() as u64),
            InputContent::Part(part, len) => (part, len),
            InputContent::Missing => return self.unreadable(request),
        };
        let metadata = ContentMetadata { len, has_error: false };
        let part = &input[..input.len().min(self.len_max)];
        for rule in self.rules.iter().filter(|rule| rule.fits(request, metadata)) {
            let is_cut = rule.reads() && (part.len() as u64) < len && self.fail_mode == FailMode::Closed;
            let mut found = match rule.scan(part, self.fail_mode) {
                Some(found) => found,
                None if is_cut => super::content::Match::default(),
                None => continue,
            };
            found.truncated |= is_cut;
            let decision = match rule.decision {
                Decision::Deny if self.deny_threshold.denies(&found) => Decision::Deny,
                _ => Decision::RequireApproval,
            };
            return Some(InputVerdict {
                decision,
                rule_id: rule.id.clone(),
                reason: rule.reason_for(&found),
            });
        }
        None
    }

    /// An input that cannot be read may be anything: the first rule that might be about it decides.
    fn unreadable(&self, request: &Request) -> Option<InputVerdict> {
        let metadata = ContentMetadata { len: u64::MAX, has_error: false };
        let rule = self.rules.iter().find(|rule| rule.fits(request, metadata))?;
        let reason = format!("rule {} wants to look at its input, which is not to be had", rule.id);
        let verdict = InputVerdict { decision: rule.decision, rule_id: rule.id.clone(), reason };
        (self.fail_mode == FailMode::Closed).then_some(verdict)
    }
}

/// What a job is to work on, as far as it is available.
#[derive(Debug, Clone, Copy)]
pub enum InputContent<'a> {
    Whole(&'a [u8]),
    /// Its beginning, and how long it is.
    Part(&'a [u8], u64),
    Missing,
}

/// What an input rule says of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputVerdict {
    pub(super) decision: Decision,
    pub(super) rule_id: String,
    pub(super) reason: String,
}

impl InputVerdict {
    /// It can only make a verdict stricter.
    pub(super) fn overrides(&self, so_far: Decision) -> bool {
        so_far.lets_run() || self.decision == Decision::Deny
    }
}

#[cfg(test)]
mod tests {
    use super::InputContent;
    use crate::policy::{Decision, Policy};
    use crate::request::Request;
    use serde_json::json;

    /// Whoever sends only the beginning of an input is not believed about the rest.
    #[test]
    fn a_part_of_an_input_counts_as_found_where_the_mode_is_closed() {
        let looked = |fail_mode: &str, input: InputContent<'_>| {
            let document = json!({
                "rules": [{"id": "all", "decision": "allow"}],
                "input_policy": {"fail_mode": fail_mode},
                "input_rules": [{"id": "secrets", "match": {"scanners": ["secret"]}, "decision": "deny"}],
            });
            let policy = Policy::new(serde_json::from_value(document).unwrap(), b"").unwrap();
            policy.scan_input(&Request::plain("j", "job.echo"), input).map(|stop| stop.decision)
        };
        assert_eq!(looked("closed", InputContent::Whole(b"harmless")), None);
        assert_eq!(looked("closed", InputContent::Part(b"harmless", 8)), None);
        assert_eq!(looked("closed", InputContent::Part(b"harmless", 9)), Some(Decision::Deny));
        assert_eq!(looked("open", InputContent::Part(b"harmless", 9)), None);
    }
}
