//! One request and its answer over a connection that is open.

use super::dial::told;
use super::handover::{RequestProgress, WatchedStream, WholeBody};
use super::target::A2aTarget;
use crate::{A2aError, A2aReply, A2aRequest, REPLY_BYTES_MAX, Received};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{
    ACCEPT, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue,
    RETRY_AFTER, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, USER_AGENT,
};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use std::borrow::Cow;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

/// How many headers a request may bring.
pub const HEADERS_MAX: usize = 32;

/// Headers that decide where a request goes and where it ends are never the caller's.
const OURS: [HeaderName; 11] = [
    ACCEPT,
    CONNECTION,
    CONTENT_LENGTH,
    CONTENT_TYPE,
    EXPECT,
    HOST,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    USER_AGENT,
];

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const CLOSE: HeaderValue = HeaderValue::from_static("close");
const AGENT: HeaderValue = HeaderValue::from_static(concat!("reveille/", env!("CARGO_PKG_VERSION")));

/// The HTTP request that carries it.
pub(super) fn http_request(target: &A2aTarget, request: A2aRequest) -> Result<Request<Bytes>, A2aError> {
    let refused = |error: hyper::http::Error| A2aError::Refused(error.to_string());
    let mut http = Request::builder()
        .method(Method::POST)
        .uri(target.path.clone())
        .header(HOST, &target.authority)
        .header(CONTENT_TYPE, JSON)
        .header(ACCEPT, JSON)
        .header(USER_AGENT, AGENT)
        .header(CONNECTION, CLOSE)
        .body(request.body)
        .map_err(refused)?;
    add_headers(http.headers_mut(), request.headers)?;
    Ok(http)
}

fn add_headers(into: &mut HeaderMap, headers: Vec<(Cow<'static, str>, String)>) -> Result<(), A2aError> {
    if headers.len() > HEADERS_MAX {
        return Err(A2aError::Refused(format!("more than {HEADERS_MAX} headers")));
    }
    for (name, value) in headers {
        let refused = |why: &str| A2aError::Refused(format!("header {name:?}: {why}"));
        let key = HeaderName::try_from(&*name).map_err(|_| refused("no valid name"))?;
        if OURS.contains(&key) {
            return Err(refused("not for the caller to set"));
        }
        // A line break would begin another header. The value is not repeated: it may be a credential.
        let mut value = HeaderValue::try_from(value).map_err(|_| refused("no valid value"))?;
        value.set_sensitive(true);
        into.append(key, value);
    }
    Ok(())
}

/// Sends the request and reads the whole answer, or as much of it as is allowed.
pub(super) async fn exchange<Stream>(
    stream: Stream,
    request: Request<Bytes>,
    received: Received,
) -> Result<A2aReply, A2aError>
where
    Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let progress = Arc::new(RequestProgress::default());
    let (parts, body) = request.into_parts();
    let body = WholeBody::new(body, Arc::clone(&progress));
    let io = TokioIo::new(WatchedStream::new(stream, Arc::clone(&progress), received));
    let (sender, connection) = http1::handshake(io).await.map_err(|error| failure(&error, &progress))?;

    let mut conversation = pin!(converse(sender, parts, body, &progress));
    // Driven here and not by a task of its own, so that dropping this future closes the socket. The
    // connection may end first; what it read is then still to be collected.
    tokio::select! {
        outcome = &mut conversation => return outcome,
        _ = connection => {}
    }
    conversation.await
}

async fn converse(
    mut sender: SendRequest<WholeBody>,
    parts: Parts,
    body: WholeBody,
    progress: &RequestProgress,
) -> Result<A2aReply, A2aError> {
    let sent = sender.send_request(Request::from_parts(parts, body)).await;
    let response = sent.map_err(|error| failure(&error, progress))?;
    read_whole(response).await
}

async fn read_whole(response: Response<Incoming>) -> Result<A2aReply, A2aError> {
    let status = response.status().as_u16();
    let seconds = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let retry_after = seconds.map(Duration::from_secs);
    let mut stream = response.into_body();
    if stream.size_hint().lower() > REPLY_BYTES_MAX as u64 {
        return Err(A2aError::TooLarge);
    }
    let mut body = BytesMut::new();
    while let Some(frame) = stream.frame().await {
        let frame = frame.map_err(|error| A2aError::Broken(told(&error)))?;
        let Some(piece) = frame.data_ref() else { continue };
        if body.len() + piece.len() > REPLY_BYTES_MAX {
            return Err(A2aError::TooLarge);
        }
        body.extend_from_slice(piece);
    }
    Ok(A2aReply { retry_after, ..A2aReply::new(status, body) })
}

/// A request of which a byte was written may have been acted upon; one that never began was not.
fn failure(error: &hyper::Error, progress: &RequestProgress) -> A2aError {
    let words = told(error);
    if progress.has_begun() { A2aError::Broken(words) } else { A2aError::Unreachable(words) }
}
