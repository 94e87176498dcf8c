//! Redis, NATS and PostgreSQL, for those who run several servers. Passwords come from files or from the
//! environment, and are never shown.

use super::read;
use anyhow::{Context, Result, bail};
use reveille_bus::{Login, NatsOptions, NatsTls, Secret};
use reveille_roster::PostgresOptions;
use reveille_store::RedisOptions;
use serde::Deserialize;
use std::fmt;
use std::path::{Path, PathBuf};

#[derive(Clone, PartialEq, Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
pub struct RedisSection {
    /// `redis://host:port/database`, or `rediss://` for TLS.
    pub url: Option<String>,
    /// A file whose first line is the password.
    pub password_file: Option<PathBuf>,
    /// PEM files: who vouches for the server, and who we are.
    pub tls_ca: Option<PathBuf>,
    pub tls_cert: Option<PathBuf>,
    pub tls_key: Option<PathBuf>,
    /// Before every key of ours; on a cluster a hash tag such as `{rv}`.
    pub prefix: String,
}

#[derive(Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NatsSection {
    /// `nats://host:port`, or `tls://`; several with commas between them.
    pub url: Option<String>,
    /// A file as `nsc` writes it.
    pub creds_file: Option<PathBuf>,
    pub user: Option<String>,
    /// Files whose first line is the password of the user, a token, or the seed of an nkey.
    pub password_file: Option<PathBuf>,
    pub token_file: Option<PathBuf>,
    pub nkey_file: Option<PathBuf>,
    pub tls_ca: Option<PathBuf>,
    pub tls_cert: Option<PathBuf>,
    pub tls_key: Option<PathBuf>,
    /// Copies of each stream in a cluster of NATS servers.
    pub stream_replicas: usize,
    /// How large the stream of jobs and results may grow, which NATS sets aside.
    pub stream_bytes_max: i64,
}

#[derive(Clone, PartialEq, Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
pub struct PostgresSection {
    /// `postgres://user@host:port/database?sslmode=verify-full`.
    pub url: Option<String>,
    /// A file whose first line is the password.
    pub password_file: Option<PathBuf>,
}

/// Where the three of them are.
pub struct EngineOptions {
    pub redis: RedisOptions,
    pub nats: NatsOptions,
    pub postgres: PostgresOptions,
}

impl EngineOptions {
    /// Nothing if none of them is named; then everything is kept in the data folder.
    pub fn of(redis: &RedisSection, nats: &NatsSection, postgres: &PostgresSection) -> Result<Option<Self>> {
        let urls = [("redis", &redis.url), ("nats", &nats.url), ("postgres", &postgres.url)];
        let missing: Vec<&str> = urls
            .iter()
            .filter(|(_, url)| url.as_deref().is_none_or(str::is_empty))
            .map(|(name, _)| *name)
            .collect();
        if missing.len() == urls.len() {
            return Ok(None);
        }
        if !missing.is_empty() {
            bail!(
                "several servers need Redis, NATS and PostgreSQL, all three; missing: {}",
                missing.iter().map(|name| format!("{name}.url (--{name})")).collect::<Vec<_>>().join(", ")
            );
        }
        Ok(Some(Self { redis: redis.options()?, nats: nats.options()?, postgres: postgres.options()? }))
    }
}

impl RedisSection {
    fn options(&self) -> Result<RedisOptions> {
        let identity = pair("redis", self.tls_cert.as_deref(), self.tls_key.as_deref())?;
        Ok(RedisOptions {
            url: self.url.clone().unwrap_or_default(),
            password: first_line("redis.password_file", self.password_file.as_deref())?,
            tls_ca: self
                .tls_ca
                .as_deref()
                .map(read)
                .transpose()
                .context("redis.tls_ca")?
                .map(String::into_bytes),
            tls_identity: identity
                .map(|(cert, key)| anyhow::Ok((read(cert)?.into_bytes(), read(key)?.into_bytes())))
                .transpose()
                .context("redis.tls_cert and redis.tls_key")?,
            prefix: self.prefix.clone(),
            ..RedisOptions::default()
        })
    }
}

impl NatsSection {
    fn options(&self) -> Result<NatsOptions> {
        let urls = self.url.as_deref().unwrap_or_default().split(',').map(str::trim);
        let identity = pair("nats", self.tls_cert.as_deref(), self.tls_key.as_deref())?;
        Ok(NatsOptions {
            login: self.login()?,
            tls: NatsTls {
                required: false,
                authority: self.tls_ca.clone(),
                certificate: identity.map(|(cert, key)| (cert.to_owned(), key.to_owned())),
            },
            stream_replicas: self.stream_replicas,
            stream_bytes_max: self.stream_bytes_max,
            ..NatsOptions::new(urls)
        })
    }

    fn login(&self) -> Result<Login> {
        let secret = |name: &str, path: &Option<PathBuf>| {
            first_line(name, path.as_deref()).map(|line| line.map(Secret::new))
        };
        let password = secret("nats.password_file", &self.password_file)?;
        let token = secret("nats.token_file", &self.token_file)?;
        let nkey = secret("nats.nkey_file", &self.nkey_file)?;
        Ok(match (&self.creds_file, &self.user, password, token, nkey) {
            (None, None, None, None, None) => Login::Anonymous,
            (Some(path), None, None, None, None) => Login::CredentialsFile(path.clone()),
            (None, Some(user), Some(password), None, None) => {
                Login::Password { user: user.clone(), password }
            }
            (None, None, None, Some(token), None) => Login::Token(token),
            (None, None, None, None, Some(nkey)) => Login::Nkey(nkey),
            _ => bail!("nats: give one of creds_file, user with password_file, token_file or nkey_file"),
        })
    }
}

impl PostgresSection {
    fn options(&self) -> Result<PostgresOptions> {
        let password = first_line("postgres.password_file", self.password_file.as_deref())?;
        Ok(PostgresOptions { password, ..PostgresOptions::new(self.url.clone().unwrap_or_default()) })
    }
}

fn first_line(name: &str, path: Option<&Path>) -> Result<Option<String>> {
    let Some(path) = path else { return Ok(None) };
    let text = read(path).with_context(|| name.to_owned())?;
    let line = text.lines().next().unwrap_or_default().trim();
    anyhow::ensure!(!line.is_empty(), "{name}: its first line is empty");
    Ok(Some(line.to_owned()))
}

/// Both or neither.
fn pair<'a>(
    name: &str,
    cert: Option<&'a Path>,
    key: Option<&'a Path>,
) -> Result<Option<(&'a Path, &'a Path)>> {
    match (cert, key) {
        (Some(cert), Some(key)) => Ok(Some((cert, key))),
        (None, None) => Ok(None),
        (Some(_), None) => bail!("{name}.tls_key is missing: {name}.tls_cert needs it"),
        (None, Some(_)) => bail!("{name}.tls_cert is missing: {name}.tls_key needs it"),
    }
}

impl Default for NatsSection {
    fn default() -> Self {
        Self {
            url: None,
            creds_file: None,
            user: None,
            password_file: None,
            token_file: None,
            nkey_file: None,
            tls_ca: None,
            tls_cert: None,
            tls_key: None,
            stream_replicas: 1,
            stream_bytes_max: 1 << 30,
        }
    }
}

/// A URL may hold a password.
macro_rules! says_only_whether_it_is_set {
    ($($section:ident)*) => {$(
        impl fmt::Debug for $section {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{} (set: {})", stringify!($section), self.url.is_some())
            }
        }
    )*};
}
says_only_whether_it_is_set!(RedisSection NatsSection PostgresSection);
