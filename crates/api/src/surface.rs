//! Errors that no handler makes, in the words of the surface that was called: VoiceGateway's and the console's
//! callers read `detail`, all others `error` and `code`.

use crate::ApiError;
use crate::voicegateway::Detail;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// How much of what axum says is read; it says a line.
const WORDS_LEN_MAX: usize = 4_096;

#[derive(Debug, Clone, Copy)]
pub enum Surface {
    Detailed,
    Ours,
}

impl Surface {
    pub fn of(path: &str) -> Self {
        if path.starts_with("/v1/") || path.starts_with("/openorca/") { Self::Detailed } else { Self::Ours }
    }

    pub fn says(self, error: ApiError) -> Response {
        match self {
            Self::Detailed => Detail::from(error).into_response(),
            Self::Ours => error.into_response(),
        }
    }
}

/// What axum refuses by itself, such as a query that cannot be read, is plain text. Callers expect JSON.
pub async fn in_our_words(request: Request, next: Next) -> Response {
    let surface = Surface::of(request.uri().path());
    let response = next.run(request).await;
    let status = response.status();
    let kind = response.headers().get(header::CONTENT_TYPE);
    let is_text = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/plain"));
    if !status.is_client_error() || !is_text {
        return response;
    }
    let words = to_bytes(response.into_body(), WORDS_LEN_MAX).await.unwrap_or_default();
    let code = if status == StatusCode::PAYLOAD_TOO_LARGE { "body_too_large" } else { "invalid_request" };
    surface.says(ApiError::new(status, code, String::from_utf8_lossy(&words)))
}
