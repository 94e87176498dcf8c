//! Scanners: find content that should not pass, such as a password or a prompt injection.
//!
//! A rule's [`Selection`] is compiled once, with the [`Library`] of scanners it may choose from, into [`Scanners`].
//! Those scan a content and return a [`Report`], or a copy without what they found. What follows from a report is up
//! to policy.
//!
//! Every pattern runs in linear time, so none needs a timer or a thread of its own: a hostile text costs no more than
//! a friendly one. JSON is read string by string, decoded, because an escape could otherwise hide anything; the price
//! is that no pattern sees more than one string at a time.

mod choice;
mod document;
mod injection;
mod keyword;
mod library;
mod mark;
mod pattern;
mod pii;
mod prompt;
mod redact;
mod scanner;
mod secret;
mod tally;
mod text;

pub use choice::{CONTENT_PATTERNS_MAX, Selection};
pub use document::{Document, ScannerEntry, WrittenPattern};
pub use keyword::{KEYWORD_LEN_MAX, KEYWORDS_MAX};
pub use library::{Library, PATTERNS_MAX, SCANNERS_MAX};
pub use pattern::PATTERN_LEN_MAX;

use mark::Marks;
use scanner::Scanner;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use tally::ScanTally;
use text::texts;

/// How much of a content is scanned.
pub const SCAN_LEN_MAX: usize = 2 * 1024 * 1024;
/// Findings of one pattern in one report.
pub const PATTERN_HITS_MAX: usize = 10;
/// Findings of one scanner in one report.
pub const SCANNER_HITS_MAX: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Low,
    Medium,
    High,
    Critical,
}

impl Severity {
    pub const ALL: [Self; 4] = [Self::Low, Self::Medium, Self::High, Self::Critical];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|severity| severity.as_str().eq_ignore_ascii_case(word))
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub scanner: String,
    /// Which pattern of the scanner.
    pub name: String,
    pub severity: Severity,
    /// Percent.
    pub confidence: u8,
    /// The JSON pointer of the string; a trailing `#` means the key itself, not its value. Empty for plain text.
    pub at: String,
    /// Bytes of that string, decoded.
    pub span: Range<usize>,
    /// Enough to recognise it by, never the thing itself.
    pub preview: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Report {
    pub findings: Vec<Finding>,
    /// Part of the content was not scanned, so an empty report does not mean clean.
    pub truncated: bool,
}

impl Report {
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }
}

/// Why scanners cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadScanner {
    #[error("scanner {scanner:?}: {problem}")]
    Scanner { scanner: String, problem: String },
    #[error("scanner {scanner:?}, pattern {pattern:?}: {problem}")]
    Pattern { scanner: String, pattern: String, problem: String },
}

/// The compiled choice of a rule; clones share it.
#[derive(Clone)]
pub struct Scanners(Arc<ChosenScanners>);

struct ChosenScanners {
    scanners: Vec<Arc<Scanner>>,
    marks: Marks,
}

impl Scanners {
    fn new(scanners: Vec<Arc<Scanner>>) -> Self {
        let tells = scanners.iter().flat_map(|scanner| scanner.tells());
        let marks = Marks::new(tells.map(|tell| tell.name.clone()));
        Self(Arc::new(ChosenScanners { scanners, marks }))
    }

    /// Scans a content, up to [`SCAN_LEN_MAX`].
    pub fn scan(&self, content: &[u8]) -> Report {
        let window = &content[..content.len().min(SCAN_LEN_MAX)];
        let mut truncated = window.len() < content.len();
        let mut tallies: Vec<ScanTally> =
            self.0.scanners.iter().map(|scanner| ScanTally::new(scanner)).collect();
        texts(&String::from_utf8_lossy(window), &mut |text| {
            let marks = self.0.marks.within(text.body);
            for tally in &mut tallies {
                truncated |= !tally.count(text, &marks);
            }
        });
        Report { findings: tallies.into_iter().flat_map(ScanTally::findings).collect(), truncated }
    }

    /// Whether these scanners look for nothing at all.
    pub fn is_empty(&self) -> bool {
        self.0.scanners.is_empty()
    }
}

impl fmt::Debug for Scanners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.scanners.iter().map(|scanner| (scanner.name(), scanner.tells().len()));
        f.debug_map().entries(names).finish()
    }
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}
