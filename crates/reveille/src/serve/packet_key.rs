//! The key that packets to workers are signed with, where signatures are asked for.

use super::operator::write_private;
use crate::config::{FleetSection, Signatures};
use anyhow::{Context, Result, anyhow};
use reveille_engine::{PacketKey, SignatureMode};
use reveille_wire::key::{SigningKey, private_pem, signing_key, signing_key_of};
use std::io::ErrorKind;
use std::path::Path;

/// Where the key is kept, if nobody names another place.
const PACKET_KEY_FILE: &str = "packet-signing.key";

pub fn mode(signatures: Signatures) -> SignatureMode {
    match signatures {
        Signatures::Off => SignatureMode::Off,
        Signatures::Warn => SignatureMode::Warn,
        Signatures::Require => SignatureMode::Require,
    }
}

/// The key in the file that is named, or one of our own beside the data, which is made when it is first needed. A file
/// that has no key in it is never replaced: workers may know the one that was in it.
pub fn packet_key(fleet: &FleetSection, folder: &Path, is_shared: bool) -> Result<PacketKey> {
    if fleet.signatures == Signatures::Off {
        return Ok(PacketKey::default());
    }
    let beside = folder.join(PACKET_KEY_FILE);
    let named = fleet.signing_key_file.as_deref();
    let path = named.unwrap_or(&beside);
    let key = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound && named.is_none() => made(path, is_shared)?,
        read => {
            let text = read.with_context(|| format!("fleet.signing_key_file: reading {}", path.display()))?;
            signing_key(&text)
                .map_err(|error| anyhow!("fleet.signing_key_file: {}: {error}", path.display()))?
        }
    };
    Ok(PacketKey(Some(key)))
}

fn made(path: &Path, is_shared: bool) -> Result<SigningKey> {
    if is_shared {
        tracing::warn!(
            "packets to workers are signed with a key of this server alone: name one for all in \
             fleet.signing_key_file"
        );
    }
    let key = new_key()?;
    let pem = private_pem(&key).context("writing the key that packets are signed with")?;
    write_private(path, pem.trim_end()).with_context(|| format!("writing {}", path.display()))?;
    Ok(key)
}

/// A key that nobody else has.
pub fn new_key() -> Result<SigningKey> {
    loop {
        let mut random = [0; 32];
        getrandom::fill(&mut random).context("the system has no randomness")?;
        if let Some(key) = signing_key_of(&random) {
            return Ok(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_key_is_made_once_where_signatures_are_asked_for() {
        let folder = std::env::temp_dir().join(format!("reveille-packet-key-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(PACKET_KEY_FILE);
        let mut fleet = FleetSection::default();
        assert!(packet_key(&fleet, &folder, false).unwrap().0.is_none() && !path.exists());

        fleet.signatures = Signatures::Warn;
        let first = packet_key(&fleet, &folder, false).unwrap().0.unwrap();
        assert_eq!(packet_key(&fleet, &folder, false).unwrap().0.unwrap(), first);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

        fleet.signing_key_file = Some(folder.join("none"));
        let missing = packet_key(&fleet, &folder, false).unwrap_err().to_string();
        assert!(missing.contains("fleet.signing_key_file"), "{missing}");
        fleet.signing_key_file = None;
        std::fs::write(&path, "spoilt").unwrap();
        let spoilt = packet_key(&fleet, &folder, false).unwrap_err().to_string();
        assert!(spoilt.contains("P-256") && !spoilt.contains("spoilt"), "{spoilt}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "spoilt", "it is left as it is");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
