//! Keys over HTTP. The secret appears only in [`CreatedKey`].

use super::text::parse_rfc3339;
use crate::ApiError;
use reveille_core::id::TenantId;
use reveille_core::time::Millis;
use reveille_engine::NewKey;
use reveille_roster::{KeyRecord, Scope};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

const NAME_LEN_MAX: usize = 128;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateKey {
    pub name: String,
    /// Of ingest, read, write, admin; read and write unless told.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// Whose key it is; the caller's tenant unless told.
    pub tenant: Option<String>,
    #[serde(rename = "expiresAt")]
    pub expires_at: Option<String>,
}

impl CreateKey {
    pub fn understood(self, own_tenant: &TenantId, by: &str) -> Result<NewKey, ApiError> {
        if self.name.is_empty() || self.name.len() > NAME_LEN_MAX {
            return Err(ApiError::field("name", format!("must have 1 to {NAME_LEN_MAX} bytes")));
        }
        let scopes = self.scopes.iter().map(|word| {
            Scope::parse(word).ok_or_else(|| {
                ApiError::field("scopes", format!("{word:?} is none of ingest, read, write, admin"))
            })
        });
        let scopes = scopes.collect::<Result<Vec<_>, _>>()?;
        Ok(NewKey {
            name: self.name,
            tenant: self.tenant.as_deref().map_or_else(|| Ok(own_tenant.clone()), TenantId::parse)?,
            scopes: if scopes.is_empty() { vec![Scope::Read, Scope::Write] } else { scopes },
            expires_at: self
                .expires_at
                .as_deref()
                .map(|text| parse_rfc3339("expiresAt", text))
                .transpose()?,
            created_by: by.to_owned(),
            issued_by: None,
            project_ids: None,
        })
    }
}

#[derive(Serialize, ToSchema)]
pub struct Key {
    pub id: String,
    pub name: String,
    pub tenant: String,
    pub scopes: Vec<String>,
    #[serde(rename = "createdAt")]
    pub created_at: String,
    #[serde(rename = "expiresAt")]
    pub expires_at: Option<String>,
    #[serde(rename = "revokedAt")]
    pub revoked_at: Option<String>,
}

impl Key {
    pub fn of(key: &KeyRecord) -> Self {
        Self {
            id: key.id.to_string(),
            name: key.name.clone(),
            tenant: key.tenant.to_string(),
            scopes: key.scopes.iter().map(|scope| scope.as_str().to_owned()).collect(),
            created_at: key.created_at.rfc3339(),
            expires_at: key.expires_at.map(Millis::rfc3339),
            revoked_at: key.revoked_at.map(Millis::rfc3339),
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct CreatedKey {
    pub key: Key,
    /// Shown here and never again.
    pub secret: String,
}

#[derive(Serialize, ToSchema)]
pub struct KeyList {
    pub items: Vec<Key>,
}
