//! Keys over HTTP. The secret appears only in [`CreatedKey`] and [`RotatedKey`].

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateKey {
    pub name: String,
    /// Of ingest, read, submit, approve, release, operate, write, worker, admin; read and write unless told.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// Whose key it is; the caller's tenant unless told.
    pub tenant: Option<String>,
    #[serde(rename = "expiresAt")]
    pub expires_at: Option<String>,
    /// What it may serve, if `worker` is one of its scopes; every topic and pool of its own tenant unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerGrant>,
}

/// What a worker may serve.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct WorkerGrant {
    /// Topics, or patterns such as `job.mail.*`; none means every topic.
    pub topics: Vec<String>,
    /// Pools that it may join; none means any.
    pub pools: Vec<String>,
    /// Tenants whose jobs it may be given; `*` is everyone. None means the tenant that it belongs to.
    pub serves: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
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
    /// To about a minute.
    #[serde(rename = "lastUsedAt", default)]
    pub last_used_at: Option<String>,
    /// The key whose place it has taken.
    #[serde(default)]
    pub replaces: Option<String>,
    /// The key that has taken its place.
    #[serde(rename = "replacedBy", default)]
    pub replaced_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerGrant>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RotateKey {
    /// For how long the old secret goes on: an hour unless told, at most 7 days. With 0 it is revoked at once.
    #[serde(rename = "overlapSec")]
    pub overlap_sec: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RotatedKey {
    pub key: Key,
    /// Shown here and never again.
    pub secret: String,
    /// When the old key ends.
    #[serde(rename = "oldExpiresAt")]
    pub old_expires_at: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CreatedKey {
    pub key: Key,
    /// Shown here and never again.
    pub secret: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct KeyList {
    pub items: Vec<Key>,
}
