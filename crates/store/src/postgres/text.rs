//! Text columns. PostgreSQL holds any text but one with a NUL in it.
//!
//! JSON writes a NUL as six other characters, so records need nothing. Elsewhere NUL is written as two
//! U+0001 and U+0001 as U+0001 U+0002: no two texts become the same, and they sort as they did.

use std::borrow::Cow;

/// As it is stored.
pub fn held(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', '\u{1}']) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace('\u{1}', "\u{1}\u{2}").replace('\0', "\u{1}\u{1}"))
}

/// As it was given.
pub fn told(text: String) -> String {
    if !text.contains('\u{1}') {
        return text;
    }
    let mut told = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\u{1}' {
            told.push(c);
            continue;
        }
        told.push(if rest.next() == Some('\u{1}') { '\0' } else { '\u{1}' });
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_comes_back_and_they_sort_as_they_did() {
        let mut texts = vec![String::new()];
        for _ in 0..4 {
            let longer =
                texts.iter().flat_map(|text| ['\0', '\u{1}', '\u{2}', 'a'].map(|c| format!("{text}{c}")));
            texts.extend(longer.collect::<Vec<_>>());
        }
        texts.sort();
        texts.dedup();
        let stored: Vec<_> = texts.iter().map(|text| held(text).into_owned()).collect();
        assert!(stored.is_sorted_by(|one, other| one < other));
        assert!(stored.iter().all(|text| !text.contains('\0')));
        assert_eq!(stored.into_iter().map(told).collect::<Vec<_>>(), texts);
    }
}
