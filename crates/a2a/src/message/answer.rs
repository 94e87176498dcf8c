//! What an agent's reply means.

use serde_json::Value;

/// How much of a failure is told.
pub const WORDS_CHARS_MAX: usize = 500;

/// The codes that JSON-RPC leaves to servers for troubles of their own, which may pass.
const SERVER_TROUBLE: std::ops::RangeInclusive<i64> = -32099..=-32000;

/// How a task ends in the protocol when it did not succeed.
const FAILED_STATES: [&str; 3] = ["failed", "rejected", "canceled"];

/// What came of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum A2aAnswer {
    /// The text of the answer, or its JSON where no text is found.
    Said(String),
    /// The agent is busy and keeps the message for later.
    Queued,
    /// In at most [`WORDS_CHARS_MAX`] characters, and whether the same message may fare better later.
    Failed { retryable: bool, words: String },
}

/// Reads a reply.
pub fn answer(status: u16, body: &[u8]) -> A2aAnswer {
    let json = serde_json::from_slice::<Value>(body).ok();
    match (status, json) {
        (202, Some(json)) if json.get("queued") == Some(&Value::Bool(true)) => A2aAnswer::Queued,
        (200..=299, Some(json)) => rpc_answer(&json),
        (200..=299, None) => failed(false, &format!("the answer is not JSON: {}", text_of(body))),
        (300..=399, _) => failed(false, &format!("HTTP {status}: redirects are not followed")),
        (_, json) => {
            let retryable = matches!(status, 408 | 429 | 500..=599);
            let words = json.as_ref().and_then(|json| json.get("error")).map(error_words);
            failed(retryable, &format!("HTTP {status}: {}", words.unwrap_or_else(|| text_of(body))))
        }
    }
}

fn rpc_answer(json: &Value) -> A2aAnswer {
    if let Some(error) = json.get("error").filter(|error| !error.is_null()) {
        let code = error.get("code").and_then(Value::as_i64);
        return failed(code.is_some_and(|code| SERVER_TROUBLE.contains(&code)), &error_words(error));
    }
    let result = json.get("result").unwrap_or(json);
    let said = said(result);
    let state = result.pointer("/status/state").and_then(Value::as_str);
    match state.filter(|state| FAILED_STATES.contains(state)) {
        Some(state) => {
            failed(false, &said.map_or_else(|| state.to_owned(), |said| format!("{state}: {said}")))
        }
        None => A2aAnswer::Said(said.unwrap_or_else(|| result.to_string())),
    }
}

/// The text of a result: a message's own, else what a task made, else how it ended.
fn said(result: &Value) -> Option<String> {
    let artifacts = result.get("artifacts").and_then(Value::as_array);
    let made = artifacts.into_iter().flatten().flat_map(texts);
    joined(texts(result))
        .or_else(|| joined(made))
        .or_else(|| joined(result.pointer("/status/message").into_iter().flat_map(texts)))
}

/// The texts among the parts of something.
fn texts(holder: &Value) -> impl Iterator<Item = &str> {
    let parts = holder.get("parts").and_then(Value::as_array);
    parts.into_iter().flatten().filter_map(|part| part.get("text")?.as_str())
}

fn joined<'a>(texts: impl Iterator<Item = &'a str>) -> Option<String> {
    let texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// An error is an object with a message in JSON-RPC, and a plain text in most APIs.
fn error_words(error: &Value) -> String {
    let words = error.get("message").unwrap_or(error);
    words.as_str().map_or_else(|| words.to_string(), str::to_owned)
}

fn text_of(body: &[u8]) -> String {
    // No character is longer than four bytes, so this much holds all that is told.
    let beginning = &body[..body.len().min(4 * WORDS_CHARS_MAX)];
    String::from_utf8_lossy(beginning).into_owned()
}

fn failed(retryable: bool, words: &str) -> A2aAnswer {
    A2aAnswer::Failed { retryable, words: words.chars().take(WORDS_CHARS_MAX).collect() }
}
