//! Output rules: they check what is known of a result before anybody can read it, and then scan its
//! content.

use super::BadPolicy;
use super::content::{ContentMetadata, ContentRule, Match};
use super::document::{self, FailMode, OutputPolicy};
use crate::cost::Meter;
use crate::output::{OutputDecision, OutputVerdict, Stage};
use crate::request::Request;
use crate::scan::Library;

#[derive(Debug)]
pub struct OutputRules {
    /// What the file says; the environment may say otherwise.
    pub enabled: Option<bool>,
    pub fail_mode: Option<FailMode>,
    /// Nobody reads a result before its content was scanned.
    pub hold: bool,
    snapshot: String,
    rules: Vec<ContentRule<OutputDecision>>,
}

/// The result of a scan of the content.
#[derive(Debug, Clone, PartialEq)]
pub struct ContentScan {
    pub verdict: OutputVerdict,
    /// The copy that takes the result's place.
    pub redacted: Option<Vec<u8>>,
}

impl OutputRules {
    pub fn new(
        policy: &OutputPolicy,
        written: Vec<document::ContentRule>,
        snapshot: &str,
        library: &Library,
        meter: &Meter,
    ) -> Result<Self, BadPolicy> {
        let mut rules = Vec::new();
        for (index, written) in written.into_iter().enumerate() {
            let rule = format!("{} of output_rules ({:?})", index + 1, written.id);
            let made = ContentRule::new(written, OutputDecision::parse, library, meter);
            rules.push(made.map_err(|problem| BadPolicy::Rule { rule, problem })?);
        }
        let OutputPolicy { enabled, fail_mode, hold } = *policy;
        Ok(Self { enabled, fail_mode, hold, snapshot: snapshot.to_owned(), rules })
    }

    pub fn has_rules(&self) -> bool {
        !self.rules.is_empty()
    }

    /// The verdict as far as it needs no reading; nothing if the content has to be scanned first.
    pub fn check_metadata(&self, request: &Request, metadata: ContentMetadata) -> Option<OutputVerdict> {
        match self.rules.iter().find(|rule| rule.fits(request, metadata)) {
            None => Some(self.allowed(Stage::Sync)),
            Some(rule) if rule.reads() => None,
            Some(rule) => Some(self.rule_verdict(rule, &Match::default(), Stage::Sync)),
        }
    }

    /// The verdict on the content.
    pub fn check_content(
        &self,
        request: &Request,
        metadata: ContentMetadata,
        content: &[u8],
        fail_mode: FailMode,
    ) -> ContentScan {
        for rule in self.rules.iter().filter(|rule| rule.fits(request, metadata)) {
            let Some(found) = rule.scan(content, fail_mode) else { continue };
            let verdict = self.rule_verdict(rule, &found, Stage::Async);
            let can_redact = rule.decision == OutputDecision::Redact && rule.reads() && !found.truncated;
            let redacted = can_redact.then(|| rule.redact(content));
            return ContentScan { verdict, redacted };
        }
        ContentScan { verdict: self.allowed(Stage::Async), redacted: None }
    }

    /// The result could not be scanned, and the fail mode says what that means.
    pub fn unchecked(&self, fail_mode: FailMode, stage: Stage, problem: &str) -> OutputVerdict {
        let decision = match fail_mode {
            FailMode::Open => OutputDecision::Allow,
            FailMode::Closed => OutputDecision::Quarantine,
        };
        self.verdict(decision, stage, "unchecked", format!("it could not be looked at: {problem}"))
    }

    fn rule_verdict(&self, rule: &ContentRule<OutputDecision>, found: &Match, stage: Stage) -> OutputVerdict {
        let verdict = self.verdict(rule.decision, stage, &rule.id, rule.reason_for(found));
        OutputVerdict { findings: found.findings.clone(), ..verdict }
    }

    fn allowed(&self, stage: Stage) -> OutputVerdict {
        self.verdict(OutputDecision::Allow, stage, "default", "no rule holds it back".to_owned())
    }

    fn verdict(
        &self,
        decision: OutputDecision,
        stage: Stage,
        rule_id: &str,
        reason: String,
    ) -> OutputVerdict {
        let (rule_id, snapshot) = (rule_id.to_owned(), self.snapshot.clone());
        OutputVerdict { decision, stage, rule_id, reason, snapshot, findings: Vec::new() }
    }
}
