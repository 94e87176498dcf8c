//! Who is calling: the key in `X-API-Key` or `Authorization: Bearer`, and what it may do.

use crate::ApiError;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use reveille_core::id::TenantId;
use reveille_engine::{Caller, Engine};
use reveille_store::Scope;

/// A caller whose key has been checked.
pub struct Auth {
    caller: Caller,
    /// The tenant it acts for: its own, or for an operator the one in `X-Tenant-ID`.
    pub tenant: TenantId,
}

impl FromRequestParts<Engine> for Auth {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, engine: &Engine) -> Result<Self, ApiError> {
        let secret = secret(&parts.headers).ok_or_else(|| {
            unauthorized("a key is needed: send it as X-API-Key or as Authorization: Bearer")
        })?;
        let caller = engine
            .authenticate(secret)
            .ok_or_else(|| unauthorized("the key is wrong, expired or revoked"))?;
        let asked = parts
            .headers
            .get("x-tenant-id")
            .and_then(|value| value.to_str().ok())
            .filter(|value| !value.is_empty());
        let tenant = match asked {
            None => caller.tenant.clone(),
            Some(name) => {
                let tenant = TenantId::parse(name)?;
                if !caller.sees(&tenant) {
                    return Err(ApiError::forbidden("X-Tenant-ID is not this key's tenant"));
                }
                tenant
            }
        };
        Ok(Self { caller, tenant })
    }
}

impl Auth {
    pub fn needs(&self, scope: Scope) -> Result<&Self, ApiError> {
        if self.caller.may(scope) {
            return Ok(self);
        }
        let message = format!("this key lacks the scope {}", scope.as_str());
        Err(ApiError::forbidden(message).with("reason", "key_scope_insufficient"))
    }

    pub fn sees(&self, tenant: &TenantId) -> bool {
        self.caller.sees(tenant)
    }

    pub fn is_operator(&self) -> bool {
        self.caller.may(Scope::Admin)
    }

    pub fn name(&self) -> &str {
        &self.caller.name
    }
}

fn secret(headers: &HeaderMap) -> Option<&str> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    text("x-api-key")
        .or_else(|| text("authorization")?.strip_prefix("Bearer "))
        .map(str::trim)
        .filter(|secret| !secret.is_empty())
}

fn unauthorized(message: &str) -> ApiError {
    ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
}
