//! The description of all this, made from the handlers and types themselves.

mod complete;

use crate::molecule::{delegations, discovery, events, registry, socket, talk, workspaces};
use crate::openorca::{self, events as console, resolve};
use crate::types::molecule::answer::MoleculeError;
use crate::types::molecule::event::{SocketFrame, StreamEvent};
use crate::types::openorca::ConsoleFrame;
use crate::voicegateway::{self, Detail, heartbeat};
use crate::{
    approvals, audit, dead_letters, dry_run, graph, health, jobs, keys, overview, policy, pools, presence,
    quarantine, runs, stream, system, worker_keys, workers, workflows,
};
use axum::http::header;
use axum::response::IntoResponse;
use complete::Complete;
use reveille_api_types::error::Error;
use reveille_api_types::event::{Fleet, JobNews, RunNews, WorkerNews, WorkspaceNews};
use utoipa::OpenApi;

#[derive(OpenApi)]
#[openapi(
    info(title = "Reveille", description = "Keeps a fleet of AI-agent workers awake, known and at work."),
    tags(
        (name = "jobs", description = "Ask for a job, look at it, change your mind, and ask why."),
        (name = "approvals", description = "Jobs that wait for a person."),
        (name = "dead letters", description = "Jobs that ended badly, and packets that nobody could read."),
        (name = "quarantine", description = "Results that output policy holds back."),
        (name = "policy", description = "What policy would say, and why."),
        (name = "workflows", description = "Workflows: saved, drawn, tried out."),
        (name = "runs", description = "Runs of workflows."),
        (name = "fleet", description = "Workers, agents and workspaces, as one fleet."),
        (name = "audit", description = "Who did what, in a chain that shows whether it was changed."),
        (name = "keys", description = "Keys. Only an operator's key opens this."),
        (name = "health", description = "Is it alive, is it ready, what does it count, what can it do. No key is asked for."),
        (name = "voicegateway", description = "The contract of VoiceGateway: agents that beat, and their keys."),
        (name = "molecule", description = "The contract of Molecule's registry. A workspace's own token is sent as a key is. Ids of workspaces are UUIDs."),
        (name = "openorca", description = "The contract of the OpenOrca console.")
    ),
    paths(
        jobs::submit, jobs::list, jobs::get, jobs::cancel, jobs::remediate, jobs::explain, approvals::list,
        approvals::context, approvals::approve, approvals::reject, dead_letters::list, dead_letters::page, dead_letters::get,
        dead_letters::delete, dead_letters::retry, dead_letters::retry_many, dead_letters::stats, dead_letters::packets, workers::list, workers::get,
        overview::get, system::get, workers::drain, workers::undrain, pools::list, pools::drain, pools::undrain,
        policy::evaluate, policy::simulate, policy::explain, policy::replay, policy::decisions,
        quarantine::list, quarantine::show, quarantine::release, quarantine::discard,
        workflows::save, workflows::list, workflows::get, workflows::delete, graph::get, dry_run::dry_run, runs::start, runs::list_of, runs::list, runs::get,
        runs::delete, runs::timeline, runs::cancel, runs::cancel_of, runs::rerun,
        audit::events, audit::list, audit::verify, audit::checkpoint, audit::public_key, audit::link,
        keys::create, keys::list, keys::rotate, keys::revoke, worker_keys::register_worker_key, worker_keys::rotate_worker_key,
        worker_keys::server_key, presence::take, stream::events,
        health::alive, health::live, health::ready, health::metrics, health::health, serve,
        heartbeat::heartbeat, voicegateway::agents::list, voicegateway::keys::create, voicegateway::keys::list,
        voicegateway::keys::get, voicegateway::keys::revoke,
        openorca::runtime_info, openorca::snapshot, console::follow, resolve::resolve,
        registry::register, registry::heartbeat, registry::update_card,
        discovery::discover, discovery::peers, discovery::check_access,
        workspaces::create, workspaces::list, workspaces::get, workspaces::patch, workspaces::remove, workspaces::state,
        workspaces::new_token, delegations::delegate, delegations::list, delegations::record, delegations::update,
        talk::notify, talk::activity, talk::a2a, events::list, events::of_workspace, events::stream, socket::open
    ),
    // What no body refers to: errors, which are the same everywhere, and what streams and sockets bring.
    components(schemas(
        Error, Detail, MoleculeError, Fleet, WorkerNews<'static>, JobNews<'static>, RunNews<'static>,
        WorkspaceNews<'static>, StreamEvent<'static>, SocketFrame<'static>, ConsoleFrame<'static>
    )),
    modifiers(&Complete),
    security(("key" = []), ("bearer" = []))
)]
struct Api;

/// The document as it is served and checked in (`docs/openapi.json`).
pub fn document() -> String {
    Api::openapi().to_pretty_json().unwrap_or_default() + "\n"
}

/// Describes the API: this document.
#[utoipa::path(get, operation_id = "document", path = "/api/v1/openapi.json", tag = "health", security(()), responses((status = 200, body = Object)))]
pub async fn serve() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], document())
}
