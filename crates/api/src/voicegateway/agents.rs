//! `GET /v1/agents`: the roster, those heard last first.

use super::{Detail, Principal, TenantHeader, TenantQuery};
use crate::types::agent::AgentRow;
use axum::Json;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use reveille_engine::Engine;
use serde::Serialize;
use utoipa::ToSchema;

/// The contract has no pages; of a larger fleet those heard last are listed.
const ROWS_MAX: usize = 50_000;

#[derive(Serialize, ToSchema)]
#[schema(as = Roster)]
struct AgentRoster<'a> {
    /// At most 50,000.
    workers: Vec<AgentRow<'a>>,
}

/// Lists the agents, those heard last first.
///
/// Any key may look, whatever its scopes, as with VoiceGateway.
#[utoipa::path(get, path = "/v1/agents", tag = "voicegateway", params(TenantQuery, TenantHeader), responses((status = 200, body = AgentRoster<'static>)))]
pub async fn list(
    State(engine): State<Engine>,
    principal: Principal,
    Query(query): Query<TenantQuery>,
) -> Result<Response, Detail> {
    let audience = principal.audience(query.tenant.as_deref())?;
    let list = move || {
        let agents = engine.fleet().agents(&audience, ROWS_MAX);
        let (ttls, now) = (engine.settings().ttls, engine.now());
        let rows = agents.iter().filter_map(|agent| AgentRow::of(agent, &ttls, now));
        Json(AgentRoster { workers: rows.collect() }).into_response()
    };
    // As many rows as that take their time to write, and nobody else waits for it.
    tokio::task::spawn_blocking(list).await.map_err(|_| Detail::unlistable())
}
