//! `output_scanners.yaml` as it is written. Parsing is strict: a key that is not understood is an error.

use super::Severity;
use super::pattern::ScanPattern;
use super::scanner::Tell;
use super::{BadScanner, library};
use crate::cost::Meter;
use serde::Deserialize;
use std::collections::BTreeMap;

pub(super) const NAME_LEN_MAX: usize = 64;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Document {
    pub version: serde_json::Value,
    /// By name. The name of a built-in scanner adds patterns to that one.
    pub scanners: BTreeMap<String, ScannerEntry>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScannerEntry {
    /// A rule may choose scanners by it, too.
    pub finding_type: String,
    pub description: String,
    pub patterns: Vec<WrittenPattern>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrittenPattern {
    pub name: String,
    pub regex: String,
    #[serde(default = "high")]
    pub severity: Severity,
    /// From 0 to 1.
    #[serde(default = "certain")]
    pub confidence: f64,
    /// Whether a word nearby, or the JSON key, must say what it is: one of the pattern's own name, or one
    /// such as `secret`, `token` and `card`.
    #[serde(default)]
    pub context_required: bool,
}

fn high() -> Severity {
    Severity::High
}

fn certain() -> f64 {
    1.0
}

impl WrittenPattern {
    pub(super) fn compile(&self, scanner: &str, meter: &Meter) -> Result<ScanPattern, BadScanner> {
        let bad = |problem: String| BadScanner::Pattern {
            scanner: scanner.to_owned(),
            pattern: self.name.clone(),
            problem,
        };
        check_name(&self.name).map_err(bad)?;
        if !(0.0..=1.0).contains(&self.confidence) {
            return Err(bad(format!("confidence: {} is not between 0 and 1", self.confidence)));
        }
        let confidence = (self.confidence * 100.0).round() as u8;
        let tell = Tell { name: self.name.clone(), severity: self.severity, confidence };
        let pattern = ScanPattern::written(scanner, tell, &self.regex, meter)?;
        Ok(if self.context_required { pattern.in_context() } else { pattern })
    }
}

impl ScannerEntry {
    /// The patterns of one scanner, each of them checked.
    pub(super) fn compile(&self, scanner: &str, meter: &Meter) -> Result<Vec<ScanPattern>, BadScanner> {
        let bad = |problem: String| BadScanner::Scanner { scanner: scanner.to_owned(), problem };
        check_name(scanner).map_err(bad)?;
        if self.patterns.is_empty() {
            return Err(bad("has no patterns".to_owned()));
        }
        if self.patterns.len() > library::PATTERNS_MAX {
            let problem =
                format!("has {} patterns, and may have {}", self.patterns.len(), library::PATTERNS_MAX);
            return Err(bad(problem));
        }
        self.patterns.iter().map(|pattern| pattern.compile(scanner, meter)).collect()
    }
}

/// Names stand in findings and in redacted texts.
fn check_name(name: &str) -> Result<(), String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if name.is_empty() || name.len() > NAME_LEN_MAX || !name.bytes().all(plain) {
        return Err(format!("a name has 1 to {NAME_LEN_MAX} of A-Z, a-z, 0-9, _, - and ."));
    }
    Ok(())
}
