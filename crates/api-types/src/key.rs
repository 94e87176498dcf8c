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
    /// For a key that has no secret: what its worker signs with.
    #[serde(rename = "publicKey", default, skip_serializing_if = "Option::is_none")]
    pub public_key: Option<PublicKey>,
}

/// What a worker signs with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PublicKey {
    /// The worker's id.
    pub worker: String,
    /// Its id as an agent in the trust handshake.
    pub agent: String,
    /// What the worker calls the key.
    #[serde(rename = "proofKeyId")]
    pub proof_key_id: String,
    /// P-256, as PEM.
    pub pem: String,
}

/// Registers the public half of a key pair. The worker keeps the private half, and signs with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RegisterWorkerKey {
    /// The worker's id, which is the `sender_id` of its packets.
    pub worker: String,
    /// P-256, as PEM: `BEGIN PUBLIC KEY`.
    #[serde(rename = "publicKey")]
    pub public_key: String,
    /// Its id as an agent in the trust handshake (`expected_agent_id`); the worker's id unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// What the worker calls the key (`proof_key_id`); the key's id here unless told.
    #[serde(rename = "proofKeyId", skip_serializing_if = "Option::is_none")]
    pub proof_key_id: Option<String>,
    /// Whose worker it is; the caller's tenant unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    #[serde(rename = "expiresAt", skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// What it may serve; every topic and pool of its own tenant unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant: Option<WorkerGrant>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RotateWorkerKey {
    /// The public key that takes the place of the old one.
    #[serde(rename = "publicKey")]
    pub public_key: String,
    /// For how long the old one goes on: an hour unless told, at most 7 days. With 0 it is revoked at once.
    #[serde(rename = "overlapSec", skip_serializing_if = "Option::is_none")]
    pub overlap_sec: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RotatedWorkerKey {
    pub key: Key,
    /// When the old key ends.
    #[serde(rename = "oldExpiresAt")]
    pub old_expires_at: String,
}

/// What packets to workers are signed with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ServerKey {
    /// What becomes of packets of workers that are not signed by them: `warn` or `require`.
    pub signatures: String,
    /// The `sender_id` of our packets (`expected_scheduler_id`).
    pub sender: String,
    /// What the key is called in the trust handshake.
    #[serde(rename = "keyId")]
    pub key_id: String,
    /// P-256, as PEM.
    #[serde(rename = "publicKey")]
    pub public_key: String,
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
