//! Keys, without their secrets.

use super::text::parse_rfc3339;
use crate::ApiError;
use reveille_api_types::key::{CreateKey, Key};
use reveille_core::id::TenantId;
use reveille_core::time::Millis;
use reveille_engine::NewKey;
use reveille_roster::{KeyRecord, Scope};

const NAME_LEN_MAX: usize = 128;

pub fn new_key(body: CreateKey, own_tenant: &TenantId, by: &str) -> Result<NewKey, ApiError> {
    if body.name.is_empty() || body.name.len() > NAME_LEN_MAX {
        return Err(ApiError::field("name", format!("must have 1 to {NAME_LEN_MAX} bytes")));
    }
    let scopes = body.scopes.iter().map(|word| {
        Scope::parse(word).ok_or_else(|| {
            ApiError::field("scopes", format!("{word:?} is none of ingest, read, write, admin"))
        })
    });
    let scopes = scopes.collect::<Result<Vec<_>, _>>()?;
    Ok(NewKey {
        name: body.name,
        tenant: body.tenant.as_deref().map_or_else(|| Ok(own_tenant.clone()), TenantId::parse)?,
        scopes: if scopes.is_empty() { vec![Scope::Read, Scope::Write] } else { scopes },
        expires_at: body.expires_at.as_deref().map(|text| parse_rfc3339("expiresAt", text)).transpose()?,
        created_by: by.to_owned(),
        issued_by: None,
        project_ids: None,
    })
}

pub fn key(key: &KeyRecord) -> Key {
    Key {
        id: key.id.to_string(),
        name: key.name.clone(),
        tenant: key.tenant.to_string(),
        scopes: key.scopes.iter().map(|scope| scope.as_str().to_owned()).collect(),
        created_at: key.created_at.rfc3339(),
        expires_at: key.expires_at.map(Millis::rfc3339),
        revoked_at: key.revoked_at.map(Millis::rfc3339),
    }
}
