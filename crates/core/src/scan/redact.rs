//! A copy of a content without what the scanners find in it.
//!
//! Redaction does not use a report: a report has limits, and what it left out would stay. It scans again, all of the
//! content, and then its own copy until nothing more is found. JSON stays JSON of the same shape; a number that is
//! redacted becomes a string.

use super::mark;
use super::scanner::Tell;
use super::text::{ScanText, TextRole, texts};
use super::{Scanners, Severity, overlap};
use std::collections::BTreeSet;
use std::ops::{ControlFlow, Range};

/// How many times spans are removed from a text. If a pattern still matches then, such as `^.{20}`, the whole text is
/// redacted.
const ROUNDS_MAX: usize = 4;

impl Scanners {
    /// The same content with a mark, `[REDACTED:name]`, in place of everything found. Content that is not UTF-8 is
    /// decoded as well as possible, and returned untouched if nothing is found.
    pub fn redact(&self, content: &[u8]) -> Vec<u8> {
        let mut copy = String::from_utf8_lossy(content).into_owned();
        let mut keys = RedactKeys::default();
        let mut round = 0;
        while let Some(next) = self.pass(&copy, round < ROUNDS_MAX, &mut keys) {
            copy = next;
            round += 1;
        }
        if round == 0 { content.to_vec() } else { copy.into_bytes() }
    }

    /// One pass over everything; nothing if there was nothing to remove. This terminates, because every pass leaves
    /// less text outside a mark.
    fn pass(&self, content: &str, by_span: bool, keys: &mut RedactKeys) -> Option<String> {
        let mut copy = String::new();
        let mut copied = 0;
        texts(content, &mut |text| {
            let Some(cuts) = self.cuts(text) else { return };
            let whole = !by_span || text.role == TextRole::Number;
            let cuts = if whole { whole_text(text, &cuts) } else { cuts };
            let mut clean = fill(text.body, &cuts, None);
            while text.role == TextRole::Key && !keys.take(&clean, content) {
                clean = fill(text.body, &cuts, Some(keys.number()));
            }
            copy.push_str(&content[copied..text.token.start]);
            match text.role {
                TextRole::Plain => copy.push_str(&clean),
                TextRole::Key | TextRole::Value | TextRole::Number => {
                    copy.push_str(&serde_json::Value::from(clean).to_string());
                }
            }
            copied = text.token.end;
        });
        if copy.is_empty() {
            return None;
        }
        copy.push_str(&content[copied..]);
        Some(copy)
    }

    /// The spans to remove from a text, in order and disjoint; nothing if it is clean.
    fn cuts(&self, text: &ScanText) -> Option<Vec<Cut<'_>>> {
        let marks = self.0.marks.within(text.body);
        let mut cuts: Vec<Cut> = Vec::new();
        for scanner in &self.0.scanners {
            let gave_up = scanner.each_hit(text, &mut |pattern, span| {
                if !mark::covers(&marks, &span) {
                    cuts.push(Cut::new(&scanner.tells()[pattern], mark::with_marks(&marks, span)));
                }
                ControlFlow::Continue(())
            });
            if let Some(tell) = gave_up {
                return Some(vec![Cut::new(tell, 0..text.body.len())]);
            }
        }
        (!cuts.is_empty()).then(|| joined(cuts))
    }
}

/// The existing keys, so that two keys of an object stay distinct.
#[derive(Default)]
struct RedactKeys {
    used: Option<BTreeSet<String>>,
    number: u32,
}

impl RedactKeys {
    /// Refuses a name that another key has, whether assigned or its own.
    fn take(&mut self, name: &str, content: &str) -> bool {
        let used = self.used.get_or_insert_with(|| {
            let mut own = BTreeSet::new();
            texts(content, &mut |text| {
                if text.role == TextRole::Key {
                    own.insert(text.body.to_owned());
                }
            });
            own
        });
        used.insert(name.to_owned())
    }

    /// The next one, from 2 on.
    fn number(&mut self) -> u32 {
        self.number += 1;
        self.number + 1
    }
}

struct Cut<'s> {
    span: Range<usize>,
    name: &'s str,
    severity: Severity,
}

impl<'s> Cut<'s> {
    fn new(tell: &'s Tell, span: Range<usize>) -> Self {
        Self { span, name: &tell.name, severity: tell.severity }
    }
}

/// Overlapping cuts become one, with the name of the worst.
fn joined(mut cuts: Vec<Cut>) -> Vec<Cut> {
    cuts.sort_by_key(|cut| (cut.span.start, cut.span.end));
    let mut apart: Vec<Cut> = Vec::with_capacity(cuts.len());
    for cut in cuts {
        match apart.last_mut() {
            Some(last) if overlap(&last.span, &cut.span) => {
                last.span.end = last.span.end.max(cut.span.end);
                if cut.severity > last.severity {
                    (last.name, last.severity) = (cut.name, cut.severity);
                }
            }
            _ => apart.push(cut),
        }
    }
    apart
}

fn whole_text<'s>(text: &ScanText, cuts: &[Cut<'s>]) -> Vec<Cut<'s>> {
    let worst = cuts.iter().max_by_key(|cut| cut.severity);
    let whole = |cut: &Cut<'s>| Cut { span: 0..text.body.len(), ..*cut };
    worst.map(whole).into_iter().collect()
}

fn fill(text: &str, cuts: &[Cut], number: Option<u32>) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut copied = 0;
    for cut in cuts {
        filled.push_str(&text[copied..cut.span.start]);
        mark::write(&mut filled, cut.name, number);
        copied = cut.span.end;
    }
    filled.push_str(&text[copied..]);
    filled
}
