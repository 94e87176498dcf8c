//! JSON Schemas of inputs and outputs: whether a value fits, and what expressions may expect of it.

mod cost;

use crate::cost::{CostLimit, Meter};
use crate::expression::{RecordKind, ValueKind};
use jsonschema::{PatternOptions, Validator};
use serde_json::Value as Json;
use std::fmt;
use std::sync::Arc;

/// How much of a schema there may be.
pub const SCHEMA_LEN_MAX: usize = 64 * 1024;

/// How often a pattern that looks around may try again, and how large a pattern may get.
const BACKTRACKS_MAX: usize = 10_000;
const PATTERN_BYTES_MAX: usize = 1024 * 1024;

#[derive(Clone)]
pub struct Schema {
    validator: Arc<Validator>,
    written: Arc<Json>,
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
        if let Some(reference) = cost::foreign_reference(json) {
            return Err(format!("$ref: {reference:?} is no part of it; refer to #/… only"));
        }
        // Even a value without parts is asked all that the schema asks in one place.
        let meter = Meter::new(CostLimit::SCHEMA);
        cost::charge(json, &Json::Null, &meter).map_err(|reason| format!("is {reason}"))?;
        let patterns = PatternOptions::fancy_regex()
            .backtrack_limit(BACKTRACKS_MAX)
            .size_limit(PATTERN_BYTES_MAX)
            .dfa_size_limit(PATTERN_BYTES_MAX);
        let validator = jsonschema::options().with_pattern_options(patterns).build(json);
        let validator = validator.map_err(|error| format!("is no JSON Schema: {error}"))?;
        Ok(Self { validator: Arc::new(validator), written: Arc::new(json.clone()), kind: kind_of(json, 0) })
    }

    /// What expressions may expect of a value that fits.
    pub fn kind(&self) -> ValueKind {
        self.kind.clone()
    }

    /// Says what does not fit, and where, without saying the value: it may be a secret.
    pub fn check(&self, value: &Json, meter: &Meter) -> Result<(), String> {
        cost::charge(&self.written, value, meter).map_err(|reason| reason.to_string())?;
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
        let meter = Meter::new(CostLimit::RUN_EVENT);
        assert_eq!(schema.check(&json!({"n": 1}), &meter), Ok(()));
        let problem = schema.check(&json!({"n": "secret"}), &meter).unwrap_err();
        assert!(problem.contains("/n") && !problem.contains("secret"), "{problem}");
        assert!(Schema::parse(&json!({"type": "nothing"})).is_err());
        assert!(Schema::parse(&json!({"$ref": "http://example.com/schema"})).is_err(), "nothing is fetched");
    }

    /// 26 definitions, each of which asks the next one twice.
    fn doubling(around: impl Fn(&str) -> Json) -> Json {
        let mut definitions = serde_json::Map::new();
        for level in 0..26 {
            definitions.insert(format!("d{level}"), around(&format!("#/$defs/d{}", level + 1)));
        }
        definitions.insert("d26".to_owned(), json!({"type": "object"}));
        json!({"$ref": "#/$defs/d0", "$defs": definitions})
    }

    #[test]
    fn a_schema_that_asks_too_much_in_one_place_is_refused_when_it_is_written() {
        let problem =
            Schema::parse(&doubling(|next| json!({"allOf": [{"$ref": next}, {"$ref": next}]}))).unwrap_err();
        assert!(problem.contains("too expensive"), "{problem}");
        for endless in [json!({"$ref": "#"}), json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]})] {
            assert!(Schema::parse(&endless).unwrap_err().contains("too expensive"), "{endless}");
        }
    }

    #[test]
    fn a_value_that_makes_a_schema_expensive_does_not_fit() {
        let twice = |next: &str| json!({"properties": {"x": {"allOf": [{"$ref": next}, {"$ref": next}]}}});
        let schema = Schema::parse(&doubling(twice)).unwrap();
        let deep = (0..26).fold(json!({}), |inner, _| json!({"x": inner}));
        let problem = schema.check(&deep, &Meter::new(CostLimit::RUN_EVENT)).unwrap_err();
        assert!(problem.contains("too expensive"), "{problem}");
    }

    #[test]
    fn a_tree_may_refer_to_itself() {
        let tree =
            json!({"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}});
        let schema = Schema::parse(&tree).unwrap();
        let leaf = |_| json!({"children": []});
        let wide = json!({"children": (0..1000).map(leaf).collect::<Vec<_>>()});
        let meter = Meter::new(CostLimit::RUN_EVENT);
        assert_eq!(schema.check(&wide, &meter), Ok(()));
        assert!(meter.steps() < 20_000, "{}", meter.steps());
        assert!(schema.check(&json!({"children": [{"children": 1}]}), &meter).is_err());
    }
}
