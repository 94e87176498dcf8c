//! `/v1/api-keys`: the same keys as everywhere, in VoiceGateway's shapes. Only an operator's key opens
//! this, also where callers without a key are let in.

use super::{Detail, Principal};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use bytes::Bytes;
use reveille_core::id::{KeyId, TenantId};
use reveille_core::time::Millis;
use reveille_engine::{Engine, NewKey};
use reveille_roster::{KeyRecord, Scope};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

const NAME_LEN_MAX: usize = 128;
const PROJECTS_MAX: usize = 1_000;

#[derive(Deserialize, ToSchema)]
struct MintKey {
    /// 1 to 128 characters.
    name: String,
    /// Of ingest, read, submit, approve, release, operate, write, admin and `mcp:read`, which is read; ingest unless told.
    #[serde(default = "ingest")]
    scopes: Vec<String>,
    /// Whose key it is; the caller's tenant unless told.
    tenant_id: Option<String>,
    issued_by: Option<String>,
    /// At most 1,000.
    project_ids: Option<Vec<String>>,
}

/// What a key is for unless somebody says otherwise: an agent's beats.
fn ingest() -> Vec<String> {
    vec![Scope::Ingest.as_str().to_owned()]
}

#[derive(Serialize, ToSchema)]
pub struct MintedKey {
    /// Shown here and never again.
    plaintext: String,
    key: KeyRow,
}

#[derive(Serialize, ToSchema)]
pub struct KeyRow {
    id: String,
    key_prefix: String,
    name: String,
    tenant_id: String,
    scopes: Vec<&'static str>,
    issued_by: Option<String>,
    /// Seconds since the epoch, like every time of VoiceGateway.
    issued_at: f64,
    last_used_at: Option<f64>,
    revoked_at: Option<f64>,
    project_ids: Option<Vec<String>>,
}

#[derive(Serialize, ToSchema)]
pub struct KeyRows {
    items: Vec<KeyRow>,
    total: usize,
}

impl KeyRow {
    fn of(key: &KeyRecord) -> Self {
        let seconds = |at: Millis| at.0 as f64 / 1000.0;
        Self {
            id: key.id.to_string(),
            key_prefix: key.prefix.clone(),
            name: key.name.clone(),
            tenant_id: key.tenant.to_string(),
            scopes: key.scopes.iter().map(|scope| scope.as_str()).collect(),
            issued_by: key.issued_by.clone(),
            issued_at: seconds(key.created_at),
            last_used_at: key.last_used_at.map(seconds),
            revoked_at: key.revoked_at.map(seconds),
            project_ids: key.project_ids.clone(),
        }
    }
}

/// Makes a key. Its secret is shown here and never again.
#[utoipa::path(post, path = "/v1/api-keys", tag = "voicegateway", request_body = MintKey, responses(
    (status = 201, body = MintedKey), (status = 409, description = "There are as many keys as there may be"),
    (status = 422, description = "A field is wrong; it is named")))]
pub async fn create(
    State(engine): State<Engine>,
    principal: Principal,
    body: Bytes,
) -> Result<(StatusCode, Json<MintedKey>), Detail> {
    principal.needs(Scope::Admin)?;
    let new = understood(&body, &principal)?;
    let (key, plaintext) = engine.access().create_key(new).await?;
    Ok((StatusCode::CREATED, Json(MintedKey { plaintext, key: KeyRow::of(&key) })))
}

/// Lists all keys, without their secrets.
#[utoipa::path(get, path = "/v1/api-keys", tag = "voicegateway", responses((status = 200, body = KeyRows)))]
pub async fn list(State(engine): State<Engine>, principal: Principal) -> Result<Json<KeyRows>, Detail> {
    principal.needs(Scope::Admin)?;
    let items: Vec<KeyRow> = engine.access().list_keys().iter().map(KeyRow::of).collect();
    Ok(Json(KeyRows { total: items.len(), items }))
}

/// Shows a key, without its secret.
#[utoipa::path(get, path = "/v1/api-keys/{id}", tag = "voicegateway", params(("id" = String, Path)), responses((status = 200, body = KeyRow), (status = 404, description = "No such key")))]
pub async fn get(
    State(engine): State<Engine>,
    principal: Principal,
    Path(id): Path<String>,
) -> Result<Json<KeyRow>, Detail> {
    principal.needs(Scope::Admin)?;
    let keys = engine.access().list_keys();
    let found = keys.iter().find(|key| key.id.as_str() == id);
    found.map(|key| Json(KeyRow::of(key))).ok_or_else(|| Detail::not_found("key"))
}

/// Revokes a key, at once.
#[utoipa::path(delete, path = "/v1/api-keys/{id}", tag = "voicegateway", params(("id" = String, Path)), responses((status = 204, description = "It is revoked"), (status = 404, description = "No such key")))]
pub async fn revoke(
    State(engine): State<Engine>,
    principal: Principal,
    Path(id): Path<String>,
) -> Result<StatusCode, Detail> {
    principal.needs(Scope::Admin)?;
    let found = match KeyId::parse(&id) {
        Ok(id) => engine.access().revoke_key(&id, principal.caller.recorded_name()).await?,
        Err(_) => false,
    };
    if found { Ok(StatusCode::NO_CONTENT) } else { Err(Detail::not_found("key")) }
}

fn understood(body: &[u8], principal: &Principal) -> Result<NewKey, Detail> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let mint: MintKey = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        Detail::field(if path == "." { "body" } else { &path }, error.inner())
    })?;
    if mint.name.is_empty() || mint.name.chars().count() > NAME_LEN_MAX {
        return Err(Detail::field("name", format!("must have 1 to {NAME_LEN_MAX} characters")));
    }
    let mut scopes = mint.scopes.iter().map(|word| scope(word)).collect::<Result<Vec<_>, _>>()?;
    scopes.sort_unstable();
    scopes.dedup();
    if scopes.is_empty() {
        return Err(Detail::field("scopes", "must name at least one"));
    }
    let caller = &principal.caller;
    let tenant = match mint.tenant_id.as_deref().filter(|name| !name.is_empty()) {
        None => caller.tenant.clone(),
        Some(name) => TenantId::parse(name).map_err(|bad| Detail::field("tenant_id", bad))?,
    };
    if mint.project_ids.as_ref().is_some_and(|ids| ids.len() > PROJECTS_MAX) {
        return Err(Detail::field("project_ids", format!("has more than {PROJECTS_MAX}")));
    }
    Ok(NewKey {
        name: mint.name,
        tenant,
        scopes,
        worker: None,
        expires_at: None,
        created_by: caller.recorded_name().to_owned(),
        issued_by: Some(mint.issued_by.unwrap_or_else(|| caller.name.clone())),
        project_ids: mint.project_ids,
    })
}

fn scope(word: &str) -> Result<Scope, Detail> {
    let word = if word == "mcp:read" { Scope::Read.as_str() } else { word };
    Scope::parse(word)
        .ok_or_else(|| Detail::field("scopes", format!("{word:?} is none of {}, mcp:read", Scope::words())))
}
