//! Dashboards and alerts ask only for what is on the page.

use super::page::{read, scraped};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy");

/// The series that a query names.
fn series_of(query: &str) -> BTreeSet<String> {
    let words = query.split(|letter: char| !(letter.is_alphanumeric() || letter == '_' || letter == ':'));
    words.filter(|word| word.starts_with("cordum_")).map(ToOwned::to_owned).collect()
}

/// Whether brackets of all kinds are closed in order, outside of quoted text.
fn is_balanced(query: &str) -> bool {
    let mut open = Vec::new();
    for letter in query.split('"').step_by(2).flat_map(str::chars) {
        let closes = match letter {
            '(' | '[' | '{' => {
                open.push(letter);
                continue;
            }
            ')' => '(',
            ']' => '[',
            '}' => '{',
            _ => continue,
        };
        if open.pop() != Some(closes) {
            return false;
        }
    }
    open.is_empty() && query.matches('"').count().is_multiple_of(2)
}

async fn known_series() -> BTreeSet<String> {
    read(&scraped().await).into_values().flat_map(|told| told.series).collect()
}

fn check(query: &str, whose: &str, known: &BTreeSet<String>) {
    let asked = series_of(query);
    assert!(!asked.is_empty(), "{whose} asks for nothing of ours: {query}");
    let unknown: Vec<_> = asked.difference(known).collect();
    assert!(unknown.is_empty(), "{whose} asks for {unknown:?}, which is not on the page: {query}");
    assert!(is_balanced(query), "{whose} leaves a bracket open: {query}");
}

fn dashboards() -> Vec<PathBuf> {
    let entries = fs::read_dir(Path::new(DEPLOY).join("grafana")).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[tokio::test(start_paused = true)]
async fn every_panel_asks_for_what_there_is_and_says_what_it_shows() {
    let known = known_series().await;
    let mut uids = BTreeSet::new();
    for path in dashboards() {
        let dashboard: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let name = dashboard["title"].as_str().unwrap();
        assert!(uids.insert(dashboard["uid"].as_str().unwrap().to_owned()), "{name} has another's uid");
        let (mut ids, mut panels) = (BTreeSet::new(), 0);
        for panel in dashboard["panels"].as_array().unwrap() {
            assert!(ids.insert(panel["id"].as_u64().unwrap()), "{name}: an id comes twice");
            let title = panel["title"].as_str().filter(|title| !title.is_empty());
            let whose =
                format!("{name}: {}", title.unwrap_or_else(|| panic!("{name}: {panel} has no title")));
            if panel["type"] == "row" {
                continue;
            }
            panels += 1;
            assert!(panel["fieldConfig"]["defaults"]["unit"].is_string(), "{whose} has no unit");
            let targets = panel["targets"].as_array().unwrap();
            assert!(!targets.is_empty(), "{whose} asks nothing");
            for target in targets {
                check(target["expr"].as_str().unwrap(), &whose, &known);
            }
        }
        assert!(panels > 0, "{name} is empty");
        for variable in dashboard["templating"]["list"].as_array().into_iter().flatten() {
            if variable["type"] == "query" {
                check(variable["query"].as_str().unwrap(), &format!("{name}: a variable"), &known);
            }
        }
    }
    assert_eq!(uids.len(), 3, "fleet, jobs and governance");
}

#[tokio::test(start_paused = true)]
async fn every_alert_asks_for_what_there_is_and_says_what_to_do() {
    let known = known_series().await;
    let alerts = fs::read_to_string(Path::new(DEPLOY).join("prometheus/alerts.yaml")).unwrap();
    let alerts: Value = serde_saphyr::from_str(&alerts).unwrap();
    let mut names = BTreeSet::new();
    for group in alerts["groups"].as_array().unwrap() {
        for rule in group["rules"].as_array().unwrap() {
            let name = rule["alert"].as_str().unwrap();
            assert!(names.insert(name.to_owned()), "{name} comes twice");
            check(rule["expr"].as_str().unwrap(), name, &known);
            assert!(rule["labels"]["severity"].is_string(), "{name} has no severity");
            for text in ["summary", "description"] {
                assert!(rule["annotations"][text].is_string(), "{name} has no {text}");
            }
        }
    }
    assert!(names.len() >= 6, "{names:?}");
}

#[test]
fn a_query_is_taken_apart() {
    let query = "sum(rate(cordum_scheduler_a_total{topic=~\"job.(x|y)\"}[5m])) / cordum_scheduler_b";
    let expected = ["cordum_scheduler_a_total", "cordum_scheduler_b"].map(ToOwned::to_owned);
    assert_eq!(series_of(query), BTreeSet::from(expected));
    assert!(is_balanced(query));
    for broken in ["sum(rate(a[5m])", "sum(a]", "a{b=\"c}", "a)("] {
        assert!(!is_balanced(broken), "{broken}");
    }
}
