//! Who is at the other end: a cookie that was sealed for a key, or for a person who came from the identity provider.
//!
//! The browser keeps no key. It keeps the key's id, the session's id and end, and a token over them
//! (`Access::begin_session`), which scripts cannot read. Whoever signs out ends the session at every server, so that a
//! cookie that was copied opens nothing either. Forms carry a second token: a page elsewhere can make a browser send a
//! cookie, and cannot know that. Where callers without a key are let in, so are browsers; their forms must come from our own pages.

use crate::Console;
use crate::error_page::ErrorPage;
use crate::page::plain;
use crate::words::path;
use axum::Form;
use axum::extract::{FromRequestParts, Query, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use maud::html;
use reveille_api::auth::Auth;
use reveille_core::id::{KeyId, SessionId, TenantId};
use reveille_core::rate::RetryAfter;
use reveille_core::time::Millis;
use reveille_engine::{BrowserSession, Engine, SESSION_MS, SESSION_TOKEN_LEN};
use serde::Deserialize;
use std::fmt::Write;

const SESSION: &str = "reveille_session";
/// What the cookie of a person's session begins with.
const PERSON: &str = "p.";
const TENANT: &str = "reveille_tenant";
/// Nobody is sent back to a longer place than this.
const NEXT_LEN_MAX: usize = 1_000;

/// Somebody who has signed in, or needs not.
pub struct Session {
    pub auth: Auth,
    /// What forms must bring along; empty for those who have no key.
    pub form_seal: String,
    /// The tenant that somebody who may see several has chosen to look at.
    pub chosen: Option<TenantId>,
    /// Nothing for those who have no key.
    pub signed_in: Option<BrowserSession>,
    /// Where it came from, to lead back there.
    pub uri: String,
}

impl FromRequestParts<Console> for Session {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, console: &Console) -> Result<Self, Response> {
        let uri = parts.uri.path_and_query().map_or("/", |uri| uri.as_str()).to_owned();
        if parts.method != Method::GET && !is_from_here(&parts.headers) {
            return Err(ErrorPage::new(StatusCode::FORBIDDEN, "This form was sent from another site.")
                .into_response());
        }
        let session = Self::of(&parts.headers, &console.engine, &uri).ok_or_else(|| {
            if parts.method == Method::GET && parts.uri.path() != "/ui/live" {
                Redirect::to(&format!("/ui/sign-in?next={}", path(&uri))).into_response()
            } else {
                ErrorPage::new(StatusCode::UNAUTHORIZED, "You are signed out. Sign in and try again.")
                    .into_response()
            }
        })?;
        // A page is a call like any other.
        let counted = console.engine.access().count_call(&session.auth.caller().key);
        counted.map_err(|RetryAfter(seconds)| {
            let words = format!("This key calls too often. Try again in {seconds} s.");
            ErrorPage::new(StatusCode::TOO_MANY_REQUESTS, &words).into_response()
        })?;
        Ok(session)
    }
}

impl Session {
    fn of(headers: &HeaderMap, engine: &Engine, uri: &str) -> Option<Self> {
        let signed = cookie(headers, SESSION).and_then(|text| {
            if let Some(text) = text.strip_prefix(PERSON) {
                let person = engine.access().resume_person_session(text)?;
                return Some((person.caller, hex(&person.form_token), Some(person.session)));
            }
            let (session, token) = read(text)?;
            let caller = engine.access().resume_session(&session, &token)?;
            let form_seal = hex(&engine.access().form_token(&session)?);
            Some((caller, form_seal, Some(session)))
        });
        let (caller, form_seal, signed_in) = match signed {
            Some(signed) => signed,
            None => (engine.access().anonymous()?, String::new(), None),
        };
        let chosen = cookie(headers, TENANT).and_then(|name| TenantId::parse(name).ok());
        let chosen = chosen.filter(|tenant| caller.acting_for(Some(tenant)).is_some());
        let auth = Auth::acting_for(&caller, chosen.clone())?;
        Some(Self { auth, form_seal, chosen, signed_in, uri: uri.to_owned() })
    }

    /// A form of ours says so.
    pub fn allows(&self, seal: &str) -> Result<(), ErrorPage> {
        // Digests are compared: how long that takes tells nothing of the seal.
        let digest = |text: &str| reveille_core::digest::sha256(text.as_bytes());
        if digest(&self.form_seal) == digest(seal) {
            return Ok(());
        }
        Err(ErrorPage::new(
            StatusCode::FORBIDDEN,
            "This form is out of date. Go back, load the page again, and try again.",
        ))
    }
}

/// What browsers tell of where a form comes from.
fn is_from_here(headers: &HeaderMap) -> bool {
    let text = |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = text(header::HeaderName::from_static("sec-fetch-site")) {
        return matches!(site, "same-origin" | "none");
    }
    match (text(header::ORIGIN), text(header::HOST)) {
        (Some(origin), Some(host)) => origin.split_once("://").is_some_and(|(_, from)| from == host),
        // No browser: it has no cookie that somebody else could use.
        (None, _) => true,
        (Some(_), None) => false,
    }
}

/// A cookie: whose session, which one, until when, and the token that vouches for it.
fn read(text: &str) -> Option<(BrowserSession, Vec<u8>)> {
    let mut parts = text.splitn(4, '.');
    let key = KeyId::parse(parts.next()?).ok()?;
    let id = SessionId::parse(parts.next()?).ok()?;
    let end = Millis(parts.next()?.parse().ok()?);
    Some((BrowserSession { key, id, end }, unhex(parts.next()?)?))
}

#[derive(Deserialize)]
pub struct SignInQuery {
    next: Option<String>,
}

pub async fn ask(
    State(console): State<Console>,
    headers: HeaderMap,
    Query(ask): Query<SignInQuery>,
) -> Response {
    let next = place(ask.next.as_deref());
    if Session::of(&headers, &console.engine, "/").is_some_and(|session| session.signed_in.is_some()) {
        return Redirect::to(next).into_response();
    }
    form(&console, next, StatusCode::OK, None)
}

pub fn form(console: &Console, next: &str, status: StatusCode, problem: Option<&str>) -> Response {
    let page = plain(
        "Sign in",
        &html! {
            main.narrow {
                h1 { "Reveille" }
                p.quiet { "Sign in with a key. The first start prints one; " code { "reveille key create" } " makes more." }
                @if let Some(problem) = problem { p.bad role="alert" { (problem) } }
                @if let Some(oidc) = console.engine.access().oidc() {
                    p { a.button href={ "/ui/oidc/start?next=" (path(next)) } { "Sign in with " (oidc.host()) } }
                }
                form method="post" action="/ui/sign-in" {
                    label for="key" { "Key" }
                    input id="key" name="key" type="password" autocomplete="current-password" required autofocus;
                    input type="hidden" name="next" value=(next);
                    button.main type="submit" { "Sign in" }
                }
            }
        },
    );
    (status, page).into_response()
}

#[derive(Deserialize)]
pub struct SignInForm {
    key: String,
    #[serde(default)]
    next: String,
}

pub async fn sign_in(
    State(console): State<Console>,
    headers: HeaderMap,
    Form(form_sent): Form<SignInForm>,
) -> Response {
    let next = place(Some(&form_sent.next));
    if !is_from_here(&headers) {
        let words = "This form was sent from another site.";
        return form(&console, next, StatusCode::UNAUTHORIZED, Some(words));
    }
    let Some((session, token)) = console.engine.access().sign_in(form_sent.key.trim()).await else {
        let words = "That key is wrong, expired or revoked.";
        return form(&console, next, StatusCode::UNAUTHORIZED, Some(words));
    };
    let value = format!("{}.{}.{}.{}", session.key, session.id, session.end.0, hex(&token));
    let mut response = Redirect::to(next).into_response();
    set_cookie(&mut response, &headers, SESSION, &value, SESSION_MS / 1000);
    response
}

#[derive(Deserialize)]
pub struct SignOutForm {
    seal: String,
    /// Every browser in which this key is signed in.
    #[serde(default)]
    everywhere: bool,
}

pub async fn sign_out(
    State(console): State<Console>,
    session: Session,
    headers: HeaderMap,
    Form(form_sent): Form<SignOutForm>,
) -> Result<Response, ErrorPage> {
    session.allows(&form_sent.seal)?;
    if let Some(signed_in) = &session.signed_in {
        let access = console.engine.access();
        let ended = if form_sent.everywhere {
            access.sign_out_everywhere(session.auth.caller()).await
        } else {
            access.sign_out(session.auth.caller(), signed_in).await
        };
        ended.map_err(|_| {
            let words =
                "You are signed out here, and other servers could not be told. Sign in and out again later.";
            ErrorPage::new(StatusCode::SERVICE_UNAVAILABLE, words)
        })?;
    }
    let mut response = Redirect::to("/ui/sign-in").into_response();
    set_cookie(&mut response, &headers, SESSION, "", 0);
    set_cookie(&mut response, &headers, TENANT, "", 0);
    Ok(response)
}

#[derive(Deserialize)]
pub struct TenantForm {
    seal: String,
    tenant: String,
}

/// Whoever may see several tenants looks at one of them, or at all again.
pub async fn choose_tenant(
    session: Session,
    headers: HeaderMap,
    Form(form_sent): Form<TenantForm>,
) -> Result<Response, ErrorPage> {
    session.allows(&form_sent.seal)?;
    let mut response = Redirect::to("/").into_response();
    if form_sent.tenant.is_empty() {
        set_cookie(&mut response, &headers, TENANT, "", 0);
        return Ok(response);
    }
    let tenant = TenantId::parse(&form_sent.tenant)
        .map_err(|error| ErrorPage::new(StatusCode::BAD_REQUEST, &format!("That is no tenant: {error}.")))?;
    if session.auth.caller().acting_for(Some(&tenant)).is_none() {
        return Err(ErrorPage::new(StatusCode::FORBIDDEN, "You have no rights in that tenant."));
    }
    set_cookie(&mut response, &headers, TENANT, tenant.as_str(), SESSION_MS / 1000);
    Ok(response)
}

/// A person has come back from the identity provider.
pub fn keep_person(response: &mut Response, headers: &HeaderMap, cookie: &str) {
    set_cookie(response, headers, SESSION, &format!("{PERSON}{cookie}"), SESSION_MS / 1000);
    set_cookie(response, headers, TENANT, "", 0);
}

/// A place of ours to go to next; never another site's.
pub fn place(next: Option<&str>) -> &str {
    let is_ours = |next: &&str| {
        next.len() <= NEXT_LEN_MAX
            && next.starts_with('/')
            && !next.starts_with("//")
            && next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
    };
    next.filter(is_ours).unwrap_or("/")
}

pub fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = all.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(is, value)| *is == name && !value.is_empty()).map(|(_, value)| value)
}

pub fn set_cookie(response: &mut Response, headers: &HeaderMap, name: &str, value: &str, seconds: i64) {
    let is_https = headers.get("x-forwarded-proto").is_some_and(|proto| proto == "https");
    let secure = if is_https { "; Secure" } else { "" };
    let text = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}");
    if let Ok(text) = HeaderValue::from_str(&text) {
        response.headers_mut().append(header::SET_COOKIE, text);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if text.len() != 2 * SESSION_TOKEN_LEN || !text.is_ascii() {
        return None;
    }
    (0..SESSION_TOKEN_LEN).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_sent_to_another_site() {
        assert_eq!(place(Some("/ui/jobs?state=RUNNING")), "/ui/jobs?state=RUNNING");
        for elsewhere in
            ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", "", "/a b"]
        {
            assert_eq!(place(Some(elsewhere)), "/", "{elsewhere}");
        }
    }

    #[test]
    fn a_form_of_another_site_is_known() {
        let check = |pairs: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.insert(*name, HeaderValue::from_static(value));
            }
            is_from_here(&headers)
        };
        assert!(check(&[("sec-fetch-site", "same-origin")]));
        assert!(!check(&[("sec-fetch-site", "cross-site")]));
        assert!(!check(&[("sec-fetch-site", "same-site")]), "a neighbour under the same domain is not us");
        assert!(check(&[("origin", "http://here:8080"), ("host", "here:8080")]));
        assert!(!check(&[("origin", "http://evil"), ("host", "here:8080")]));
        assert!(!check(&[("origin", "null"), ("host", "here:8080")]));
    }
}
