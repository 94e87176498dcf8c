//! A scanner: a name, and the patterns or words it looks for.

use super::Severity;
use super::keyword::Keywords;
use super::pattern::{PatternSet, ScanPattern};
use super::text::ScanText;
use std::ops::{ControlFlow, Range};

#[derive(Debug)]
pub(super) struct Scanner {
    name: String,
    /// By the index of the pattern.
    tells: Vec<Tell>,
    engine: ScanEngine,
}

/// What a finding of a pattern says.
#[derive(Debug, Clone)]
pub(super) struct Tell {
    pub name: String,
    pub severity: Severity,
    /// Percent.
    pub confidence: u8,
}

#[derive(Debug)]
enum ScanEngine {
    Patterns(PatternSet),
    Keywords(Keywords),
}

/// Takes a hit: the index of the pattern, and where. It breaks to skip the rest of that pattern's hits.
pub(super) type Take<'t> = dyn FnMut(usize, Range<usize>) -> ControlFlow<()> + 't;

impl Scanner {
    pub(super) fn of_patterns(name: &str, set: PatternSet) -> Self {
        let tells = set.patterns().iter().map(|pattern| pattern.tell.clone()).collect();
        Self { name: name.to_owned(), tells, engine: ScanEngine::Patterns(set) }
    }

    pub(super) fn of_keywords(name: &str, keywords: Keywords, severity: Severity) -> Self {
        let tell = |number| Tell { name: format!("{name}_{number}"), severity, confidence: 100 };
        let tells = (1..=keywords.len()).map(tell).collect();
        Self { name: name.to_owned(), tells, engine: ScanEngine::Keywords(keywords) }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn tells(&self) -> &[Tell] {
        &self.tells
    }

    pub(super) fn patterns(&self) -> &[ScanPattern] {
        match &self.engine {
            ScanEngine::Patterns(set) => set.patterns(),
            ScanEngine::Keywords(_) => &[],
        }
    }

    /// Passes every hit to `take`. Names a pattern that gave up before the end of the text, if one did.
    pub(super) fn each_hit(&self, text: &ScanText, take: &mut Take) -> Option<&Tell> {
        match &self.engine {
            ScanEngine::Patterns(set) => set.each_hit(text, take).map(|pattern| &self.tells[pattern]),
            ScanEngine::Keywords(keywords) => {
                keywords.each_hit(text, take);
                None
            }
        }
    }
}
