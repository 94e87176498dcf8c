//! Secrets in what people look at: hidden until somebody asks.
//!
//! Two things are taken for secrets: what stands under a name such as `password` or `api_key`, and what looks like one
//! to the scanners that output policy uses.

use reveille_core::scan::{Library, Scanners, Selection};
use serde_json::Value;
use std::sync::LazyLock;

const MASK: &str = "••••••••";
/// Names under which secrets stand, in lower case without `_` and `-`.
const NAMES: [&str; 12] = [
    "password",
    "passwd",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "privatekey",
    "authorization",
    "credential",
    "cookie",
    "bearer",
    "connectionstring",
];

static SECRETS: LazyLock<Option<Scanners>> = LazyLock::new(|| {
    let selection = Selection { scanners: vec!["secret".to_owned()], ..Selection::default() };
    selection.compile(&Library::default()).ok()
});

/// The JSON as people read it, and how much of it is hidden.
pub fn masked(text: &str, is_revealed: bool) -> (String, usize) {
    let Ok(mut value) = serde_json::from_str::<Value>(text) else { return (text.to_owned(), 0) };
    let mut hidden = 0;
    if !is_revealed {
        hide(&mut value, &mut hidden);
    }
    (serde_json::to_string_pretty(&value).unwrap_or_else(|_| text.to_owned()), hidden)
}

fn hide(value: &mut Value, hidden: &mut usize) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let is_empty = value.is_null() || value.as_str().is_some_and(str::is_empty);
                if is_secret(name) && !is_empty && !value.is_object() && !value.is_array() {
                    *value = MASK.into();
                    *hidden += 1;
                } else {
                    hide(value, hidden);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| hide(item, hidden)),
        Value::String(text) => {
            let Some(secrets) = &*SECRETS else { return };
            let found = secrets.scan(text.as_bytes()).findings.len();
            if found > 0 {
                *text = String::from_utf8_lossy(&secrets.redact(text.as_bytes())).into_owned();
                *hidden += found;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn is_secret(name: &str) -> bool {
    let name: String =
        name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    // A count of tokens is no secret.
    NAMES.iter().any(|secret| name.contains(secret)) && !name.ends_with("tokens")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_secret_is_hidden_until_asked() {
        let text = r#"{"user":"ann","api_key":"k-1","max_tokens":5,"deep":[{"Password":"hunter2"}],"note":"key AKIAIOSFODNN7EXAMPLE"}"#;
        let (shown, hidden) = masked(text, false);
        assert!(shown.contains("ann") && shown.contains('5'), "{shown}");
        for secret in ["k-1", "hunter2", "AKIAIOSFODNN7EXAMPLE"] {
            assert!(!shown.contains(secret), "{shown}");
        }
        assert_eq!(hidden, 3);
        let (shown, hidden) = masked(text, true);
        assert!(shown.contains("hunter2") && hidden == 0);
    }
}
