//! The operator key: from the environment, or made on the first start.

use anyhow::{Context, Result};
use reveille_engine::{ENVIRONMENT_KEY, Engine, NewKey, SessionSecret};
use reveille_roster::Scope;
use std::io::Write;
use std::path::Path;

/// Where the key of the first start is left for the command line on the same machine.
pub const KEY_FILE: &str = "operator.key";
const SECRET_LEN_MIN: usize = 16;
/// Where the secret of sessions is kept, if nobody names another place.
const SESSION_SECRET_FILE: &str = "session.key";
const SESSION_SECRET_LEN_MIN: usize = 32;

/// Who makes and revokes these keys, for the audit trail.
const US: &str = "server";

/// There is always a way in. A key that is made here is printed once and left in the data folder,
/// readable by its owner alone.
pub async fn ensure_key(engine: &Engine, folder: &Path) -> Result<()> {
    let operator = || NewKey {
        name: "operator".to_owned(),
        tenant: engine.settings().default_tenant.clone(),
        scopes: vec![Scope::Admin],
        worker: None,
        expires_at: None,
        created_by: US.to_owned(),
        issued_by: None,
        project_ids: None,
    };
    if let Some((variable, secret)) = from_environment() {
        anyhow::ensure!(
            secret.len() >= SECRET_LEN_MIN,
            "{variable} is shorter than {SECRET_LEN_MIN} characters"
        );
        let kept = engine
            .access()
            .keep_key(&secret, NewKey { name: ENVIRONMENT_KEY.to_owned(), ..operator() })
            .await?;
        // Another secret in the environment replaces the one that was there before.
        for key in engine.access().list_keys() {
            if key.name == ENVIRONMENT_KEY && key.id != kept.id && key.revoked_at.is_none() {
                engine.access().revoke_key(&key.id, US).await?;
            }
        }
        return Ok(());
    }
    if !engine.access().list_keys().is_empty() {
        return Ok(());
    }
    let (_, secret) = engine.access().create_key(operator()).await?;
    let path = folder.join(KEY_FILE);
    write_private(&path, &secret).with_context(|| format!("writing {}", path.display()))?;
    eprintln!("operator key (shown once): {secret}");
    eprintln!("  also in {} for commands on this machine; elsewhere set REVEILLE_KEY", path.display());
    Ok(())
}

/// What sessions of browsers rest on beside their keys: a file that is named, the operator's secret where the
/// environment has it, or a file of our own beside the data. Servers that share their engines must agree on it.
pub fn session_secret(named: Option<&Path>, folder: &Path, is_shared: bool) -> Result<SessionSecret> {
    if let Some(path) = named {
        let bytes = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
        anyhow::ensure!(
            bytes.len() >= SESSION_SECRET_LEN_MIN,
            "auth.session_secret_file: {} has {} bytes; at least {SESSION_SECRET_LEN_MIN} are needed",
            path.display(),
            bytes.len()
        );
        return Ok(derived(&bytes));
    }
    if let Some((_, secret)) = from_environment() {
        return Ok(derived(secret.as_bytes()));
    }
    let mut random = [0; 32];
    getrandom::fill(&mut random).context("the system has no randomness")?;
    if is_shared {
        tracing::warn!(
            "sessions of browsers are good at this server only: set auth.session_secret_file or REVEILLE_OPERATOR_KEY"
        );
        return Ok(SessionSecret(random));
    }
    let path = folder.join(SESSION_SECRET_FILE);
    let found = std::fs::read(&path).ok().filter(|bytes| bytes.len() >= SESSION_SECRET_LEN_MIN);
    if let Some(bytes) = found {
        return Ok(derived(&bytes));
    }
    let text = reveille_core::digest::sha256_hex(&random);
    write_private(&path, &text).with_context(|| format!("writing {}", path.display()))?;
    Ok(derived(format!("{text}\n").as_bytes()))
}

fn derived(bytes: &[u8]) -> SessionSecret {
    SessionSecret(reveille_core::digest::sha256(&[b"reveille session secret ", bytes].concat()))
}

fn from_environment() -> Option<(&'static str, String)> {
    let set =
        |name| std::env::var(name).ok().filter(|secret| !secret.is_empty()).map(|secret| (name, secret));
    set("REVEILLE_OPERATOR_KEY").or_else(|| set("CORDUM_API_KEY"))
}

pub fn write_private(path: &Path, secret: &str) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut file =
        std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    writeln!(file, "{secret}")
}
