//! The description is true: the routes are those it has, and every answer that a test here gets is one it has.

mod reference;

use super::support::Api;
use jsonschema::Validator;
use reveille_roster::Scope;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, LazyLock, Mutex};

static DOCUMENT: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(&reveille_api::openapi_document()).unwrap());
static VALIDATORS: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);

/// An answer is one that is described for its path.
#[track_caller]
pub fn check(method: &str, path: &str, status: u16, body: &Value) {
    let Some((template, item)) = described(path.split('?').next().unwrap_or_default()) else { return };
    let operation = &item[method.to_lowercase()];
    // Whether a method is described is another test's; an agent that a message goes to answers as it likes.
    if operation.is_null() || template.ends_with("/a2a") {
        return;
    }
    let response = &operation["responses"][status.to_string()];
    assert!(!response.is_null(), "{method} {template} may not answer {status}: {body}");
    let schema = &response["content"]["application/json"]["schema"];
    if !schema.is_null() && response["content"].as_object().unwrap().len() == 1 {
        let problems: Vec<String> =
            validator(schema).iter_errors(body).map(|error| error.to_string()).collect();
        assert!(problems.is_empty(), "{method} {template} {status}: {problems:?} in {body}");
    }
}

/// The path of the description that this one is, the plainest if there are two.
fn described(path: &str) -> Option<(&'static str, &'static Value)> {
    let parts: Vec<&str> = path.split('/').collect();
    let fits = |template: &str| {
        let template: Vec<&str> = template.split('/').collect();
        template.len() == parts.len()
            && template.iter().zip(&parts).all(|(open, part)| open.starts_with('{') || open == part)
    };
    let paths = DOCUMENT["paths"].as_object().unwrap().iter().filter(|(template, _)| fits(template));
    paths.min_by_key(|(template, _)| template.matches('{').count()).map(|(path, item)| (path.as_str(), item))
}

fn validator(schema: &Value) -> Arc<Validator> {
    let mut validators = VALIDATORS.lock().unwrap();
    let made = || {
        let mut whole = schema.clone();
        whole["components"] = DOCUMENT["components"].clone();
        Arc::new(jsonschema::validator_for(&whole).unwrap())
    };
    validators.entry(schema.to_string()).or_insert_with(made).clone()
}

#[tokio::test]
async fn every_path_takes_the_methods_that_are_described_and_no_other() {
    let api = Api::open().await;
    let operator = api.key("ops", &[Scope::Admin, Scope::Read, Scope::Write]).await;
    for (template, item) in DOCUMENT["paths"].as_object().unwrap() {
        let parts = template.split('/').map(|part| if part.starts_with('{') { "x" } else { part });
        let path = parts.collect::<Vec<_>>().join("/");
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            let operation = &item[method.to_lowercase()];
            let never_ends = operation["responses"]["200"]["content"]["text/event-stream"].is_object();
            let keys = if never_ends { &[""][..] } else { &["", &operator] };
            for key in keys {
                let (status, body) = api.call(key, method, &path, "").await;
                assert_eq!(status == 405, operation.is_null(), "{method} {path} {status} {body}");
            }
        }
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_in_the_words_of_the_surface() {
    let api = Api::open().await;
    let key = api.key("acme", &[Scope::Read, Scope::Write]).await;
    for (path, word) in [
        ("/api/v1/workers?limit=many", "error"),
        ("/api/v1/jobs/%ff", "error"),
        ("/workspaces/x?confirm=perhaps", "error"),
        ("/ws", "error"),
        ("/v1/agents?tenant=a&tenant=b", "detail"),
        ("/openorca/snapshot?tenant=a&tenant=b", "detail"),
    ] {
        let method = if path.starts_with("/workspaces") { "DELETE" } else { "GET" };
        let (status, body) = api.call(&key, method, path, "").await;
        assert!(status == 400 && body[word].is_string(), "{path} {status} {body}");
    }
    let long = "x".repeat(reveille_api::BODY_LEN_MAX + 1);
    for (path, word) in [("/api/v1/jobs", "error"), ("/v1/api-keys", "detail"), ("/workspaces", "error")] {
        let (status, body) = api.call(&key, "POST", path, &long).await;
        assert!(status == 413 && body[word].is_string(), "{path} {status} {body}");
    }
}

#[tokio::test]
async fn who_needs_no_key_is_told_that_it_lives() {
    let api = Api::open().await;
    for path in ["/healthz", "/livez", "/health"] {
        assert_eq!(api.call("", "GET", path, "").await, (200, json!({"status": "ok"})));
    }
}

fn operations() -> impl Iterator<Item = &'static Value> {
    DOCUMENT["paths"].as_object().unwrap().values().flat_map(|item| item.as_object().unwrap().values())
}

#[test]
fn no_two_operations_have_one_name() {
    let names: Vec<&str> = operations().map(|operation| operation["operationId"].as_str().unwrap()).collect();
    let different: BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(names.len(), different.len(), "{names:?}");
}

#[test]
fn every_operation_says_what_it_does_and_how_it_refuses() {
    let tags: Vec<&Value> = DOCUMENT["tags"].as_array().unwrap().iter().map(|tag| &tag["name"]).collect();
    for operation in operations() {
        let name = &operation["operationId"];
        assert!(operation["summary"].is_string() && tags.contains(&&operation["tags"][0]), "{name}");
        for (status, response) in operation["responses"].as_object().unwrap() {
            assert!(response["description"].is_string(), "{name} {status}");
            let has_shape = !response["content"]["application/json"]["schema"].is_null();
            assert!(status.as_str() < "400" || has_shape, "{name} {status}");
        }
        let is_open = operation["security"] == json!([{}]);
        assert_eq!(operation["responses"]["401"].is_null(), is_open, "{name}");
    }
}

#[test]
fn the_checked_in_description_is_this_one() {
    check_in("openapi.json", &reveille_api::openapi_document());
}

#[test]
fn the_checked_in_reference_is_this_one() {
    check_in("api.md", &reference::page(&DOCUMENT));
}

#[track_caller]
fn check_in(name: &str, text: &str) {
    let path = format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("REVEILLE_BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let checked_in = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(checked_in == text, "docs/{name} is out of date; run the tests with REVEILLE_BLESS=1");
}
