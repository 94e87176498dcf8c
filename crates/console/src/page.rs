//! The frame around every page, and how a page goes out: escaped, under a strict policy, small.

use crate::Console;
use crate::assets;
use crate::session::Session;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use reveille_api::overview::{self, AttentionCounts};
use std::io::Write;

/// Shorter pages are not worth packing.
const PACKED_FROM: usize = 1_400;
/// Beyond this, there are "many".
const COUNTED_MAX: u64 = 99;
/// An operator may choose among so many tenants.
const TENANTS_MAX: usize = 500;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// A page that is ready to go out.
pub struct HtmlPage {
    markup: Markup,
    is_packed: bool,
}

/// What a page is about, for the frame.
pub struct PageFrame<'a> {
    pub title: &'a str,
    /// The entry of the menu that it belongs to: its path.
    pub place: &'a str,
    /// What it listens to: `worker`, `job`, `run`, or the id of one thing.
    pub live: &'a str,
    /// Seconds after which it is asked for again in any case; zero for never.
    pub every: u32,
}

const MENU: [(&str, &str); 10] = [
    ("/", "Now"),
    ("/ui/fleet", "Fleet"),
    ("/ui/jobs", "Jobs"),
    ("/ui/approvals", "Approvals"),
    ("/ui/quarantine", "Quarantine"),
    ("/ui/dlq", "Dead letters"),
    ("/ui/workflows", "Workflows"),
    ("/ui/policy", "Policy"),
    ("/ui/audit", "Audit"),
    (SYSTEM, "System"),
];
/// Only operators see it.
const SYSTEM: &str = "/ui/system";

/// How much of what waits for somebody is behind an entry of the menu.
fn waiting_at(place: &str, waiting: AttentionCounts) -> u64 {
    match place {
        "/ui/approvals" => waiting.approvals as u64,
        "/ui/quarantine" => waiting.quarantined as u64,
        "/ui/dlq" => waiting.dead_letters,
        _ => 0,
    }
}

impl Console {
    /// The whole page around its content.
    pub async fn page(
        &self,
        session: &Session,
        headers: &HeaderMap,
        about: PageFrame<'_>,
        content: Markup,
    ) -> HtmlPage {
        // A look that fails shows nothing here; the page itself says what is wrong.
        let waiting = overview::waiting(&self.engine, &session.auth).await.unwrap_or_default();
        self.page_where(session, headers, &about, waiting, &content)
    }

    /// The same where it is known what waits.
    pub fn page_where(
        &self,
        session: &Session,
        headers: &HeaderMap,
        about: &PageFrame<'_>,
        waiting: AttentionCounts,
        content: &Markup,
    ) -> HtmlPage {
        let markup = framed(self, session, about, waiting, content);
        HtmlPage { markup, is_packed: takes_gzip(headers) }
    }
}

fn framed(
    console: &Console,
    session: &Session,
    about: &PageFrame<'_>,
    waiting: AttentionCounts,
    content: &Markup,
) -> Markup {
    let auth = &session.auth;
    html! {
        (head(about.title))
        body {
            a.skip href="#main" { "To the content" }
            header {
                a.brand href="/" { (PreEscaped(assets::MARK)) "Reveille" }
                nav aria-label="Pages" {
                    @for (place, name) in MENU.into_iter().filter(|(place, _)| auth.is_operator() || *place != SYSTEM) {
                        @let count = waiting_at(place, waiting);
                        a href=(place) aria-current=[(place == about.place).then_some("page")] {
                            (name)
                            @if count > 0 { " " span.count { @if count > COUNTED_MAX { "99+" } @else { (count) } } }
                        }
                    }
                }
                div.who {
                    @if auth.caller().may_choose_tenant() { (tenant_choice(console, session)) }
                    @else { span.quiet title="tenant" { (auth.tenant) } }
                    @if session.signed_in.is_some() {
                        form method="post" action="/ui/sign-out" {
                            input type="hidden" name="seal" value=(session.form_seal);
                            button.plain type="submit" title={ "signed in as " (auth.name()) } { "Sign out" }
                            button.plain type="submit" name="everywhere" value="true" title="in every browser in which you are signed in" { "everywhere" }
                        }
                    } @else { a href="/ui/sign-in" { "Sign in" } }
                }
            }
            main #main data-live=(about.live) data-every=[(about.every > 0).then_some(about.every)] { (content) }
            footer { span #pulse role="status" {} }
            script src="/ui/live.js" defer {}
        }
    }
}

fn tenant_choice(console: &Console, session: &Session) -> Markup {
    let caller = session.auth.caller();
    let any = console.engine.access().tenants();
    let tenants = caller.tenants_to_choose().unwrap_or_else(|| any.iter().collect());
    html! {
        form.tenant method="post" action="/ui/tenant" {
            input type="hidden" name="seal" value=(session.form_seal);
            label.hidden for="tenant" { "Tenant" }
            select #tenant name="tenant" data-sends {
                @if caller.tenants_to_choose().is_none() {
                    option value="" selected[session.chosen.is_none()] { "all tenants" }
                }
                @let shown = session.chosen.as_ref().or((!caller.is_everywhere()).then_some(&session.auth.tenant));
                @for tenant in tenants.into_iter().take(TENANTS_MAX) {
                    option value=(tenant) selected[shown == Some(tenant)] { (tenant) }
                }
            }
            noscript { button type="submit" { "Look" } }
        }
    }
}

fn head(title: &str) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en";
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (title) " · Reveille" }
            link rel="stylesheet" href="/ui/style.css";
            link rel="icon" type="image/svg+xml" href="/ui/icon.svg";
        }
    }
}

/// A page without the menu: for those who are not signed in, and for trouble.
pub fn plain(title: &str, content: &Markup) -> HtmlPage {
    HtmlPage { markup: html! { (head(title)) body.plain { (content) } }, is_packed: false }
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    let accepted =
        headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accepted.split(',').any(|coding| coding.split(';').next().unwrap_or_default().trim() == "gzip")
}

impl IntoResponse for HtmlPage {
    fn into_response(self) -> Response {
        let text = self.markup.into_string();
        let packed = (self.is_packed && text.len() >= PACKED_FROM).then(|| gzip(text.as_bytes())).flatten();
        let is_packed = packed.is_some();
        let mut response = Response::new(packed.map_or_else(|| Body::from(text), Body::from));
        let headers = response.headers_mut();
        for (name, value) in [
            (header::CONTENT_TYPE, "text/html; charset=utf-8"),
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "same-origin"),
            // A page is what it was when it was asked for, and for whoever asked.
            (header::CACHE_CONTROL, "no-store"),
            (header::VARY, "Cookie, Accept-Encoding"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        if is_packed {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        *response.status_mut() = StatusCode::OK;
        response
    }
}

/// Packed quickly rather than tightly.
fn gzip(text: &[u8]) -> Option<Vec<u8>> {
    let mut packer = GzEncoder::new(Vec::with_capacity(text.len() / 4), Compression::fast());
    packer.write_all(text).ok()?;
    packer.finish().ok()
}
