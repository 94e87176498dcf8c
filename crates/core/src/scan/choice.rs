//! What a rule scans for, as its file says it.

use super::keyword::Keywords;
use super::library::{KEYWORD, Library, is_keyword};
use super::pattern::{PatternSet, ScanPattern};
use super::scanner::{Scanner, Tell};
use super::{BadScanner, Scanners, Severity};
use crate::cost::{CostLimit, Meter};
use std::sync::Arc;

/// Maximum number of patterns that a rule defines itself.
pub const CONTENT_PATTERNS_MAX: usize = 64;
/// The scanner that findings of those patterns name.
const CONTENT_PATTERN: &str = "content_pattern";

/// The choice of one rule. An empty list selects nothing.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Names of scanners, or types of findings.
    pub scanners: Vec<String>,
    pub content_patterns: Vec<String>,
    pub keywords: Vec<String>,
    /// Severity of this rule's content patterns and keywords; high if it does not say.
    pub severity: Option<Severity>,
}

impl Selection {
    pub fn compile(&self, library: &Library) -> Result<Scanners, BadScanner> {
        self.compile_within(library, &Meter::new(CostLimit::PATTERNS))
    }

    /// The same, charging the patterns to a meter that other rules share.
    pub fn compile_within(&self, library: &Library, meter: &Meter) -> Result<Scanners, BadScanner> {
        let mut chosen: Vec<Arc<Scanner>> = Vec::new();
        for word in self.scanners.iter().filter(|word| !is_keyword(word)) {
            let named = library.named(word);
            if named.is_empty() {
                let problem = format!("is none of {}", library.names());
                return Err(BadScanner::Scanner { scanner: word.clone(), problem });
            }
            chosen.extend(named);
        }
        chosen.sort_by(|a, b| a.name().cmp(b.name()));
        chosen.dedup_by(|a, b| a.name() == b.name());
        if !self.content_patterns.is_empty() {
            chosen.push(Arc::new(self.content_scanner(meter)?));
        }
        if !self.keywords.is_empty() || self.scanners.iter().any(|word| is_keyword(word)) {
            let keywords = Keywords::new(&self.keywords)?;
            chosen.push(Arc::new(Scanner::of_keywords(KEYWORD, keywords, self.severity())));
        }
        Ok(Scanners::new(chosen))
    }

    fn content_scanner(&self, meter: &Meter) -> Result<Scanner, BadScanner> {
        let count = self.content_patterns.len();
        if count > CONTENT_PATTERNS_MAX {
            let problem = format!("has {count} patterns, and may have {CONTENT_PATTERNS_MAX}");
            return Err(BadScanner::Scanner { scanner: CONTENT_PATTERN.to_owned(), problem });
        }
        let pattern = |(index, regex): (usize, &String)| {
            let name = format!("pattern_{}", index + 1);
            let tell = Tell { name, severity: self.severity(), confidence: 100 };
            ScanPattern::written(CONTENT_PATTERN, tell, regex, meter)
        };
        let patterns = self.content_patterns.iter().enumerate().map(pattern).collect::<Result<_, _>>()?;
        Ok(Scanner::of_patterns(CONTENT_PATTERN, PatternSet::new(CONTENT_PATTERN, patterns)?))
    }

    fn severity(&self) -> Severity {
        self.severity.unwrap_or(Severity::High)
    }
}
