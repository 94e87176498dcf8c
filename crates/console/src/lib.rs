//! The web console: pages for people, at `/`.
//!
//! A page is: who is asking (a cookie), the answer of the API's own handler, and its drawing. What may be seen and
//! done is decided there, so that no page shows or does what the API would not. Pages are whole without the script;
//! the script only asks for a page again when something has changed, and puts in what differs.

mod act;
mod approvals;
mod assets;
mod audit;
mod dead_letters;
mod drain;
mod error_page;
mod fleet;
mod job;
mod jobs;
mod live;
mod load_history;
mod mask;
mod now;
mod page;
mod person;
mod policy;
mod quarantine;
mod run;
mod session;
mod submit;
mod system;
mod words;
mod worker;
mod workflows;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use load_history::LoadHistory;
use reveille_api::origin::refuse_foreign_pages;
use reveille_core::finding::Finding;
use reveille_engine::Engine;
use std::sync::Arc;

/// Bytes of a form: an input that is typed by hand, and then some.
const FORM_LEN_MAX: usize = 256 * 1024;

/// What every page has at hand.
#[derive(Clone)]
pub struct Console {
    engine: Engine,
    load_history: Arc<LoadHistory>,
    /// What start-up found about each engine: its name, and what was seen.
    engines: Arc<Vec<(String, Vec<Finding>)>>,
}

/// Every page. Must be called within a runtime: it begins to take samples.
pub fn router(engine: Engine, engines: Vec<(String, Vec<Finding>)>) -> Router {
    let load_history = LoadHistory::start(&engine);
    let console = Console { engine, load_history, engines: Arc::new(engines) };
    Router::new()
        .route("/", get(now::show))
        .route("/ui/sign-in", get(session::ask).post(session::sign_in))
        .route("/ui/oidc/start", get(person::start))
        .route("/ui/oidc/callback", get(person::come_back))
        .route("/ui/sign-out", post(session::sign_out))
        .route("/ui/tenant", post(session::choose_tenant))
        .route("/ui/live", get(live::follow))
        .route("/ui/fleet", get(fleet::show))
        .route("/ui/workers/{id}", get(worker::show))
        .route("/ui/fleet/{what}/{name}/{act}", post(drain::act))
        .route("/ui/jobs", get(jobs::list))
        .route("/ui/jobs/new", get(submit::form).post(submit::send))
        .route("/ui/jobs/{id}", get(job::show))
        .route("/ui/jobs/{id}/{act}", post(job::act))
        .route("/ui/approvals", get(approvals::list))
        .route("/ui/approvals/{id}", get(approvals::show))
        .route("/ui/approvals/{id}/{act}", post(approvals::act))
        .route("/ui/quarantine", get(quarantine::list))
        .route("/ui/quarantine/{id}/{act}", post(quarantine::act))
        .route("/ui/dlq", get(dead_letters::list))
        .route("/ui/dlq/retry", post(dead_letters::retry_group))
        .route("/ui/dlq/{id}/{act}", post(dead_letters::act))
        .route("/ui/workflows", get(workflows::list))
        .route("/ui/workflows/{id}", get(workflows::show))
        .route("/ui/workflows/{id}/start", post(workflows::start))
        .route("/ui/runs", get(run::list))
        .route("/ui/runs/{id}", get(run::show))
        .route("/ui/runs/{id}/{act}", post(run::act))
        .route("/ui/policy", get(policy::show).post(policy::simulate))
        .route("/ui/audit", get(audit::show))
        .route("/ui/system", get(system::show))
        .merge(assets::routes())
        .layer(DefaultBodyLimit::max(FORM_LEN_MAX))
        .layer(from_fn_with_state(console.engine.clone(), refuse_foreign_pages))
        .with_state(console)
}
