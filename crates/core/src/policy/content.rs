//! Rules about content: a job's input before it runs, its result before anybody reads it.
//!
//! Rules are asked in order and the first that matches decides, as everywhere. A rule matches when what is
//! known of the job and of the content's size fits and, if it names scanners, patterns or words, when one
//! of them finds something. A content that could not be scanned as a whole counts as found where the fail
//! mode is closed: nothing found in a part is not nothing there.

use super::document::{self, FailMode, RequireHuman};
use super::pattern::Patterns;
use crate::cost::Meter;
use crate::request::Request;
use crate::scan::{Finding, Library, Scanners, Selection, Severity};

/// Findings that are kept with a verdict.
pub const FINDINGS_MAX: usize = 32;

/// What is known of a content without reading it.
#[derive(Debug, Clone, Copy, Default)]
pub struct ContentMetadata {
    pub len: u64,
    /// The worker reported an error with it.
    pub has_error: bool,
}

#[derive(Debug, Clone)]
pub struct ContentRule<D> {
    pub id: String,
    pub decision: D,
    pub reason: String,
    tenants: Vec<String>,
    topics: Patterns,
    capabilities: Vec<String>,
    risk_tags: Vec<String>,
    content_types: Vec<String>,
    longer_than: Option<u64>,
    has_error: Option<bool>,
    /// Only this part of a JSON content, as the start of a pointer.
    within: Option<&'static str>,
    scanners: Option<Scanners>,
}

/// How a rule matched.
#[derive(Debug, Clone, Default)]
pub struct Match {
    pub findings: Vec<Finding>,
    /// Not all of the content was scanned.
    pub truncated: bool,
}

impl<D: Copy> ContentRule<D> {
    pub fn new(
        written: document::ContentRule,
        decision: impl Fn(&str) -> Option<D>,
        library: &Library,
        meter: &Meter,
    ) -> Result<Self, String> {
        let document::ContentMatcher {
            tenants,
            topics,
            capabilities,
            risk_tags,
            scanners,
            detectors,
            content_patterns,
            keywords,
            content_types,
            scope,
            input_size_gt,
            max_input_bytes,
            output_size_gt,
            max_output_bytes,
            has_error,
        } = written.matcher;
        if written.id.is_empty() {
            return Err("has no id".to_owned());
        }
        let word = &written.decision;
        let decision =
            decision(word).ok_or_else(|| format!("decision: {word:?} is not one that it can take"))?;
        let severity = severity("severity", &written.severity)?;
        let within = match scope.as_str() {
            "" | "all" => None,
            "prompt" => Some("/prompt"),
            other => return Err(format!("scope: {other:?} is neither all nor prompt")),
        };
        let scanners: Vec<String> = scanners.into_iter().chain(detectors).collect();
        let has_choice = !(scanners.is_empty() && content_patterns.is_empty() && keywords.is_empty());
        let selection = Selection { scanners, content_patterns, keywords, severity };
        let limits = [input_size_gt, max_input_bytes, output_size_gt, max_output_bytes];
        Ok(Self {
            id: written.id,
            decision,
            reason: written.reason,
            tenants,
            topics: Patterns::parse(&topics).map_err(|problem| format!("topics: {problem}"))?,
            capabilities,
            risk_tags,
            content_types,
            longer_than: limits.into_iter().filter(|limit| *limit > 0).min(),
            has_error,
            within,
            scanners: has_choice
                .then(|| selection.compile_within(library, meter))
                .transpose()
                .map_err(|problem| problem.to_string())?,
        })
    }

    /// Whether the content has to be read for an answer.
    pub fn reads(&self) -> bool {
        self.scanners.is_some()
    }

    /// Whether it fits as far as can be told without reading.
    pub fn fits(&self, job: &Request, metadata: ContentMetadata) -> bool {
        let lacks = |list: &[String], value: &str| !list.is_empty() && !list.iter().any(|item| item == value);
        let content_type = job.labels.get("content_type").map_or("", String::as_str);
        !(lacks(&self.tenants, job.tenant.as_str())
            || (!self.topics.is_empty() && !self.topics.any(job.topic.as_str()))
            || lacks(&self.capabilities, &job.needs.capability)
            || (!self.risk_tags.is_empty()
                && !self.risk_tags.iter().any(|tag| job.needs.risk_tags.contains(tag)))
            || lacks(&self.content_types, content_type)
            || self.longer_than.is_some_and(|limit| metadata.len <= limit)
            || self.has_error.is_some_and(|asked| asked != metadata.has_error))
    }

    /// Scans the content. A rule that reads nothing matches what it fits.
    pub fn scan(&self, content: &[u8], fail_mode: FailMode) -> Option<Match> {
        let Some(scanners) = &self.scanners else { return Some(Match::default()) };
        let mut report = scanners.scan(content);
        if let Some(within) = self.within {
            report.findings.retain(|finding| finding.at.starts_with(within));
        }
        let is_found = !report.findings.is_empty() || (report.truncated && fail_mode == FailMode::Closed);
        report.findings.truncate(FINDINGS_MAX);
        is_found.then_some(Match { findings: report.findings, truncated: report.truncated })
    }

    /// The content without what this rule finds.
    pub fn redact(&self, content: &[u8]) -> Vec<u8> {
        self.scanners.as_ref().map_or_else(|| content.to_vec(), |scanners| scanners.redact(content))
    }

    pub fn reason_for(&self, found: &Match) -> String {
        let reason =
            if self.reason.is_empty() { format!("rule {} matched", self.id) } else { self.reason.clone() };
        match (found.findings.first(), found.truncated) {
            (Some(first), _) => {
                let count = found.findings.len();
                let more = if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
                format!("{reason} ({} {}{more})", first.scanner, first.name)
            }
            (None, true) => format!("{reason} (it is too large to be looked at as a whole)"),
            (None, false) => reason,
        }
    }
}

/// How severe and how certain a finding in an input must be to deny.
#[derive(Debug, Clone, Copy, Default)]
pub struct DenyThreshold {
    min_severity: Option<Severity>,
    min_confidence: u8,
    not_for_prompts: bool,
}

impl DenyThreshold {
    pub fn new(written: &RequireHuman) -> Result<Self, String> {
        if !(0.0..=1.0).contains(&written.min_confidence_for_deny) {
            return Err("min_confidence_for_deny must be from 0 to 1".to_owned());
        }
        Ok(Self {
            min_severity: severity("min_severity_for_deny", &written.min_severity_for_deny)?,
            min_confidence: (written.min_confidence_for_deny * 100.0).round() as u8,
            not_for_prompts: written.downgrade_when_prompt_only,
        })
    }

    /// Whether it denies; otherwise a person decides. What was matched by size alone is sure.
    pub fn denies(self, found: &Match) -> bool {
        if found.findings.is_empty() {
            return true;
        }
        let is_sure = |finding: &Finding| {
            self.min_severity.is_none_or(|least| finding.severity >= least)
                && finding.confidence >= self.min_confidence
        };
        let is_prompt = |finding: &Finding| finding.scanner.contains("prompt");
        found.findings.iter().any(|finding| is_sure(finding) && !(self.not_for_prompts && is_prompt(finding)))
    }
}

fn severity(field: &str, word: &str) -> Result<Option<Severity>, String> {
    if word.is_empty() {
        return Ok(None);
    }
    let severity = Severity::parse(word);
    severity.map(Some).ok_or_else(|| format!("{field}: {word:?} is none of low, medium, high, critical"))
}
