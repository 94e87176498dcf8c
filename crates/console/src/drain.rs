//! Out of service and back: a worker, or a whole pool.

use crate::Console;
use crate::act::{self, ActionForm};
use crate::error_page::ErrorPage;
use crate::session::Session;
use crate::words::{chip, path};
use axum::Form;
use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, html};
use reveille_api::body::OptionalBody;
use reveille_api::{pools, workers};
use reveille_api_types::drain::DrainRequest;
use reveille_api_types::worker::{Pool, Worker};
use reveille_roster::Scope;

/// For those who may: CAP workers are everybody's, and so are their pools.
pub fn of_worker(session: &Session, worker: &Worker) -> Markup {
    html! { @if worker.contract == "cap" { (button(session, "worker", &worker.worker_id, worker.drained, "")) } }
}

pub fn of_pool(session: &Session, pool: &Pool) -> Markup {
    let is_draining = pool.status == "draining";
    html! { @if !pool.name.is_empty() {
        @if is_draining { " " (chip("draining")) }
        (button(session, "pool", &pool.name, is_draining, "small"))
    } }
}

fn button(session: &Session, what: &str, name: &str, is_drained: bool, class: &str) -> Markup {
    let act = if is_drained { "undrain" } else { "drain" };
    let words = format!("{} {what}", if is_drained { "Undrain" } else { "Drain" });
    html! { @if session.auth.caller().may_everywhere(Scope::Operate) {
        (session.button(&format!("/ui/fleet/{what}/{}/{act}", path(name)), &words, class))
    } }
}

pub async fn act(
    State(console): State<Console>,
    session: Session,
    Path((what, name, act)): Path<(String, String, String)>,
    Form(sent): Form<ActionForm>,
) -> Result<Response, ErrorPage> {
    session.allows(&sent.seal)?;
    let (engine, auth, name) = (State(console.engine.clone()), session.auth.clone(), Path(name));
    let usual = OptionalBody(DrainRequest::default());
    match (what.as_str(), act.as_str()) {
        ("worker", "drain") => drop(workers::drain(engine, auth, name, usual).await?),
        ("worker", "undrain") => drop(workers::undrain(engine, auth, name).await?),
        ("pool", "drain") => drop(pools::drain(engine, auth, name, usual).await?),
        ("pool", "undrain") => drop(pools::undrain(engine, auth, name).await?),
        _ => return Err(act::unknown()),
    }
    Ok(act::back(&sent, "/ui/fleet"))
}
