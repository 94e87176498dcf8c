//! Patterns: a regular expression, what a match of it means, and when a match does not count.
//!
//! The engine runs in linear time and its memory is limited, so a pattern from a file is refused only for its size:
//! its own, or that of all patterns of its file together. All of a scanner's patterns are first tried at once; most
//! texts match none.

mod size;

use super::scanner::{Take, Tell};
use super::text::{ScanText, TextRole};
use super::{BadScanner, Severity};
use crate::cost::Meter;
use regex::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};
use std::ops::{ControlFlow, Range};

/// Maximum length of a pattern from a file, in characters.
pub const PATTERN_LEN_MAX: usize = 256;
/// Maximum size of one compiled pattern, and of all patterns of a scanner together, in bytes.
const PATTERN_SIZE_MAX: usize = 10 * 1024 * 1024;
const SET_SIZE_MAX: usize = 32 * 1024 * 1024;
/// Maximum memory for matching, beyond the pattern itself, in bytes.
const CACHE_SIZE_MAX: usize = 2 * 1024 * 1024;
const SET_CACHE_SIZE_MAX: usize = 8 * 1024 * 1024;
/// Matches of a pattern from a file that are examined in one text. One search is linear, but there are patterns
/// (`a.*b|a`) that search to the end of the text for every match.
const MATCHES_MAX: usize = 4096;
const TOO_LARGE: &str = "is too large once compiled; repeat less";
/// How far around a match its context reaches, in bytes.
const CONTEXT_LEN: usize = 64;
/// Words that indicate what is near them, in addition to the words of the pattern's own name.
const CONTEXT_WORDS: [&str; 8] = ["account", "auth", "card", "credential", "key", "passw", "secret", "token"];

#[derive(Debug, Clone)]
pub(super) struct ScanPattern {
    pub tell: Tell,
    regex: Regex,
    check: Check,
    /// Whether the value of a JSON key matches, by key and value.
    member: Option<fn(&str, &str) -> bool>,
    /// Built in, not from a file.
    built_in: bool,
}

/// Examines a match in its text; returns which part is the finding, if any.
pub(super) type Judge = fn(&str, Range<usize>) -> Option<Range<usize>>;

#[derive(Debug, Clone)]
enum Check {
    Any,
    Judge(Judge),
    /// One of these words, in lower case, must be nearby.
    Context(Vec<String>),
}

impl ScanPattern {
    /// A built-in pattern. Word boundaries are ASCII, because only those are fast in any text.
    pub(super) fn built_in(name: &str, severity: Severity, confidence: u8, regex: &str) -> Self {
        let regex = Regex::new(&regex.replace(r"\b", r"(?-u:\b)"))
            .unwrap_or_else(|error| panic!("the built-in pattern {name} compiles: {error}"));
        let tell = Tell { name: name.to_owned(), severity, confidence };
        Self { tell, regex, check: Check::Any, member: None, built_in: true }
    }

    pub(super) fn judged(self, judge: Judge) -> Self {
        Self { check: Check::Judge(judge), ..self }
    }

    pub(super) fn or_member(self, member: fn(&str, &str) -> bool) -> Self {
        Self { member: Some(member), ..self }
    }

    /// A pattern from a file, whose patterns together have what `meter` has. `scanner` is for the error.
    pub(super) fn written(scanner: &str, tell: Tell, regex: &str, meter: &Meter) -> Result<Self, BadScanner> {
        let bad = |problem: String| BadScanner::Pattern {
            scanner: scanner.to_owned(),
            pattern: tell.name.clone(),
            problem,
        };
        let length = regex.chars().count();
        if length > PATTERN_LEN_MAX {
            return Err(bad(format!("has {length} characters, and may have {PATTERN_LEN_MAX}")));
        }
        let size = size::compiled(regex).unwrap_or(0);
        if size > PATTERN_SIZE_MAX {
            return Err(bad(TOO_LARGE.to_owned()));
        }
        meter.hold(size).map_err(|reason| bad(format!("with all patterns before it: {reason}")))?;
        let mut builder = RegexBuilder::new(regex);
        let built = builder.size_limit(PATTERN_SIZE_MAX).dfa_size_limit(CACHE_SIZE_MAX).build();
        let regex = built.map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => bad(TOO_LARGE.to_owned()),
            other => bad(other.to_string()),
        })?;
        if regex.is_match("") {
            return Err(bad("matches the empty text, and so everything".to_owned()));
        }
        Ok(Self { tell, regex, check: Check::Any, member: None, built_in: false })
    }

    /// The same, counting only where a word nearby says what it is.
    pub(super) fn in_context(self) -> Self {
        let name = self.tell.name.to_ascii_lowercase();
        let own = name.split(['_', '-', '.']).filter(|word| word.len() > 2);
        let words = own.chain(CONTEXT_WORDS).map(str::to_owned).collect();
        Self { check: Check::Context(words), ..self }
    }

    /// Passes every hit to `take`, until that breaks. Returns whether it got that far.
    fn each_hit(&self, text: &ScanText, take: &mut dyn FnMut(Range<usize>) -> ControlFlow<()>) -> bool {
        for (index, found) in self.regex.find_iter(text.body).enumerate() {
            if index == MATCHES_MAX && !self.built_in {
                return false;
            }
            let span = self.judge(text, found.range()).filter(|span| !span.is_empty());
            if span.is_some_and(|span| take(span).is_break()) {
                break;
            }
        }
        true
    }

    fn judge(&self, text: &ScanText, found: Range<usize>) -> Option<Range<usize>> {
        match &self.check {
            Check::Any => Some(found),
            Check::Judge(judge) => judge(text.body, found),
            Check::Context(words) => {
                let start = text.body.floor_char_boundary(found.start.saturating_sub(CONTEXT_LEN));
                let end = text.body.ceil_char_boundary(found.end + CONTEXT_LEN);
                let near = text.body[start..end].to_ascii_lowercase();
                let key = text.key.unwrap_or_default().to_ascii_lowercase();
                words.iter().any(|word| near.contains(word) || key.contains(word)).then_some(found)
            }
        }
    }
}

/// The patterns of a scanner.
#[derive(Debug, Clone)]
pub(super) struct PatternSet {
    any: RegexSet,
    patterns: Vec<ScanPattern>,
}

impl PatternSet {
    pub(super) fn new(scanner: &str, patterns: Vec<ScanPattern>) -> Result<Self, BadScanner> {
        let mut builder = RegexSetBuilder::new(patterns.iter().map(|pattern| pattern.regex.as_str()));
        let built = builder.size_limit(SET_SIZE_MAX).dfa_size_limit(SET_CACHE_SIZE_MAX).build();
        let any = built.map_err(|error| BadScanner::Scanner {
            scanner: scanner.to_owned(),
            problem: format!("its patterns together: {error}"),
        })?;
        Ok(Self { any, patterns })
    }

    /// A built-in set.
    pub(super) fn known(scanner: &str, patterns: Vec<ScanPattern>) -> Self {
        Self::new(scanner, patterns).unwrap_or_else(|error| panic!("the built-in scanners compile: {error}"))
    }

    pub(super) fn patterns(&self) -> &[ScanPattern] {
        &self.patterns
    }

    /// Passes every hit to `take`. Returns which pattern gave up before the end of the text, if one did.
    pub(super) fn each_hit(&self, text: &ScanText, take: &mut Take) -> Option<usize> {
        let mut gave_up = None;
        // Asking whether any matches costs no allocation, and for most texts that is all.
        if self.any.is_match(text.body) {
            for index in &self.any.matches(text.body) {
                if !self.patterns[index].each_hit(text, &mut |span| take(index, span)) {
                    gave_up = Some(index);
                }
            }
        }
        if let (TextRole::Value, Some(key)) = (text.role, text.key) {
            for (index, pattern) in self.patterns.iter().enumerate() {
                if pattern.member.is_some_and(|is_it| is_it(key, text.body)) {
                    // There is one value, so there is nothing to break from.
                    let _ = take(index, 0..text.body.len());
                }
            }
        }
        gave_up
    }
}
