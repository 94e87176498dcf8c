//! Every route of the API is described, and every route that is described is used by a test.

use super::sources_under;
use anyhow::Context;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const SOURCES: &str = "crates/api/src";
/// What stands before the paths that are ours; those of existing systems have nothing before them.
const PREFIX: &str = "/api/v1";
/// Where tests that call the server are.
const TESTS: [&str; 3] = ["crates/api/tests", "tests", "clients"];

pub fn complaints() -> anyhow::Result<Vec<String>> {
    let document: Value = serde_json::from_str(&fs::read_to_string("docs/openapi.json")?)?;
    let described: BTreeSet<String> =
        document["paths"].as_object().into_iter().flatten().map(|(path, _)| path.clone()).collect();
    let mut routes = String::new();
    for path in sources_under(Path::new(SOURCES))? {
        routes += &fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    }
    let mut complaints: Vec<String> = undescribed(&routes, &described)
        .into_iter()
        .map(|route| format!("{SOURCES}: route {route} is not in docs/openapi.json"))
        .collect();
    let mut called = String::new();
    for folder in TESTS.iter().filter(|folder| Path::new(folder).exists()) {
        for path in sources_under(Path::new(folder))? {
            called += &fs::read_to_string(&path)?;
        }
    }
    for path in &described {
        if !is_called(path, &called) {
            complaints.push(format!("docs/openapi.json: no test calls {path}"));
        }
    }
    Ok(complaints)
}

/// Two routes of one name, one with the prefix and one without, are two paths.
fn undescribed(sources: &str, described: &BTreeSet<String>) -> Vec<String> {
    let mut routes: BTreeMap<String, usize> = BTreeMap::new();
    for route in routes_in(sources) {
        *routes.entry(route).or_default() += 1;
    }
    let is_missing = |route: &String, times: usize| {
        let paths = [route.clone(), format!("{PREFIX}{route}")];
        paths.iter().filter(|path| described.contains(*path)).count() < times
    };
    routes.into_iter().filter(|(route, times)| is_missing(route, *times)).map(|(route, _)| route).collect()
}

fn routes_in(text: &str) -> impl Iterator<Item = String> {
    text.split(".route(\"").skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned)
}

/// Whether a test has the path, with something in the place of its parameters.
fn is_called(path: &str, tests: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    tests.split(['"', '\'', ' ', '`', '?']).any(|word| {
        let at = word.find(parts.get(1).copied().unwrap_or_default());
        let Some(at) = at.and_then(|at| at.checked_sub(1)) else { return false };
        let called: Vec<&str> = word.get(at..).unwrap_or_default().split('/').collect();
        // What a test puts together stands in braces: a part of a path, or a query behind it.
        let fits = |(part, called): (&&str, &&str)| {
            let is_open = part.starts_with('{') || called.starts_with('{');
            is_open && !called.is_empty() || called.split('{').next() == Some(part)
        };
        called.len() == parts.len() && parts.iter().zip(&called).all(fits)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_called_with_something_in_its_place() {
        let tests = r#"server.call("GET", f"/api/v1/jobs/{job_id}/explain") get("/api/v1/jobs?limit=1")"#;
        assert!(is_called("/api/v1/jobs/{id}/explain", tests) && is_called("/api/v1/jobs", tests));
        assert!(is_called("/api/v1/dlq", "f\"/api/v1/dlq{query}\"") && is_called("/a/b", "\"/a/{what}\""));
        assert!(!is_called("/api/v1/jobs/{id}", tests) && !is_called("/api/v1/jobs/{id}/cancel", tests));
    }

    #[test]
    fn a_route_is_described_as_often_as_it_is_there() {
        let sources = r#".route("/a", get(x)).route("/b/{id}", post(y)) .route("/a", get(z))"#;
        let check = |paths: &[&str], expected: &[&str]| {
            let described = paths.iter().map(|path| (*path).to_owned()).collect();
            assert_eq!(undescribed(sources, &described), expected);
        };
        check(&["/a", "/api/v1/a", "/b/{id}"], &[]);
        check(&["/api/v1/a", "/api/v1/b/{id}"], &["/a"]);
        check(&[], &["/a", "/b/{id}"]);
    }
}
