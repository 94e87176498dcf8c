//! Those who show no valid key are answered so often, and then told when to come back: sign-in attempts, wrong keys and
//! missing ones, on every path, counted by the address they come from.
//!
//! What is counted is the answer 401, whoever gives it, so that no surface can forget to. Whoever is let in is never held
//! back by what others at their address do.

use crate::ApiError;
use crate::surface::Surface;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use reveille_core::rate::RetryAfter;
use reveille_engine::Engine;
use std::net::IpAddr;

/// Whose words an answer is in.
#[derive(Debug, Clone, Copy)]
pub enum AnswerReader {
    Program(Surface),
    Person,
}

impl AnswerReader {
    pub fn of(path: &str) -> Self {
        let is_page = path == "/" || path.starts_with("/ui/");
        if is_page { Self::Person } else { Self::Program(Surface::of(path)) }
    }
}

#[derive(Clone)]
pub struct UnauthenticatedLimit {
    engine: Engine,
}

impl UnauthenticatedLimit {
    pub fn new(engine: Engine) -> Self {
        Self { engine }
    }

    /// The answer as it goes out. One that lets somebody in is not looked at.
    pub fn count(&self, address: IpAddr, reader: AnswerReader, answer: Response) -> Response {
        if answer.status() != StatusCode::UNAUTHORIZED {
            return answer;
        }
        match self.engine.access().count_stranger(address) {
            Ok(()) => answer,
            Err(after) => refused(reader, after),
        }
    }

    /// A connection was closed because its address has too many.
    pub fn connection_refused(&self) {
        self.engine.access().note_turned_away();
    }
}

pub(crate) fn too_many(RetryAfter(seconds): RetryAfter) -> ApiError {
    let words = format!("too many calls without a valid key from this address; try again in {seconds} s");
    ApiError::new(StatusCode::TOO_MANY_REQUESTS, "address_limited", words)
        .with("retry_after", seconds)
        .retry_after(seconds)
}

fn refused(reader: AnswerReader, after: RetryAfter) -> Response {
    match reader {
        AnswerReader::Program(surface) => surface.says(too_many(after)),
        AnswerReader::Person => {
            let RetryAfter(seconds) = after;
            let page = format!(
                "<!doctype html><title>Reveille</title><p>Too many attempts from this address. Try again in {seconds} s."
            );
            let mut response = (StatusCode::TOO_MANY_REQUESTS, Html(page)).into_response();
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
            response
        }
    }
}
