//! The style, the script and the mark: part of the binary, nothing from elsewhere.

use crate::Console;
use axum::Router;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;

const STYLE: &str = include_str!("assets/style.css");
const SCRIPT: &str = include_str!("assets/live.js");
/// A rising sun over a line.
pub const MARK: &str = include_str!("assets/mark.svg");

pub fn routes() -> Router<Console> {
    Router::new()
        .route("/ui/style.css", get(|| async { asset("text/css; charset=utf-8", STYLE) }))
        .route("/ui/live.js", get(|| async { asset("text/javascript; charset=utf-8", SCRIPT) }))
        .route("/ui/icon.svg", get(|| async { asset("image/svg+xml", MARK) }))
}

/// Another binary may bring another one under the same name, so it is asked for anew after five minutes.
fn asset(kind: &'static str, text: &'static str) -> impl IntoResponse {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "max-age=300"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, text)
}
