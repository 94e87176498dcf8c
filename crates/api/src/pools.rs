//! The fleet, pool by pool.

use crate::ApiError;
use crate::auth::Auth;
use crate::types::worker::{Pool, PoolList};
use axum::Json;
use axum::extract::State;
use reveille_engine::Engine;
use reveille_store::Scope;

#[utoipa::path(get, path = "/api/v1/pools", tag = "fleet", responses((status = 200, body = PoolList)))]
pub async fn list(State(engine): State<Engine>, auth: Auth) -> Result<Json<PoolList>, ApiError> {
    auth.needs(Scope::Read)?;
    Ok(Json(PoolList { items: engine.pools().into_iter().map(Pool::of).collect() }))
}
