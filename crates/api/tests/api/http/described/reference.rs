//! The API for people: `docs/api.md`, made from the description for machines.
//!
//! What is the same for all operations is said once, at its head. A shape stands with the first group that uses it.

use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

const HEAD: &str = "# The HTTP API

Made from [openapi.json](openapi.json), which generators of clients read; a running server shows it at
`GET /api/v1/openapi.json`. Bodies and answers are JSON. [getting-started.md](getting-started.md) shows it at work.

A key is sent as `X-API-Key: KEY` or `Authorization: Bearer KEY`. With `X-Tenant-ID` an operator says for which tenant it
acts. What is refused is told as [Error](#error): `code` stays the same between versions, `error` is for people. Any
operation that asks for a key can answer:

";
const METHODS: [&str; 4] = ["get", "post", "patch", "delete"];
const REF: &str = "#/components/schemas/";

pub fn page(document: &Value) -> String {
    let mut page = HEAD.to_owned();
    let common = common(document);
    for (status, words) in &common {
        line(&mut page, &format!("- {status}: {words}"));
    }
    let shapes = object(&document["components"]["schemas"]);
    let mut shown = BTreeSet::new();
    for tag in list(&document["tags"]) {
        let name = text(&tag["name"]);
        line(&mut page, &format!("\n## {}\n\n{}", capital(name), text(&tag["description"])));
        let mut used = BTreeSet::new();
        for (path, item) in object(&document["paths"]) {
            for (method, operation) in METHODS.iter().filter_map(|method| Some((method, item.get(method)?))) {
                if operation["tags"][0] == *name {
                    line(&mut page, &format!("\n### `{} {path}`\n", method.to_uppercase()));
                    tell(&mut page, operation, &common);
                    reach(&operation["requestBody"], shapes, &mut used);
                    for (_, answer) in answers(operation) {
                        reach(answer, shapes, &mut used);
                    }
                }
            }
        }
        used.retain(|shape| shown.insert(shape.clone()));
        draw(&mut page, shapes, &used);
    }
    let rest: BTreeSet<String> = shapes.keys().filter(|shape| !shown.contains(*shape)).cloned().collect();
    line(&mut page, "\n## Errors and events\n\nWhat refusals, streams and sockets bring.");
    draw(&mut page, shapes, &rest);
    page
}

/// A refusal: its status, and what it means.
type Refusal<'a> = (&'a str, &'a str);

fn refusals(operation: &Value) -> impl Iterator<Item = Refusal<'_>> {
    let refused = object(&operation["responses"]).iter().filter(|(status, _)| status.as_str() >= "400");
    refused.map(|(status, answer)| (status.as_str(), text(&answer["description"])))
}

/// Refusals that most groups have, and that are said once for all.
fn common(document: &Value) -> BTreeSet<Refusal<'_>> {
    let mut groups: BTreeMap<Refusal, BTreeSet<&str>> = BTreeMap::new();
    for operation in object(&document["paths"]).values().flat_map(|item| object(item).values()) {
        for refusal in refusals(operation) {
            groups.entry(refusal).or_default().insert(text(&operation["tags"][0]));
        }
    }
    let most = list(&document["tags"]).len() / 2;
    groups.into_iter().filter(|(_, groups)| groups.len() > most).map(|(refusal, _)| refusal).collect()
}

fn tell(page: &mut String, operation: &Value, common: &BTreeSet<Refusal>) {
    let words = [text(&operation["summary"]), text(&operation["description"])];
    line(page, &format!("{}\n", words.join(" ").trim_end().replace('\n', " ")));
    for place in ["query", "header"] {
        let there = list(&operation["parameters"]).iter().filter(|parameter| parameter["in"] == place);
        let told: Vec<String> = there.filter(|there| there["name"] != "X-Tenant-ID").map(parameter).collect();
        if !told.is_empty() {
            line(page, &format!("- In the {place}: {}", told.join(", ")));
        }
    }
    let body = &operation["requestBody"];
    if !body.is_null() {
        let left_out = if body["required"] == false { ", or nothing" } else { "" };
        line(page, &format!("- Takes {}{left_out}", kinds(body)));
    }
    let told: Vec<String> = answers(operation).map(|(status, answer)| answered(status, answer)).collect();
    line(page, &format!("- Answers {}", told.join("; ")));
    let own = refusals(operation).filter(|refusal| !common.contains(refusal));
    let own: Vec<String> = own.map(|(status, words)| format!("{status} ({words})")).collect();
    if !own.is_empty() {
        line(page, &format!("- Refuses with {}", own.join(", ")));
    }
}

fn parameter(parameter: &Value) -> String {
    let words = text(&parameter["description"]).trim_end_matches('.').replace('\n', " ");
    let words = if parameter["required"] == true { format!("needed: {words}") } else { words };
    let name = text(&parameter["name"]);
    if words.is_empty() { format!("`{name}`") } else { format!("`{name}` ({words})") }
}

fn answers(operation: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let all = object(&operation["responses"]).iter().map(|(status, answer)| (status.as_str(), answer));
    all.filter(|(status, _)| *status < "400")
}

fn answered(status: &str, answer: &Value) -> String {
    let words = text(&answer["description"]);
    let words = if words == "As asked for" { String::new() } else { format!(" ({words})") };
    let kinds = kinds(answer);
    format!("{status}{}{kinds}{words}", if kinds.is_empty() { "" } else { " " })
}

/// What is in a body or an answer, in each form that it has.
fn kinds(body: &Value) -> String {
    let forms = object(&body["content"]).iter().map(|(form, content)| match form.as_str() {
        "application/json" => kind(&content["schema"]),
        form => format!("`{form}`"),
    });
    forms.collect::<Vec<_>>().join(" or ")
}

/// A table of shapes and their fields.
fn draw(page: &mut String, shapes: &Map<String, Value>, names: &BTreeSet<String>) {
    if names.is_empty() {
        return;
    }
    line(page, "\n| shape | field | type | |\n|---|---|---|---|");
    for name in names {
        let mut title = format!("<a id=\"{}\"></a>**{name}**", name.to_lowercase());
        let shape = &shapes[name];
        let parts =
            shape.get("allOf").or_else(|| shape.get("oneOf")).map_or(std::slice::from_ref(shape), list);
        for part in parts {
            if part.get("$ref").is_some() {
                row(page, &mut title, "", &format!("all of {}", kind(part)), "");
            }
            let needed = list(&part["required"]);
            // Fields of which nothing is said stand together, by their type.
            let mut plain: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for (field, schema) in object(&part["properties"]) {
                let mut kind = kind(schema);
                if !needed.iter().any(|needed| needed == field) {
                    kind = format!("{}, optional", kind.trim_end_matches(" or null"));
                }
                if said(schema).is_empty() {
                    plain.entry(kind).or_default().push(format!("`{field}`"));
                } else {
                    row(page, &mut title, &format!("`{field}`"), &kind, said(schema));
                }
            }
            for (kind, fields) in plain {
                row(page, &mut title, &fields.join(", "), &kind, "");
            }
        }
        if !title.is_empty() {
            row(page, &mut title, "", &kind(shape), said(shape));
        }
    }
}

/// The name of a shape stands in its first row.
fn row(page: &mut String, title: &mut String, field: &str, kind: &str, words: &str) {
    let words = words.replace('\n', " ").replace('|', "\\|");
    line(page, &format!("| {} | {field} | {kind} | {words} |", std::mem::take(title)));
}

/// What is said of a field; of a reference that may be null, one level down.
fn said(schema: &Value) -> &str {
    let below = list(&schema["oneOf"]).iter().map(|part| text(&part["description"]));
    std::iter::once(text(&schema["description"]))
        .chain(below)
        .find(|words| !words.is_empty())
        .unwrap_or_default()
}

fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.trim_start_matches(REF);
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(word) = schema["enum"][0].as_str() {
        return format!("`{word}`");
    }
    if !schema["oneOf"].is_null() {
        let mut kinds: Vec<String> = list(&schema["oneOf"]).iter().map(kind).collect();
        kinds.sort_by_key(|kind| kind == "null");
        return kinds.join(" or ");
    }
    match &schema["type"] {
        Value::Array(kinds) => {
            let plain = kinds.iter().find(|kind| *kind != "null").cloned().unwrap_or_default();
            let mut schema = schema.clone();
            schema["type"] = plain;
            format!("{} or null", kind(&schema))
        }
        Value::String(name) if name == "array" => format!("list of {}", kind(&schema["items"])),
        Value::String(name) if name == "object" && schema["additionalProperties"].is_object() => {
            format!("map to {}", kind(&schema["additionalProperties"]))
        }
        Value::String(name) => name.clone(),
        _ => "any JSON".to_owned(),
    }
}

/// The shapes that this one leads to.
fn reach(node: &Value, shapes: &Map<String, Value>, found: &mut BTreeSet<String>) {
    match node {
        Value::Array(nodes) => nodes.iter().for_each(|node| reach(node, shapes, found)),
        Value::Object(fields) => {
            for (field, node) in fields {
                match node {
                    Value::String(name) if field == "$ref" => {
                        let name = name.trim_start_matches(REF);
                        if found.insert(name.to_owned()) {
                            reach(&shapes[name], shapes, found);
                        }
                    }
                    node => reach(node, shapes, found),
                }
            }
        }
        _ => {}
    }
}

fn capital(name: &str) -> String {
    match name {
        "voicegateway" => "VoiceGateway".to_owned(),
        "openorca" => "OpenOrca".to_owned(),
        _ => name[..1].to_uppercase() + &name[1..],
    }
}

fn line(page: &mut String, words: &str) {
    let _ = writeln!(page, "{words}");
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn object(value: &Value) -> &Map<String, Value> {
    static NOTHING: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    value.as_object().unwrap_or(&NOTHING)
}
