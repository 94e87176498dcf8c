//! The two halves of the key that checkpoints are signed with, as files have them: PEM, as `openssl genpkey -algorithm
//! ed25519` and `openssl pkey -pubout` write it, so that anybody can make one and verify with the other.

use crate::settings::SigningSeed;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use reveille_core::digest::sha256_hex;
use ring::signature::{ED25519, UnparsedPublicKey};

/// Hexadecimal digits of a public key's hash that name it.
const KEY_ID_LEN: usize = 16;
/// What comes before the 32 bytes of a public key (RFC 8410, `SubjectPublicKeyInfo`).
const PUBLIC_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// And of a private one (RFC 8410, PKCS #8, version 1).
const PRIVATE_PREFIX: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
const PUBLIC: &str = "PUBLIC KEY";
const PRIVATE: &str = "PRIVATE KEY";

/// The public half, with which checkpoints are verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyingKey([u8; 32]);

impl VerifyingKey {
    pub(super) fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// What it is called in checkpoints.
    pub fn id(&self) -> String {
        format!("ed25519:{}", &sha256_hex(&self.0)[..KEY_ID_LEN])
    }

    /// Whether whoever has the other half signed exactly these bytes. `signature` is in base64.
    pub fn verifies(&self, payload: &[u8], signature: &str) -> bool {
        let signature = BASE64.decode(signature).unwrap_or_default();
        UnparsedPublicKey::new(&ED25519, &self.0).verify(payload, &signature).is_ok()
    }

    pub fn to_pem(&self) -> String {
        pem(PUBLIC, &PUBLIC_PREFIX, &self.0)
    }

    /// Every key in a file; nothing if something in it is no such key.
    pub fn read_all(text: &str) -> Option<Vec<Self>> {
        let found =
            blocks(PUBLIC, text)?.into_iter().map(|block| after_prefix(&PUBLIC_PREFIX, &block).map(Self));
        found.collect::<Option<Vec<_>>>().filter(|keys| !keys.is_empty())
    }
}

impl SigningSeed {
    pub fn to_pem(&self) -> String {
        pem(PRIVATE, &PRIVATE_PREFIX, &self.0)
    }

    /// The one key in a file.
    pub fn from_pem(text: &str) -> Option<Self> {
        match &blocks(PRIVATE, text)?[..] {
            [block] => after_prefix(&PRIVATE_PREFIX, block).map(Self),
            _ => None,
        }
    }
}

/// In base64, as signatures are written.
pub(super) fn base64(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

fn pem(label: &str, prefix: &[u8], key: &[u8]) -> String {
    let text = BASE64.encode([prefix, key].concat());
    format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
}

/// What stands between the lines that begin and end something of this kind.
fn blocks(label: &str, text: &str) -> Option<Vec<Vec<u8>>> {
    let (begin, end) = (format!("-----BEGIN {label}-----"), format!("-----END {label}-----"));
    let after_begin = text.split(&begin[..]).skip(1);
    after_begin
        .map(|rest| {
            let text: String = rest.split_once(&end)?.0.split_whitespace().collect();
            BASE64.decode(text).ok()
        })
        .collect()
}

fn after_prefix(prefix: &[u8], block: &[u8]) -> Option<[u8; 32]> {
    block.strip_prefix(prefix)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8410, 10.1 and 10.3: somebody else's keys.
    const SEED: &str = "-----BEGIN PRIVATE KEY-----\n\
        MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n";
    const KEY: &str = "-----BEGIN PUBLIC KEY-----\n\
        MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n";

    #[test]
    fn keys_are_read_and_written_as_openssl_does() {
        let seed = SigningSeed::from_pem(SEED).unwrap();
        assert_eq!(seed.to_pem(), SEED);
        let [key] = &VerifyingKey::read_all(KEY).unwrap()[..] else { panic!() };
        assert_eq!(key.to_pem(), KEY);
        assert_eq!(VerifyingKey::read_all(&format!("old\n{KEY}\nnew\n{KEY}")).unwrap().len(), 2);
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for bad in ["", "x", SEED, &KEY[..60], &KEY.replace("GCow", "GCox"), &KEY.replace("MCow", "MCox")] {
            let is_key = bad == KEY;
            assert_eq!(VerifyingKey::read_all(bad).is_some(), is_key, "{bad}");
        }
        for bad in ["", KEY, &SEED[..60], &format!("{SEED}{SEED}")] {
            assert!(SigningSeed::from_pem(bad).is_none(), "{bad}");
        }
    }
}
