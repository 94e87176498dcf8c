//! The texts of a content: the whole of it, or each key, string and number if it is JSON.
//!
//! The JSON is validated by `serde_json` and then read token by token here. That keeps what a parsed value would
//! lose: repeated keys, the order of keys, the digits of long numbers. Nothing recurses, so nesting is free. Several
//! values in sequence, as in JSON lines, are JSON too.

use serde::de::IgnoredAny;
use std::borrow::Cow;
use std::ops::Range;

/// Longer pointers are truncated: keys can be as long as the content.
const POINTER_LEN_MAX: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextRole {
    Plain,
    Key,
    Value,
    Number,
}

/// One text, decoded, and its position.
pub(super) struct ScanText<'t> {
    pub role: TextRole,
    pub body: &'t str,
    /// The key that it is the value of.
    pub key: Option<&'t str>,
    /// The position of its token in the content.
    pub token: Range<usize>,
    path: &'t Path<'t>,
}

impl ScanText<'_> {
    /// The JSON pointer; see [`super::Finding::at`].
    pub(super) fn pointer(&self) -> String {
        let mut pointer = self.path.pointer();
        if self.role == TextRole::Key {
            pointer.push('#');
        }
        pointer
    }
}

/// Visits every text of a content.
pub(super) fn texts(content: &str, visit: &mut dyn FnMut(&ScanText)) {
    let json = content.strip_prefix('\u{feff}').unwrap_or(content);
    if is_json(json) {
        return tokens(content, content.len() - json.len(), visit);
    }
    let path = Path { content, frames: Vec::new() };
    visit(&ScanText {
        role: TextRole::Plain,
        body: content,
        key: None,
        token: 0..content.len(),
        path: &path,
    });
}

/// A bare number or word is plain text, even though it would parse.
fn is_json(content: &str) -> bool {
    content.trim_start().starts_with(['{', '[', '"'])
        && serde_json::Deserializer::from_str(content).into_iter::<IgnoredAny>().all(|value| value.is_ok())
}

/// Open containers, outermost first.
struct Path<'c> {
    content: &'c str,
    frames: Vec<PathFrame>,
}

enum PathFrame {
    /// The index of the current element.
    Array(usize),
    /// The current key's token, empty before the first.
    Object(Range<usize>),
}

impl Path<'_> {
    /// The key whose value is next.
    fn key(&self) -> Option<Cow<'_, str>> {
        match self.frames.last()? {
            PathFrame::Object(key) => Some(decode(&self.content[key.clone()])),
            PathFrame::Array(_) => None,
        }
    }

    fn pointer(&self) -> String {
        let mut pointer = String::new();
        for frame in &self.frames {
            let step = match frame {
                PathFrame::Array(index) => Cow::Owned(index.to_string()),
                PathFrame::Object(key) => decode(&self.content[key.clone()]),
            };
            pointer.push('/');
            pointer.push_str(&step.replace('~', "~0").replace('/', "~1"));
            if pointer.len() > POINTER_LEN_MAX {
                pointer.truncate(pointer.floor_char_boundary(POINTER_LEN_MAX));
                pointer.push('…');
                break;
            }
        }
        pointer
    }
}

/// Reads JSON that is known to be valid.
fn tokens(content: &str, start: usize, visit: &mut dyn FnMut(&ScanText)) {
    let bytes = content.as_bytes();
    let mut path = Path { content, frames: Vec::new() };
    let mut key_is_next = false;
    let mut at = start;
    while let Some(byte) = bytes.get(at) {
        let end = match byte {
            b'"' => string_end(bytes, at),
            b'-' | b'0'..=b'9' => number_end(bytes, at),
            _ => at + 1,
        };
        match byte {
            b'{' => path.frames.push(PathFrame::Object(at..at)),
            b'[' => path.frames.push(PathFrame::Array(0)),
            b'}' | b']' => drop(path.frames.pop()),
            b',' => {
                if let Some(PathFrame::Array(index)) = path.frames.last_mut() {
                    *index += 1;
                }
            }
            b'"' => visit_string(&mut path, at..end, key_is_next, visit),
            b'-' | b'0'..=b'9' => {
                let (body, key) = (&content[at..end], path.key());
                let key = key.as_deref();
                visit(&ScanText { role: TextRole::Number, body, key, token: at..end, path: &path });
            }
            _ => {}
        }
        key_is_next = match byte {
            b'{' | b',' => matches!(path.frames.last(), Some(PathFrame::Object(_))),
            b' ' | b'\n' | b'\r' | b'\t' => key_is_next,
            _ => false,
        };
        at = end;
    }
}

fn visit_string(path: &mut Path, token: Range<usize>, is_key: bool, visit: &mut dyn FnMut(&ScanText)) {
    let inside = token.start + 1..token.end - 1;
    if is_key && let Some(frame) = path.frames.last_mut() {
        *frame = PathFrame::Object(inside.clone());
    }
    let body = decode(&path.content[inside]);
    let (role, key) = if is_key { (TextRole::Key, None) } else { (TextRole::Value, path.key()) };
    visit(&ScanText { role, body: &body, key: key.as_deref(), token, path });
}

/// The position after the closing quote.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn number_end(bytes: &[u8], start: usize) -> usize {
    let part = |byte: &u8| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
    start + bytes[start..].iter().take_while(|byte| part(byte)).count()
}

/// The text that a JSON string means. Half of a surrogate pair, which `serde_json` would refuse and other readers
/// accept, becomes the replacement character: it must not hide the rest.
fn decode(raw: &str) -> Cow<'_, str> {
    let Some(first) = raw.find('\\') else { return Cow::Borrowed(raw) };
    let mut text = String::with_capacity(raw.len());
    text.push_str(&raw[..first]);
    let mut rest = &raw[first..];
    let mut units = Vec::new();
    loop {
        while let Some(unit) = escaped_unit(rest) {
            units.push(unit);
            rest = &rest["\\u0000".len()..];
        }
        let escaped = char::decode_utf16(units.drain(..));
        text.extend(escaped.map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)));
        let mut letters = rest.chars();
        match letters.next() {
            None => return Cow::Owned(text),
            Some('\\') => text.extend(letters.next().map(unescape)),
            Some(letter) => text.push(letter),
        }
        rest = letters.as_str();
    }
}

/// The UTF-16 unit of a `\uXXXX` that the text starts with.
fn escaped_unit(text: &str) -> Option<u16> {
    u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
}

fn unescape(letter: char) -> char {
    match letter {
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(content: &str, expected: &[(&str, TextRole, &str)]) {
        let mut found = Vec::new();
        texts(content, &mut |text| found.push((text.pointer(), text.role, text.body.to_owned())));
        let found: Vec<_> =
            found.iter().map(|(at, role, body)| (at.as_str(), *role, body.as_str())).collect();
        assert_eq!(found, expected, "{content}");
    }

    #[test]
    fn json_is_read_string_by_string() {
        use TextRole::{Key, Number, Plain, Value};
        check("", &[("", Plain, "")]);
        check("12", &[("", Plain, "12")]);
        check("{\"a\": 1,}", &[("", Plain, "{\"a\": 1,}")]);
        check("\u{feff}\"x\"", &[("", Value, "x")]);
        check(
            r#" {"a": ["x", -1.5e3, {"b/~": "y"}], "a": "twice", "t": true} "#,
            &[
                ("/a#", Key, "a"),
                ("/a/0", Value, "x"),
                ("/a/1", Number, "-1.5e3"),
                ("/a/2/b~1~0#", Key, "b/~"),
                ("/a/2/b~1~0", Value, "y"),
                ("/a#", Key, "a"),
                ("/a", Value, "twice"),
                ("/t#", Key, "t"),
            ],
        );
        check("[\"a\", \"b\"]", &[("/0", Value, "a"), ("/1", Value, "b")]);
        check("[\"a\"]\n{\"b\": \"c\"}\n", &[("/0", Value, "a"), ("/b#", Key, "b"), ("/b", Value, "c")]);
    }

    #[test]
    fn escapes_are_decoded_and_half_pairs_hide_nothing() {
        for (raw, expected) in [
            (r"\u0041KIA", "AKIA"),
            (r#"a\"b\\c\/d\n\t"#, "a\"b\\c/d\n\t"),
            (r"\ud83d\ude00!", "😀!"),
            (r"\ud83dx", "\u{fffd}x"),
            (r"\ud83d\u0041", "\u{fffd}A"),
            (r"\ud83d\ud83d\ude00", "\u{fffd}😀"),
            (r"\ude00\ud83d", "\u{fffd}\u{fffd}"),
            (r"\ud83d\n", "\u{fffd}\n"),
        ] {
            assert_eq!(decode(raw), expected, "{raw}");
        }
        check(r#"["\ud800\u0041"]"#, &[("/0", TextRole::Value, "\u{fffd}A")]);
    }

    #[test]
    fn deep_nesting_is_walked_and_its_pointer_is_cut() {
        let deep = format!("{}\"x\"{}", "[".repeat(100_000), "]".repeat(100_000));
        let mut found = Vec::new();
        texts(&deep, &mut |text| found.push((text.body.to_owned(), text.pointer())));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, "x");
        assert!(found[0].1.len() <= POINTER_LEN_MAX + '…'.len_utf8(), "{}", found[0].1.len());
    }

    proptest! {
        #[test]
        fn a_string_is_decoded_as_it_was_written(text in any::<String>()) {
            let written = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(decode(&written[1..written.len() - 1]), text);
        }
    }
}
