//! Every route of the API is described, and every route that is described is used by a test.

use super::sources_under;
use anyhow::Context;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const SOURCES: &str = "crates/api/src";
/// Whose paths are those of existing systems, described by their own documents.
const ELSEWHERE: [&str; 3] = ["molecule.rs", "openorca.rs", "voicegateway.rs"];
/// Where tests that call the server are.
const TESTS: [&str; 3] = ["crates/api/tests", "tests", "clients"];
/// What describes the others, and a second name of one.
const UNDESCRIBED: [&str; 2] = ["/openapi.json", "/livez"];

pub fn complaints() -> anyhow::Result<Vec<String>> {
    let document: Value = serde_json::from_str(&fs::read_to_string("docs/openapi.json")?)?;
    let described: BTreeSet<String> =
        document["paths"].as_object().into_iter().flatten().map(|(path, _)| path.clone()).collect();
    let mut routes = BTreeSet::new();
    for path in sources_under(Path::new(SOURCES))? {
        if ELSEWHERE.iter().any(|name| path.ends_with(name)) {
            continue;
        }
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        routes.extend(routes_in(&text));
    }
    let mut complaints = Vec::new();
    for route in &routes {
        let is_described =
            [route.clone(), format!("/api/v1{route}")].iter().any(|path| described.contains(path));
        if !is_described && !UNDESCRIBED.contains(&route.as_str()) {
            complaints.push(format!("{SOURCES}: route {route} is not in docs/openapi.json"));
        }
    }
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
        let found: Vec<String> = routes_in(r#".route("/a", get(x)).route("/b/{id}", post(y))"#).collect();
        assert_eq!(found, ["/a", "/b/{id}"]);
    }
}
