//! Requests, what clients post, and replies, as tables; and that no body makes any of it panic.

use proptest::prelude::*;
use reveille_a2a::message::{A2aAnswer, WORDS_CHARS_MAX, answer, request, wrap};
use serde_json::{Value, json};

fn wrapped(body: &Value) -> Result<Value, String> {
    let bytes = wrap(body.to_string().as_bytes(), || "m-1".to_owned())?;
    Ok(serde_json::from_slice(&bytes).unwrap())
}

fn said(text: &str) -> A2aAnswer {
    A2aAnswer::Said(text.to_owned())
}

fn failed(retryable: bool, words: &str) -> A2aAnswer {
    A2aAnswer::Failed { retryable, words: words.to_owned() }
}

#[test]
fn a_request_is_json_rpc_with_one_text() {
    let body: Value = serde_json::from_slice(&request("m-1", "say \"hi\"\n")).unwrap();
    assert_eq!(
        body,
        json!({
            "jsonrpc": "2.0", "id": "m-1", "method": "message/send",
            "params": { "message": {
                "role": "user", "messageId": "m-1", "parts": [{ "kind": "text", "text": "say \"hi\"\n" }],
            } },
        })
    );
}

#[test]
fn what_heartbeat_py_posts_becomes_a_proper_request() {
    let parts = json!([{ "type": "text", "text": "done" }]);
    let posted =
        json!({ "method": "message/send", "params": { "message": { "role": "user", "parts": parts } } });
    let expected: Value = serde_json::from_slice(&request("m-1", "done")).unwrap();
    assert_eq!(wrapped(&posted), Ok(expected));
}

#[test]
fn what_is_there_already_stays() {
    let whole = json!({
        "jsonrpc": "2.0", "id": 7, "method": "message/send", "trace": [1, null],
        "params": {
            "configuration": { "blocking": true },
            "message": {
                "messageId": "theirs", "role": "agent", "metadata": { "a": 1.5 },
                "parts": [{ "kind": "data", "type": "both", "data": {} }, "odd", 3],
            },
        },
    });
    assert_eq!(wrapped(&whole), Ok(whole));
    let other = json!({ "jsonrpc": "2.0", "id": "x", "method": "tasks/get", "params": { "id": "t" } });
    assert_eq!(wrapped(&other), Ok(other));
}

#[test]
fn values_pass_as_they_were_written() {
    let (open, close) = ("[".repeat(100_000), "]".repeat(100_000));
    for value in ["123456789012345678901234567890", "1e999", "0.10", r#""\u00e9""#, &format!("{open}{close}")]
    {
        let body = format!(
            r#"{{"method":"message/send","params":{{"message":{{"x":{value},"parts":[{{"x":{value}}}]}}}}}}"#
        );
        let bytes = wrap(body.as_bytes(), || "m-1".to_owned()).unwrap();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        assert_eq!(text.matches(&format!(r#""x":{value}"#)).count(), 2, "{value:.40}");
    }
}

#[test]
fn the_id_of_the_message_is_the_id_of_a_request_without_one() {
    let posted =
        json!({ "id": null, "method": "message/send", "params": { "message": { "messageId": "theirs" } } });
    assert_eq!(wrapped(&posted).unwrap()["id"], "theirs");
    let empty = json!({ "id": 0, "method": "message/send", "params": { "message": { "messageId": "" } } });
    let mended = wrapped(&empty).unwrap();
    assert_eq!((&mended["id"], &mended["params"]["message"]["messageId"]), (&json!(0), &json!("m-1")));
}

#[test]
fn what_cannot_be_mended_is_told() {
    let table = [
        (json!({ "params": {} }), "`method` is missing, or no text"),
        (json!({ "method": 1 }), "`method` is missing, or no text"),
        (json!({ "method": "message/send" }), "`params.message` is missing, or no object"),
        (
            json!({ "method": "message/send", "params": { "message": "hi" } }),
            "`params.message` is missing, or no object",
        ),
    ];
    for (body, words) in table {
        assert_eq!(wrapped(&body), Err(words.to_owned()));
    }
    for body in ["", "{", "[]", "7", "null", "{}x", "\u{feff}{}", "[".repeat(100_000).as_str()] {
        let words = wrap(body.as_bytes(), String::new).unwrap_err();
        assert!(words.starts_with("the body is no JSON object: "), "{words}");
    }
}

#[test]
fn a_good_reply_is_its_text() {
    let text = |text: &str| json!({ "kind": "text", "text": text });
    let table = [
        (json!({ "result": { "parts": [text("a"), { "kind": "data", "data": {} }, text("b")] } }), "a\nb"),
        (json!({ "result": { "artifacts": [{ "parts": [text("a")] }, { "parts": [text("b")] }] } }), "a\nb"),
        (
            json!({ "result": { "status": { "state": "completed", "message": { "parts": [text("a")] } } } }),
            "a",
        ),
        (
            json!({ "result": { "artifacts": [{ "parts": [text("made")] }],
                "status": { "message": { "parts": [text("told")] } } } }),
            "made",
        ),
        (json!({ "result": { "parts": [text("")] } }), r#"{"parts":[{"kind":"text","text":""}]}"#),
        (json!({ "result": { "n": 1 } }), r#"{"n":1}"#),
        (json!({ "error": null, "result": "plain" }), r#""plain""#),
        (json!({ "anything": true }), r#"{"anything":true}"#),
    ];
    for (body, expected) in table {
        assert_eq!(answer(200, body.to_string().as_bytes()), said(expected), "{body}");
    }
}

#[test]
fn a_bad_reply_says_what_and_whether_to_try_again() {
    let table: [(u16, &str, A2aAnswer); 17] = [
        (202, r#"{"queued":true,"queue_depth":2}"#, A2aAnswer::Queued),
        (202, r#"{"queued":false}"#, said(r#"{"queued":false}"#)),
        (200, r#"{"queued":true}"#, said(r#"{"queued":true}"#)),
        (200, r#"{"error":{"code":-32601,"message":"no such method"}}"#, failed(false, "no such method")),
        (200, r#"{"error":{"code":-32000,"message":"busy"}}"#, failed(true, "busy")),
        (200, r#"{"error":{"code":-32099,"message":"busy"}}"#, failed(true, "busy")),
        (200, r#"{"error":{"code":-32100}}"#, failed(false, r#"{"code":-32100}"#)),
        (200, r#"{"error":"plain"}"#, failed(false, "plain")),
        (200, "<html>", failed(false, "the answer is not JSON: <html>")),
        (200, r#"{"result":{"status":{"state":"failed"}}}"#, failed(false, "failed")),
        (302, "", failed(false, "HTTP 302: redirects are not followed")),
        (404, r#"{"error":"workspace not found"}"#, failed(false, "HTTP 404: workspace not found")),
        (408, "late", failed(true, "HTTP 408: late")),
        (429, "slow down", failed(true, "HTTP 429: slow down")),
        (500, r#"{"error":{"message":"oops"}}"#, failed(true, "HTTP 500: oops")),
        (503, "", failed(true, "HTTP 503: ")),
        (599, "?", failed(true, "HTTP 599: ?")),
    ];
    for (status, body, expected) in table {
        assert_eq!(answer(status, body.as_bytes()), expected, "{status} {body}");
    }
}

/// Any JSON, with the keys that the code looks for more often than chance has them.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        Just(Value::from("message/send")),
    ];
    let key = prop::sample::select(vec![
        "method",
        "params",
        "message",
        "messageId",
        "parts",
        "type",
        "kind",
        "text",
        "result",
        "artifacts",
        "status",
        "state",
        "error",
        "code",
        "queued",
        "id",
        "other",
    ]);
    leaf.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..6)
                .prop_map(|pairs| pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

proptest! {
    #[test]
    fn no_bytes_panic_and_words_are_bounded(status: u16, body: Vec<u8>, long in ".{0,2000}") {
        let _ = wrap(&body, || "m".to_owned());
        for body in [body.as_slice(), long.as_bytes()] {
            if let A2aAnswer::Failed { words, .. } = answer(status, body) {
                prop_assert!(words.chars().count() <= WORDS_CHARS_MAX);
            }
        }
    }

    #[test]
    fn no_json_panics_and_wrapping_twice_changes_nothing(
        status in prop::sample::select(vec![200_u16, 202, 302, 404, 500]),
        body in any_json(),
    ) {
        let text = body.to_string();
        let _ = answer(status, text.as_bytes());
        if let Ok(once) = wrap(text.as_bytes(), || "m".to_owned()) {
            let again = wrap(&once, || "n".to_owned()).unwrap();
            prop_assert_eq!(once, again);
        }
    }
}
