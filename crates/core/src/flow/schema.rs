//! JSON Schemas of inputs and outputs: whether a value fits, and what expressions may expect of it.

use crate::expression::{RecordKind, ValueKind};
use jsonschema::Validator;
use serde_json::Value as Json;
use std::fmt;
use std::sync::Arc;

/// How much of a schema there may be.
pub const SCHEMA_LEN_MAX: usize = 64 * 1024;

#[derive(Clone)]
pub struct Schema {
    validator: Arc<Validator>,
    kind: ValueKind,
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl Schema {
    pub fn parse(json: &Json) -> Result<Self, String> {
        if json.to_string().len() > SCHEMA_LEN_MAX {
            return Err(format!("is larger than {SCHEMA_LEN_MAX} bytes"));
        }
        let validator =
            jsonschema::validator_for(json).map_err(|error| format!("is no JSON Schema: {error}"))?;
        Ok(Self { validator: Arc::new(validator), kind: kind_of(json, 0) })
    }

    /// What expressions may expect of a value that fits.
    pub fn kind(&self) -> ValueKind {
        self.kind.clone()
    }

    /// Says what does not fit, and where, without saying the value: it may be a secret.
    pub fn check(&self, value: &Json) -> Result<(), String> {
        match self.validator.iter_errors(value).next() {
            None => Ok(()),
            Some(error) => {
                let path = error.instance_path().to_string();
                let at = if path.is_empty() { "it".to_owned() } else { path };
                Err(format!("{at} does not fit the schema at {}", error.schema_path()))
            }
        }
    }
}

const DEPTH_MAX: u32 = 16;

/// Only what holds for every value that fits; a part that is not required may be missing, and asking for it
/// is then an error of the run, as it is without a schema.
fn kind_of(schema: &Json, depth: u32) -> ValueKind {
    if depth > DEPTH_MAX {
        return ValueKind::Json;
    }
    match schema.get("type").and_then(Json::as_str) {
        Some("string") => ValueKind::Text,
        Some("integer") => ValueKind::Int,
        Some("boolean") => ValueKind::Truth,
        Some("array") => match schema.get("items") {
            Some(items) if items.is_object() => ValueKind::list(kind_of(items, depth + 1)),
            _ => ValueKind::Json,
        },
        Some("object") => {
            let parts = schema.get("properties").and_then(Json::as_object);
            let parts =
                parts.into_iter().flatten().map(|(name, part)| (name.clone(), kind_of(part, depth + 1)));
            let is_open = schema.get("additionalProperties") != Some(&Json::Bool(false));
            let what = "the value its schema describes".to_owned();
            ValueKind::Record(Arc::new(RecordKind { what, parts: parts.collect(), is_open }))
        }
        // A number may be whole or not; CEL tells them apart, JSON does not.
        _ => ValueKind::Json,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_fits_or_is_told_where_it_does_not() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let schema = Schema::parse(&schema).unwrap();
        assert_eq!(schema.check(&json!({"n": 1})), Ok(()));
        let problem = schema.check(&json!({"n": "secret"})).unwrap_err();
        assert!(problem.contains("/n") && !problem.contains("secret"), "{problem}");
        assert!(Schema::parse(&json!({"type": "nothing"})).is_err());
        assert!(Schema::parse(&json!({"$ref": "http://example.com/schema"})).is_err(), "nothing is fetched");
    }
}
