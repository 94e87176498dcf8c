//! Results that output policy holds back: what was found, where, and release or discard.

use crate::Console;
use crate::act::{self, ActionForm};
use crate::error_page::ErrorPage;
use crate::page::{HtmlPage, PageFrame};
use crate::session::Session;
use crate::words::{ago_micros, chip, path};
use axum::Form;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::Response;
use maud::{Markup, html};
use reveille_api::ApiError;
use reveille_api::body::OptionalBody;
use reveille_api::quarantine;
use reveille_api_types::quarantine::{Decided, Held, HeldQuery, OutputFinding};
use reveille_core::id::JobId;
use reveille_core::time::Millis;
use reveille_roster::Scope;
use serde_json::Value;

/// Bytes of a result that are shown.
const SHOWN_LEN_MAX: usize = 64 * 1024;
/// Around what is marked, in text that is still one string. Nobody writes these: they are for private use.
const FROM: char = '\u{e000}';
const TO: char = '\u{e001}';

pub async fn list(
    State(console): State<Console>,
    session: Session,
    headers: HeaderMap,
    Query(query): Query<HeldQuery>,
) -> Result<HtmlPage, ErrorPage> {
    let page = quarantine::list(State(console.engine.clone()), session.auth.clone(), Query(query)).await?.0;
    let now = console.engine.now();
    let mut shown = Vec::new();
    for held in &page.items {
        shown.push((held, text(&console, &session, held).await?));
    }
    let content = html! {
        h1 { "Quarantine" }
        @if shown.is_empty() { p.note { "No result is held back." } }
        @for (held, text) in &shown { (card(&session, held, text.as_deref(), now)) }
        @if let Some(next) = &page.next_cursor { nav.pager { a rel="next" href={ "/ui/quarantine?cursor=" (next) } { "More" } } }
    };
    let about = PageFrame { title: "Quarantine", place: "/ui/quarantine", live: "job", every: 0 };
    Ok(console.page(&session, &headers, about, content).await)
}

fn card(session: &Session, held: &Held, text: Option<&str>, now: Millis) -> Markup {
    let to = |act: &str| format!("/ui/quarantine/{}/{act}", path(&held.job_id));
    let findings = held.output_safety.as_ref().map(|safety| &safety.findings[..]).unwrap_or_default();
    html! {
        article.card data-part={ "held-" (held.job_id) } {
            h2 { a href={ "/ui/jobs/" (path(&held.job_id)) } { code { (held.job_id) } } " " span.quiet { (held.topic) " of " (held.tenant) } }
            p { (held.reason) " " span.quiet { "from " (held.worker_id) ", " (ago_micros(held.held_at, now)) } }
            @if !findings.is_empty() {
                ul.findings { @for finding in findings { li {
                    (chip(&finding.severity)) " " b { (finding.name) } " " span.quiet { (finding.scanner) ", " (format!("{:.0} %", finding.confidence * 100.0)) " sure" }
                    @if !finding.at.is_empty() { " at " code { (finding.at) } }
                    " " code { (finding.preview) }
                } } }
            }
            @match text {
                Some(text) => pre.blob tabindex="0" { (marked(text)) },
                None => p.note { "The text is not shown: it is gone, large, or your key may not decide about it." },
            }
            form.decide method="post" action=(to("release")) {
                (session.hidden())
                label { "Reason " input name="reason" maxlength="1000"; }
                button.main type="submit" { "Release" }
                button.danger type="submit" formaction=(to("discard")) { "Discard" }
            }
        }
    }
}

/// The result with what was found covered, for those who may decide about it. Who saw it is in the audit trail.
async fn text(console: &Console, session: &Session, held: &Held) -> Result<Option<String>, ApiError> {
    let Ok(id) = JobId::parse(&held.job_id) else { return Ok(None) };
    if session.auth.needs(Scope::Release).is_err() {
        return Ok(None);
    }
    let Some(job) = console.engine.jobs().job(&id).await? else { return Ok(None) };
    let bytes = console.engine.jobs().held_result(&job, session.auth.caller()).await?;
    let readable = bytes.filter(|bytes| bytes.len() <= SHOWN_LEN_MAX);
    let text = readable.and_then(|bytes| String::from_utf8(bytes.to_vec()).ok());
    let findings = held.output_safety.as_ref().map(|safety| &safety.findings);
    Ok(text.zip(findings).map(|(text, findings)| covered(&text.replace([FROM, TO], ""), findings)))
}

/// The text with every finding replaced by its name, between marks.
fn covered(text: &str, findings: &[OutputFinding]) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(text) else {
        return cover(text, findings.iter().filter(|finding| finding.at.is_empty()));
    };
    let mut places: Vec<&str> = findings.iter().map(|finding| finding.at.as_str()).collect();
    places.sort_unstable();
    places.dedup();
    for place in places {
        let at_place = findings.iter().filter(|finding| finding.at == place);
        if let Some(Value::String(words)) = value.pointer_mut(place) {
            *words = cover(words, at_place);
        }
    }
    serde_json::to_string_pretty(&value).unwrap_or_default()
}

fn cover<'a>(text: &str, findings: impl Iterator<Item = &'a OutputFinding>) -> String {
    let mut spans: Vec<_> =
        findings.map(|finding| (finding.start, finding.end, finding.name.as_str())).collect();
    spans.sort_unstable();
    let (mut out, mut read) = (String::new(), 0);
    for (start, end, name) in spans {
        // What overlaps the one before is covered from there on; what is no place in this text covers nothing.
        let start = start.max(read);
        let (Some(before), true) =
            (text.get(read..start), end > start && text.is_char_boundary(end.min(text.len())))
        else {
            continue;
        };
        out.push_str(before);
        out.extend([FROM].into_iter().chain(name.chars()).chain([TO]));
        read = end.min(text.len());
    }
    out.push_str(text.get(read..).unwrap_or_default());
    out
}

fn marked(text: &str) -> Markup {
    html! {
        @for (n, part) in text.split(FROM).enumerate() {
            @match part.split_once(TO).filter(|_| n > 0) {
                Some((name, rest)) => { mark { (name) } (rest) },
                None => (part),
            }
        }
    }
}

pub async fn act(
    State(console): State<Console>,
    session: Session,
    Path((id, act)): Path<(String, String)>,
    Form(sent): Form<ActionForm>,
) -> Result<Response, ErrorPage> {
    session.allows(&sent.seal)?;
    let (engine, auth) = (State(console.engine.clone()), session.auth.clone());
    let body = OptionalBody(Decided { note: sent.reason.clone(), ..Decided::default() });
    match act.as_str() {
        "release" => drop(quarantine::release(engine, auth, Path(id), body).await?),
        "discard" => drop(quarantine::discard(engine, auth, Path(id), body).await?),
        _ => return Err(act::unknown()),
    }
    Ok(act::back(&sent, "/ui/quarantine"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(name: &str, at: &str, start: usize, end: usize) -> OutputFinding {
        OutputFinding {
            scanner: "secret".to_owned(),
            name: name.to_owned(),
            severity: "HIGH".to_owned(),
            confidence: 0.9,
            at: at.to_owned(),
            start,
            end,
            preview: String::new(),
        }
    }

    #[test]
    fn what_was_found_is_covered_and_marked() {
        let findings =
            [finding("key", "/a", 4, 9), finding("email", "/b/0", 0, 3), finding("odd", "/c", 0, 1)];
        let text = covered(r#"{"a":"key SECRE <b>","b":["a@b","x"]}"#, &findings);
        let shown = marked(&text).into_string();
        assert!(shown.contains("key <mark>key</mark> &lt;b&gt;"), "{shown}");
        assert!(
            shown.contains("<mark>email</mark>") && !shown.contains("SECRE") && !shown.contains("a@b"),
            "{shown}"
        );
    }

    #[test]
    fn plain_text_and_overlaps() {
        let text = covered(
            "call 12345 now",
            &[finding("phone", "", 5, 8), finding("number", "", 6, 10), finding("late", "", 90, 99)],
        );
        assert_eq!(marked(&text).into_string(), "call <mark>phone</mark><mark>number</mark> now");
    }
}
