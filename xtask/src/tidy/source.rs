//! Rust source as words: what stands in comments and strings is not code, and no rule about names should see it.
//!
//! This is no parser. The rules need paths and the names of types, and both can be told from words and punctuation.

/// A name, or one sign, and its line, counted from 1. `::` is one sign.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Token<'a> {
    pub text: &'a str,
    pub line: usize,
}

/// A path as it is written, such as `crate::jobs::Job`; a group in braces is as many paths as it has members.
#[derive(Debug, PartialEq)]
pub struct CodePath<'a> {
    pub segments: Vec<&'a str>,
    /// What the end of the path is called here: its last segment, or the name after `as`.
    pub name: &'a str,
    pub line: usize,
}

/// The code of a file without comments, strings and unit tests, which stand last in a file.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if let Some(length) = string_length(rest).or_else(|| comment_length(rest)) {
            length
        } else if first.is_whitespace() {
            first.len_utf8()
        } else {
            let length = match first {
                ':' if rest.starts_with("::") => 2,
                _ if is_word(first) => rest.find(|letter| !is_word(letter)).unwrap_or(rest.len()),
                _ => first.len_utf8(),
            };
            tokens.push(Token { text: &rest[..length], line });
            length
        };
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    if let Some(at) = tests_begin(&tokens) {
        tokens.truncate(at);
    }
    tokens
}

/// All paths that begin with `crate` or `super`.
pub fn paths<'a>(tokens: &[Token<'a>]) -> Vec<CodePath<'a>> {
    let mut paths = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let begins = matches!(tokens[at].text, "crate" | "super") && text(tokens, at + 1) == "::";
        at = if begins { tree(tokens, at, &[], &mut paths) } else { at + 1 };
    }
    paths
}

/// What `use` brings in, wherever the path begins.
pub fn imports<'a>(tokens: &[Token<'a>]) -> Vec<CodePath<'a>> {
    let mut paths = Vec::new();
    for at in (0..tokens.len()).filter(|at| tokens[*at].text == "use") {
        tree(tokens, at + 1, &[], &mut paths);
    }
    paths
}

/// Reads `a::b`, `a::{b, c::d}`, `a::*` or `a as b`; answers where it ends.
fn tree<'a>(tokens: &[Token<'a>], mut at: usize, before: &[&'a str], paths: &mut Vec<CodePath<'a>>) -> usize {
    let mut segments = before.to_vec();
    let line = tokens.get(at).map_or(0, |token| token.line);
    loop {
        match text(tokens, at) {
            "{" => {
                at += 1;
                while at < tokens.len() && text(tokens, at) != "}" {
                    let end = tree(tokens, at, &segments, paths);
                    at = end.max(at + 1);
                }
                return at + 1;
            }
            word if word.starts_with(is_word) => segments.push(word),
            _ => break,
        }
        at += 1;
        if text(tokens, at) != "::" {
            break;
        }
        at += 1;
    }
    let mut name = segments.iter().rfind(|segment| **segment != "self").copied().unwrap_or_default();
    if text(tokens, at) == "as" {
        name = text(tokens, at + 1);
        at += 2;
    }
    if segments.len() > before.len() {
        paths.push(CodePath { segments, name, line });
    }
    at
}

fn text<'a>(tokens: &[Token<'a>], at: usize) -> &'a str {
    tokens.get(at).map_or("", |token| token.text)
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn tests_begin(tokens: &[Token]) -> Option<usize> {
    const TESTS: [&str; 8] = ["#", "[", "cfg", "(", "test", ")", "]", "mod"];
    // A name follows, and then a body: `mod tests;` is another file.
    let begin = |window: &[Token]| {
        window.iter().map(|token| token.text).take(TESTS.len()).eq(TESTS)
            && window[TESTS.len() + 1].text == "{"
    };
    tokens.windows(TESTS.len() + 2).position(begin)
}

fn comment_length(rest: &str) -> Option<usize> {
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    if !rest.starts_with("/*") {
        return None;
    }
    // Comments in Rust nest.
    let (mut at, mut depth) = (2, 1);
    while depth > 0 && at < rest.len() {
        let (step, change) = match &rest.as_bytes()[at..] {
            [b'/', b'*', ..] => (2, 1),
            [b'*', b'/', ..] => (2, -1),
            _ => (1, 0),
        };
        at += step;
        depth += change;
    }
    Some(at)
}

/// The length of a string or of a character, with its quotes and whatever stands before them.
fn string_length(rest: &str) -> Option<usize> {
    let quote = rest.char_indices().take(5).find(|(_, letter)| matches!(letter, '"' | '\''))?.0;
    let (before, quoted) = rest.split_at(quote);
    if let Some(hashes) = before.strip_prefix("br").or_else(|| before.strip_prefix('r')) {
        let is_raw = quoted.starts_with('"') && hashes.bytes().all(|letter| letter == b'#');
        let end = format!("\"{hashes}");
        return is_raw.then(|| quoted[1..].find(&end).map_or(rest.len(), |at| quote + 1 + at + end.len()));
    }
    if !matches!(before, "" | "b" | "c") {
        return None;
    }
    let mark = quoted.chars().next()?;
    // `'a` without a quote behind it is a lifetime.
    if mark == '\'' && !quoted[1..].starts_with('\\') && quoted[1..].chars().nth(1) != Some('\'') {
        return None;
    }
    let mut is_escaped = false;
    for (at, letter) in quoted.char_indices().skip(1) {
        if letter == mark && !is_escaped {
            return Some(quote + at + 1);
        }
        is_escaped = letter == '\\' && !is_escaped;
    }
    Some(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_tokens(text: &str, expected: &str) {
        let words: Vec<&str> = tokens(text).iter().map(|token| token.text).collect();
        assert_eq!(words.join(" "), expected);
    }

    #[test]
    fn comments_strings_and_tests_are_no_code() {
        check_tokens("a // b\nc /* d /* e */ f */ g", "a c g");
        check_tokens(r#"a("b \" c", 'd', '\'', b"e", "\\")"#, "a ( , , , , )");
        check_tokens("r\"a\\\" r#\"b \" c\"# br##\"d\"# e\"## f", "f");
        check_tokens("fn f<'a>(x: &'a str) -> for_r", "fn f < ' a > ( x : & ' a str ) - > for_r");
        check_tokens("'é' + '\"' + \"/* é */\" x", "+ + x");
        check_tokens(
            "a #[cfg(test)] fn b() {} #[cfg(test)] mod tests { c }",
            "a # [ cfg ( test ) ] fn b ( ) { }",
        );
        check_tokens("#[cfg(test)] mod tests; a", "# [ cfg ( test ) ] mod tests ; a");
    }

    #[test]
    fn lines_are_counted_through_what_is_left_out() {
        let tokens = tokens("/*\n*/ a \"\n\n\" b\n// \nc");
        assert_eq!(tokens.iter().map(|token| token.line).collect::<Vec<_>>(), [2, 4, 6]);
    }

    #[test]
    fn a_group_is_as_many_paths_as_it_has_members() {
        let tokens =
            tokens("pub use crate::{\n  jobs::{self, Job as J, *},\n  fleet,\n};\nlet x = super::a::<B>();");
        let read = paths(&tokens);
        let written: Vec<String> = read
            .iter()
            .map(|path| format!("{}:{}={}", path.line, path.segments.join("::"), path.name))
            .collect();
        assert_eq!(
            written,
            ["2:crate::jobs::self=jobs", "2:crate::jobs::Job=J", "3:crate::fleet=fleet", "5:super::a=a"]
        );
    }
}
