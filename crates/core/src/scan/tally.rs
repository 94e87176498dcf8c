//! What one scanner has found so far, kept within the limits of a report.

use super::scanner::{Scanner, Tell};
use super::text::ScanText;
use super::{Finding, PATTERN_HITS_MAX, SCANNER_HITS_MAX, Severity, mark, overlap};
use std::ops::{ControlFlow, Range};

pub(super) struct ScanTally<'s> {
    scanner: &'s Scanner,
    findings: Vec<Finding>,
    /// By the index of the pattern.
    hits: Vec<usize>,
}

impl<'s> ScanTally<'s> {
    pub(super) fn new(scanner: &'s Scanner) -> Self {
        Self { scanner, findings: Vec::new(), hits: vec![0; scanner.tells().len()] }
    }

    pub(super) fn findings(self) -> Vec<Finding> {
        self.findings
    }

    /// Adds what a text holds outside its marks. Returns whether the whole text was scanned.
    pub(super) fn count(&mut self, text: &ScanText, marks: &[Range<usize>]) -> bool {
        let scanner = self.scanner;
        let mut told: Vec<(Range<usize>, Severity)> = Vec::new();
        let gave_up = scanner.each_hit(text, &mut |pattern, span| {
            let tell = &scanner.tells()[pattern];
            // The more specific patterns of a scanner come first. What they found is not reported twice, unless the
            // second finding is worse.
            let is_told = |(other, severity): &(Range<usize>, Severity)| {
                overlap(other, &span) && *severity >= tell.severity
            };
            if mark::covers(marks, &span) || told.iter().any(is_told) {
                return ControlFlow::Continue(());
            }
            if self.hits[pattern] == PATTERN_HITS_MAX || !self.make_room(tell.severity) {
                return ControlFlow::Break(());
            }
            self.hits[pattern] += 1;
            told.push((span.clone(), tell.severity));
            self.findings.push(finding(scanner.name(), tell, text, span));
            ControlFlow::Continue(())
        });
        gave_up.is_none()
    }

    /// Makes room for one more if it can. A full tally drops a milder finding, so that nobody can hide a bad one
    /// behind many harmless ones.
    fn make_room(&mut self, severity: Severity) -> bool {
        if self.findings.len() < SCANNER_HITS_MAX {
            return true;
        }
        let mildest = self.findings.iter().enumerate().min_by_key(|(_, finding)| finding.severity);
        match mildest {
            Some((index, finding)) if finding.severity < severity => {
                self.findings.remove(index);
                true
            }
            _ => false,
        }
    }
}

fn finding(scanner: &str, tell: &Tell, text: &ScanText, span: Range<usize>) -> Finding {
    Finding {
        scanner: scanner.to_owned(),
        name: tell.name.clone(),
        severity: tell.severity,
        confidence: tell.confidence,
        at: text.pointer(),
        preview: preview(&text.body[span.clone()]),
        span,
    }
}

/// At most a quarter of it, and no more than four characters.
fn preview(found: &str) -> String {
    let length = found.chars().count();
    let shown = found.chars().take((length / 4).min(4));
    let shown: String = shown.map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("{shown}… ({length} characters)")
}
