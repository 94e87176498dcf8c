//! How large a pattern is once it is compiled, before it is: `\w{40}` is six characters and two megabytes.

use regex_syntax::hir::{Class, Hir, HirKind};

/// What the compiler makes of one range of characters, of one byte of a literal, and of anything else.
const RANGE_BYTES: usize = 80;
const LITERAL_BYTES: usize = 32;
const OTHER_BYTES: usize = 32;

/// About how many bytes it takes; nothing, if it is no pattern.
pub(super) fn compiled(pattern: &str) -> Option<usize> {
    regex_syntax::parse(pattern).ok().map(|parsed| size(&parsed))
}

/// The parser limits how deep a pattern is nested.
fn size(hir: &Hir) -> usize {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => OTHER_BYTES,
        HirKind::Literal(literal) => literal.0.len().saturating_mul(LITERAL_BYTES),
        HirKind::Class(Class::Unicode(class)) => class.ranges().len().saturating_mul(RANGE_BYTES),
        HirKind::Class(Class::Bytes(class)) => class.ranges().len().saturating_mul(OTHER_BYTES),
        HirKind::Repetition(repeated) => {
            let times = repeated.max.unwrap_or(repeated.min).max(1);
            size(&repeated.sub).saturating_mul(times as usize).saturating_add(OTHER_BYTES)
        }
        HirKind::Capture(capture) => size(&capture.sub).saturating_add(OTHER_BYTES),
        HirKind::Concat(all) | HirKind::Alternation(all) => {
            all.iter().map(size).fold(OTHER_BYTES, usize::saturating_add)
        }
    }
}
