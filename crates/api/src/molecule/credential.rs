//! Who is calling: a key of a tenant, a workspace with its token, or nobody.

use super::refusal::MoleculeRefusal;
use super::retired;
use crate::auth::{Auth, secret};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, header};
use reveille_core::id::{KeyId, TenantId, WorkspaceId};
use reveille_core::identity::Identity;
use reveille_core::presence::workspace::Workspace;
use reveille_engine::{Engine, Unidentified, WorkspaceAct, WorkspaceClaim};
use reveille_roster::Scope;
use std::sync::Arc;

/// What a browser, which cannot set headers on a socket, puts before its secret.
pub const PROTOCOL_PREFIX: &str = "bearer.";
const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");

pub struct Credential {
    kind: Kind,
    secret: Option<String>,
}

enum Kind {
    /// A key, or whoever comes without one where that is allowed.
    Key(Auth),
    Workspace(Arc<Workspace>),
    /// A secret that nobody has.
    Wrong,
    Nobody,
}

impl FromRequestParts<Engine> for Credential {
    type Rejection = MoleculeRefusal;

    async fn from_request_parts(parts: &mut Parts, engine: &Engine) -> Result<Self, MoleculeRefusal> {
        // A secret in the protocols of a socket counts as the header that it stands for.
        if secret(&parts.headers).is_none()
            && let Some(value) = offered(parts).and_then(|secret| HeaderValue::from_str(secret).ok())
        {
            parts.headers.insert(X_API_KEY, value);
        }
        let secret = secret(&parts.headers).map(str::to_owned);
        // One that came in the protocols was not seen before.
        if let Some(secret) = &secret {
            engine.access().learn_keys_of(secret).await;
        }
        let is_key = match &secret {
            Some(secret) => engine.access().identify(secret) != Err(Unidentified::Key),
            None => engine.access().anonymous().is_some(),
        };
        let kind = if is_key {
            Kind::Key(Auth::from_request_parts(parts, engine).await?)
        } else {
            match &secret {
                Some(secret) => {
                    engine.workspaces().workspace_of_token(secret).map_or(Kind::Wrong, Kind::Workspace)
                }
                None => Kind::Nobody,
            }
        };
        Ok(Self { kind, secret })
    }
}

fn offered(parts: &Parts) -> Option<&str> {
    let protocols = parts.headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
    let names = protocols.filter_map(|value| value.to_str().ok()).flat_map(|line| line.split(','));
    names.map(str::trim).find_map(|name| name.strip_prefix(PROTOCOL_PREFIX))
}

impl Credential {
    /// A key that may do this.
    pub fn key(&self, scope: Scope) -> Result<&Auth, MoleculeRefusal> {
        match &self.kind {
            Kind::Key(auth) => Ok(auth.needs(scope)?),
            Kind::Workspace(_) => {
                Err(MoleculeRefusal::forbidden("a workspace token may not do this; use a key"))
            }
            Kind::Wrong => Err(MoleculeRefusal::token_wrong()),
            Kind::Nobody => Err(MoleculeRefusal::token_missing()),
        }
    }

    /// The workspace whose token this is; nothing if it is a key that may do this.
    pub fn workspace_or_key(&self, scope: Scope) -> Result<Option<&Arc<Workspace>>, MoleculeRefusal> {
        match &self.kind {
            Kind::Workspace(own) => Ok(Some(own)),
            _ => self.key(scope).map(|_| None),
        }
    }

    /// Whose workspaces it may see.
    pub fn tenant(&self, scope: Scope) -> Result<&TenantId, MoleculeRefusal> {
        match &self.kind {
            Kind::Workspace(own) => Ok(&own.tenant),
            _ => Ok(&self.key(scope)?.tenant),
        }
    }

    /// A workspace that the caller may look at, retired or not.
    pub fn sees(&self, engine: &Engine, id: &WorkspaceId) -> Result<Arc<Workspace>, MoleculeRefusal> {
        let found = engine
            .workspaces()
            .workspace(self.tenant(Scope::Read)?, id)
            .ok_or_else(MoleculeRefusal::not_found)?;
        match &self.kind {
            Kind::Workspace(own) if !engine.workspaces().may_talk(own, &found) => {
                Err(MoleculeRefusal::forbidden("not authorized to reach this workspace"))
            }
            _ => Ok(found),
        }
    }

    /// A living workspace that the caller may speak for. A workspace speaks for itself only.
    pub fn speaks_for(
        &self,
        engine: &Engine,
        id: &WorkspaceId,
        scope: Scope,
    ) -> Result<Arc<Workspace>, MoleculeRefusal> {
        let found =
            engine.workspaces().workspace(self.tenant(scope)?, id).ok_or_else(MoleculeRefusal::not_found)?;
        match &self.kind {
            Kind::Workspace(own) if own.id != found.id => Err(MoleculeRefusal::token_wrong()),
            _ => Ok(engine.workspaces().living(&found.tenant, id)?),
        }
    }

    /// The living workspace that the caller may speak for at the registry; nothing if there is no such workspace. A key
    /// needs `scope`. Whoever may speak for one that was retired is told where to go instead.
    pub fn acts_for(
        &self,
        engine: &Engine,
        id: &WorkspaceId,
        act: WorkspaceAct,
        scope: Scope,
    ) -> Result<Option<Arc<Workspace>>, MoleculeRefusal> {
        let Some(known) = engine.workspaces().any_workspace(id) else { return Ok(None) };
        engine.workspaces().admit(&known, &self.claim(scope)?, act)?;
        retired::spoken_to(engine, &known).map(Some)
    }

    /// What is shown for a workspace. Being nobody in particular, where that is allowed, is not a key.
    pub fn claim(&self, scope: Scope) -> Result<WorkspaceClaim, MoleculeRefusal> {
        Ok(match (&self.kind, &self.secret) {
            (Kind::Key(auth), Some(_)) => WorkspaceClaim::Key(auth.needs(scope)?.tenant.clone()),
            (Kind::Key(auth), None) => WorkspaceClaim::Open(auth.tenant.clone()),
            (_, Some(secret)) => WorkspaceClaim::Token(secret.clone()),
            (_, None) => WorkspaceClaim::Nothing,
        })
    }

    /// The key that was shown, or stands for whoever needs none; nothing for a workspace's own token.
    pub fn key_id(&self) -> Option<&KeyId> {
        match &self.kind {
            Kind::Key(auth) => Some(&auth.caller().key),
            Kind::Workspace(_) | Kind::Wrong | Kind::Nobody => None,
        }
    }

    /// Who it is, as far as the credential tells: a key, a workspace by its token, or nobody.
    pub fn identity(&self) -> Identity {
        match &self.kind {
            Kind::Key(auth) => (&**auth.caller()).into(),
            Kind::Workspace(own) => own.id.as_str().into(),
            Kind::Wrong | Kind::Nobody => Identity::default(),
        }
    }

    /// Whether this would still be let in: keys are revoked, and workspaces retired.
    pub fn still_holds(&self, engine: &Engine) -> bool {
        match (&self.kind, &self.secret) {
            (Kind::Key(_), Some(secret)) => engine.access().identify(secret).is_ok(),
            (Kind::Workspace(own), Some(secret)) => {
                engine.workspaces().workspace_of_token(secret).is_some_and(|workspace| workspace.id == own.id)
            }
            (Kind::Key(_), None) => true,
            _ => false,
        }
    }
}
