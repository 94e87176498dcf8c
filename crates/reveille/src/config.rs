//! Settings: `reveille.toml`, then `REVEILLE_SECTION_KEY`, then flags; each overrides the one before.
//!
//! Unknown keys are errors, because a setting that is misspelt is a setting that is not in force.

mod audit;
mod engines;
mod fleet;
mod limits;
mod oidc;
mod safety;
mod tracing;
mod variables;

pub use audit::AuditSection;
pub use engines::{EngineOptions, NatsSection, PostgresSection, RedisSection};
pub use fleet::{FleetSection, Signatures};
pub use limits::LimitsSection;
pub use oidc::OidcSection;
pub use safety::SafetySection;
pub use tracing::TracingSection;

use crate::args::{DoctorArgs, EngineUrls, ServeArgs};
use anyhow::{Context, Result, bail};
use reveille_a2a::AddressRules;
use reveille_core::policy::FailMode;
use reveille_doors::tls::TlsFiles;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Whoever waits longer than this for a decision means `never`.
const APPROVAL_MAX: Duration = Duration::from_hours(365 * 24);

/// Every setting, with its default.
#[derive(Debug, Clone, PartialEq, Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub http: HttpSection,
    pub doors: DoorsSection,
    pub data: DataSection,
    pub redis: RedisSection,
    pub nats: NatsSection,
    pub postgres: PostgresSection,
    pub files: FilesSection,
    pub jobs: JobsSection,
    pub approvals: ApprovalsSection,
    pub fleet: FleetSection,
    pub auth: AuthSection,
    pub oidc: OidcSection,
    pub audit: AuditSection,
    pub a2a: A2aSection,
    pub output: OutputSection,
    pub safety: SafetySection,
    pub grpc: GrpcSection,
    pub tracing: TracingSection,
    pub limits: LimitsSection,
    pub log: LogSection,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GrpcSection {
    /// An address, or `off`.
    pub address: String,
    /// Connections at the same time.
    pub connections_max: usize,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuthSection {
    /// Whether callers without a key are let in over HTTP, as a tenant of their own.
    pub open: bool,
    /// Who they are then.
    pub open_tenant: String,
    /// Whether a Molecule workspace that was set up may register for the first time with nothing but its id.
    pub open_registration: bool,
    /// Names by which they may reach the server, beside `localhost` and addresses.
    #[serde(deserialize_with = "one_or_many")]
    pub open_hosts: Vec<String>,
    /// A file with a secret that sessions of browsers rest on; servers that share their engines need the same one.
    pub session_secret_file: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
pub struct A2aSection {
    /// Addresses that messages may go to beside public ones: CIDRs, addresses, `loopback`, `private`.
    #[serde(deserialize_with = "one_or_many")]
    pub allow: Vec<String>,
}

/// What is left out here is as the policy file says under `output_policy`.
#[derive(Debug, Clone, PartialEq, Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
pub struct OutputSection {
    /// Whether results are looked at.
    pub enabled: Option<bool>,
    /// What happens to a result that cannot be looked at: `open` lets it pass, `closed` holds it back.
    pub fail_mode: Option<FailMode>,
    /// Whether nobody reads a result before its content was looked at.
    pub hold: Option<bool>,
}

/// A list, or one string with commas, as variables have it.
fn one_or_many<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum ListOrText {
        Many(Vec<String>),
        One(String),
    }
    Ok(match ListOrText::deserialize(from)? {
        ListOrText::Many(many) => many,
        ListOrText::One(one) => {
            one.split(',').map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
        }
    })
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HttpSection {
    pub address: String,
    /// Where health, readiness and metrics are served as well, on a thread of their own: an address, or `off`.
    pub admin: String,
    /// Connections at the same time.
    pub connections_max: usize,
    /// Of one address; this machine's own and those of trusted proxies are not counted.
    pub connections_per_address: usize,
    /// Proxies whose `X-Forwarded-For` is believed: CIDRs, addresses, `loopback`, `private`.
    #[serde(deserialize_with = "one_or_many")]
    pub trusted_proxies: Vec<String>,
    /// PEM files, both or neither. With them HTTP is HTTPS.
    pub tls_cert: Option<PathBuf>,
    pub tls_key: Option<PathBuf>,
    /// Authorities, in PEM form, of which every client must show a certificate.
    pub tls_client_ca: Option<PathBuf>,
}

impl HttpSection {
    pub fn tls_files(&self) -> Option<TlsFiles> {
        let (cert, key) = (self.tls_cert.clone()?, self.tls_key.clone()?);
        Some(TlsFiles { cert, key, client_ca: self.tls_client_ca.clone() })
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DoorsSection {
    /// An address, `unix:` and a path, or `off`.
    pub nats: String,
    pub resp: String,
    /// Whether clients must show a key. Unset: only when a door listens beyond this machine.
    pub require_key: Option<bool>,
    /// Whose jobs come in without a key.
    pub tenant: String,
    /// PEM files, both or neither. With them the doors speak TLS only.
    pub tls_cert: Option<PathBuf>,
    pub tls_key: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DataSection {
    pub folder: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
pub struct FilesSection {
    pub pools: Option<PathBuf>,
    pub policy: Option<PathBuf>,
    pub timeouts: Option<PathBuf>,
    pub scanners: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JobsSection {
    /// Days that ended jobs are kept.
    pub keep_days: u32,
    /// Hours that contexts and results are kept.
    pub blob_hours: u32,
    /// Days that the audit trail is kept.
    pub audit_days: u32,
    /// Live jobs at which new ones are turned away.
    pub live_max: usize,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ApprovalsSection {
    /// How long a person may take to decide, such as `30m` or `24h`, or `never`.
    #[serde(deserialize_with = "number_or_text")]
    pub expire_after: String,
}

/// A time in seconds may be written as a number, as variables have it.
fn number_or_text<'de, D: serde::Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum NumberOrText {
        Number(u64),
        Text(String),
    }
    Ok(match NumberOrText::deserialize(from)? {
        NumberOrText::Number(number) => number.to_string(),
        NumberOrText::Text(text) => text,
    })
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogSection {
    /// What to log, such as `info` or `reveille_engine=debug`.
    pub level: String,
    /// One JSON object a line.
    pub json: bool,
}

impl Default for HttpSection {
    fn default() -> Self {
        Self {
            address: "127.0.0.1:8080".to_owned(),
            admin: "off".to_owned(),
            connections_max: 10_000,
            connections_per_address: 1_000,
            trusted_proxies: Vec::new(),
            tls_cert: None,
            tls_key: None,
            tls_client_ca: None,
        }
    }
}

impl Default for DoorsSection {
    fn default() -> Self {
        let (nats, resp) = ("127.0.0.1:4222".to_owned(), "127.0.0.1:6379".to_owned());
        let tenant = "default".to_owned();
        Self { nats, resp, require_key: None, tenant, tls_cert: None, tls_key: None }
    }
}

impl Default for GrpcSection {
    fn default() -> Self {
        Self { address: "off".to_owned(), connections_max: 1_000 }
    }
}

impl Default for DataSection {
    fn default() -> Self {
        Self { folder: PathBuf::from("./reveille-data") }
    }
}

impl Default for JobsSection {
    fn default() -> Self {
        Self { keep_days: 7, blob_hours: 24, audit_days: 90, live_max: 1_000_000 }
    }
}

impl Default for ApprovalsSection {
    fn default() -> Self {
        Self { expire_after: "never".to_owned() }
    }
}

impl Default for AuthSection {
    fn default() -> Self {
        Self {
            open: false,
            open_tenant: "operator".to_owned(),
            open_registration: false,
            open_hosts: Vec::new(),
            session_secret_file: None,
        }
    }
}

impl Default for LogSection {
    fn default() -> Self {
        Self { level: "info,async_nats=warn".to_owned(), json: false }
    }
}

impl Config {
    /// What holds for this start.
    pub fn load(args: &ServeArgs) -> Result<Self> {
        let mut config = Self::from_file(args.config.as_deref())?;
        config.apply(args);
        Ok(config)
    }

    /// The same, for whoever only looks at what servers share.
    pub fn for_engines(args: &DoctorArgs) -> Result<Self> {
        let mut config = Self::from_file(args.config.as_deref())?;
        config.use_engines(&args.engines);
        Ok(config)
    }

    /// The file that is named, or the usual one if it is there, with the variables over it.
    fn from_file(path: Option<&Path>) -> Result<Self> {
        let default = Path::new("reveille.toml");
        let text = match path {
            Some(path) => read(path)?,
            None if default.exists() => read(default)?,
            None => String::new(),
        };
        Self::parse(&text, &path.unwrap_or(default).display().to_string(), variables::all())
    }

    fn use_engines(&mut self, flags: &EngineUrls) {
        let engines = [
            (&mut self.redis.url, &flags.redis),
            (&mut self.nats.url, &flags.nats),
            (&mut self.postgres.url, &flags.postgres),
        ];
        for (slot, flag) in engines {
            if flag.is_some() {
                slot.clone_from(flag);
            }
        }
    }

    fn parse(text: &str, name: &str, vars: impl Iterator<Item = (String, String)>) -> Result<Self> {
        let mut table: toml::Table = text.parse().with_context(|| format!("{name} is not TOML"))?;
        variables::overlay(&mut table, vars, name)?;
        let config = Self::deserialize(table)
            .with_context(|| format!("{name}, with the REVEILLE_… variables over it"))?;
        config.check().with_context(|| name.to_owned())?;
        Ok(config)
    }

    fn check(&self) -> Result<()> {
        let positive = [
            ("http.connections_max", self.http.connections_max),
            ("http.connections_per_address", self.http.connections_per_address),
            ("grpc.connections_max", self.grpc.connections_max),
            ("jobs.keep_days", self.jobs.keep_days as usize),
            ("jobs.blob_hours", self.jobs.blob_hours as usize),
            ("jobs.audit_days", self.jobs.audit_days as usize),
            ("jobs.live_max", self.jobs.live_max),
            ("limits.queued_per_tenant", self.limits.queued_per_tenant),
            ("limits.members_per_tenant", self.limits.members_per_tenant),
            ("limits.workspaces_per_tenant", self.limits.workspaces_per_tenant),
            ("limits.blob_bytes_per_tenant", self.limits.blob_bytes_per_tenant as usize),
            ("limits.subscribers_per_tenant", self.limits.subscribers_per_tenant),
            ("limits.approvals_per_tenant", self.limits.approvals_per_tenant as usize),
            ("limits.runs_per_tenant", self.limits.runs_per_tenant as usize),
            ("limits.workflows_per_tenant", self.limits.workflows_per_tenant as usize),
            ("fleet.cap_ttl_seconds", self.fleet.cap_ttl_seconds as usize),
            ("fleet.voicegateway_ttl_seconds", self.fleet.voicegateway_ttl_seconds as usize),
            ("fleet.molecule_ttl_seconds", self.fleet.molecule_ttl_seconds as usize),
            ("fleet.keep_offline_days", self.fleet.keep_offline_days as usize),
        ];
        for (key, value) in positive {
            anyhow::ensure!(value > 0, "{key} = 0: it must be at least 1");
        }
        anyhow::ensure!(
            self.limits.requests_burst == 0 || self.limits.requests_per_second > 0,
            "limits.requests_burst = {}: it needs limits.requests_per_second",
            self.limits.requests_burst
        );
        self.fleet.snapshot_every().context("fleet.snapshot_interval")?;
        self.safety.target()?;
        self.approvals.expire_after().context("approvals.expire_after")?;
        AddressRules::parse(&self.a2a.allow).context("a2a.allow")?;
        AddressRules::parse(&self.http.trusted_proxies).context("http.trusted_proxies")?;
        self.tracing.check()?;
        self.oidc.check()?;
        let (doors, http) = (&self.doors, &self.http);
        for (section, cert, key) in
            [("doors", &doors.tls_cert, &doors.tls_key), ("http", &http.tls_cert, &http.tls_key)]
        {
            match (cert, key) {
                (Some(_), None) => bail!("{section}.tls_key is missing: {section}.tls_cert needs it"),
                (None, Some(_)) => bail!("{section}.tls_cert is missing: {section}.tls_key needs it"),
                _ => {}
            }
        }
        anyhow::ensure!(
            http.tls_client_ca.is_none() || http.tls_cert.is_some(),
            "http.tls_client_ca: it needs http.tls_cert and http.tls_key"
        );
        Ok(())
    }

    fn apply(&mut self, args: &ServeArgs) {
        let set = |slot: &mut String, flag: &Option<String>| {
            if let Some(value) = flag {
                slot.clone_from(value);
            }
        };
        set(&mut self.http.address, &args.http);
        set(&mut self.http.admin, &args.admin);
        set(&mut self.grpc.address, &args.grpc);
        set(&mut self.doors.nats, &args.nats_door);
        set(&mut self.doors.resp, &args.resp_door);
        self.use_engines(&args.engines);
        if let Some(folder) = &args.data {
            self.data.folder.clone_from(folder);
        }
        // The reference's variables name the same three files.
        let from_env = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
        let files = &mut self.files;
        files.pools =
            args.pools.clone().or_else(|| files.pools.take()).or_else(|| from_env("POOL_CONFIG_PATH"));
        files.policy =
            args.policy.clone().or_else(|| files.policy.take()).or_else(|| from_env("SAFETY_POLICY_PATH"));
        files.timeouts = args
            .timeouts
            .clone()
            .or_else(|| files.timeouts.take())
            .or_else(|| from_env("TIMEOUT_CONFIG_PATH"));
        files.scanners = args.scanners.clone().or_else(|| files.scanners.take());
    }
}

impl ApprovalsSection {
    /// Nothing means never.
    pub fn expire_after(&self) -> Result<Option<Duration>> {
        if self.expire_after == "never" {
            return Ok(None);
        }
        let after = duration(&self.expire_after)?;
        let in_range = !after.is_zero() && after <= APPROVAL_MAX;
        anyhow::ensure!(
            in_range,
            "{:?} must be more than nothing and at most a year, or never",
            self.expire_after
        );
        Ok(Some(after))
    }
}

/// A length of time: a number of seconds, or one with `ms`, `s`, `m`, `h` or `d`.
pub fn duration(text: &str) -> Result<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let wrong = || format!("{text:?} is not a time such as 500ms, 5s, 30m, 24h or 7d");
    let number: u64 = number.parse().with_context(wrong)?;
    let unit_ms = match unit {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => bail!(wrong()),
    };
    number.checked_mul(unit_ms).map(Duration::from_millis).with_context(wrong)
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))
}

#[cfg(test)]
mod tests;
