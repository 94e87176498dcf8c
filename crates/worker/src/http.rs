//! A small HTTP/1.1 client for producers of presence: one server, JSON, a limit on everything.
//!
//! One idle connection is kept. A request that finds it closed goes out on a fresh one, but only if
//! nothing of it was sent, so that nothing is ever said twice. Redirects are not followed: nobody here
//! is told to go elsewhere in mid-beat.

pub mod address;
pub mod dial;
#[cfg(test)]
pub mod stub;

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::http::request::Builder;
use hyper::{Method, Request, Response};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};

use crate::http::address::ServerAddress;
use crate::http::dial::{Dialer, HttpSender};

/// How long a server may take to accept a connection.
const CONNECT_WAIT_MAX: Duration = Duration::from_secs(10);
/// The longest answer that is read.
const ANSWER_LEN_MAX: usize = 4 * 1024 * 1024;
/// How far a server may move the interval of beats.
const NEXT_BEAT_S_MIN: f64 = 5.0;
const NEXT_BEAT_S_MAX: f64 = 60.0;
const AGENT: &str = concat!("reveille-rust/", env!("CARGO_PKG_VERSION"));

pub struct HttpClient {
    address: ServerAddress,
    dialer: Dialer,
    idle: Mutex<Option<HttpSender>>,
}

/// What the server said, whatever it said.
#[derive(Debug)]
pub struct HttpResponse {
    pub status: u16,
    /// In seconds only; a date would trust two clocks to agree.
    pub retry_after: Option<Duration>,
    pub body: Bytes,
}

impl HttpResponse {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub fn json<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_slice(&self.body).ok()
    }

    /// The server's wish for the next beat, if it has one.
    pub fn next_beat(&self) -> Option<Duration> {
        #[derive(Deserialize)]
        struct Wish {
            next_beat_s: f64,
        }
        let Wish { next_beat_s } = self.json()?;
        Some(Duration::from_secs_f64(next_beat_s.clamp(NEXT_BEAT_S_MIN, NEXT_BEAT_S_MAX)))
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    #[error("cannot connect: {0}")]
    Unreachable(io::Error),
    #[error("no answer within {} s", .0.as_secs_f32())]
    Silent(Duration),
    #[error("the exchange broke off: {0}")]
    Broken(Box<dyn std::error::Error + Send + Sync>),
}

impl HttpClient {
    pub fn new(address: ServerAddress) -> Self {
        Self { address, dialer: Dialer::default(), idle: Mutex::new(None) }
    }

    pub async fn get(
        &self,
        path: &str,
        bearer: Option<&Bearer>,
        wait_max: Duration,
    ) -> Result<HttpResponse, HttpError> {
        let request = self.request(Method::GET, path, bearer);
        self.send(request, Bytes::new(), wait_max).await
    }

    pub async fn post(
        &self,
        path: &str,
        bearer: Option<&Bearer>,
        body: &impl Serialize,
        wait_max: Duration,
    ) -> Result<HttpResponse, HttpError> {
        let request = self.request(Method::POST, path, bearer);
        self.send(request, json(body)?, wait_max).await
    }

    /// A request that the caller may add headers to.
    pub fn request(&self, method: Method, path: &str, bearer: Option<&Bearer>) -> Builder {
        let builder = Request::builder()
            .method(method)
            .uri(self.address.path(path))
            .header(HOST, &self.address.authority)
            .header(USER_AGENT, AGENT)
            .header(CONTENT_TYPE, "application/json");
        match bearer {
            Some(Bearer(value)) => builder.header(AUTHORIZATION, value),
            None => builder,
        }
    }

    /// Sends it and waits for the whole answer, at most `wait_max` all in all.
    pub async fn send(
        &self,
        request: Builder,
        body: Bytes,
        wait_max: Duration,
    ) -> Result<HttpResponse, HttpError> {
        let request = request.body(Full::new(body)).map_err(broken)?;
        let deadline = Instant::now() + wait_max;
        let silent = |_| HttpError::Silent(wait_max);
        let kept = self.idle().take();
        let unsent = match kept {
            None => request,
            Some(sender) => {
                match timeout_at(deadline, self.exchange(sender, request)).await.map_err(silent)?? {
                    Exchange::Answered(answer) => return Ok(answer),
                    Exchange::Unsent(request) => *request,
                }
            }
        };
        let sender = self.dial(deadline).await.map_err(HttpError::Unreachable)?;
        match timeout_at(deadline, self.exchange(sender, unsent)).await.map_err(silent)?? {
            Exchange::Answered(answer) => Ok(answer),
            Exchange::Unsent(_) => Err(HttpError::Unreachable(io::ErrorKind::ConnectionReset.into())),
        }
    }

    async fn dial(&self, deadline: Instant) -> io::Result<HttpSender> {
        let deadline = deadline.min(Instant::now() + CONNECT_WAIT_MAX);
        timeout_at(deadline, self.dialer.dial(&self.address)).await?
    }

    async fn exchange(
        &self,
        mut sender: HttpSender,
        request: Request<Full<Bytes>>,
    ) -> Result<Exchange, HttpError> {
        match sender.try_send_request(request).await {
            Ok(response) => {
                let answer = read(response).await?;
                if !sender.is_closed() {
                    *self.idle() = Some(sender);
                }
                Ok(Exchange::Answered(answer))
            }
            Err(mut error) => match error.take_message() {
                Some(request) => Ok(Exchange::Unsent(Box::new(request))),
                None => Err(broken(error.into_error())),
            },
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Option<HttpSender>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Exchange {
    Answered(HttpResponse),
    /// The connection was closed already; nothing has left.
    Unsent(Box<Request<Full<Bytes>>>),
}

/// A secret for the `Authorization` header; it is not printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bearer(HeaderValue);

impl Bearer {
    /// Nothing if `secret` cannot stand in a header.
    pub fn new(secret: &str) -> Option<Self> {
        let mut value = HeaderValue::from_str(&format!("Bearer {secret}")).ok()?;
        value.set_sensitive(true);
        Some(Self(value))
    }
}

pub fn json(body: &impl Serialize) -> Result<Bytes, HttpError> {
    serde_json::to_vec(body).map(Bytes::from).map_err(broken)
}

async fn read(response: Response<Incoming>) -> Result<HttpResponse, HttpError> {
    let (parts, body) = response.into_parts();
    let body = Limited::new(body, ANSWER_LEN_MAX).collect().await.map_err(HttpError::Broken)?.to_bytes();
    Ok(HttpResponse { status: parts.status.as_u16(), retry_after: retry_after(&parts.headers), body })
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

fn broken(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> HttpError {
    HttpError::Broken(error.into())
}

#[cfg(test)]
mod tests;
