//! Keys, without their secrets.

use super::text::parse_rfc3339;
use crate::ApiError;
use reveille_api_types::key::{
    self as shape, CreateKey, Key, RegisterWorkerKey, RotatedKey, RotatedWorkerKey,
};
use reveille_core::fleet::{ServedTenants, WorkerGrant};
use reveille_core::id::{ID_LEN_MAX, PoolId, TenantId, WorkerId};
use reveille_core::time::Millis;
use reveille_engine::{NewKey, NewPublicKey, ROTATION_OVERLAP_MS, Rotation};
use reveille_roster::{KeyRecord, Scope};
use reveille_wire::key::{VerifyingKey, verifying_key};

const NAME_LEN_MAX: usize = 128;

pub fn new_key(body: CreateKey, own_tenant: &TenantId, by: &str) -> Result<NewKey, ApiError> {
    if body.name.is_empty() || body.name.len() > NAME_LEN_MAX {
        return Err(ApiError::field("name", format!("must have 1 to {NAME_LEN_MAX} bytes")));
    }
    let scopes = body.scopes.iter().map(|word| {
        Scope::parse(word)
            .ok_or_else(|| ApiError::field("scopes", format!("{word:?} is none of {}", Scope::words())))
    });
    let scopes = scopes.collect::<Result<Vec<_>, _>>()?;
    let tenant = body.tenant.as_deref().map_or_else(|| Ok(own_tenant.clone()), TenantId::parse)?;
    let is_worker = scopes.contains(&Scope::Worker);
    if body.worker.is_some() && !is_worker {
        return Err(ApiError::field("worker", "is for keys with the scope worker".to_owned()));
    }
    Ok(NewKey {
        name: body.name,
        worker: is_worker.then(|| grant(body.worker.unwrap_or_default(), &tenant)).transpose()?,
        tenant,
        scopes: if scopes.is_empty() { vec![Scope::Read, Scope::Write] } else { scopes },
        expires_at: body.expires_at.as_deref().map(|text| parse_rfc3339("expiresAt", text)).transpose()?,
        created_by: by.to_owned(),
        issued_by: None,
        project_ids: None,
    })
}

/// A worker's public key is a key of its own tenant with the scope `worker`.
pub fn new_worker_key(
    body: RegisterWorkerKey,
    own_tenant: &TenantId,
    by: &str,
) -> Result<(NewKey, NewPublicKey), ApiError> {
    let worker = WorkerId::parse(&body.worker)?;
    let public = NewPublicKey {
        agent: body.agent.map(|agent| identity("agent", agent)).transpose()?,
        proof_key_id: body.proof_key_id.map(|id| identity("proofKeyId", id)).transpose()?,
        key: public_key(&body.public_key)?,
        worker,
    };
    let new = CreateKey {
        name: body.worker,
        scopes: vec![Scope::Worker.as_str().to_owned()],
        tenant: body.tenant,
        expires_at: body.expires_at,
        worker: body.grant,
    };
    Ok((new_key(new, own_tenant, by)?, public))
}

pub fn public_key(pem: &str) -> Result<VerifyingKey, ApiError> {
    verifying_key(pem).map_err(|error| ApiError::field("publicKey", error))
}

/// As the stock client takes them: printable, and not long.
fn identity(field: &str, text: String) -> Result<String, ApiError> {
    if text.is_empty() || text.len() > ID_LEN_MAX || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(ApiError::field(field, format!("must be 1 to {ID_LEN_MAX} printable ASCII characters")));
    }
    Ok(text)
}

/// What was asked for, or an hour. What is far too long stays so.
pub fn overlap_ms(overlap_sec: Option<u64>) -> i64 {
    let ms = |seconds: u64| i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1000);
    overlap_sec.map_or(ROTATION_OVERLAP_MS, ms)
}

pub fn rotated_worker_key(rotation: &Rotation) -> RotatedWorkerKey {
    RotatedWorkerKey { key: key(&rotation.key), old_expires_at: rotation.old_expires_at.rfc3339() }
}

pub fn rotated_key((rotation, secret): (Rotation, String)) -> RotatedKey {
    RotatedKey { key: key(&rotation.key), secret, old_expires_at: rotation.old_expires_at.rfc3339() }
}

/// A grant from outside. One that names no tenants serves the tenant that it belongs to.
pub fn grant(grant: shape::WorkerGrant, own_tenant: &TenantId) -> Result<WorkerGrant, ApiError> {
    let tenants = match &grant.serves[..] {
        [] => ServedTenants::only(own_tenant),
        names if names.iter().any(|name| name == "*") => ServedTenants::Everyone,
        names => {
            ServedTenants::Only(names.iter().map(|name| TenantId::parse(name)).collect::<Result<_, _>>()?)
        }
    };
    let pools = grant.pools.iter().map(|name| PoolId::parse(name)).collect::<Result<_, _>>()?;
    let grant = WorkerGrant { topics: grant.topics.into_iter().collect(), pools, tenants };
    grant.check().map_err(|problem| ApiError::field("worker", problem.to_string()))?;
    Ok(grant)
}

pub fn worker_grant(grant: &WorkerGrant) -> shape::WorkerGrant {
    shape::WorkerGrant {
        topics: grant.topics.iter().cloned().collect(),
        pools: grant.pools.iter().map(ToString::to_string).collect(),
        serves: match &grant.tenants {
            ServedTenants::Everyone => vec!["*".to_owned()],
            ServedTenants::Only(tenants) => tenants.iter().map(ToString::to_string).collect(),
        },
    }
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
        last_used_at: key.last_used_at.map(Millis::rfc3339),
        replaces: key.replaces.as_ref().map(ToString::to_string),
        replaced_by: key.replaced_by.as_ref().map(ToString::to_string),
        worker: key.worker.as_ref().map(worker_grant),
        public_key: key.public_key.as_ref().map(|public| shape::PublicKey {
            worker: public.worker.to_string(),
            agent: public.agent.clone(),
            proof_key_id: public.proof_key_id.clone(),
            pem: public.pem.clone(),
        }),
    }
}
