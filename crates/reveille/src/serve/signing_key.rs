//! The key that checkpoints of the audit trail are signed with: a file of its own, because whoever can rewrite the
//! database must not be able to sign what it says then.

use super::operator::write_private;
use anyhow::{Context, Result, anyhow};
use reveille_engine::SigningSeed;
use std::io::ErrorKind;
use std::path::Path;

/// Where the key is kept, if nobody names another place.
const SIGNING_KEY_FILE: &str = "audit-signing.key";

/// The key in the file that is named, or one of our own beside the data, which is made at the first start. A file that
/// has no key in it is never replaced: checkpoints that somebody keeps may rest on what was in it.
pub fn signing_seed(named: Option<&Path>, folder: &Path, is_shared: bool) -> Result<SigningSeed> {
    let beside = folder.join(SIGNING_KEY_FILE);
    let path = named.unwrap_or(&beside);
    let text = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound && named.is_none() => return made(path, is_shared),
        read => read.with_context(|| format!("audit.signing_key_file: reading {}", path.display()))?,
    };
    SigningSeed::from_pem(&text).ok_or_else(|| {
        anyhow!(
            "audit.signing_key_file: {} has no Ed25519 key in PEM, such as `openssl genpkey -algorithm ed25519` makes",
            path.display()
        )
    })
}

fn made(path: &Path, is_shared: bool) -> Result<SigningSeed> {
    if is_shared {
        tracing::warn!(
            "checkpoints of the audit trail are signed with a key of this server alone: name one for all in \
             audit.signing_key_file"
        );
    }
    let mut seed = SigningSeed::default();
    getrandom::fill(&mut seed.0).context("the system has no randomness")?;
    write_private(path, seed.to_pem().trim_end()).with_context(|| format!("writing {}", path.display()))?;
    Ok(seed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_key_is_made_once_and_nobody_else_can_read_it() {
        let folder = std::env::temp_dir().join(format!("reveille-signing-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let first = signing_seed(None, &folder, false).unwrap();
        assert_ne!(first.0, [0; 32]);
        assert_eq!(signing_seed(None, &folder, false).unwrap().0, first.0);
        let path = folder.join(SIGNING_KEY_FILE);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

        let missing = signing_seed(Some(&folder.join("none")), &folder, false).unwrap_err();
        assert!(missing.to_string().contains("audit.signing_key_file"), "{missing}");
        std::fs::write(&path, "spoilt").unwrap();
        let spoilt = signing_seed(None, &folder, false).unwrap_err().to_string();
        assert!(spoilt.contains("openssl genpkey") && !spoilt.contains("spoilt"), "{spoilt}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "spoilt", "it is left as it is");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
