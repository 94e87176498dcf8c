//! What an engine can be told: how long things are kept, how much is taken, and what holds when something is away.

use reveille_core::id::TenantId;
use reveille_core::policy::FailMode;
use reveille_core::presence::Ttls;
use reveille_core::rate::Rate;
use reveille_core::trace::Ratio;
use reveille_roster::RoleGrant;
use reveille_wire::key::SigningKey;
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Settings {
    /// Whose jobs come in through a door that asks for no credential.
    pub default_tenant: TenantId,
    /// How long contexts and results are kept.
    pub blob_ttl_ms: i64,
    /// How long ended jobs are kept.
    pub keep_ended_ms: i64,
    /// How long the audit trail is kept.
    pub keep_audit_ms: i64,
    /// How long a person may take to decide about a job; for ever unless told.
    pub approval_ms: Option<i64>,
    /// Live jobs at which new ones are turned away.
    pub live_jobs_max: usize,
    /// How long each contract's members may be silent.
    pub ttls: Ttls,
    /// Whether a start takes the workers over from the last snapshot.
    pub warm_start: bool,
    /// How often the worker snapshot is written.
    pub snapshot_every: Duration,
    /// How long agents that went offline are remembered.
    pub keep_offline_ms: i64,
    /// Who callers without a key are, where that is allowed at all.
    pub open_tenant: Option<TenantId>,
    /// Whether a workspace that was set up may register for the first time with nothing but its id.
    pub open_registration: bool,
    /// The names by which they may reach us, beside `localhost` and addresses.
    pub open_hosts: Vec<String>,
    /// What the groups of people are worth.
    pub role_grants: Vec<RoleGrant>,
    /// Mixed into every session token: whoever has the database cannot make one.
    pub session_secret: SessionSecret,
    /// What the audit trail's checkpoints are signed with: whoever has the database cannot sign one.
    pub signing_seed: SigningSeed,
    /// Whether workers' packets must be signed.
    pub signatures: SignatureMode,
    /// What packets to workers are signed with, where that is asked for.
    pub packet_key: PacketKey,
    /// What this server calls itself among replicas.
    pub replica: String,
    pub output: OutputSettings,
    /// What becomes of jobs while the safety kernel cannot be asked; unless told, the policy file says.
    pub policy_fail_mode: Option<FailMode>,
    /// Which part of the traces that begin here is recorded.
    pub trace_ratio: Ratio,
    pub limits: LimitSettings,
}

/// Bytes that only this server, and those beside it, know. Never shown.
#[derive(Clone, Default)]
pub struct SessionSecret(pub [u8; 32]);

impl std::fmt::Debug for SessionSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SessionSecret")
    }
}

/// The private half of an Ed25519 key. Never shown.
#[derive(Clone, Default)]
pub struct SigningSeed(pub [u8; 32]);

impl std::fmt::Debug for SigningSeed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SigningSeed")
    }
}

/// What becomes of a worker's packet that is not proven to be the worker's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SignatureMode {
    /// Nobody looks, and nothing is signed.
    #[default]
    Off,
    /// It is taken, counted and logged.
    Warn,
    /// It is refused.
    Require,
}

impl SignatureMode {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Warn => "warn",
            Self::Require => "require",
        }
    }
}

/// The P-256 key of the servers. Never shown.
#[derive(Clone, Default)]
pub struct PacketKey(pub Option<SigningKey>);

impl std::fmt::Debug for PacketKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PacketKey")
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            default_tenant: TenantId::known("default"),
            blob_ttl_ms: 24 * 3600 * 1000,
            keep_ended_ms: 7 * 24 * 3600 * 1000,
            keep_audit_ms: 90 * 24 * 3600 * 1000,
            approval_ms: None,
            live_jobs_max: 1_000_000,
            ttls: Ttls::default(),
            warm_start: true,
            snapshot_every: Duration::from_secs(5),
            keep_offline_ms: 7 * 24 * 3600 * 1000,
            open_tenant: None,
            open_registration: false,
            open_hosts: Vec::new(),
            role_grants: Vec::new(),
            session_secret: SessionSecret::default(),
            signing_seed: SigningSeed::default(),
            signatures: SignatureMode::Off,
            packet_key: PacketKey::default(),
            replica: "reveille".to_owned(),
            output: OutputSettings::default(),
            policy_fail_mode: None,
            trace_ratio: Ratio::ALL,
            limits: LimitSettings::default(),
        }
    }
}

/// What is said here counts more than what the policy file says.
#[derive(Debug, Clone, Copy, Default)]
pub struct OutputSettings {
    pub enabled: Option<bool>,
    pub fail_mode: Option<FailMode>,
    pub hold: Option<bool>,
}

/// What one tenant, one key, or one address may ask of the server.
#[derive(Debug, Clone, Copy)]
pub struct LimitSettings {
    /// Live jobs of a tenant at which its new ones are turned away, unless policy says otherwise.
    pub queued_per_tenant: usize,
    /// Agents and credentialed CAP workers that a tenant may have.
    pub members_per_tenant: usize,
    /// Workspaces that a tenant may have.
    pub workspaces_per_tenant: usize,
    /// Bytes of inputs and results that a tenant may have stored.
    pub blob_bytes_per_tenant: u64,
    /// Streams and sockets of events that a tenant may have open.
    pub subscribers_per_tenant: usize,
    /// Jobs of a tenant that may wait for a person.
    pub approvals_per_tenant: u32,
    /// Runs of workflows that a tenant may have under way at once.
    pub runs_per_tenant: u32,
    /// Workflows that a tenant may have.
    pub workflows_per_tenant: u32,
    /// How often a key may call over HTTP; as often as it likes unless told.
    pub calls: Option<Rate>,
    /// How often an address may call without a valid key.
    pub unauthenticated: Option<Rate>,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            queued_per_tenant: 100_000,
            members_per_tenant: 100_000,
            workspaces_per_tenant: 10_000,
            blob_bytes_per_tenant: 16 * 1024 * 1024 * 1024,
            subscribers_per_tenant: 1000,
            approvals_per_tenant: 10_000,
            runs_per_tenant: 1000,
            workflows_per_tenant: 1000,
            calls: None,
            unauthenticated: Some(Rate::new(50, 500)),
        }
    }
}
