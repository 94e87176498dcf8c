//! JSON Schemas of workflows: a schema, a line of three dashes, a value, both as YAML, which bears more changes than
//! JSON does. Asking keeps to its meter, and the same question has the same answer.

use super::FuzzTarget;
use crate::signal::FuzzSignal;
use reveille_core::cost::{CostLimit, Meter};
use reveille_core::flow::Schema;
use serde_json::Value as Json;

pub const TARGET: FuzzTarget = FuzzTarget {
    name: "schemas",
    dictionary: &[
        "type: object\n",
        "type: [string, 'null']\n",
        "type: integer\n",
        "type: array\n",
        "properties:\n",
        "  a: ",
        "items: ",
        "required: [a]\n",
        "$ref: '#/$defs/a'\n",
        "{$ref: '#/$defs/a'}",
        "{$ref: '#'}",
        "$defs: {a: {}}\n",
        "allOf: [",
        "anyOf: [",
        "oneOf: [",
        "not: ",
        "if: ",
        "pattern: '^(a+)+$'\n",
        "enum: [1, a]\n",
        "const: 1\n",
        "additionalProperties: false\n",
        "unevaluatedProperties: false\n",
        "$dynamicRef: '#a'\n",
        "$dynamicAnchor: a\n",
        "minimum: 1\n",
        "multipleOf: 0.01\n",
        "format: email\n",
        "\n---\n",
        "{",
        "}",
        "[",
        "]",
        ", ",
        "1e308",
        "a: ",
        "patternProperties: {'^(a|b)+$': {}}\n",
        "dependentSchemas: ",
        "contains: ",
        "minContains: 2\n",
    ],
    run,
};

fn run(input: &[u8], signal: &mut FuzzSignal) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let (schema, value) = text.split_once("\n---\n").unwrap_or((text, "null"));
    let schema: Json = match serde_saphyr::from_str(schema) {
        Ok(schema) => schema,
        Err(error) => return signal.see_words(&error.to_string()),
    };
    let value: Json = serde_saphyr::from_str(value).unwrap_or_default();
    let schema = match Schema::parse(&schema) {
        Ok(schema) => schema,
        Err(problem) => return signal.see_words(&problem),
    };
    signal.see(schema.kind().to_string());
    let ask = || {
        let meter = Meter::new(CostLimit::SCHEMA);
        let answer = schema.check(&value, &meter);
        assert!(answer.is_err() || meter.exceeded().is_none(), "an answer in spite of the meter");
        answer
    };
    let answer = ask();
    assert_eq!(answer, ask(), "asked again");
    signal.see_words(&answer.err().unwrap_or_default());
}
