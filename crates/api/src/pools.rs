//! The fleet, pool by pool.

use crate::ApiError;
use crate::auth::Auth;
use crate::body::OptionalBody;
use crate::convert;
use axum::Json;
use axum::extract::{Path, State};
use reveille_api_types::drain::{DrainRequest, Drained, Undrained};
use reveille_api_types::worker::PoolList;
use reveille_core::id::PoolId;
use reveille_core::presence;
use reveille_engine::Engine;
use reveille_roster::Scope;

/// Lists the pools of workers.
#[utoipa::path(get, path = "/api/v1/pools", tag = "fleet", responses((status = 200, body = PoolList)))]
pub async fn list(State(engine): State<Engine>, auth: Auth) -> Result<Json<PoolList>, ApiError> {
    auth.needs(Scope::Read)?;
    Ok(Json(PoolList {
        items: engine.fleet().pools(&auth.audience()).into_iter().map(convert::pool).collect(),
    }))
}

/// Gives a pool no more jobs.
#[utoipa::path(post, path = "/api/v1/pools/{name}/drain", tag = "fleet", params(("name" = String, Path)), request_body = Option<DrainRequest>, responses((status = 200, body = Drained)))]
pub async fn drain(
    State(engine): State<Engine>,
    auth: Auth,
    Path(name): Path<String>,
    OptionalBody(body): OptionalBody<DrainRequest>,
) -> Result<Json<Drained>, ApiError> {
    auth.needs_everywhere(Scope::Operate)?;
    let what = presence::Drained::Pool(PoolId::parse(&name)?);
    let drain = engine.fleet().drain_workers(what, convert::drain_seconds(&body)?, &**auth.caller()).await?;
    Ok(Json(convert::drained(&drain)))
}

/// Gives a pool jobs again.
#[utoipa::path(post, path = "/api/v1/pools/{name}/undrain", tag = "fleet", params(("name" = String, Path)), responses((status = 200, body = Undrained)))]
pub async fn undrain(
    State(engine): State<Engine>,
    auth: Auth,
    Path(name): Path<String>,
) -> Result<Json<Undrained>, ApiError> {
    auth.needs_everywhere(Scope::Operate)?;
    let what = presence::Drained::Pool(PoolId::parse(&name)?);
    let was_drained = engine.fleet().undrain_workers(what, &**auth.caller()).await?;
    Ok(Json(Undrained { name, was_drained }))
}
