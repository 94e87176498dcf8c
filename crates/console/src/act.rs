//! Buttons: forms that carry the seal of their page, and where they lead.

use crate::error_page::ErrorPage;
use crate::session::Session;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde::Deserialize;

/// What every form of ours brings.
#[derive(Deserialize)]
pub struct ActionForm {
    pub seal: String,
    /// Why, in somebody's words, where a form asks for it.
    #[serde(default)]
    pub reason: String,
    /// One more thing that a form may name: a step, a group.
    #[serde(default)]
    pub what: String,
    /// The page that the form was on.
    #[serde(default)]
    pub back: String,
}

impl Session {
    /// A button that does one thing.
    pub fn button(&self, action: &str, words: &str, class: &str) -> Markup {
        self.button_with(action, words, class, "")
    }

    pub fn button_with(&self, action: &str, words: &str, class: &str, what: &str) -> Markup {
        html! {
            form.act method="post" action=(action) {
                (self.hidden())
                @if !what.is_empty() { input type="hidden" name="what" value=(what); }
                button class=(class) type="submit" { (words) }
            }
        }
    }

    /// What every form must bring.
    pub fn hidden(&self) -> Markup {
        html! {
            input type="hidden" name="seal" value=(self.form_seal);
            input type="hidden" name="back" value=(self.uri);
        }
    }
}

/// Whatever a form did: back to where it was, or the reason why not.
pub fn back(sent: &ActionForm, otherwise: &str) -> Response {
    let is_ours = sent.back.starts_with("/ui/") || sent.back == "/";
    Redirect::to(if is_ours { &sent.back } else { otherwise }).into_response()
}

/// A button that is on no page of ours.
pub fn unknown() -> ErrorPage {
    ErrorPage::new(axum::http::StatusCode::NOT_FOUND, "There is no such button.")
}
