//! Templates: JSON in which every text may hold `${…}`.
//!
//! A text that is one expression and nothing else gives the value as it is; inside a longer text a value is
//! written out. An expression ends at the brace that closes it: braces in texts and in maps are its own.

use crate::expression::{Bindings, Expression, Names, ValueKind, to_json};
use serde_json::{Map, Value as Json};

/// Characters of one expression.
const EXPRESSION_LEN_MAX: usize = 4096;

#[derive(Debug, Clone, PartialEq)]
pub enum Template {
    /// Nothing in it is to be worked out.
    Fixed(Json),
    /// One expression, whose value it is.
    Value(Expression),
    Text(Vec<Piece>),
    List(Vec<Template>),
    Object(Vec<(String, Template)>),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    Text(String),
    Value(Expression),
}

impl Piece {
    fn expression(&self) -> Option<&Expression> {
        match self {
            Self::Text(_) => None,
            Self::Value(expression) => Some(expression),
        }
    }
}

impl Template {
    pub fn parse(json: &Json, names: Names<'_>) -> Result<Self, String> {
        let parsed = match json {
            Json::String(text) => Self::of_text(text, names)?,
            Json::Array(items) => {
                Self::List(items.iter().map(|item| Self::parse(item, names)).collect::<Result<_, _>>()?)
            }
            Json::Object(parts) => {
                let part = |(name, part): (&String, &Json)| match Self::parse(part, names) {
                    Ok(part) => Ok((name.clone(), part)),
                    Err(problem) => Err(format!("{name}: {problem}")),
                };
                Self::Object(parts.iter().map(part).collect::<Result<_, _>>()?)
            }
            fixed => Self::Fixed(fixed.clone()),
        };
        Ok(if parsed.is_fixed() { Self::Fixed(json.clone()) } else { parsed })
    }

    fn of_text(text: &str, names: Names<'_>) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            if at > 0 {
                pieces.push(Piece::Text(rest[..at].to_owned()));
            }
            let inside = &rest[at + 2..];
            let end = end_of(inside).ok_or_else(|| format!("${{ is not closed in {text:?}"))?;
            pieces.push(Piece::Value(expression(inside[..end].trim(), names)?));
            rest = &inside[end + 1..];
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        Ok(match pieces.as_slice() {
            [Piece::Value(expression)] => Self::Value(expression.clone()),
            pieces if pieces.iter().any(|piece| matches!(piece, Piece::Value(_))) => {
                Self::Text(pieces.to_vec())
            }
            _ => Self::Fixed(Json::String(text.to_owned())),
        })
    }

    pub fn is_fixed(&self) -> bool {
        match self {
            Self::Fixed(_) => true,
            Self::Value(_) | Self::Text(_) => false,
            Self::List(items) => items.iter().all(Self::is_fixed),
            Self::Object(parts) => parts.iter().all(|(_, part)| part.is_fixed()),
        }
    }

    /// The kind of what it gives, as far as that is known before.
    pub fn kind(&self) -> ValueKind {
        match self {
            Self::Value(expression) => expression.kind().clone(),
            Self::Text(_) => ValueKind::Text,
            _ => ValueKind::Json,
        }
    }

    /// Every expression in it.
    pub fn expressions(&self) -> Vec<&Expression> {
        match self {
            Self::Fixed(_) => Vec::new(),
            Self::Value(expression) => vec![expression],
            Self::Text(pieces) => pieces.iter().filter_map(Piece::expression).collect(),
            Self::List(items) => items.iter().flat_map(Self::expressions).collect(),
            Self::Object(parts) => parts.iter().flat_map(|(_, part)| part.expressions()).collect(),
        }
    }

    pub fn fill(&self, scope: &Bindings<'_>) -> Result<Json, String> {
        match self {
            Self::Fixed(json) => Ok(json.clone()),
            Self::Value(expression) => value(expression, scope),
            Self::Text(pieces) => {
                let mut text = String::new();
                for piece in pieces {
                    match piece {
                        Piece::Text(fixed) => text.push_str(fixed),
                        Piece::Value(expression) => match value(expression, scope)? {
                            Json::String(part) => text.push_str(&part),
                            other => text.push_str(&other.to_string()),
                        },
                    }
                }
                Ok(Json::String(text))
            }
            Self::List(items) => {
                items.iter().map(|item| item.fill(scope)).collect::<Result<_, _>>().map(Json::Array)
            }
            Self::Object(parts) => {
                let part = |(name, part): &(String, Self)| Ok((name.clone(), part.fill(scope)?));
                parts.iter().map(part).collect::<Result<Map<_, _>, String>>().map(Json::Object)
            }
        }
    }
}

/// An expression of a workflow.
pub fn expression(source: &str, names: Names<'_>) -> Result<Expression, String> {
    Expression::parse(source, names, EXPRESSION_LEN_MAX)
}

fn value(expression: &Expression, scope: &Bindings<'_>) -> Result<Json, String> {
    let said = |problem| format!("${{{}}}: {problem}", expression.source());
    to_json(&expression.value(scope).map_err(said)?, scope.meter()).map_err(said)
}

/// Where the brace is that closes the expression `text` begins with.
fn end_of(text: &str) -> Option<usize> {
    let (mut depth, mut quote, mut escaped) = (0usize, None, false);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, '{') => depth += 1,
            (None, '}') if depth == 0 => return Some(at),
            (None, '}') => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::{CostLimit, Meter};
    use crate::expression::from_json;
    use serde_json::json;

    fn names() -> Vec<(&'static str, ValueKind)> {
        vec![("input", ValueKind::Json), ("index", ValueKind::Int)]
    }

    fn fill(template: &Json, input: &Json) -> Result<Json, String> {
        let template = Template::parse(template, &names())?;
        let meter = Meter::new(CostLimit::RUN_EVENT);
        let mut scope = Bindings::new(&meter);
        scope.set("input", from_json(input, &meter));
        scope.set("index", cel::Value::Int(3));
        template.fill(&scope)
    }

    #[test]
    fn what_templates_give() {
        let input =
            json!({"user": "ada", "n": 2, "tags": ["a", "b"], "big": 12_345_678_901_234_567_i64, "none": []});
        for (template, expected) in [
            (json!("plain"), json!("plain")),
            (json!("${input.n}"), json!(2)),
            (json!("${input.big}"), json!(12_345_678_901_234_567_i64)),
            (json!("${input.tags}"), json!(["a", "b"])),
            (json!("${input.none}"), json!([])),
            (
                json!("hello ${input.user}, ${input.n + 1} of ${input.tags}"),
                json!("hello ada, 3 of [\"a\",\"b\"]"),
            ),
            (json!("${input.n > 1 ? 'many }' : \"one {\"}"), json!("many }")),
            (json!("${{'name': input.user}}"), json!({"name": "ada"})),
            (
                json!({"a": ["${index}", 7], "b": {"c": "${length(input.tags)}"}}),
                json!({"a": [3, 7], "b": {"c": 2}}),
            ),
            (json!("${first(input.tags)}"), json!("a")),
            (json!("${first(input.none)}"), json!(null)),
            (json!("${input.tags.map(tag, tag + '!')}"), json!(["a!", "b!"])),
            (json!("${has(input.missing) ? input.missing : 'nothing'}"), json!("nothing")),
            (json!("costs $5"), json!("costs $5")),
        ] {
            assert_eq!(fill(&template, &input), Ok(expected), "{template}");
        }
    }

    #[test]
    fn what_cannot_be_filled_says_which_expression() {
        for template in ["${input.missing}", "${1 / (input.n - 2)}", "${input.user * 2}"] {
            let problem = fill(&json!(template), &json!({"user": "ada", "n": 2})).expect_err(template);
            assert!(problem.starts_with(template), "{problem}");
        }
    }

    #[test]
    fn what_is_no_template_is_refused_when_it_is_read() {
        for (template, part) in [
            ("${input.n", "not closed"),
            ("${nobody.n}", "unknown name nobody"),
            ("${index.part}", "has no parts"),
            ("${index + 'x'}", "+"),
            ("${index > 'x'}", "compares a number with a text"),
            ("${sysopen('x')}", "sysopen"),
            ("${}", ""),
        ] {
            let problem = Template::parse(&json!({"deep": [template]}), &names()).expect_err(template);
            assert!(problem.contains(part), "{template}: {problem}");
        }
    }
}
