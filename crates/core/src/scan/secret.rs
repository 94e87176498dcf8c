//! Secrets: keys, tokens and passwords. The more telling patterns come first.

use super::Severity::{Critical, High};
use super::pattern::ScanPattern;
use regex::Regex;
use std::ops::Range;
use std::sync::LazyLock;

/// A private key is looked for as far as this behind its first line.
const PEM_LEN_MAX: usize = 16 * 1024;
const CREDENTIAL_LEN_MIN: usize = 8;
/// A shorter value of small letters alone is a word, as in `"password": "required"`.
const LETTERS_LEN_MIN: usize = 10;

/// What the left side of an assignment ends with when the right side is a credential.
const CREDENTIAL_WORDS: &str = "(?:(?:api|access|secret|private|auth|account)[_-]?key|client[_-]?secret|\
     passw(?:or)?d|passphrase|pwd|secret|token|credentials?)";
/// In quotes it is most of what has no spaces; without, it ends where the next thing begins.
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

/// Random text has letters and digits; a name in small letters has not.
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

/// Between the first colon behind `://` and the last `@`.
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
    // Without quotes, code and prose look much like values, so more is asked of one.
    let is_call = text[found.end..].starts_with('(');
    let value = value.trim_end_matches('.');
    let span = start..start + value.len();
    (!is_call && is_credential(value) && mixed(text, span.clone()).is_some()).then_some(span)
}

/// `next_page_token` and its like are no secrets.
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

/// What stands in examples and templates where the credential goes.
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

#[cfg(test)]
mod tests {
    use crate::scan::tests::{check_found, check_quiet, scanners};

    /// Assembled here, so that no scanner of sources takes this file for a leak.
    fn example(parts: &[&str]) -> String {
        parts.concat()
    }

    #[test]
    fn secrets_are_found() {
        let check = |text: &str, name: &str, found: &str| check_found("secret", text, name, found);
        let aws_id = example(&["AKIA", "IOSFODNN7EXAMPLE"]);
        check(&format!("id {aws_id}."), "aws_access_key_id", &aws_id);
        check(
            &format!("key={}", aws_id.replace("AKIA", "ASIA")),
            "aws_access_key_id",
            "ASIAIOSFODNN7EXAMPLE",
        );
        let aws = example(&["wJalrXUtnFEMI/K7MDENG", "/bPxRfiCYEXAMPLEKEY"]);
        check(&format!("aws_secret_access_key = {aws}\n"), "aws_secret_access_key", &aws);
        check(&format!("\"SecretAccessKey\": \"{aws}\""), "aws_secret_access_key", &aws);
        check(&format!("{{\"secretAccessKey\": \"{aws}\"}}"), "aws_secret_access_key", &aws);
        check(&format!("secret_access_key = {aws}A"), "generic_credential", &format!("{aws}A"));
        let pem =
            example(&["-----BEGIN RSA ", "PRIVATE KEY-----\nMIIEow\nIBAAK=\n-----END RSA PRIVATE KEY-----"]);
        check(&format!("a\n{pem}\nb"), "private_key", &pem);
        let cut = example(&["-----BEGIN ", "PRIVATE KEY-----\nMIIEow\nIBAAK="]);
        check(&format!("{cut} and prose"), "private_key", &cut);
        let openssh = example(&["-----BEGIN OPENSSH ", "PRIVATE KEY-----"]);
        check(&openssh, "private_key", &openssh);
        for prefix in ["ghp_", "gho_", "ghs_", "ghr_", "ghu_"] {
            let token = example(&[prefix, &"a1B2".repeat(9)]);
            check(&format!("token {token}"), "github_token", &token);
        }
        let fine = example(&["github_pat_", &"11ABCDEFG0".repeat(2), "aB_", &"x9Y".repeat(20)]);
        check(&fine, "github_fine_grained_token", &fine);
        let slack = example(&["xoxb-", "123456789012-abcDEFghiJKL"]);
        check(&format!("use {slack}"), "slack_token", &slack);
        let hook = example(&["hooks.slack.com/services/", "T00000000/B00000000/", &"X1".repeat(12)]);
        check(&format!("https://{hook}"), "slack_webhook", &hook);
        for prefix in ["sk-", "sk-proj-", "sk-ant-api03-"] {
            let key = example(&[prefix, &"Ab3_".repeat(6), "x"]);
            check(&format!("({key})"), "openai_key", &key);
        }
        let jwt = example(&["eyJhbGciOiJIUzI1NiJ9", ".eyJzdWIiOiIxMjM0In0", ".dBjftJeZ4CVPmB92K27u"]);
        check(&format!("Bearer {jwt}"), "jwt", &jwt);
        check("postgres://app:s3cr@t!x@db:5432/x", "database_url_password", "s3cr@t!x");
        check("mongodb+srv://u:p4ss@cluster0.example.net", "database_url_password", "p4ss");
        check("redis://:hunter2@cache", "database_url_password", "hunter2");
        let own = example(&["vk_", &"0123456789abcdef".repeat(3)]);
        check(&format!("bearer {own}"), "reveille_key", &own);
        check("api_key = \"abcdefghijkl\"", "generic_credential", "abcdefghijkl");
        check("password: 'hunter2hunter2'", "generic_credential", "hunter2hunter2");
        check("DB_PASSWORD=hunter2abc&x=1", "generic_credential", "hunter2abc");
        check("a?token=short&password=hunter2abc", "generic_credential", "hunter2abc");
        check("auth_token := \"Zm9vYmFyYmF6\"", "generic_credential", "Zm9vYmFyYmF6");
        check("client-secret => 'x!y#z$wvu'", "generic_credential", "x!y#z$wvu");
        check(r#"{\"password\": \"hunter2hunter2\"} "#, "generic_credential", "hunter2hunter2");
        check(r#"{"db": {"password": "Tr0ub4dor&3"}}"#, "generic_credential", "Tr0ub4dor&3");
        check(r#"{"apiKey": "abcdefghijkl"}"#, "generic_credential", "abcdefghijkl");
    }

    #[test]
    fn what_only_resembles_a_secret_is_left_alone() {
        let aws = example(&["wJalrXUtnFEMI/K7MDENG", "/bPxRfiCYEXAMPLEKEY"]);
        for text in [
            // Ids, hashes, times and names of the same letters.
            "123e4567-e89b-12d3-a456-426614174000",
            "commit 8dff1c2e5b1f0c3d4a5968778695a4b3c2d1e0f9",
            "at 2026-11-15T11:22:33.000000Z, 1763205753000000000",
            "AKIAIOSFODNN7EXAMPL AKIAIOSFODNN7EXAMPLEX xAKIAIOSFODNN7EXAMPLE akiaiosfodnn7example",
            "AKIA_IOSFODNN7EXAMPLE",
            &format!("sha {aws}"),
            "aws_secret_access_key = ${AWS_SECRET_ACCESS_KEY}",
            "aws_secret_access_key_path = /home/user/.aws/a/long/path/of/forty",
            "-----BEGIN PUBLIC KEY-----\nMIIBIjANBg\n-----END PUBLIC KEY-----",
            "-----BEGIN CERTIFICATE-----",
            "a line of ----- BEGIN PRIVATE KEY -----",
            "ghp_short ghx_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa high_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "github_pat_ is how they start, github_path_to_some_file",
            "xoxb-short xoxb-not-a-real-token-name foxoxb-123456789012",
            "hooks.slack.com/services/help/article/about",
            "sk-learn-has-many-long-estimator-names sk-1234 task-0123456789abcdefghij0123",
            "risk-assessment-2026-first-quarter-report",
            "eyJhbGciOiJIUzI1NiJ9 alone, eyJhbGciOiJIUzI1NiJ9.abc.def",
            "postgres://localhost:5432/app postgres://user@db/app https://user:pass@example.com",
            "postgres://app:${DB_PASSWORD}@db/app postgres://app:****@db/app mysql://u:<password>@h/d",
            "vk_short vk_a_long_name_of_a_function_without_digits invk_0123456789abcdef0123456789abcdef",
            // The word alone, prose and code.
            "Please choose a password: it must have eight characters.",
            "The password is required. Password: required",
            "token: string, secret: boolean; api_key: Option<String>",
            "password = os.environ['PASSWORD']",
            "password = get_password_2(config)",
            "password=${DB_PASSWORD} token=$API_TOKEN_2 secret={{secret1234}} key=<your-key-1>",
            "password: \"********\" token = \"xxxxxxxxxxxx\"",
            "max_tokens: 40960000, tokens=12345678, passwordless=abcdefgh12",
            "next_page_token: \"CAESBnJlc3VsdA12\"",
            // The same as JSON.
            r#"{"password": "required", "token_type": "bearer12345", "max_tokens": "4096000000"}"#,
            r#"{"password": "must have eight characters"}"#,
            r#"{"nextPageToken": "CAESBnJlc3VsdA12", "secret": null, "token": 1234567890123}"#,
            r#"{"secretAccessKey": "8dff1c2", "key": "abcdefghijkl12"}"#,
        ] {
            check_quiet("secret", text);
        }
    }

    #[test]
    fn a_secret_is_told_once_by_its_most_telling_pattern() {
        let token = example(&["ghp_", &"a1B2".repeat(9)]);
        for text in [format!("token = \"{token}\""), format!("{{\"token\": \"{token}\"}}")] {
            let report = scanners(&["secret"]).scan(text.as_bytes());
            let names: Vec<_> = report.findings.iter().map(|finding| finding.name.as_str()).collect();
            assert_eq!(names, ["github_token"], "{text}");
        }
    }
}
