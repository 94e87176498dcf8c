//! The audit trail: read it, and see whether it is what it was. Nothing here writes to it.

use crate::ApiError;
use crate::auth::Auth;
use crate::convert;
use axum::extract::{Query, State};
use axum::routing::get;
use axum::{Json, Router};
use reveille_api_types::audit::{AuditEvent, TrailPage, TrailQuery, Verified, VerifyQuery};
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

/// The tenant that the query names, if the caller may look at its trail.
fn named(auth: &Auth, name: Option<&str>) -> Result<Option<TenantId>, ApiError> {
    let Some(tenant) = convert::given(name).map(TenantId::parse).transpose()? else { return Ok(None) };
    if auth.sees(&tenant) {
        return Ok(Some(tenant));
    }
    Err(ApiError::forbidden("tenant: it is not this key's tenant"))
}
