//! The body of an export request: `ExportTraceServiceRequest` in the JSON form of OTLP, where ids are
//! hexadecimal and 64-bit numbers are texts.

use bytes::Bytes;
use reveille_core::time::Millis;
use reveille_core::trace::{AttributeValue, SpanKind, SpanOutcome, SpanRecord, TraceParent, TraceState};
use serde::Serialize;

/// What is inside the spans' array, and around it. Spans are written one by one, so that it is known how
/// large the body has become.
pub(super) struct OtlpBody {
    text: String,
    has_spans: bool,
    pub jobs: u64,
}

const TAIL: &str = "]}]}]}";

impl OtlpBody {
    pub fn new(service_name: &str) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        let resource = Resource {
            attributes: [
                Attribute { key: "service.name", value: Any::String(service_name) },
                Attribute { key: "service.version", value: Any::String(version) },
            ],
        };
        let scope = OtlpScope { name: "reveille", version };
        let text = format!(
            r#"{{"resourceSpans":[{{"resource":{},"scopeSpans":[{{"scope":{},"spans":["#,
            json(&resource),
            json(&scope)
        );
        Self { text, has_spans: false, jobs: 0 }
    }

    /// Adds the spans of one job.
    pub fn add(&mut self, spans: &[SpanRecord]) {
        self.jobs += 1;
        for span in spans {
            if std::mem::replace(&mut self.has_spans, true) {
                self.text.push(',');
            }
            self.text.push_str(&json(&Span::of(span)));
        }
    }

    pub fn len(&self) -> usize {
        self.text.len() + TAIL.len()
    }

    pub fn finish(mut self) -> Bytes {
        self.text.push_str(TAIL);
        self.text.into()
    }
}

/// Texts and numbers always serialize.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "{}".to_owned())
}

#[derive(Serialize)]
struct Resource<'a> {
    attributes: [Attribute<'a>; 2],
}

#[derive(Serialize)]
struct OtlpScope<'a> {
    name: &'a str,
    version: &'a str,
}

#[derive(Serialize)]
struct Attribute<'a> {
    key: &'a str,
    value: Any<'a>,
}

#[derive(Serialize)]
enum Any<'a> {
    #[serde(rename = "stringValue")]
    String(&'a str),
    #[serde(rename = "intValue")]
    Int(String),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Span<'a> {
    trace_id: String,
    span_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_state: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_span_id: Option<String>,
    name: &'a str,
    kind: u8,
    start_time_unix_nano: String,
    end_time_unix_nano: String,
    attributes: Vec<Attribute<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    events: Vec<OtlpEvent<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    links: Vec<OtlpLink>,
    status: OtlpStatus<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OtlpEvent<'a> {
    time_unix_nano: String,
    name: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OtlpLink {
    trace_id: String,
    span_id: String,
}

#[derive(Serialize)]
struct OtlpStatus<'a> {
    code: u8,
    #[serde(skip_serializing_if = "str::is_empty")]
    message: &'a str,
}

impl<'a> Span<'a> {
    fn of(span: &'a SpanRecord) -> Self {
        let (code, message) = match &span.outcome {
            SpanOutcome::Unset => (0, ""),
            SpanOutcome::Good => (1, ""),
            SpanOutcome::Bad(words) => (2, words.as_str()),
        };
        let attribute = |(key, value): &'a (&'static str, AttributeValue)| Attribute {
            key,
            value: match value {
                AttributeValue::Text(text) => Any::String(text),
                AttributeValue::Number(number) => Any::Int(number.to_string()),
            },
        };
        let link =
            |to: &TraceParent| OtlpLink { trace_id: to.trace.to_string(), span_id: to.span.to_string() };
        Self {
            trace_id: span.trace.to_string(),
            span_id: span.span.to_string(),
            trace_state: span.state.as_ref().map(TraceState::as_str),
            parent_span_id: span.parent.map(|parent| parent.to_string()),
            name: &span.name,
            kind: match span.kind {
                SpanKind::Internal => 1,
                SpanKind::Server => 2,
                SpanKind::Client => 3,
            },
            start_time_unix_nano: nanos(span.from),
            end_time_unix_nano: nanos(span.to),
            attributes: span.attributes.iter().map(attribute).collect(),
            events: span
                .moments
                .iter()
                .map(|moment| OtlpEvent { time_unix_nano: nanos(moment.at), name: &moment.name })
                .collect(),
            links: span.links.iter().map(link).collect(),
            status: OtlpStatus { code, message },
        }
    }
}

fn nanos(at: Millis) -> String {
    (i128::from(at.0.max(0)) * 1_000_000).to_string()
}
