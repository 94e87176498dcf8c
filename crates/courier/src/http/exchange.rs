//! One request and its answer over a connection that is open.

use super::dial::told;
use super::handover::{Progress, Watched, Whole};
use super::target::Target;
use crate::{CourierError, Letter, REPLY_BYTES_MAX, Received, Reply};
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

/// How many headers a letter may bring.
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

/// The request that a letter makes.
pub(super) fn request(target: &Target, letter: Letter) -> Result<Request<Bytes>, CourierError> {
    let refused = |error: hyper::http::Error| CourierError::Refused(error.to_string());
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(target.path.clone())
        .header(HOST, &target.authority)
        .header(CONTENT_TYPE, JSON)
        .header(ACCEPT, JSON)
        .header(USER_AGENT, AGENT)
        .header(CONNECTION, CLOSE)
        .body(letter.body)
        .map_err(refused)?;
    add_headers(request.headers_mut(), letter.headers)?;
    Ok(request)
}

fn add_headers(into: &mut HeaderMap, headers: Vec<(Cow<'static, str>, String)>) -> Result<(), CourierError> {
    if headers.len() > HEADERS_MAX {
        return Err(CourierError::Refused(format!("more than {HEADERS_MAX} headers")));
    }
    for (name, value) in headers {
        let refused = |why: &str| CourierError::Refused(format!("header {name:?}: {why}"));
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
) -> Result<Reply, CourierError>
where
    Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let progress = Arc::new(Progress::default());
    let (parts, body) = request.into_parts();
    let body = Whole::new(body, Arc::clone(&progress));
    let io = TokioIo::new(Watched::new(stream, Arc::clone(&progress), received));
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
    mut sender: SendRequest<Whole>,
    parts: Parts,
    body: Whole,
    progress: &Progress,
) -> Result<Reply, CourierError> {
    let sent = sender.send_request(Request::from_parts(parts, body)).await;
    let response = sent.map_err(|error| failure(&error, progress))?;
    read_whole(response).await
}

async fn read_whole(response: Response<Incoming>) -> Result<Reply, CourierError> {
    let status = response.status().as_u16();
    let seconds = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let retry_after = seconds.map(Duration::from_secs);
    let mut stream = response.into_body();
    if stream.size_hint().lower() > REPLY_BYTES_MAX as u64 {
        return Err(CourierError::TooLarge);
    }
    let mut body = BytesMut::new();
    while let Some(frame) = stream.frame().await {
        let frame = frame.map_err(|error| CourierError::Broken(told(&error)))?;
        let Some(piece) = frame.data_ref() else { continue };
        if body.len() + piece.len() > REPLY_BYTES_MAX {
            return Err(CourierError::TooLarge);
        }
        body.extend_from_slice(piece);
    }
    Ok(Reply { retry_after, ..Reply::new(status, body) })
}

/// A request of which a byte was written may have been acted upon; one that never began was not.
fn failure(error: &hyper::Error, progress: &Progress) -> CourierError {
    let words = told(error);
    if progress.has_begun() { CourierError::Broken(words) } else { CourierError::Unreachable(words) }
}
