//! Pages that say which test shows what: every test that they name is there.
//!
//! `docs/faults.md` and `docs/threat-model.md` have a row for each fault and each attack, and its last cell names the
//! tests. `docs/security.md` names them in its text, where a long name in backticks can be nothing else.

use std::collections::BTreeSet;
use std::fs;

const FAULTS: &str = "docs/faults.md";
const THREATS: &str = "docs/threat-model.md";
const SECURITY: &str = "docs/security.md";
/// Settings, metrics and fields are shorter than a name that states a fact.
const UNDERSCORES_MIN: usize = 4;
/// In the place of a test, where the page says itself that there is none.
const NO_TEST: &str = "—";

pub fn complaints(functions: &BTreeSet<String>) -> anyhow::Result<Vec<String>> {
    let (faults, threats) = (fs::read_to_string(FAULTS)?, fs::read_to_string(THREATS)?);
    let mut complaints = row_complaints(FAULTS, &faults, functions);
    complaints.extend(row_complaints(THREATS, &threats, functions));
    complaints.extend(name_complaints(THREATS, &threats, functions));
    complaints.extend(name_complaints(SECURITY, &fs::read_to_string(SECURITY)?, functions));
    Ok(complaints)
}

/// Names of the functions that a Rust or Python file defines; a test is one of them.
pub fn functions_in(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let start = line.find("fn ").map(|at| at + 3).or_else(|| line.find("def ").map(|at| at + 4))?;
        let rest = &line[start..];
        let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')?;
        (end > 0).then(|| &rest[..end])
    })
}

/// Each numbered row of a table ends with the tests that show it, and each of these is there.
fn row_complaints(path: &str, page: &str, functions: &BTreeSet<String>) -> Vec<String> {
    let is_row = |line: &str| {
        line.strip_prefix("| ").is_some_and(|row| row.starts_with(|first: char| first.is_ascii_digit()))
    };
    let mut complaints = Vec::new();
    for (index, line) in page.lines().enumerate().filter(|(_, line)| is_row(line)) {
        let last = line.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default();
        let named: Vec<&str> = last.split('`').skip(1).step_by(2).collect();
        if named.is_empty() && last != NO_TEST {
            complaints.push(format!("{path}:{}: no test shows it", index + 1));
        }
        for name in named.into_iter().filter(|name| !functions.contains(*name)) {
            complaints.push(format!("{path}:{}: there is no test `{name}`", index + 1));
        }
    }
    complaints
}

/// What is named in the text, outside of such rows too.
fn name_complaints(path: &str, page: &str, functions: &BTreeSet<String>) -> Vec<String> {
    let mut complaints = Vec::new();
    for (index, line) in page.lines().enumerate() {
        for name in line.split('`').filter(|word| is_test_name(word) && !functions.contains(*word)) {
            complaints.push(format!("{path}:{}: there is no test `{name}`", index + 1));
        }
    }
    complaints.dedup();
    complaints
}

fn is_test_name(word: &str) -> bool {
    let is_name = word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    is_name && (word.starts_with("test_") || word.matches('_').count() >= UNDERSCORES_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn functions() -> BTreeSet<String> {
        let text = "#[test]\nfn one() {\n    async fn two(x: u8) {\ndef test_three(server):\nfn it_is_a_fact_that_holds() {\n";
        functions_in(text).map(str::to_owned).collect()
    }

    #[test]
    fn a_row_is_shown_by_tests_that_are_there() {
        let check =
            |row: &str, expected: &[&str]| assert_eq!(row_complaints("p", row, &functions()), expected);
        check("| fault | there | here | shown by |\n|---|---|---|---|", &[]);
        check("| 8.3.1 | `x` | `y` | `one`, `test_three` |", &[]);
        check("| 8.3.1 | x | y | `two`, `four` |", &["p:1: there is no test `four`"]);
        check("| 1 a | x | y | z |", &["p:1: no test shows it"]);
        check("| 1 a | x | y | — |", &[]);
    }

    #[test]
    fn a_test_that_is_named_in_the_text_is_there() {
        let check =
            |text: &str, expected: &[&str]| assert_eq!(name_complaints("p", text, &functions()), expected);
        check("Set `limits.requests_per_second` or `max_concurrent_jobs` (`it_is_a_fact_that_holds`).", &[]);
        check("(`test_three`,\n`test_four`)", &["p:2: there is no test `test_four`"]);
        check("x (`it_was_a_fact_that_held`).", &["p:1: there is no test `it_was_a_fact_that_held`"]);
    }
}
