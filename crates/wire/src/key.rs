//! P-256 keys as operators keep them: PEM files, PKCS#8 for the private half, SPKI for the public.

use p256::pkcs8::{DecodePrivateKey, DecodePublicKey};

pub use p256::ecdsa::{SigningKey, VerifyingKey};

/// Why a text is not a key. It never repeats the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    #[error("not a P-256 private key in PEM (expected BEGIN PRIVATE KEY): {0}")]
    Private(p256::pkcs8::Error),
    #[error("not a P-256 public key in PEM (expected BEGIN PUBLIC KEY): {0}")]
    Public(p256::pkcs8::spki::Error),
}

/// Reads the key that this side signs with.
pub fn signing_key(pem: &str) -> Result<SigningKey, BadKey> {
    SigningKey::from_pkcs8_pem(pem).map_err(BadKey::Private)
}

/// Reads the key that the other side's signatures are checked with.
pub fn verifying_key(pem: &str) -> Result<VerifyingKey, BadKey> {
    VerifyingKey::from_public_key_pem(pem).map_err(BadKey::Public)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRIVATE: &str = include_str!("../tests/captured/private.pem");
    const PUBLIC: &str = include_str!("../tests/captured/public.pem");
    const PUBLIC_P384: &str = include_str!("../tests/captured/public-p384.pem");

    #[test]
    fn both_halves_of_a_key_pair_are_read() {
        assert_eq!(signing_key(PRIVATE).unwrap().verifying_key(), &verifying_key(PUBLIC).unwrap());
    }

    #[test]
    fn a_key_of_another_kind_is_refused() {
        assert!(matches!(signing_key(PUBLIC), Err(BadKey::Private(_))));
        assert!(matches!(verifying_key(PRIVATE), Err(BadKey::Public(_))));
        assert!(matches!(verifying_key(PUBLIC_P384), Err(BadKey::Public(_))));
        assert!(matches!(verifying_key(""), Err(BadKey::Public(_))));
    }
}
