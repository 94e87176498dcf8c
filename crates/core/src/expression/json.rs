//! JSON in, JSON out. Both are charged: values share their parts, and JSON has each part as often as it is
//! named.

use crate::cost::Meter;
use cel::Value;
use cel::objects::{Key, Map};
use serde_json::Value as Json;
use std::collections::HashMap;
use std::sync::Arc;

/// What is too expensive is made all the same, since it is no larger than what is already there; whoever
/// asks it for anything is refused.
pub fn from_json(json: &Json, meter: &Meter) -> Value {
    let _ = meter.step(1);
    match json {
        Json::Null => Value::Null,
        Json::Bool(yes) => Value::Bool(*yes),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(int), _) => Value::Int(int),
            (None, Some(large)) => Value::UInt(large),
            (None, None) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::String(Arc::new(text.clone())),
        Json::Array(items) => {
            Value::List(Arc::new(items.iter().map(|item| from_json(item, meter)).collect()))
        }
        Json::Object(parts) => {
            let parts = parts.iter().map(|(name, part)| (Key::from(name.clone()), from_json(part, meter)));
            Value::Map(Map { map: Arc::new(parts.collect::<HashMap<_, _>>()) })
        }
    }
}

pub fn to_json(value: &Value, meter: &Meter) -> Result<Json, String> {
    let bytes = match value {
        Value::String(text) => text.len(),
        Value::Map(map) => map.map.len() * size_of::<Json>(),
        _ => 0,
    };
    let charged = meter.step(1).and_then(|()| meter.hold(bytes + size_of::<Json>()));
    charged.map_err(|reason| reason.to_string())?;
    Ok(match value {
        Value::Null => Json::Null,
        Value::Bool(yes) => Json::Bool(*yes),
        Value::Int(int) => Json::from(*int),
        Value::UInt(int) => Json::from(*int),
        Value::Float(double) => match serde_json::Number::from_f64(*double) {
            Some(number) => Json::Number(number),
            None => return Err(format!("gives {double}, which no JSON can say")),
        },
        Value::String(text) => Json::String(text.to_string()),
        Value::List(items) => {
            Json::Array(items.iter().map(|item| to_json(item, meter)).collect::<Result<_, _>>()?)
        }
        Value::Map(map) => {
            let part = |(key, part): (&Key, &Value)| Ok((key.to_string(), to_json(part, meter)?));
            Json::Object(map.map.iter().map(part).collect::<Result<_, String>>()?)
        }
        other => return Err(format!("gives {}, which no JSON can say", describe(other))),
    })
}

/// What a value is, without saying it: it may be a secret.
pub fn describe(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a yes or no",
        Value::Int(_) | Value::UInt(_) | Value::Float(_) => "a number",
        Value::String(_) => "a text",
        Value::List(_) => "a list",
        Value::Map(_) => "an object",
        _ => "something else",
    }
}
