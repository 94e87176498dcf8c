//! Secrets: keys, tokens and passwords. The more specific patterns come first.

use super::Severity::{Critical, High};
use super::pattern::ScanPattern;
use regex::Regex;
use std::ops::Range;
use std::sync::LazyLock;

/// How far after its first line the end of a private key is searched for.
const PEM_LEN_MAX: usize = 16 * 1024;
const CREDENTIAL_LEN_MIN: usize = 8;
/// A shorter value of only lower-case letters is a word, as in `"password": "required"`.
const LETTERS_LEN_MIN: usize = 10;

/// What the left side of an assignment ends with when the right side is a credential.
const CREDENTIAL_WORDS: &str = "(?:(?:api|access|secret|private|auth|account)[_-]?key|client[_-]?secret|\
     passw(?:or)?d|passphrase|pwd|secret|token|credentials?)";
/// In quotes it is almost anything without spaces; without quotes, it ends where the next token begins.
const CREDENTIAL_VALUE: &str = r#"(?:\\?["'][^\s"']{8,}|[^\s"',;&<>(){}`\\]{8,})"#;
const AWS_SECRET_WORDS: &str = "secret[_-]?(?:access[_-]?)?key";

static CREDENTIAL_KEY: LazyLock<Regex> = LazyLock::new(|| ends_with(CREDENTIAL_WORDS));
static AWS_SECRET_KEY: LazyLock<Regex> = LazyLock::new(|| ends_with(AWS_SECRET_WORDS));

pub(super) fn patterns() -> Vec<ScanPattern> {
    let assigned = |words: &str, value: &str| {
        format!(r#"(?i){words}(?:\\?["'])?\s{{0,4}}(?::=|=>|=|:)\s{{0,4}}{value}"#)
    };
    vec![
        ScanPattern::built_in(
            "aws_access_key_id",
            Critical,
            99,
            r"\b(?:A3T[A-Z0-9]|ABIA|ACCA|AGPA|AIDA|AIPA|AKIA|ANPA|ANVA|AROA|ASIA)[A-Z0-9]{16}\b",
        ),
        ScanPattern::built_in(
            "aws_secret_access_key",
            Critical,
            95,
            &assigned(AWS_SECRET_WORDS, r#"(?:\\?["'])?[A-Za-z0-9/+]{40}"#),
        )
        .judged(aws_secret)
        .or_member(|key, value| AWS_SECRET_KEY.is_match(key) && is_aws_secret(value)),
        ScanPattern::built_in(
            "private_key",
            Critical,
            99,
            r"-----BEGIN (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----",
        )
        .judged(pem),
        ScanPattern::built_in("github_token", Critical, 98, r"\bgh[opsru]_[A-Za-z0-9]{36,255}\b"),
        ScanPattern::built_in("github_fine_grained_token", Critical, 98, r"\bgithub_pat_[A-Za-z0-9_]{60,255}\b"),
        ScanPattern::built_in("slack_token", High, 96, r"\b(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{10,250}\b")
            .judged(mixed),
        ScanPattern::built_in(
            "slack_webhook",
            High,
            96,
            r"\bhooks\.slack\.com/services/T[A-Z0-9]{6,16}/B[A-Z0-9]{6,16}/[A-Za-z0-9]{16,64}",
        ),
        ScanPattern::built_in("openai_key", Critical, 97, r"\bsk-[A-Za-z0-9_-]{20,250}\b").judged(mixed),
        ScanPattern::built_in(
            "jwt",
            High,
            92,
            r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
        ),
        ScanPattern::built_in(
            "database_url_password",
            Critical,
            95,
            r#"(?i)\b(?:postgres(?:ql)?|mysql|mariadb|mongodb|rediss?|amqps?|mssql|sqlserver|oracle|cockroachdb|clickhouse|nats)(?:\+[a-z0-9]{1,16})?://[^\s:/@"'<>]{0,128}:[^\s/"'<>]+@[^\s/@"'<>]"#,
        )
        .judged(url_password),
        ScanPattern::built_in("reveille_key", Critical, 98, r"\bvk_[A-Za-z0-9_-]{24,128}\b").judged(mixed),
        ScanPattern::built_in("generic_credential", High, 80, &assigned(CREDENTIAL_WORDS, CREDENTIAL_VALUE))
            .judged(credential)
            .or_member(|key, value| {
                CREDENTIAL_KEY.is_match(key) && !is_paging(key) && is_credential(value) && one_word(value)
            }),
    ]
}

fn ends_with(words: &str) -> Regex {
    Regex::new(&format!("(?i){words}$")).unwrap_or_else(|error| panic!("the words compile: {error}"))
}

/// Random text has letters and digits; a lower-case name does not.
fn mixed(text: &str, found: Range<usize>) -> Option<Range<usize>> {
    let body = text[found.clone()].as_bytes();
    let both = body.iter().any(u8::is_ascii_digit) && body.iter().any(u8::is_ascii_alphabetic);
    both.then_some(found)
}

/// The right side of the assignment that was found.
fn value_start(text: &str, found: &Range<usize>) -> usize {
    let assignment = &text[found.clone()];
    let sign = assignment.find(['=', ':']).unwrap_or(0);
    let between = |c: char| c.is_whitespace() || matches!(c, '=' | ':' | '>' | '\\' | '"' | '\'');
    found.end - assignment[sign..].trim_start_matches(between).len()
}

fn aws_secret(text: &str, found: Range<usize>) -> Option<Range<usize>> {
    let goes_on = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '+');
    let value = value_start(text, &found)..found.end;
    (!text[found.end..].starts_with(goes_on) && is_aws_secret(&text[value.clone()])).then_some(value)
}

/// Forty characters of base64; forty of hexadecimal are a hash.
fn is_aws_secret(value: &str) -> bool {
    let base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'+');
    value.len() == 40 && value.bytes().all(base64) && !value.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// From the first line to the last, or as far as the text looks like a key when that is cut off.
#[expect(clippy::unnecessary_wraps, reason = "it is one of the judges")]
fn pem(text: &str, found: Range<usize>) -> Option<Range<usize>> {
    let behind = &text[found.end..text.floor_char_boundary(found.end + PEM_LEN_MAX)];
    let last_line = behind.find("-----END ").and_then(|at| {
        let name_start = at + "-----END ".len();
        Some(name_start + behind[name_start..].find("-----")? + "-----".len())
    });
    let looks_like_key =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | '\\' | '\n' | '\r');
    let body = || behind.find(|c: char| !looks_like_key(c)).unwrap_or(behind.len());
    Some(found.start..found.end + last_line.unwrap_or_else(body))
}

/// Between the first colon after `://` and the last `@`.
fn url_password(text: &str, found: Range<usize>) -> Option<Range<usize>> {
    let url = &text[found.clone()];
    let user = url.find("://")? + "://".len();
    let start = user + url[user..].find(':')? + 1;
    let end = url.rfind('@')?;
    (start < end && !is_placeholder(&url[start..end])).then(|| found.start + start..found.start + end)
}

fn credential(text: &str, found: Range<usize>) -> Option<Range<usize>> {
    let start = value_start(text, &found);
    let quoted = text[..start].ends_with(['"', '\'']);
    let value = text[start..found.end].trim_end_matches('\\');
    let before = &text[text.floor_char_boundary(found.start.saturating_sub(16))..found.start];
    if is_paging(before) {
        return None;
    }
    if quoted {
        return is_credential(value).then(|| start..start + value.len());
    }
    // Without quotes, code and prose look much like values, so the check is stricter.
    let is_call = text[found.end..].starts_with('(');
    let value = value.trim_end_matches('.');
    let span = start..start + value.len();
    (!is_call && is_credential(value) && mixed(text, span.clone()).is_some()).then_some(span)
}

/// `next_page_token` and the like are not secrets.
fn is_paging(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["page", "next", "continuation"].iter().any(|word| name.contains(word))
}

fn one_word(value: &str) -> bool {
    !value.contains(char::is_whitespace)
}

fn is_credential(value: &str) -> bool {
    let is_word = value.len() < LETTERS_LEN_MIN && value.bytes().all(|byte| byte.is_ascii_lowercase());
    value.len() >= CREDENTIAL_LEN_MIN && !is_word && !is_placeholder(value)
}

/// Placeholders for credentials in examples and templates.
fn is_placeholder(value: &str) -> bool {
    let first = value.chars().next();
    let is_variable = value.strip_prefix('$').is_some_and(|name| {
        name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
    });
    is_variable
        || ["${", "$(", "{", "<", "%("].iter().any(|opening| value.starts_with(opening))
        || value.chars().all(|c| Some(c) == first)
        || ["changeme", "placeholder", "your_", "your-"]
            .iter()
            .any(|word| value.to_ascii_lowercase().starts_with(word))
}
