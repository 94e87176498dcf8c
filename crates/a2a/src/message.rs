//! What is said to agents: JSON-RPC 2.0 as the A2A protocol uses it.
//!
//! Pure functions over bytes. Bodies come from strangers on both sides; whatever they hold, the
//! outcome is a value.

mod answer;

pub use answer::{A2aAnswer, WORDS_CHARS_MAX, answer};

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::BTreeMap;

/// An object whose values stay as they were written: a number too long for us is not for us to round.
type Object = BTreeMap<String, Box<RawValue>>;

/// The methods that carry a message.
const SENDS: [&str; 2] = ["message/send", "message/stream"];

/// A message of one text from a user, as `message/send`. The message's id is the request's too.
pub fn request(message_id: &str, text: &str) -> Bytes {
    let parts = json!([{ "kind": "text", "text": text }]);
    let message = json!({ "role": "user", "messageId": message_id, "parts": parts });
    let body = json!({
        "jsonrpc": "2.0",
        "id": message_id,
        "method": "message/send",
        "params": { "message": message },
    });
    Bytes::from(body.to_string())
}

/// Makes a proper JSON-RPC 2.0 request of what a client posted: adds the version, the id and the
/// message's id where they are missing, and says `kind` where a part says `type`. Every other key
/// stays. The error says, for that client, what cannot be mended.
pub fn wrap(body: &[u8], message_id: impl FnOnce() -> String) -> Result<Bytes, String> {
    let mut envelope: Object =
        serde_json::from_slice(body).map_err(|error| format!("the body is no JSON object: {error}"))?;
    let method: String = get(&envelope, "method").ok_or("`method` is missing, or no text")?;
    let params: Option<Object> = get(&envelope, "params");
    let message: Option<Object> = params.as_ref().and_then(|params| get(params, "message"));
    let id = match (params, message) {
        (Some(mut params), Some(mut message)) => {
            let id = mend(&mut message, message_id)?;
            set(&mut params, "message", &message)?;
            set(&mut envelope, "params", &params)?;
            id
        }
        _ if SENDS.contains(&method.as_str()) => {
            return Err("`params.message` is missing, or no object".to_owned());
        }
        _ => message_id(),
    };
    set(&mut envelope, "jsonrpc", "2.0")?;
    if envelope.get("id").is_none_or(|id| id.get() == "null") {
        set(&mut envelope, "id", &id)?;
    }
    serde_json::to_vec(&envelope).map(Bytes::from).map_err(|error| error.to_string())
}

/// Fills in what is missing in a message, and returns its id.
fn mend(message: &mut Object, message_id: impl FnOnce() -> String) -> Result<String, String> {
    if let Some(mut parts) = get::<Vec<Box<RawValue>>>(message, "parts") {
        for part in &mut parts {
            rename_type(part)?;
        }
        set(message, "parts", &parts)?;
    }
    if let Some(id) = get::<String>(message, "messageId").filter(|id| !id.is_empty()) {
        return Ok(id);
    }
    let id = message_id();
    set(message, "messageId", &id)?;
    Ok(id)
}

/// Older clients say `type` where the protocol says `kind`.
fn rename_type(part: &mut Box<RawValue>) -> Result<(), String> {
    let Ok(mut keys) = serde_json::from_str::<Object>(part.get()) else { return Ok(()) };
    if !keys.contains_key("kind")
        && let Some(kind) = keys.remove("type")
    {
        keys.insert("kind".to_owned(), kind);
        *part = to_raw_value(&keys).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// The value of a key, if it is there and of this type.
fn get<Type: DeserializeOwned>(object: &Object, key: &str) -> Option<Type> {
    serde_json::from_str(object.get(key)?.get()).ok()
}

fn set(object: &mut Object, key: &str, value: &(impl Serialize + ?Sized)) -> Result<(), String> {
    let value = to_raw_value(value).map_err(|error| error.to_string())?;
    object.insert(key.to_owned(), value);
    Ok(())
}
