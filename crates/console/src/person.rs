//! People sign in: to the identity provider and back.
//!
//! What belongs to a sign-in that is under way is in a cookie of its own, sealed by us, which scripts cannot read and
//! which is gone once the browser is back.

use crate::Console;
use crate::page::plain;
use crate::session::{cookie, form, keep_person, place, set_cookie};
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use maud::html;
use reveille_engine::{PersonSignInError, SIGN_IN_MS_MAX, Unidentified};
use reveille_oidc::OidcError;
use serde::Deserialize;

const PENDING: &str = "reveille_sign_in";
/// What is repeated of a provider's reason.
const REASON_CHARS_MAX: usize = 200;

#[derive(Deserialize)]
pub struct StartQuery {
    next: Option<String>,
}

pub async fn start(
    State(console): State<Console>,
    headers: HeaderMap,
    Query(query): Query<StartQuery>,
) -> Response {
    let next = place(query.next.as_deref());
    match console.engine.access().begin_person_sign_in(next).await {
        Ok((url, pending)) => {
            let mut response = Redirect::to(&url).into_response();
            set_cookie(&mut response, &headers, PENDING, &pending, SIGN_IN_MS_MAX / 1000);
            response
        }
        Err(error) => refused(&console, next, &error),
    }
}

/// What the provider sends a browser back with.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct CallbackQuery {
    code: String,
    state: String,
    /// Who answers, where the provider says so.
    iss: Option<String>,
    error: Option<String>,
    error_description: Option<String>,
}

pub async fn come_back(
    State(console): State<Console>,
    headers: HeaderMap,
    Query(query): Query<CallbackQuery>,
) -> Response {
    let mut response = finish(&console, &headers, query).await;
    set_cookie(&mut response, &headers, PENDING, "", 0);
    response
}

async fn finish(console: &Console, headers: &HeaderMap, query: CallbackQuery) -> Response {
    let access = console.engine.access();
    if let Some(error) = query.error {
        let words = query.error_description.unwrap_or(error);
        let words: String = words.chars().filter(|c| !c.is_control()).take(REASON_CHARS_MAX).collect();
        let words = format!("The identity provider did not sign you in: {words}");
        return form(console, "/", StatusCode::UNAUTHORIZED, Some(&words));
    }
    let is_another = |iss: &String| access.oidc().is_none_or(|oidc| oidc.issuer() != iss);
    let kept = cookie(headers, PENDING).unwrap_or_default();
    let done = if query.iss.as_ref().is_some_and(is_another) {
        Err(PersonSignInError::NotBegun)
    } else {
        access.finish_person_sign_in(kept, &query.state, &query.code).await
    };
    match done {
        Ok(signed_in) => {
            let mut response = Redirect::to(place(Some(&signed_in.next))).into_response();
            keep_person(&mut response, headers, &signed_in.cookie);
            response
        }
        Err(error) => refused(console, "/", &error),
    }
}

fn refused(console: &Console, next: &str, error: &PersonSignInError) -> Response {
    tracing::info!(%error, "sign-in refused");
    let status = match error {
        PersonSignInError::NotConfigured => StatusCode::NOT_FOUND,
        PersonSignInError::Provider(OidcError::Away(_) | OidcError::Unusable(_)) => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        PersonSignInError::Unidentified(Unidentified::NoRole { name, groups }) => {
            return without_role(name, groups);
        }
        PersonSignInError::TooManyGroups => StatusCode::FORBIDDEN,
        PersonSignInError::NotBegun | PersonSignInError::Provider(_) | PersonSignInError::Unidentified(_) => {
            StatusCode::UNAUTHORIZED
        }
    };
    // What exactly the provider did is for the log.
    let words = match error {
        PersonSignInError::Provider(OidcError::Away(_) | OidcError::Unusable(_)) => {
            "The identity provider cannot be used at present. Try again in a moment, or sign in with a key."
                .to_owned()
        }
        other => format!("You are not signed in: {other}."),
    };
    form(console, next, status, Some(&words))
}

/// Somebody whom the provider knows and we have nothing for.
fn without_role(name: &str, groups: &[String]) -> Response {
    let page = plain(
        "No role",
        &html! {
            main.narrow {
                h1 { "You have no role here" }
                p { "You came as " b { (name) } ". None of your groups has a role on this server. Ask whoever runs it to give one to a group of yours." }
                @if groups.is_empty() { p.note { "The identity provider named no groups for you." } }
                @else {
                    p { "Your groups:" }
                    ul { @for group in groups { li { code { (group) } } } }
                }
                p { a href="/ui/sign-in" { "Sign in as somebody else" } }
            }
        },
    );
    (StatusCode::FORBIDDEN, page).into_response()
}
