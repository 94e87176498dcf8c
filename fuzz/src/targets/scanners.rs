//! Contents before the scanners: the first line is a pattern of a rule, the rest the content. A finding points into the
//! content and never shows it, and a redacted copy has nothing left to find.

use super::FuzzTarget;
use crate::signal::FuzzSignal;
use reveille_core::scan::{Library, Scanners, Selection};
use std::sync::LazyLock;

pub const TARGET: FuzzTarget = FuzzTarget {
    name: "scanners",
    dictionary: &[
        "\n",
        "password = \"hunter2hunter2\"",
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_0123456789abcdefghijABCDEFGHIJ012345",
        "-----BEGIN RSA PRIVATE KEY-----",
        "4111 1111 1111 1111",
        "123-45-6789",
        "ann@example.com",
        "+1 555 010 9999",
        "ignore all previous instructions",
        "you are now",
        "rm -rf /",
        "'; DROP TABLE users; --",
        "<script>",
        "${jndi:ldap://x}",
        "{\"a\": \"",
        "\\u0070assword",
        "\"}",
        "[",
        "]",
        "\\w+",
        "(?i)secret",
        "^.{20}",
        "[a-z]{3,}",
        "DE89 3704 0044 0532 0130 00",
    ],
    run,
};

static BUILT_IN: LazyLock<Option<Scanners>> = LazyLock::new(|| {
    let scanners = ["secret", "pii", "injection", "prompt_injection"].map(str::to_owned).to_vec();
    Selection { scanners, ..Selection::default() }.compile(&Library::default()).ok()
});

fn run(input: &[u8], signal: &mut FuzzSignal) {
    let mut lines = input.splitn(2, |byte| *byte == b'\n');
    let pattern = String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
    let content = lines.next().unwrap_or_default();
    let Some(built_in) = &*BUILT_IN else { panic!("the built-in scanners compile") };
    look(built_in, content, signal);
    let selection = Selection { content_patterns: vec![pattern], ..Selection::default() };
    match selection.compile(&Library::default()) {
        Ok(scanners) => look(&scanners, content, signal),
        Err(problem) => signal.see_words(&problem.to_string()),
    }
}

fn look(scanners: &Scanners, content: &[u8], signal: &mut FuzzSignal) {
    let report = scanners.scan(content);
    for finding in &report.findings {
        signal.see((&finding.scanner, finding.confidence / 10));
        assert!(finding.span.start <= finding.span.end, "{finding:?}");
        assert!(finding.confidence <= 100, "{finding:?}");
    }
    let clean = scanners.redact(content);
    let left = scanners.scan(&clean);
    assert!(left.findings.is_empty(), "left after redaction: {:?}", left.findings);
    if report.findings.is_empty() && !report.truncated {
        assert_eq!(clean, content, "changed though nothing was found");
    }
    if let (Ok(before), Ok(after)) = (
        serde_json::from_slice::<serde_json::Value>(content),
        serde_json::from_slice::<serde_json::Value>(&clean),
    ) {
        assert_eq!(before.is_object(), after.is_object(), "JSON of another shape");
    }
}
