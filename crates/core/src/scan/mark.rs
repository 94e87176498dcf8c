//! `[REDACTED:name]`: what stands where something was taken out.
//!
//! A pattern may well match the mark itself (`.+` does), so what lies inside a mark is not found again.
//! Only marks with the name of a chosen pattern count: any other would be a place to hide things in.

use super::document::NAME_LEN_MAX;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::ops::Range;

const OPEN: &str = "[REDACTED:";
/// A number keeps two redacted keys of an object apart. It is too short to hide a card or a key in.
const NUMBER_LEN_MAX: usize = 6;
const INSIDE_LEN_MAX: usize = NAME_LEN_MAX + 1 + NUMBER_LEN_MAX;

/// The marks that a choice of scanners leaves.
#[derive(Debug)]
pub(super) struct Marks(BTreeSet<String>);

impl Marks {
    pub(super) fn new(names: impl Iterator<Item = String>) -> Self {
        Self(names.collect())
    }

    /// Where marks stand in a text, in order.
    pub(super) fn within(&self, text: &str) -> Vec<Range<usize>> {
        let places = text.match_indices(OPEN);
        places.filter_map(|(start, _)| Some(start..self.end_of(text, start + OPEN.len())?)).collect()
    }

    fn end_of(&self, text: &str, name_start: usize) -> Option<usize> {
        // Marks are short, and a text may be full of openings.
        let rest = text.as_bytes()[name_start..].iter().take(INSIDE_LEN_MAX + 1);
        let end = name_start + rest.take_while(|byte| **byte != b']').count();
        if text.as_bytes().get(end) != Some(&b']') {
            return None;
        }
        let inside = &text[name_start..end];
        let (name, number) = inside.split_once(':').unwrap_or((inside, ""));
        let short = number.len() <= NUMBER_LEN_MAX && number.bytes().all(|byte| byte.is_ascii_digit());
        (short && self.0.contains(name)).then_some(end + 1)
    }
}

/// Whether a span lies inside one of the marks, which are in order.
pub(super) fn covers(marks: &[Range<usize>], span: &Range<usize>) -> bool {
    let first = marks.partition_point(|mark| mark.end < span.end);
    marks.get(first).is_some_and(|mark| mark.start <= span.start)
}

/// The span with the whole of every mark that it touches.
pub(super) fn with_marks(marks: &[Range<usize>], span: Range<usize>) -> Range<usize> {
    let first = marks.partition_point(|mark| mark.end <= span.start);
    let behind = marks.partition_point(|mark| mark.start < span.end);
    match marks.get(first..behind) {
        Some([one, .., last]) => span.start.min(one.start)..span.end.max(last.end),
        Some([one]) => span.start.min(one.start)..span.end.max(one.end),
        _ => span,
    }
}

/// Writes a mark; `number` tells it from others of its name.
pub(super) fn write(into: &mut String, name: &str, number: Option<u32>) {
    let written = match number {
        Some(number) if number < 10_u32.pow(NUMBER_LEN_MAX as u32) => write!(into, "{OPEN}{name}:{number}]"),
        _ => write!(into, "{OPEN}{name}]"),
    };
    debug_assert!(written.is_ok(), "a string takes all that is written to it");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_marks_of_known_patterns_count() {
        let marks = Marks::new(["email".to_owned()].into_iter());
        let check = |text: &str, expected: &[&str]| {
            let found: Vec<&str> = marks.within(text).into_iter().map(|mark| &text[mark]).collect();
            assert_eq!(found, expected, "{text}");
        };
        check("a [REDACTED:email] b [REDACTED:email:2]", &["[REDACTED:email]", "[REDACTED:email:2]"]);
        check("[REDACTED:[REDACTED:email]", &["[REDACTED:email]"]);
        check("[REDACTED:hunter2] [REDACTED:email:4111111111111111] [REDACTED:email", &[]);
    }
}
