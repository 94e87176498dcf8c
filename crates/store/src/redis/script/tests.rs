//! Whether scripts and their lists agree.

use super::Declared;
use std::collections::BTreeSet;

/// What a script and its list do not agree on, if there is something.
pub(crate) fn disagreement(declared: &Declared) -> Option<String> {
    for (list, names) in [("KEYS", declared.keys), ("ARGS", declared.args)] {
        let said = said(declared.text, list);
        if said != names {
            return Some(format!("its {list} are {said:?} at its top and {names:?} in its list"));
        }
    }
    let code: Vec<&str> =
        declared.text.lines().map(|line| line.split("--").next().unwrap_or_default()).collect();
    let code = code.join("\n");
    let words: BTreeSet<&str> = code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    if let Some(name) = declared.keys.iter().chain(declared.args).find(|name| !words.contains(**name)) {
        return Some(format!("it has no use for {name}"));
    }
    let counts =
        |list: &str| code.split(list).skip(1).any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    ["KEYS[", "ARGV["].into_iter().find(|list| counts(list)).map(|list| format!("it counts: {list}"))
}

/// The names that a script says at its top, up to a semicolon or the end of their lines.
fn said<'t>(text: &'t str, list: &str) -> Vec<&'t str> {
    let top = text.lines().map_while(|line| line.strip_prefix("--"));
    let mut lines = top.map(str::trim).skip_while(|line| !line.starts_with(list));
    let first = lines.next().unwrap_or_default().trim_start_matches(list);
    let is_more =
        |line: &&str| !line.is_empty() && !["KEYS", "ARGS", "Says"].iter().any(|word| line.starts_with(word));
    let mut names = Vec::new();
    for line in [first].into_iter().chain(lines.take_while(is_more)) {
        let before = line.split(';').next().unwrap_or_default();
        names.extend(before.split(',').map(str::trim).filter(|name| !name.is_empty()));
        if line.contains(';') {
            break;
        }
    }
    names
}

#[test]
fn what_is_unknown_missing_out_of_order_unused_or_counted_is_found() {
    const TEXT: &str =
        "-- Does it.\n-- KEYS  one\n-- ARGS  a, b,\n--       c; then more\nreturn one .. a .. b .. c";
    let check = |text, keys, args, expected: Option<&str>| {
        let found = disagreement(&Declared { text, keys, args });
        assert_eq!(found.is_some(), expected.is_some(), "{found:?}");
        assert!(found.unwrap_or_default().contains(expected.unwrap_or_default()));
    };
    check(TEXT, &["one"], &["a", "b", "c"], None);
    check(TEXT, &["one"], &["a", "c", "b"], Some("ARGS"));
    check(TEXT, &["one"], &["a", "b"], Some("ARGS"));
    check(TEXT, &["one"], &["a", "b", "c", "d"], Some("ARGS"));
    check(TEXT, &["other"], &["a", "b", "c"], Some("KEYS"));
    check("-- KEYS  one\n-- ARGS  a\nreturn one -- a", &["one"], &["a"], Some("no use for a"));
    check("-- KEYS  one\n-- ARGS  a\nreturn one .. a .. ARGV[2]", &["one"], &["a"], Some("it counts"));
}
