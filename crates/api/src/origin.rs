//! Where callers are let in without a key, any web page that a browser on this machine shows could call too: it can
//! post to us, open sockets, or have its own name lead to our address. So a caller without a key must have reached us
//! by a name of ours, and a browser must say that it comes from a page of ours.
//!
//! Names of ours are `localhost`, addresses written as numbers, and what `auth.open_hosts` lists. A name that somebody
//! else's DNS answers for is none.

use crate::ApiError;
use crate::auth::secret;
use crate::surface::Surface;
use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::Response;
use reveille_engine::Engine;
use std::net::IpAddr;

pub async fn refuse_foreign_pages(State(engine): State<Engine>, request: Request, next: Next) -> Response {
    let settings = engine.settings();
    if settings.open_tenant.is_none() || secret(request.headers()).is_some() {
        return next.run(request).await;
    }
    let authority = request.uri().authority().map(Authority::as_str);
    match foreign(request.method(), authority, request.headers(), &settings.open_hosts) {
        None => next.run(request).await,
        Some(problem) => Surface::of(request.uri().path()).says(ApiError::forbidden(problem)),
    }
}

/// Why a call without a key may not be one of ours.
fn foreign(
    method: &Method,
    authority: Option<&str>,
    headers: &HeaderMap,
    known: &[String],
) -> Option<&'static str> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let host = authority.or_else(|| text(header::HOST.as_str()));
    if !host.is_none_or(|host| is_ours(host, known)) {
        return Some(
            "Host: without a key the server answers to localhost, to addresses and to auth.open_hosts only",
        );
    }
    let another_site = "this call comes from a page of another site: show a key";
    if let Some(origin) = text(header::ORIGIN.as_str()) {
        let from = origin.split_once("://").map(|(_, from)| from);
        return (from.is_none() || from != host).then_some(another_site);
    }
    let is_cross_site = text("sec-fetch-site").is_some_and(|site| !matches!(site, "same-origin" | "none"));
    // A link on another page may lead here; nothing is done and nothing is read by it.
    let is_link = method == Method::GET && text("sec-fetch-mode") == Some("navigate");
    (is_cross_site && !is_link).then_some(another_site)
}

fn is_ours(host: &str, known: &[String]) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => name,
        _ => host,
    };
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    bare.eq_ignore_ascii_case("localhost")
        || bare.parse::<IpAddr>().is_ok()
        || known.iter().any(|known| known.eq_ignore_ascii_case(bare))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};

    fn check(method: &Method, given: &[(&str, &str)], is_foreign: bool) {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            headers.insert(HeaderName::try_from(*name).unwrap(), HeaderValue::from_str(value).unwrap());
        }
        let known = ["reveille".to_owned()];
        let problem = foreign(method, None, &headers, &known);
        assert_eq!(problem.is_some(), is_foreign, "{method} {given:?}: {problem:?}");
    }

    #[test]
    fn a_page_of_another_site_is_told_apart() {
        let (get, post) = (Method::GET, Method::POST);
        for host in
            ["localhost:8080", "127.0.0.1:8080", "[::1]:8080", "10.0.0.7", "reveille:8080", "LOCALHOST"]
        {
            check(&post, &[("host", host)], false);
        }
        check(&post, &[("host", "evil.example:8080")], true);
        check(&get, &[("host", "localhost.evil.example")], true);
        let ours = ("host", "localhost:8080");
        check(&post, &[ours, ("origin", "http://localhost:8080")], false);
        check(&post, &[ours, ("origin", "http://evil.example"), ("content-type", "text/plain")], true);
        check(&post, &[ours, ("origin", "null")], true);
        check(&get, &[ours, ("origin", "http://localhost:9999"), ("upgrade", "websocket")], true);
        check(&get, &[ours, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")], true);
        check(&get, &[ours, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")], false);
        check(&post, &[ours, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")], true);
        check(&get, &[ours, ("sec-fetch-site", "same-origin")], false);
    }
}
