//! Who is calling, in VoiceGateway's words.

use super::Detail;
use crate::auth;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use reveille_core::id::TenantId;
use reveille_engine::{Audience, Caller, Engine, KEY_PREFIX, Unidentified};
use reveille_roster::Scope;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

/// A caller whose key has been checked.
pub struct Principal {
    pub caller: Arc<Caller>,
    /// The tenant named in `X-Tenant-ID`.
    named: Option<String>,
}

/// How it is described; [`Principal`] reads it.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "it describes")]
pub struct TenantHeader {
    /// The same as `tenant` in the query.
    #[param(rename = "X-Tenant-ID")]
    tenant: Option<String>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct TenantQuery {
    /// Operators only, or one's own.
    pub tenant: Option<String>,
}

impl FromRequestParts<Engine> for Principal {
    type Rejection = Detail;

    async fn from_request_parts(parts: &mut Parts, engine: &Engine) -> Result<Self, Detail> {
        let named = parts.headers.get("x-tenant-id").and_then(|value| value.to_str().ok());
        Ok(Self { caller: caller(engine, &parts.headers)?, named: named.map(str::to_owned) })
    }
}

impl Principal {
    pub fn needs(&self, scope: Scope) -> Result<(), Detail> {
        if self.caller.may(scope) { Ok(()) } else { Err(missing(scope)) }
    }

    /// Whose members it gets: its tenant's; an operator's are the tenant's that it names, or everybody's.
    pub fn audience(&self, tenant: Option<&str>) -> Result<Audience, Detail> {
        let named = tenant.or(self.named.as_deref()).filter(|name| !name.is_empty());
        let Some(name) = named else {
            return Ok(if self.caller.is_everywhere() {
                Audience::Everyone
            } else {
                Audience::Tenant(self.caller.tenant.clone())
            });
        };
        let tenant = TenantId::parse(name).ok().filter(|tenant| self.caller.sees(tenant));
        let foreign = || Detail::new(StatusCode::FORBIDDEN, "Not authorized to read another tenant's data");
        tenant.map(Audience::Tenant).ok_or_else(foreign)
    }
}

pub fn caller(engine: &Engine, headers: &HeaderMap) -> Result<Arc<Caller>, Detail> {
    let unauthorized = |words: &str| Detail::new(StatusCode::UNAUTHORIZED, words);
    let Some(secret) = auth::secret(headers) else {
        return engine.access().anonymous().ok_or_else(|| unauthorized("Authentication required"));
    };
    let caller = engine.access().identify(secret).map_err(|error| match error {
        Unidentified::NoRole { .. } => Detail::new(StatusCode::FORBIDDEN, error.to_string()),
        _ if secret.starts_with(KEY_PREFIX) => unauthorized("Invalid virtual key"),
        _ => unauthorized("Invalid token"),
    })?;
    if caller.is_person() { in_named_tenant(&caller, headers) } else { Ok(caller) }
}

/// A person in the tenant that they name, or in their only one.
fn in_named_tenant(caller: &Arc<Caller>, headers: &HeaderMap) -> Result<Arc<Caller>, Detail> {
    let named = headers.get("x-tenant-id").and_then(|value| value.to_str().ok());
    let named = named.filter(|name| !name.is_empty()).map(TenantId::parse).transpose();
    let named = named.map_err(|error| Detail::bad_request(&error.to_string()))?;
    if named.is_none() {
        auth::check_named(caller).map_err(|error| Detail::bad_request(&error.to_string()))?;
    }
    let foreign = || Detail::new(StatusCode::FORBIDDEN, "Not authorized to read another tenant's data");
    caller.acting_for(named.as_ref()).ok_or_else(foreign)
}

/// Whether somebody may bring beats.
pub fn may_ingest(caller: &Caller) -> Result<(), Detail> {
    if caller.may(Scope::Ingest) { Ok(()) } else { Err(missing(Scope::Ingest)) }
}

fn missing(scope: Scope) -> Detail {
    let detail = format!("Token missing required scope: {}", scope.as_str());
    Detail::new(StatusCode::FORBIDDEN, detail)
}
