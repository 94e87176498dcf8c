//! When a page cannot be shown: what was wrong, in words, on a page that leads on.

use crate::page::plain;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use maud::html;
use reveille_api::ApiError;

#[derive(Debug)]
pub struct ErrorPage {
    status: StatusCode,
    words: String,
}

impl ErrorPage {
    pub fn new(status: StatusCode, words: &str) -> Self {
        Self { status, words: words.to_owned() }
    }
}

/// Whatever the API would say, in its words.
impl<E> From<E> for ErrorPage
where
    ApiError: From<E>,
{
    fn from(error: E) -> Self {
        let error = ApiError::from(error);
        Self { status: error.status(), words: error.message().to_owned() }
    }
}

impl IntoResponse for ErrorPage {
    fn into_response(self) -> Response {
        let title = match self.status {
            StatusCode::NOT_FOUND => "Not here",
            StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => "Not allowed",
            status if status.is_server_error() => "Not now",
            _ => "Not like this",
        };
        let body = html! {
            main.narrow {
                h1 { (title) }
                p role="alert" { (self.words) }
                @if self.status == StatusCode::FORBIDDEN {
                    p { a href="/ui/sign-in" { "Sign in with another key" } }
                }
                p { a href="/" { "Back to the start" } }
            }
        };
        (self.status, plain(title, &body)).into_response()
    }
}
