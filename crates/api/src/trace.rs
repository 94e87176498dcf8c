//! Where a caller stands in its own trace: `traceparent` and `tracestate`, and where the job stands then.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Response};
use reveille_core::trace::{JobTrace, TRACEPARENT, TRACESTATE, TraceContext};
use std::convert::Infallible;

/// What the caller said of it. Whatever is wrong with it is the tracing system's trouble, never the job's:
/// then it said nothing.
pub struct Traced(pub Option<TraceContext>);

impl<S: Sync> FromRequestParts<S> for Traced {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        Ok(Self(context(&parts.headers)))
    }
}

pub fn context(headers: &HeaderMap) -> Option<TraceContext> {
    let values = |name| headers.get_all(name).into_iter().map(HeaderValue::as_bytes);
    TraceContext::read(values(TRACEPARENT), values(TRACESTATE))
}

/// The answer, with the job's own `traceparent`.
pub fn with_trace<B>(mut answer: Response<B>, trace: &JobTrace) -> Response<B> {
    if let Ok(value) = HeaderValue::try_from(trace.job().parent.to_string()) {
        answer.headers_mut().insert(TRACEPARENT, value);
    }
    answer
}
