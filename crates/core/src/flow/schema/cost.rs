//! What it costs to hold a value against a schema: how many parts of the schema meet how many parts of the
//! value.
//!
//! A schema may refer to one part of itself twice, and that part to the next one twice: thirty lines then ask
//! a billion questions. The validator does not count; so the questions are counted here first, with every
//! alternative taken, and a value is only validated if all of them can be afforded.

use crate::cost::{Meter, TooExpensive};
use serde_json::Value as Json;

/// Bytes of a text that a pattern looks at in one step.
const TEXT_STEP_BYTES: usize = 64;

/// Charges the meter for all of it. No recursion: a schema may refer to itself for ever.
pub(super) fn charge(schema: &Json, value: &Json, meter: &Meter) -> Result<(), TooExpensive> {
    let mut open = vec![(schema, value)];
    while let Some((part, value)) = open.pop() {
        meter.step(1)?;
        let Some(keywords) = part.as_object() else { continue };
        let before = open.len();
        for (keyword, asked) in keywords {
            questions(schema, keyword, asked, value, &mut open);
            meter.step(own_cost(keyword, asked, value))?;
        }
        // What is left over is found by asking all the others once more.
        if keywords.keys().any(|keyword| keyword.starts_with("unevaluated")) {
            open.extend_from_within(before..);
        }
        meter.step((open.len() - before) as u64)?;
    }
    Ok(())
}

/// Which parts of the schema are asked of which parts of the value.
fn questions<'j>(
    schema: &'j Json,
    keyword: &str,
    asked: &'j Json,
    value: &'j Json,
    open: &mut Vec<(&'j Json, &'j Json)>,
) {
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    let parts = || value.as_object().into_iter().flatten().map(|(_, part)| part);
    match (keyword, asked) {
        ("$ref", Json::String(pointer)) => open.extend(target(schema, pointer).map(|target| (target, value))),
        ("allOf" | "anyOf" | "oneOf", Json::Array(all)) => open.extend(all.iter().map(|one| (one, value))),
        ("not" | "if" | "then" | "else", one) => open.push((one, value)),
        ("dependentSchemas" | "dependencies", Json::Object(all)) => {
            open.extend(all.values().map(|one| (one, value)));
        }
        ("properties", Json::Object(all)) => {
            open.extend(all.iter().filter_map(|(name, one)| value.get(name).map(|part| (one, part))));
        }
        ("patternProperties", Json::Object(all)) => {
            open.extend(all.values().flat_map(|one| parts().map(move |part| (one, part))));
        }
        ("additionalProperties" | "unevaluatedProperties", one) => {
            open.extend(parts().map(|part| (one, part)));
        }
        ("propertyNames", one) => open.extend(parts().map(|_| (one, &Json::Null))),
        ("prefixItems" | "items", Json::Array(all)) => open.extend(all.iter().zip(items)),
        ("items" | "additionalItems" | "unevaluatedItems" | "contains", one) => {
            open.extend(items.iter().map(|item| (one, item)));
        }
        _ => {}
    }
}

/// What a keyword costs by itself.
fn own_cost(keyword: &str, asked: &Json, value: &Json) -> u64 {
    let cost = match (keyword, asked, value) {
        ("enum", Json::Array(choices), _) => choices.len(),
        ("uniqueItems", _, Json::Array(items)) => items.len(),
        ("pattern" | "format", _, Json::String(text)) => text.len() / TEXT_STEP_BYTES,
        _ => 0,
    };
    cost as u64
}

fn target<'j>(schema: &'j Json, pointer: &str) -> Option<&'j Json> {
    schema.pointer(pointer.strip_prefix('#')?)
}

/// The first reference that is not to a part of the schema itself, by its place.
pub(super) fn foreign_reference(schema: &Json) -> Option<&str> {
    let mut open = vec![schema];
    while let Some(part) = open.pop() {
        match part {
            Json::Object(keywords) => {
                for (keyword, asked) in keywords {
                    match (keyword.as_str(), asked) {
                        ("$ref", Json::String(to)) if target(schema, to).is_none() => return Some(to),
                        ("$dynamicRef" | "$recursiveRef", Json::String(to)) => return Some(to),
                        // Values, not schemas.
                        ("enum" | "const" | "default" | "examples", _) => {}
                        _ => open.push(asked),
                    }
                }
            }
            Json::Array(all) => open.extend(all),
            _ => {}
        }
    }
    None
}
