//! Keys: made, listed, rotated, revoked. A secret is shown once.

use crate::ApiError;
use crate::auth::Auth;
use crate::body::{Body, OptionalBody};
use crate::convert;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use reveille_api_types::key::{CreateKey, CreatedKey, KeyList, RotateKey, RotatedKey};
use reveille_core::id::KeyId;
use reveille_engine::Engine;
use reveille_roster::Scope;

/// Makes a key. Its secret is shown here and never again.
#[utoipa::path(post, path = "/api/v1/auth/keys", tag = "keys", request_body = CreateKey, responses((status = 201, body = CreatedKey), (status = 409, description = "There are as many keys as there may be")))]
pub async fn create(
    State(engine): State<Engine>,
    auth: Auth,
    Body(body): Body<CreateKey>,
) -> Result<(StatusCode, Json<CreatedKey>), ApiError> {
    auth.needs(Scope::Admin)?;
    let (key, secret) = engine
        .access()
        .create_key(convert::new_key(body, &auth.tenant, auth.caller().recorded_name())?)
        .await?;
    Ok((StatusCode::CREATED, Json(CreatedKey { key: convert::key(&key), secret })))
}

/// Lists all keys, without their secrets.
#[utoipa::path(get, path = "/api/v1/auth/keys", tag = "keys", responses((status = 200, body = KeyList)))]
pub async fn list(State(engine): State<Engine>, auth: Auth) -> Result<Json<KeyList>, ApiError> {
    auth.needs(Scope::Admin)?;
    Ok(Json(KeyList { items: engine.access().list_keys().iter().map(convert::key).collect() }))
}

/// Makes a key with a new secret that takes the place of this one, which ends after the overlap. The name, tenant and scopes
/// stay; a key that was made for some time is followed by one for as long.
#[utoipa::path(post, path = "/api/v1/auth/keys/{id}/rotate", tag = "keys", params(("id" = String, Path)), request_body = RotateKey, responses((status = 201, body = RotatedKey), (status = 400, description = "The overlap is too long"), (status = 404, description = "No such key"), (status = 409, description = "It has ended, has been replaced already, or comes from the environment")))]
pub async fn rotate(
    State(engine): State<Engine>,
    auth: Auth,
    Path(id): Path<String>,
    OptionalBody(body): OptionalBody<RotateKey>,
) -> Result<(StatusCode, Json<RotatedKey>), ApiError> {
    auth.needs(Scope::Admin)?;
    let id = KeyId::parse(&id).map_err(|_| ApiError::not_found("key"))?;
    let rotation = engine
        .access()
        .rotate_key(&id, convert::overlap_ms(body.overlap_sec), auth.caller().recorded_name())
        .await?;
    Ok((StatusCode::CREATED, Json(convert::rotated_key(rotation))))
}

/// Revokes a key, at once.
#[utoipa::path(delete, path = "/api/v1/auth/keys/{id}", tag = "keys", params(("id" = String, Path)), responses((status = 204), (status = 404, description = "No such key")))]
pub async fn revoke(
    State(engine): State<Engine>,
    auth: Auth,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    auth.needs(Scope::Admin)?;
    let found = match KeyId::parse(&id) {
        Ok(id) => engine.access().revoke_key(&id, auth.caller().recorded_name()).await?,
        Err(_) => false,
    };
    if found { Ok(StatusCode::NO_CONTENT) } else { Err(ApiError::not_found("key")) }
}
