//! Public keys of workers: registered and rotated here, listed and revoked with the other keys.

use crate::ApiError;
use crate::auth::Auth;
use crate::body::Body;
use crate::convert;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use reveille_api_types::key::{Key, RegisterWorkerKey, RotateWorkerKey, RotatedWorkerKey, ServerKey};
use reveille_core::id::KeyId;
use reveille_engine::Engine;
use reveille_roster::Scope;
use reveille_wire::convert::SENDER;

/// Registers the public half of a worker's key pair. What the worker signs with the other half is then its own.
#[utoipa::path(post, path = "/api/v1/auth/worker-keys", tag = "keys", request_body = RegisterWorkerKey, responses((status = 201, body = Key), (status = 409, description = "It is registered already, or there are as many keys as there may be")))]
pub async fn register_worker_key(
    State(engine): State<Engine>,
    auth: Auth,
    Body(body): Body<RegisterWorkerKey>,
) -> Result<(StatusCode, Json<Key>), ApiError> {
    auth.needs(Scope::Admin)?;
    let (new, public) = convert::new_worker_key(body, &auth.tenant, auth.caller().recorded_name())?;
    let key = engine.access().register_worker_key(new, public).await?;
    Ok((StatusCode::CREATED, Json(convert::key(&key))))
}

/// Registers a public key that takes the place of this one, which ends after the overlap.
#[utoipa::path(post, path = "/api/v1/auth/worker-keys/{id}/rotate", tag = "keys", params(("id" = String, Path)), request_body = RotateWorkerKey, responses((status = 201, body = RotatedWorkerKey), (status = 400, description = "The overlap is too long, or it is no public key"), (status = 404, description = "No such key"), (status = 409, description = "It has ended, has been replaced already, or is no public key")))]
pub async fn rotate_worker_key(
    State(engine): State<Engine>,
    auth: Auth,
    Path(id): Path<String>,
    Body(body): Body<RotateWorkerKey>,
) -> Result<(StatusCode, Json<RotatedWorkerKey>), ApiError> {
    auth.needs(Scope::Admin)?;
    let id = KeyId::parse(&id).map_err(|_| ApiError::not_found("key"))?;
    let (next, overlap_ms) = (convert::public_key(&body.public_key)?, convert::overlap_ms(body.overlap_sec));
    let rotation =
        engine.access().rotate_worker_key(&id, &next, overlap_ms, auth.caller().recorded_name()).await?;
    Ok((StatusCode::CREATED, Json(convert::rotated_worker_key(&rotation))))
}

/// What packets to workers are signed with, for their configuration.
#[utoipa::path(get, path = "/api/v1/auth/worker-keys/server", tag = "keys", responses((status = 200, body = ServerKey), (status = 404, description = "Signatures are off")))]
pub async fn server_key(State(engine): State<Engine>, auth: Auth) -> Result<Json<ServerKey>, ApiError> {
    auth.needs(Scope::Read)?;
    let key = engine.access().server_key().ok_or_else(|| ApiError::not_found("key: signatures are off"))?;
    Ok(Json(ServerKey {
        signatures: key.signatures.as_str().to_owned(),
        sender: SENDER.to_owned(),
        key_id: key.id,
        public_key: key.pem,
    }))
}
