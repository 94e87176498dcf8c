//! The audit trail: read it, see whether it is what it was, and take away what it is now. Nothing here writes to it.

use crate::ApiError;
use crate::auth::Auth;
use crate::convert;
use crate::convert::text::limit;
use axum::extract::{Query, State};
use axum::routing::get;
use axum::{Json, Router};
use reveille_api_types::audit::{
    AuditEvent, ChainLink, CheckpointPage, CheckpointQuery, LinkQuery, SigningKey, TrailPage, TrailQuery,
    Verified, VerifyQuery,
};
use reveille_core::id::TenantId;
use reveille_engine::Engine;
use reveille_roster::Scope;
use reveille_store::AuditQuery;

/// Entries that one check looks at: some seconds' work. A longer chain is `partial`.
const VERIFY_MAX: u64 = 1_000_000;

pub fn routes() -> Router<Engine> {
    Router::new()
        .route("/audit", get(list))
        .route("/audit/events", get(events))
        .route("/audit/verify", get(verify))
        .route("/audit/checkpoint", get(checkpoint))
        .route("/audit/link", get(link))
        .route("/audit/public-key", get(public_key))
}

/// Lists a tenant's audit trail, newest first.
#[utoipa::path(get, path = "/api/v1/audit/events", tag = "audit", params(TrailQuery), responses((status = 200, body = TrailPage), (status = 400, description = "A filter is wrong; it is named"), (status = 403, description = "Another tenant's trail")))]
pub async fn events(
    State(engine): State<Engine>,
    auth: Auth,
    Query(query): Query<TrailQuery>,
) -> Result<Json<TrailPage>, ApiError> {
    auth.needs(Scope::Read)?;
    let tenant = match named(&auth, query.tenant.as_deref())? {
        Some(tenant) => Some(tenant),
        None => auth.list_of(),
    };
    let query = AuditQuery { tenant, ..convert::audit_query(&query, engine.now())? };
    let page = engine.jobs().audit(&query).await?;
    let items: Vec<AuditEvent> = page.items.into_iter().map(convert::audit_event).collect();
    Ok(Json(TrailPage { returned: items.len(), next_cursor: page.next.map(|next| next.to_string()), items }))
}

/// Lists the same as `/audit/events`.
#[utoipa::path(get, path = "/api/v1/audit", tag = "audit", params(TrailQuery), responses((status = 200, body = TrailPage), (status = 400, description = "A filter is wrong; it is named"), (status = 403, description = "Another tenant's trail")))]
pub async fn list(
    engine: State<Engine>,
    auth: Auth,
    query: Query<TrailQuery>,
) -> Result<Json<TrailPage>, ApiError> {
    events(engine, auth, query).await
}

/// Reads a tenant's whole chain and checks every hash.
#[utoipa::path(get, path = "/api/v1/audit/verify", tag = "audit", params(VerifyQuery), responses((status = 200, body = Verified), (status = 403, description = "Another tenant's trail")))]
pub async fn verify(
    State(engine): State<Engine>,
    auth: Auth,
    Query(query): Query<VerifyQuery>,
) -> Result<Json<Verified>, ApiError> {
    auth.needs(Scope::Read)?;
    let tenant = named(&auth, query.tenant.as_deref())?.unwrap_or_else(|| auth.tenant.clone());
    let found = engine.jobs().verify_audit(&tenant, VERIFY_MAX).await?;
    Ok(Json(convert::verified(tenant.to_string(), &found, VERIFY_MAX)))
}

/// Says what a tenant's chain is now, signed, to be kept elsewhere; or what all of them are.
#[utoipa::path(get, path = "/api/v1/audit/checkpoint", tag = "audit", params(CheckpointQuery), responses((status = 200, body = CheckpointPage),
    (status = 403, description = "Another tenant's trail"), (status = 409, description = "chain_broken: the chain does not end with the entry that it should")))]
pub async fn checkpoint(
    State(engine): State<Engine>,
    auth: Auth,
    Query(query): Query<CheckpointQuery>,
) -> Result<Json<CheckpointPage>, ApiError> {
    auth.needs(Scope::Read)?;
    let checkpoints = engine.checkpoints();
    let (signed, next) = match named(&auth, query.tenant.as_deref())? {
        None if query.all == Some(true) => {
            auth.needs(Scope::Admin)?;
            let after = convert::given(query.cursor.as_deref()).map(TenantId::parse).transpose()?;
            let limit = limit(query.limit.as_deref())?;
            let (signed, last) = checkpoints.of_all(after.as_ref(), limit).await?;
            let is_full = signed.len() == limit;
            (signed, last.filter(|_| is_full))
        }
        named => (vec![checkpoints.of(&named.unwrap_or_else(|| auth.tenant.clone())).await?], None),
    };
    Ok(Json(CheckpointPage {
        signing_key: convert::signing_key(checkpoints.public_key()),
        items: signed.into_iter().map(convert::checkpoint_line).collect(),
        next_cursor: next.map(|tenant| tenant.to_string()),
    }))
}

/// Shows the public half of the key that checkpoints are signed with.
#[utoipa::path(get, path = "/api/v1/audit/public-key", tag = "audit", responses((status = 200, body = SigningKey)))]
pub async fn public_key(State(engine): State<Engine>, auth: Auth) -> Result<Json<SigningKey>, ApiError> {
    auth.needs(Scope::Read)?;
    Ok(Json(convert::signing_key(engine.checkpoints().public_key())))
}

/// Says what a tenant's chain has at one place, for whoever has a checkpoint of it.
#[utoipa::path(get, path = "/api/v1/audit/link", tag = "audit", params(LinkQuery), responses((status = 200, body = ChainLink), (status = 403, description = "Another tenant's trail")))]
pub async fn link(
    State(engine): State<Engine>,
    auth: Auth,
    Query(query): Query<LinkQuery>,
) -> Result<Json<ChainLink>, ApiError> {
    auth.needs(Scope::Read)?;
    let tenant = named(&auth, query.tenant.as_deref())?.unwrap_or_else(|| auth.tenant.clone());
    let found = engine.checkpoints().link(&tenant, query.seq).await?;
    Ok(Json(convert::chain_link(tenant.to_string(), query.seq, &found)))
}

/// The tenant that the query names, if the caller may look at its trail.
fn named(auth: &Auth, name: Option<&str>) -> Result<Option<TenantId>, ApiError> {
    let Some(tenant) = convert::given(name).map(TenantId::parse).transpose()? else { return Ok(None) };
    if auth.sees(&tenant) {
        return Ok(Some(tenant));
    }
    Err(ApiError::forbidden("tenant: it is not this key's tenant"))
}
