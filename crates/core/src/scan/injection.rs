//! Fragments that make an interpreter do something unintended: SQL, a shell, a model.

use super::Severity::{Critical, High, Medium};
use super::pattern::ScanPattern;
use std::ops::Range;

pub(super) fn patterns() -> Vec<ScanPattern> {
    let table: [(&str, _, u8, &str); 9] = [
        ("sql_union_select", High, 90, r"(?i)\bunion\s+(?:all\s+)?select\b"),
        (
            "sql_stacked_statement",
            High,
            90,
            r"(?i);\s*(?:drop\s+(?:table|database|schema)|delete\s+from|truncate\s+table|insert\s+into|alter\s+table|update\s+[a-z0-9_.]{1,64}\s+set)\b",
        ),
        (
            "sql_drop",
            High,
            80,
            r#"(?i)\bdrop\s+(?:table|database|schema)\s+(?:if\s+exists\s+)?[a-z0-9_."`]{1,64}\s*(?:;|--|\bcascade\b|$)"#,
        ),
        (
            "sql_probe",
            High,
            85,
            r"(?i)\bpg_sleep\s*\(|\bwaitfor\s+delay\s+'|\bxp_cmdshell\b|\binto\s+(?:out|dump)file\s+'",
        ),
        (
            "shell_remote_script",
            Critical,
            92,
            r"(?i)\b(?:curl|wget)\b[^\n|]*\|\s*(?:sudo\s+)?(?:ba|da|z|k)?sh\b",
        ),
        (
            "shell_delete",
            High,
            90,
            r"\brm\s+(?:-[a-zA-Z]{1,8}\s+){0,4}-(?:[a-zA-Z]{0,8}[rR][a-zA-Z]{0,8}f|[a-zA-Z]{0,8}f[a-zA-Z]{0,8}[rR])[a-zA-Z]{0,8}\s+[^\s]",
        ),
        (
            "shell_reverse",
            Critical,
            95,
            r"/dev/(?:tcp|udp)/[A-Za-z0-9.-]{1,253}/[0-9]{1,5}\b|\bnc\s+(?:-[a-z]{1,8}\s+){0,4}-[a-z]{0,8}e\s+/",
        ),
        (
            "shell_chained_command",
            High,
            80,
            r"(?:;|&&|\|)\s*(?:cat\s+/etc/(?:passwd|shadow)|(?:ba|da|z|k)?sh\s+-[ci]|nc\s+-|(?:curl|wget)\s+(?:-[a-zA-Z]{1,8}\s+){0,4}https?://|rm\s+-[rf])",
        ),
        (
            "shell_substitution",
            High,
            80,
            r"(?:\$\(|`)\s*(?:cat|curl|env|id|nc|printenv|rm|wget|whoami)(?:\s[^)`\n]*)?[)`]",
        ),
    ];
    let of_table = table
        .map(|(name, severity, confidence, regex)| ScanPattern::built_in(name, severity, confidence, regex));
    let tautology = r#"(?i)\bor\s+(?:'[^'\n]{0,16}'|"[^"\n]{0,16}"|[a-z0-9_]{1,16})\s*=\s*(?:'[^'\n]{0,16}|"[^"\n]{0,16}|[a-z0-9_]{1,16})"#;
    let phrase = r"(?i)\bignore\s+(?:all\s+|any\s+)?(?:of\s+)?(?:the\s+|your\s+|my\s+)?(?:previous|prior|above|earlier)\s+(?:instructions?|prompts?|rules|directions)\b|\breveal\s+(?:the\s+|your\s+)?(?:system|hidden)\s+prompt\b";
    let more = [
        ScanPattern::built_in("sql_tautology", High, 90, tautology).judged(tautology_holds),
        ScanPattern::built_in("prompt_phrase", Medium, 80, phrase),
    ];
    of_table.into_iter().chain(more).collect()
}

/// `or '1'='1` is true for every row; `or a = b` is a legitimate condition.
fn tautology_holds(text: &str, found: Range<usize>) -> Option<Range<usize>> {
    let condition = text[found.start + "or".len()..found.end].trim_start();
    let bare = |side: &str| side.trim_matches([' ', '\t', '\n', '\r', '\'', '"']).to_ascii_lowercase();
    let (left, right) = condition.split_once('=')?;
    (bare(left) == bare(right)).then_some(found)
}
