//! Keywords of a rule, matched as whole words and case-insensitively.
//!
//! A finding names the word by its number in the rule's list, because the word itself may be what nobody should read.

use super::BadScanner;
use super::library::KEYWORD;
use super::scanner::Take;
use super::text::ScanText;
use aho_corasick::AhoCorasick;
use std::ops::Range;

pub const KEYWORDS_MAX: usize = 1000;
/// Bytes of a keyword.
pub const KEYWORD_LEN_MAX: usize = 256;

#[derive(Debug)]
pub(super) struct Keywords(AhoCorasick);

impl Keywords {
    pub(super) fn new(words: &[String]) -> Result<Self, BadScanner> {
        let bad = |problem: String| BadScanner::Scanner { scanner: KEYWORD.to_owned(), problem };
        if words.is_empty() {
            return Err(bad("has no keywords".to_owned()));
        }
        if words.len() > KEYWORDS_MAX {
            return Err(bad(format!("has {} keywords, and may have {KEYWORDS_MAX}", words.len())));
        }
        let words: Vec<&str> = words.iter().map(|word| word.trim()).collect();
        if let Some(at) = words.iter().position(|word| word.is_empty() || word.len() > KEYWORD_LEN_MAX) {
            return Err(bad(format!("keyword {} must have 1 to {KEYWORD_LEN_MAX} bytes", at + 1)));
        }
        let built = AhoCorasick::builder().ascii_case_insensitive(true).build(&words);
        built.map(Self).map_err(|error| bad(error.to_string()))
    }

    pub(super) fn len(&self) -> usize {
        self.0.patterns_len()
    }

    /// Passes every hit to `take`. Keywords may overlap: a longer one that is only part of a word must not hide a
    /// shorter one that is whole. All are found in one pass, so a break ends nothing.
    pub(super) fn each_hit(&self, text: &ScanText, take: &mut Take) {
        for found in self.0.find_overlapping_iter(text.body) {
            if is_whole(text.body, &found.range()) {
                let _ = take(found.pattern().as_usize(), found.range());
            }
        }
    }
}

/// Whether a hit neither starts nor ends inside a word. After the `+` of `c++` anything may follow.
fn is_whole(text: &str, found: &Range<usize>) -> bool {
    let in_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let (before, inside, after) = (&text[..found.start], &text[found.clone()], &text[found.end..]);
    let cut_in_front = in_word(before.chars().next_back()) && in_word(inside.chars().next());
    let cut_behind = in_word(inside.chars().next_back()) && in_word(after.chars().next());
    !cut_in_front && !cut_behind
}

#[cfg(test)]
mod tests {
    use crate::scan::{BadScanner, Library, Selection};

    fn selection(keywords: &[&str]) -> Selection {
        Selection { keywords: keywords.iter().map(ToString::to_string).collect(), ..Selection::default() }
    }

    #[test]
    fn keywords_are_found_whole_and_in_either_case() {
        let scanners =
            selection(&["Falcon", "falcon nine", "c++", "Größe"]).compile(&Library::default()).unwrap();
        for (text, expected) in [
            ("the FALCON flies", &["keyword_1"][..]),
            ("falcon\nfalcon", &["keyword_1", "keyword_1"]),
            ("falcons, myfalcon, falcon_x, falcon2, éfalcon", &[]),
            ("falcon ninety", &["keyword_1"]),
            ("(falcon)", &["keyword_1"]),
            ("uses c++17 and C++.", &["keyword_3", "keyword_3"]),
            ("die Größe", &["keyword_4"]),
            ("nothing of the kind", &[]),
        ] {
            let report = scanners.scan(text.as_bytes());
            let names: Vec<_> = report.findings.iter().map(|finding| finding.name.as_str()).collect();
            assert_eq!(names, expected, "{text}");
            for finding in &report.findings {
                assert_eq!((finding.scanner.as_str(), finding.confidence), ("keyword", 100));
                assert!(!finding.preview.to_lowercase().contains("falcon"));
            }
        }
    }

    #[test]
    fn a_list_that_cannot_be_used_is_refused() {
        let check = |keywords: &[&str], part: &str| {
            let error: BadScanner = selection(keywords).compile(&Library::default()).unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
        };
        check(&["a", " "], "keyword 2");
        check(&["a"; 1001], "1001 keywords");
        check(&[&"a".repeat(257)], "keyword 1");
    }
}
