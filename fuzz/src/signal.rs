//! What an input did, as a number: the poor man's coverage.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

/// Two inputs that did the same have the same signal. What a target puts in decides how finely the driver tells
/// inputs apart: kinds of errors and small counts, never contents.
#[derive(Debug, Default)]
pub struct FuzzSignal(DefaultHasher);

impl FuzzSignal {
    pub fn see(&mut self, what: impl Hash) {
        what.hash(&mut self.0);
    }

    /// An error, by its words; numbers and quoted parts are the input's own.
    pub fn see_words(&mut self, words: &str) {
        let mut is_quoted = false;
        for letter in words.chars() {
            is_quoted ^= matches!(letter, '"' | '`' | '\'');
            if letter.is_ascii_alphabetic() && !is_quoted {
                letter.hash(&mut self.0);
            }
        }
    }

    /// A count, by its magnitude.
    pub fn see_count(&mut self, count: usize) {
        count.checked_ilog2().hash(&mut self.0);
    }

    pub fn finish(&self) -> u64 {
        self.0.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &str) -> u64 {
        let mut signal = FuzzSignal::default();
        signal.see_words(words);
        signal.finish()
    }

    #[test]
    fn errors_of_one_kind_are_one_signal() {
        assert_eq!(words("line 3: \"abc\" is no number"), words("line 17: \"x\" is no number"));
        assert_ne!(words("is no number"), words("is no text"));
    }
}
