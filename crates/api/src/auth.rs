//! Who is calling: the key in `X-API-Key` or `Authorization: Bearer`, or a person with a token of the identity provider
//! there, and what they may do.

use crate::ApiError;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use reveille_core::id::TenantId;
use reveille_engine::{Audience, Caller, Engine, Unidentified};
use reveille_roster::Scope;
use std::sync::Arc;

/// A caller whose credential has been checked.
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
            Some(secret) => engine.access().identify(secret)?,
            None => engine.access().anonymous().ok_or_else(|| {
                unauthorized("a key is needed: send it as X-API-Key or as Authorization: Bearer")
            })?,
        };
        let asked = headers
            .get("x-tenant-id")
            .and_then(|value| value.to_str().ok())
            .filter(|value| !value.is_empty());
        let asked = asked.map(TenantId::parse).transpose()?;
        if asked.is_none() {
            check_named(&caller)?;
        }
        Self::acting_for(&caller, asked)
            .ok_or_else(|| ApiError::forbidden("X-Tenant-ID is not a tenant of this caller"))
    }

    /// A caller that is known, acting for its own tenant or for another that it may see.
    pub fn acting_for(caller: &Arc<Caller>, asked: Option<TenantId>) -> Option<Self> {
        let caller = caller.acting_for(asked.as_ref())?;
        let sees_everyone = asked.is_none() && caller.is_everywhere();
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
        Err(self.lacks(&words.join(" or ")))
    }

    /// The right to do something that concerns every tenant.
    pub fn needs_everywhere(&self, scope: Scope) -> Result<&Self, ApiError> {
        let may = self.caller.may_everywhere(scope);
        if may { Ok(self) } else { Err(self.lacks(&format!("{} in every tenant", scope.as_str()))) }
    }

    fn lacks(&self, scopes: &str) -> ApiError {
        let who = if self.caller.is_person() { "this person" } else { "this key" };
        let message = format!("{who} lacks the scope {scopes}");
        ApiError::forbidden(message).with("reason", "key_scope_insufficient")
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

/// Nobody guesses which of several tenants a person means.
pub fn check_named(caller: &Caller) -> Result<(), ApiError> {
    let Some(tenants) = caller.tenants_to_choose().filter(|tenants| tenants.len() > 1) else { return Ok(()) };
    let names: Vec<&str> = tenants.iter().map(|tenant| tenant.as_str()).collect();
    let words =
        format!("you have roles in several tenants: name one in X-Tenant-ID, of {}", names.join(", "));
    Err(ApiError::new(StatusCode::BAD_REQUEST, "tenant_required", words))
}

impl From<Unidentified> for ApiError {
    fn from(error: Unidentified) -> Self {
        match error {
            Unidentified::NoRole { .. } => Self::new(StatusCode::FORBIDDEN, "no_role", error.to_string()),
            Unidentified::Key | Unidentified::Token(_) => unauthorized(&error.to_string()),
        }
    }
}

fn unauthorized(message: &str) -> ApiError {
    ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
}
