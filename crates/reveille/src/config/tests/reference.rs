//! docs/config.md has every key with its default, its flag and the variables that set it too, and no other.
//!
//! Which keys there are is asked of the settings themselves: whoever misspells one is told what it could have been.

use super::*;
use crate::args::Args;
use clap::CommandFactory;
use std::collections::{BTreeMap, BTreeSet};

/// A row of the page's table.
struct Row<'a> {
    default: &'a str,
    flag: &'a str,
    meaning: &'a str,
}

fn page() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/config.md")).unwrap()
}

/// The file with every key that stands on the page, as text.
fn example(page: &str) -> &str {
    let (_, rest) = page.split_once("```toml\n").expect("an example");
    rest.split_once("```").expect("its end").0
}

/// Rows by key. A row may be about several keys, of which none has a default or a flag.
fn table(page: &str) -> BTreeMap<&str, Row<'_>> {
    let (_, rest) = page.split_once("| key | default | flag | meaning |\n").expect("the table");
    let mut rows = BTreeMap::new();
    for line in rest.lines().skip(1).take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.trim_matches('|').splitn(4, '|').map(str::trim).collect();
        let [keys, default, flag, meaning] = cells[..] else { panic!("{line}") };
        for key in keys.split(", ") {
            let is_new = rows.insert(key.trim_matches('`'), Row { default, flag, meaning }).is_none();
            assert!(is_new, "{key} has two rows");
        }
    }
    rows
}

/// What could have stood where `text` has something that is not there.
fn choices(text: &str) -> Vec<String> {
    let error = format!("{:#}", parse(text, &[]).unwrap_err());
    let (_, expected) = error.split_once("expected ").unwrap_or_else(|| panic!("{error}"));
    // The line after it says where.
    let expected = expected.lines().next().unwrap_or_default();
    expected.split('`').skip(1).step_by(2).map(ToOwned::to_owned).collect()
}

fn sections() -> Vec<String> {
    choices("[no_such_thing]")
}

fn keys() -> BTreeSet<String> {
    let of = |section: String| {
        let keys = choices(&format!("[{section}]\nno_such_thing = 0"));
        keys.into_iter().map(move |key| format!("{section}.{key}"))
    };
    sections().into_iter().flat_map(of).collect()
}

#[test]
fn every_key_has_a_row_and_every_row_a_key() {
    let keys = keys();
    assert!(keys.contains("http.address") && keys.contains("data.folder"), "{keys:?}");
    let page = page();
    let rows: BTreeSet<String> = table(&page).into_keys().map(ToOwned::to_owned).collect();
    let (unsaid, unknown): (Vec<_>, Vec<_>) =
        (keys.difference(&rows).collect(), rows.difference(&keys).collect());
    assert!(unsaid.is_empty(), "docs/config.md has no row for {unsaid:?}");
    assert!(unknown.is_empty(), "docs/config.md has rows for what is no key: {unknown:?}");
}

#[test]
fn every_key_can_be_set_by_a_variable() {
    assert_eq!(sections(), variables::SECTIONS);
}

#[test]
fn the_defaults_on_the_page_are_the_defaults() {
    let page = page();
    let example = example(&page);
    assert_eq!(parse(example, &[]).unwrap(), Config::default());

    let values: toml::Table = example.parse().unwrap();
    let rows = table(&page);
    let mut section = "";
    let mut unset = BTreeSet::new();
    for line in example.lines() {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
        } else if let Some(names) = line.strip_prefix("# ") {
            let (names, _) = names.rsplit_once(' ').and_then(|(rest, _)| rest.rsplit_once(' ')).expect(line);
            unset.extend(names.replace(" and ", ", ").split(", ").map(|key| format!("{section}.{key}")));
        }
    }
    for key in keys() {
        let (section, name) = key.split_once('.').unwrap();
        let value = values[section].get(name);
        assert!(value.is_some() || unset.contains(&key), "the example leaves out {key}");
        assert_eq!(rows[key.as_str()].default.trim_matches('`'), in_words(value), "{key}");
    }
}

fn in_words(value: Option<&toml::Value>) -> String {
    match value {
        None => "unset".to_owned(),
        Some(toml::Value::String(text)) if text.is_empty() => "empty".to_owned(),
        Some(toml::Value::String(text)) => text.clone(),
        Some(toml::Value::Integer(number)) => number.to_string(),
        Some(toml::Value::Float(number)) => number.to_string(),
        Some(toml::Value::Boolean(truth)) => truth.to_string(),
        Some(toml::Value::Array(none)) if none.is_empty() => "none".to_owned(),
        Some(other) => panic!("how is {other:?} written in the table?"),
    }
}

#[test]
fn the_flags_and_other_variables_on_the_page_are_there() {
    let page = page();
    let rows = table(&page);
    let args = Args::command();
    let serve = args.find_subcommand("serve").unwrap();
    let known: BTreeSet<String> =
        serve.get_arguments().filter_map(|flag| flag.get_long()).map(|name| format!("`--{name}`")).collect();
    for (key, row) in &rows {
        assert!(row.flag.is_empty() || known.contains(row.flag), "{key}: serve has no flag {}", row.flag);
    }
    let told: BTreeSet<(&str, &str)> = rows
        .iter()
        .filter_map(|(key, row)| {
            let (before, _) = row.meaning.split_once("` sets it too")?;
            Some((before.rsplit('`').next()?, *key))
        })
        .collect();
    let read: Vec<(&str, String)> =
        variables::SEEDS.iter().map(|(name, section, key)| (*name, format!("{section}.{key}"))).collect();
    let read: BTreeSet<(&str, &str)> = read.iter().map(|(name, key)| (*name, key.as_str())).collect();
    assert_eq!(told, read);
}
