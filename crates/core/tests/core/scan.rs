//! What scanners find, and what is left of a text when it is taken out.

mod injection;
mod pii;
mod prompt;
mod secret;

use proptest::prelude::*;
use reveille_core::scan::{
    Document, Library, PATTERN_HITS_MAX, Report, SCAN_LEN_MAX, SCANNER_HITS_MAX, Scanners, Selection,
    Severity,
};
use serde_json::{Value, json};

const BUILT_IN: [&str; 4] = ["secret", "pii", "injection", "prompt_injection"];

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

fn scanners(names: &[&str]) -> Scanners {
    Selection { scanners: strings(names), ..Selection::default() }.compile(&Library::default()).unwrap()
}

fn patterns(regexes: &[&str]) -> Scanners {
    let selection = Selection { content_patterns: strings(regexes), ..Selection::default() };
    selection.compile(&Library::default()).unwrap()
}

/// One scanner finds exactly one thing of this name, and takes it out.
#[track_caller]
fn check_found(scanner: &str, text: &str, name: &str, found: &str) {
    let scanners = scanners(&[scanner]);
    let report = scanners.scan(text.as_bytes());
    let named: Vec<_> = report.findings.iter().filter(|finding| finding.name == name).collect();
    assert_eq!(named.len(), 1, "{text}: {:?}", report.findings);
    assert_eq!(named[0].scanner, scanner);
    assert_eq!(named[0].span.len(), found.len(), "{text}: {:?}", named[0]);
    assert!(named[0].at.starts_with('/') || &text[named[0].span.clone()] == found, "{text}: {:?}", named[0]);
    assert!(!named[0].preview.contains(found), "{}", named[0].preview);
    let redacted = String::from_utf8(scanners.redact(text.as_bytes())).unwrap();
    assert!(!redacted.contains(found) && redacted.contains("[REDACTED:"), "{redacted}");
    assert_eq!(scanners.scan(redacted.as_bytes()).findings, [], "{redacted}");
}

#[track_caller]
fn check_quiet(scanner: &str, text: &str) {
    let report = scanners(&[scanner]).scan(text.as_bytes());
    assert_eq!(report.findings, [], "{text}");
}

fn names(report: &Report) -> Vec<&str> {
    report.findings.iter().map(|finding| finding.name.as_str()).collect()
}

#[test]
fn a_rule_whose_patterns_match_nothing_finds_nothing() {
    let scanners = patterns(&["forbidden", r"\bnever\b"]);
    for text in ["", "an ordinary sentence", "{\"a\": \"b\"}", "[]"] {
        assert_eq!(scanners.scan(text.as_bytes()), Report::default(), "{text}");
        assert_eq!(scanners.redact(text.as_bytes()), text.as_bytes());
    }
    let nothing = Selection::default().compile(&Library::default()).unwrap();
    assert!(nothing.is_empty() && nothing.scan(b"password = 'hunter2hunter2'") == Report::default());
}

#[test]
fn a_finding_says_what_where_and_how_sure() {
    let content = json!({"users": [{"e/mail": "to bob@example.com"}]}).to_string();
    let report = scanners(&["pii"]).scan(content.as_bytes());
    let expected = json!({
        "findings": [{
            "scanner": "pii", "name": "email", "severity": "high", "confidence": 90,
            "at": "/users/0/e~1mail", "span": {"start": 3, "end": 18}, "preview": "bob… (15 characters)",
        }],
        "truncated": false,
    });
    assert_eq!(serde_json::to_value(&report).unwrap(), expected);
    assert_eq!(serde_json::from_value::<Report>(expected).unwrap(), report);
    assert_eq!(report.worst(), Some(Severity::High));
    assert!(Severity::Low < Severity::Medium && Severity::High < Severity::Critical);
}

#[test]
fn escapes_in_json_hide_nothing() {
    let id = ["AKIA", "IOSFODNN7EXAMPLE"].concat();
    for content in [
        format!(r#"{{"a": "\u0041{}"}}"#, &id[1..]),
        format!(r#"{{"\u0041{}": 1}}"#, &id[1..]),
        format!(r#"["\ud800 \u0041{}"]"#, &id[1..]),
        format!("{{\"a\": 1}}\n{{\"b\": \"\\u0041{}\"}}\n", &id[1..]),
        format!(r#"{{"a": "\u0041{}", "a": "x"}}"#, &id[1..]),
        format!("{}\"\\u0041{}\"{}", "[".repeat(5000), &id[1..], "]".repeat(5000)),
    ] {
        let scanners = scanners(&["secret"]);
        assert_eq!(names(&scanners.scan(content.as_bytes())), ["aws_access_key_id"], "{content}");
        let redacted = String::from_utf8(scanners.redact(content.as_bytes())).unwrap();
        assert!(
            redacted.contains("\"[REDACTED:aws_access_key_id]\"") || redacted.contains("\u{fffd} [REDACTED")
        );
    }
}

#[test]
fn content_that_is_not_utf8_is_scanned_all_the_same() {
    let mut content = b"\xff\xfe\x80 password = 'hunter2hunter2' \xf0\x9f".to_vec();
    let scanners = scanners(&BUILT_IN);
    assert_eq!(names(&scanners.scan(&content)), ["generic_credential"]);
    assert!(!scanners.redact(&content).windows(7).any(|window| window == b"hunter2"));
    content.drain(3..);
    assert_eq!(scanners.redact(&content), content, "nothing found, nothing touched");
}

#[test]
fn a_report_has_limits_and_redaction_has_none() {
    let scanners = scanners(&["pii"]);
    let mail = |count: usize| "u@example.com\n".repeat(count);
    let count = |report: &Report| report.findings.len();
    assert_eq!(count(&scanners.scan(mail(9).as_bytes())), 9);
    assert_eq!(count(&scanners.scan(mail(50).as_bytes())), PATTERN_HITS_MAX);
    let rows: Vec<String> = (0..50).map(|n| format!("u{n}@example.com")).collect();
    let json = serde_json::to_string(&rows).unwrap();
    assert_eq!(count(&scanners.scan(json.as_bytes())), PATTERN_HITS_MAX, "over all strings");
    for content in [mail(5000), json] {
        let redacted = scanners.redact(content.as_bytes());
        assert_eq!(count(&scanners.scan(&redacted)), 0);
        assert!(!String::from_utf8(redacted).unwrap().contains('@'));
    }
    let regexes: Vec<String> = (b'a'..=b'z').map(|letter| format!("{}!", char::from(letter))).collect();
    let regexes: Vec<&str> = regexes.iter().map(String::as_str).collect();
    let text = "a!b!c!d!e!f!g!h!i!j!k!l!m!n!o!p!q!r!s!t!u!v!w!x!y!z!".repeat(3);
    assert_eq!(count(&patterns(&regexes).scan(text.as_bytes())), SCANNER_HITS_MAX);
}

#[test]
fn content_beyond_the_window_is_said_to_be_truncated() {
    let scanners = scanners(&["secret"]);
    let secret = " password = 'hunter2hunter2'";
    let exact = "x".repeat(SCAN_LEN_MAX - secret.len()) + secret;
    let report = scanners.scan(exact.as_bytes());
    assert_eq!((report.findings.len(), report.truncated), (1, false));
    let longer = "é".repeat(SCAN_LEN_MAX / 2) + secret;
    let report = scanners.scan(longer.as_bytes());
    assert_eq!((report.findings.len(), report.truncated), (0, true));
    assert!(!String::from_utf8(scanners.redact(longer.as_bytes())).unwrap().contains("hunter2"));
}

#[test]
fn patterns_that_stall_other_engines_run_in_linear_time() {
    let text = "a".repeat(100 * 1024) + "!";
    assert_eq!(patterns(&["(a+)+$"]).scan(text.as_bytes()), Report::default());
    // Every match of this one looks to the end of the text, so not all of them are looked at.
    let scanners = patterns(&["a.*b|a"]);
    assert_eq!(scanners.scan(text.as_bytes()).findings.len(), PATTERN_HITS_MAX);
    assert_eq!(scanners.redact(text.as_bytes()), b"[REDACTED:pattern_1]");
    let marks = "[REDACTED:pattern_1]".repeat(5000);
    assert!(patterns(&["R"]).scan(marks.as_bytes()).truncated, "all of them in marks, and too many");
}

#[test]
fn a_pattern_that_cannot_be_used_is_refused_by_name() {
    let check = |document: Value, part: &str| {
        let parsed = serde_json::from_value::<Document>(document).map_err(|error| error.to_string());
        let made = parsed.and_then(|document| Library::new(&document).map_err(|error| error.to_string()));
        let error = made.err().unwrap_or_default();
        assert!(error.contains(part), "{error:?} should contain {part:?}");
    };
    let one = |pattern: Value| json!({"scanners": {"mine": {"patterns": [pattern]}}});
    let regex = |regex: &str| one(json!({"name": "p", "regex": regex}));
    check(regex("(a"), "scanner \"mine\", pattern \"p\": ");
    check(regex("(a"), "unclosed group");
    check(regex("(?=a)b"), "look-around");
    check(regex(r"(a)\1"), "backreferences");
    check(regex("(?:a{1000}){1000}"), "too large");
    check(regex(r"\w{900}"), "too large");
    let roomy = regex(r"[\w.+-]{1,64}@[\w-]{1,63}\.\w{2,24}");
    assert!(Library::new(&serde_json::from_value(roomy).unwrap()).is_ok());
    check(regex(&"é".repeat(257)), "257 characters, and may have 256");
    check(regex("a*"), "matches the empty text");
    check(one(json!({"name": "p q", "regex": "a"})), "a name has");
    check(one(json!({"name": "p", "regex": "a", "confidence": 95})), "95 is not between 0 and 1");
    check(one(json!({"name": "p", "regex": "a", "severity": "bad"})), "bad");
    check(one(json!({"name": "p", "regex": "a", "flags": "i"})), "flags");
    check(json!({"scanners": {"mine": {}}}), "has no patterns");
    check(json!({"scanners": {"keyword": {"patterns": [{"name": "p", "regex": "a"}]}}}), "from rules");
    check(json!({"detectors": {}}), "detectors");
    let error = Selection { content_patterns: strings(&["a", "(b"]), ..Selection::default() };
    let error = error.compile(&Library::default()).unwrap_err().to_string();
    assert!(error.starts_with("scanner \"content_pattern\", pattern \"pattern_2\": "), "{error}");
}

#[test]
fn rules_choose_scanners_by_name_alias_or_type_of_finding() {
    let document: Document = serde_json::from_value(json!({
        "version": "v1",
        "scanners": {
            "secret": {"finding_type": "secret_leak", "description": "more of them",
                       "patterns": [{"name": "badge", "regex": "BADGE-[0-9]{4}", "severity": "low", "confidence": 0.57}]},
            "tickets": {"finding_type": "internal", "patterns": [{"name": "ticket", "regex": "TCK-[0-9]+"}]},
            "pins": {"finding_type": "card_data",
                     "patterns": [{"name": "six", "regex": "[0-9]{6}", "context_required": true}]},
            "more": {"finding_type": "injection", "patterns": [{"name": "ticket_2", "regex": "TCK-2"}]},
            "hosts": {"finding_type": "internal",
                      "patterns": [{"name": "host", "regex": "[a-z]+[.]corp", "context_required": true}]},
        },
    }))
    .unwrap();
    let library = Library::new(&document).unwrap();
    let check = |names: &[&str], keywords: &[&str], text: &str, expected: &[&str]| {
        let selection =
            Selection { scanners: strings(names), keywords: strings(keywords), ..Selection::default() };
        let report = selection.compile(&library).unwrap().scan(text.as_bytes());
        let found: Vec<_> =
            report.findings.iter().map(|finding| format!("{}/{}", finding.scanner, finding.name)).collect();
        assert_eq!(found, expected, "{text}");
    };
    let badge = "BADGE-1234, password = 'hunter2hunter2'";
    for name in ["secret", "secrets", "secret_leak"] {
        check(&[name, "secret"], &[], badge, &["secret/generic_credential", "secret/badge"]);
    }
    check(&["internal"], &[], "TCK-1 on host db.corp", &["hosts/host", "tickets/ticket"]);
    check(&["tickets"], &[], "TCK-1 on host db.corp", &["tickets/ticket"]);
    check(&["hosts"], &[], "db.corp", &[]);
    check(&["card_data"], &[], r#"{"card": 123456, "n": 123456}"#, &["pins/six"]);
    check(&["pii"], &[], "a@example.com TCK-1", &["pii/email"]);
    check(&["injection"], &[], "TCK-2; rm -rf /", &["injection/shell_delete", "more/ticket_2"]);
    check(&["hosts"], &[], r#"{"auth_server": "db.corp", "x": "db.corp"}"#, &["hosts/host"]);
    check(&["tickets"], &[], r#"{"TCK-1": 2}"#, &["tickets/ticket"]);
    check(&["code_injection"], &[], "rm -rf / ", &["injection/shell_delete"]);
    for name in ["keyword", "keywords"] {
        check(&[name], &["falcon"], "Falcon", &["keyword/keyword_1"]);
    }
    check(&[], &["falcon"], "Falcon", &["keyword/keyword_1"]);
    let refused = |names: &[&str]| {
        let selection = Selection { scanners: strings(names), ..Selection::default() };
        selection.compile(&library).unwrap_err().to_string()
    };
    assert_eq!(refused(&["keyword"]), "scanner \"keyword\": has no keywords");
    assert_eq!(
        refused(&["secretz"]),
        "scanner \"secretz\": is none of hosts, injection, more, pii, pins, prompt_injection, secret, tickets, keyword"
    );
}

#[test]
fn a_worse_finding_is_told_even_where_another_was() {
    let pattern =
        |name: &str, regex: &str, severity: &str| json!({"name": name, "regex": regex, "severity": severity});
    let document = json!({"scanners": {"mine": {"patterns": [
        pattern("low", "ab+", "low"), pattern("high", "b+c", "high"), pattern("again", "abbc", "high"),
    ]}}});
    let library = Library::new(&serde_json::from_value(document).unwrap()).unwrap();
    let selection = Selection { scanners: strings(&["mine"]), ..Selection::default() };
    let scanners = selection.compile(&library).unwrap();
    assert_eq!(names(&scanners.scan(b"abbc")), ["low", "high"]);
    assert_eq!(scanners.redact(b"xabbcx"), b"x[REDACTED:again]x");
    assert_eq!(format!("{scanners:?}"), "{\"mine\": 3}");
}

#[test]
fn many_harmless_findings_hide_no_bad_one() {
    let mut document = json!({"scanners": {"mine": {"patterns": [
        {"name": "bad", "regex": "BAD", "severity": "critical"}]}}});
    for letter in ["a", "b", "c", "d"] {
        let pattern = json!({"name": letter, "regex": letter, "severity": "low"});
        document["scanners"]["mine"]["patterns"].as_array_mut().unwrap().push(pattern);
    }
    let library = Library::new(&serde_json::from_value(document).unwrap()).unwrap();
    let selection = Selection { scanners: strings(&["mine"]), ..Selection::default() };
    let scanners = selection.compile(&library).unwrap();
    let content = serde_json::to_vec(&json!(["abcd".repeat(100), "BAD", "abcd"])).unwrap();
    let report = scanners.scan(&content);
    assert_eq!((report.findings.len(), report.worst()), (SCANNER_HITS_MAX, Some(Severity::Critical)));
}

#[test]
fn redacted_json_keeps_its_shape() {
    let content = r#"{ "z": 1.50, "to": ["a@example.com", 4111111111111111], "a@example.com": {"password": "hunter2hunter2"},
        "b@example.com": null, "big": 123456789012345678901234567890, "esc": "\u00e9 c@example.com" }"#;
    let expected = r#"{ "z": 1.50, "to": ["[REDACTED:email]", "[REDACTED:card_number]"], "[REDACTED:email]": {"password": "[REDACTED:generic_credential]"},
        "[REDACTED:email:2]": null, "big": 123456789012345678901234567890, "esc": "é [REDACTED:email]" }"#;
    let redacted = scanners(&BUILT_IN).redact(content.as_bytes());
    assert_eq!(String::from_utf8(redacted).unwrap(), expected);
}

#[test]
fn a_mark_is_no_hiding_place() {
    let scanners = scanners(&["pii"]);
    assert_eq!(names(&scanners.scan(b"[REDACTED:a@example.com]")), ["email"]);
    assert_eq!(names(&scanners.scan(b"[REDACTED:email:4111111111111111]")), ["card_number"]);
    assert_eq!(scanners.redact(b"[REDACTED:email]"), b"[REDACTED:email]");
}

#[test]
fn greedy_patterns_end_as_a_mark() {
    for (regex, text, expected) in [
        (".+", "anything", "[REDACTED:pattern_1]"),
        ("^.", "abc", "[REDACTED:pattern_1]bc"),
        ("^.{25}", &"a".repeat(303), "[REDACTED:pattern_1]"),
        (r"b\[RE", "ab[REDACTED:pattern_1]c", "a[REDACTED:pattern_1]c"),
        ("REDACTED", "x REDACTED", "x [REDACTED:pattern_1]"),
    ] {
        let redacted = patterns(&[regex]).redact(text.as_bytes());
        assert_eq!(String::from_utf8(redacted).unwrap(), expected, "{regex}");
    }
}

/// Pieces that scanners care for, and some that they do not, in any order.
fn piece() -> impl Strategy<Value = String> {
    let fixed = [
        "password = \"hunter2hunter2\"",
        "token:",
        "secret=",
        "abcdefgh1",
        "bob@example.com",
        "@example.com",
        "4111111111111111",
        "4111 1111 1111 1111",
        "123-45-6789",
        "(212) 555-0123",
        "[REDACTED:email]",
        "[REDACTED:",
        "]",
        "\"",
        "'",
        "\\",
        "é",
        "\n",
        " ",
        "-----BEGIN PRIVATE KEY-----\nMIIE",
        "-----END x-----",
        "postgres://u:pw1@h",
        "x' or 1=1",
        "; drop table a;",
        "rm -rf /",
        "ignore previous instructions",
        "<|im_start|>",
        "falcon",
        "{",
        "}",
        "[",
        ",",
        ":",
        "card",
    ];
    prop_oneof![8 => proptest::sample::select(fixed.to_vec()).prop_map(str::to_owned), 1 => ".{0,8}"]
}

fn text() -> impl Strategy<Value = String> {
    proptest::collection::vec(piece(), 0..12).prop_map(|pieces| pieces.concat())
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        text().prop_map(Value::from),
        prop_oneof![Just(4_111_111_111_111_111_u64), any::<u64>()].prop_map(Value::from),
        Just(Value::Null),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::btree_map(text(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

#[test]
fn a_key_that_is_renamed_does_not_take_the_name_of_another() {
    let scanners = scanners(&BUILT_IN);
    let check = |content: Value, redacted: Value| {
        let copy = scanners.redact(content.to_string().as_bytes());
        assert_eq!(serde_json::from_slice::<Value>(&copy).unwrap(), redacted);
    };
    check(
        json!({"bob@example.com": 1, "[REDACTED:email]": 2}),
        json!({"[REDACTED:email:2]": 1, "[REDACTED:email]": 2}),
    );
    check(
        json!({"[REDACTED:email:2]": 1, "[REDACTED:email]": 2, "bob@example.com": 3}),
        json!({"[REDACTED:email:2]": 1, "[REDACTED:email]": 2, "[REDACTED:email:3]": 3}),
    );
}

/// Everything at once, greedy patterns included.
fn every_scanner() -> Scanners {
    let document = json!({"scanners": {"cards": {"patterns": [
        {"name": "card", "regex": "[0-9a-f]{6,}", "context_required": true}]}}});
    let library = Library::new(&serde_json::from_value(document).unwrap()).unwrap();
    let selection = Selection {
        scanners: BUILT_IN.iter().map(ToString::to_string).chain(["cards".to_owned()]).collect(),
        content_patterns: strings(&["fal.*", "^.{30}", "D:e"]),
        keywords: strings(&["falcon", "redacted"]),
        severity: Some(Severity::Low),
    };
    selection.compile(&library).unwrap()
}

/// The same nesting and the same number of members; only strings, numbers and keys may differ.
fn same_shape(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => a.len() == b.len(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_shape(a, b))
        }
        (Value::String(_) | Value::Number(_), Value::String(_) | Value::Number(_)) => true,
        (a, b) => a == b,
    }
}

proptest! {
    #[test]
    fn nothing_is_found_in_a_redacted_text(text in text()) {
        let scanners = every_scanner();
        let redacted = scanners.redact(text.as_bytes());
        prop_assert_eq!(scanners.scan(&redacted), Report::default());
        prop_assert_eq!(scanners.redact(&redacted), redacted);
    }

    #[test]
    fn nothing_is_found_in_redacted_json_of_the_same_shape(value in json_value()) {
        let scanners = every_scanner();
        let redacted = scanners.redact(value.to_string().as_bytes());
        prop_assert_eq!(scanners.scan(&redacted), Report::default());
        if value.is_object() || value.is_array() {
            let parsed: Value = serde_json::from_slice(&redacted).unwrap();
            prop_assert!(same_shape(&value, &parsed), "{}", parsed);
        }
    }

    #[test]
    fn any_bytes_are_scanned_without_panic(content in proptest::collection::vec(any::<u8>(), 0..200)) {
        let scanners = every_scanner();
        for finding in scanners.scan(&content).findings {
            prop_assert!(finding.span.start < finding.span.end);
        }
        prop_assert_eq!(scanners.scan(&scanners.redact(&content)), Report::default());
    }
}

/// `cargo test --release -p reveille-core scanning_is_fast -- --ignored --nocapture`.
#[test]
#[ignore = "measures; run it in release"]
fn scanning_is_fast() {
    let sentence =
        "The worker took the job at noon, read 48 pages, and wrote a summary of the third quarter. ";
    let prose = sentence.repeat(12)[..1024].to_owned();
    let rows: Vec<Value> =
        (0..12).map(|n| json!({"id": n, "title": "third quarter", "text": sentence})).collect();
    let json = Value::from(rows).to_string();
    let all = scanners(&BUILT_IN);
    let measure = |what: &str, scanners: &Scanners, content: &[u8]| {
        assert_eq!(scanners.scan(content), Report::default());
        let rounds = (32 * 1024 * 1024 / content.len()).max(1);
        let start = std::time::Instant::now();
        for _ in 0..rounds {
            std::hint::black_box(scanners.scan(std::hint::black_box(content)));
        }
        let took = start.elapsed().as_secs_f64();
        let megabytes = (rounds * content.len()) as f64 / 1e6;
        println!("{what}: {:.0} MB/s, {:.1} µs each", megabytes / took, took * 1e6 / rounds as f64);
    };
    measure("1 KiB of prose, all", &all, prose.as_bytes());
    measure("1 MiB of prose, all", &all, prose.repeat(1024).as_bytes());
    measure("rows of JSON, all", &all, json.as_bytes());
    for name in BUILT_IN {
        measure(&format!("1 KiB of prose, {name}"), &scanners(&[name]), prose.as_bytes());
    }
}

#[test]
fn patterns_that_are_too_large_together_are_refused_before_they_are_compiled() {
    let written = format!("{}x", r"\w{40}");
    let content_patterns = (0..64).map(|index| format!("{written}{index}")).collect();
    let selection = Selection { content_patterns, ..Selection::default() };
    let error = selection.compile(&Library::default()).unwrap_err().to_string();
    assert!(error.contains("too expensive"), "{error}");
}
