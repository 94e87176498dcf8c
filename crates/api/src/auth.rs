//! Who is calling: the key in `X-API-Key` or `Authorization: Bearer`, and what it may do.

use crate::ApiError;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use reveille_core::id::TenantId;
use reveille_engine::{Audience, Caller, Engine};
use reveille_roster::Scope;
use std::sync::Arc;

/// A caller whose key has been checked.
#[derive(Clone)]
pub struct Auth {
    caller: Arc<Caller>,
    /// The tenant it acts for: its own, or for an operator the one in `X-Tenant-ID`.
    pub tenant: TenantId,
    /// An operator that named no tenant.
    sees_everyone: bool,
}

impl FromRequestParts<Engine> for Auth {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, engine: &Engine) -> Result<Self, ApiError> {
        Self::of(&parts.headers, engine)
    }
}

impl Auth {
    /// Whoever sends these headers.
    pub fn of(headers: &HeaderMap, engine: &Engine) -> Result<Self, ApiError> {
        let caller = match secret(headers) {
            Some(secret) => engine
                .access()
                .authenticate(secret)
                .ok_or_else(|| unauthorized("the key is wrong, expired or revoked"))?,
            None => engine.access().anonymous().ok_or_else(|| {
                unauthorized("a key is needed: send it as X-API-Key or as Authorization: Bearer")
            })?,
        };
        let asked = headers
            .get("x-tenant-id")
            .and_then(|value| value.to_str().ok())
            .filter(|value| !value.is_empty());
        let asked = asked.map(TenantId::parse).transpose()?;
        Self::acting_for(caller, asked)
            .ok_or_else(|| ApiError::forbidden("X-Tenant-ID is not this key's tenant"))
    }

    /// A caller that is known, acting for its own tenant or for another that it may see.
    pub fn acting_for(caller: Arc<Caller>, asked: Option<TenantId>) -> Option<Self> {
        let sees_everyone = asked.is_none() && caller.may(Scope::Admin);
        let tenant = asked.unwrap_or_else(|| caller.tenant.clone());
        caller.sees(&tenant).then_some(Self { caller, tenant, sees_everyone })
    }

    pub fn needs(&self, scope: Scope) -> Result<&Self, ApiError> {
        self.needs_one_of(&[scope])
    }

    /// Any of these is enough.
    pub fn needs_one_of(&self, scopes: &[Scope]) -> Result<&Self, ApiError> {
        if scopes.iter().any(|scope| self.caller.may(*scope)) {
            return Ok(self);
        }
        let words: Vec<&str> = scopes.iter().map(|scope| scope.as_str()).collect();
        let message = format!("this key lacks the scope {}", words.join(" or "));
        Err(ApiError::forbidden(message).with("reason", "key_scope_insufficient"))
    }

    pub fn sees(&self, tenant: &TenantId) -> bool {
        self.caller.sees(tenant)
    }

    /// Whose members and events it gets: its tenant's, or everybody's for an operator that named none.
    pub fn audience(&self) -> Audience {
        if self.sees_everyone { Audience::Everyone } else { Audience::Tenant(self.tenant.clone()) }
    }

    /// The tenant that lists are of; nothing for those of everybody.
    pub fn list_of(&self) -> Option<TenantId> {
        (!self.sees_everyone).then(|| self.tenant.clone())
    }

    pub fn is_operator(&self) -> bool {
        self.caller.may(Scope::Admin)
    }

    pub fn caller(&self) -> &Arc<Caller> {
        &self.caller
    }

    pub fn name(&self) -> &str {
        &self.caller.name
    }
}

pub fn secret(headers: &HeaderMap) -> Option<&str> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    text("x-api-key")
        .or_else(|| {
            let (scheme, secret) = text("authorization")?.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(secret)
        })
        .map(str::trim)
        .filter(|secret| !secret.is_empty())
}

fn unauthorized(message: &str) -> ApiError {
    ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
}
