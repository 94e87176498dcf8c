//! P-256 keys as operators keep them: PEM files, PKCS#8 for the private half, SPKI for the public.

use p256::pkcs8::{DecodePrivateKey, DecodePublicKey, EncodePrivateKey, EncodePublicKey, LineEnding};

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

/// A key from 32 random bytes; nothing for the one in four billion that is none.
pub fn signing_key_of(random: &[u8; 32]) -> Option<SigningKey> {
    SigningKey::from_slice(random).ok()
}

/// The private half as a file has it.
pub fn private_pem(key: &SigningKey) -> Result<String, BadKey> {
    key.to_pkcs8_pem(LineEnding::LF).map(|pem| pem.to_string()).map_err(BadKey::Private)
}

/// The public half, which anybody may have.
pub fn public_pem(key: &VerifyingKey) -> Result<String, BadKey> {
    key.to_public_key_pem(LineEnding::LF).map_err(BadKey::Public)
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
    fn a_key_is_written_as_it_is_read() {
        let key = signing_key_of(&[7; 32]).unwrap();
        assert_eq!(signing_key(&private_pem(&key).unwrap()).unwrap(), key);
        let public = public_pem(key.verifying_key()).unwrap();
        assert_eq!(&verifying_key(&public).unwrap(), key.verifying_key());
        assert!(public.starts_with("-----BEGIN PUBLIC KEY-----\n"));
        assert!(signing_key_of(&[0; 32]).is_none());
    }

    #[test]
    fn a_key_of_another_kind_is_refused() {
        assert!(matches!(signing_key(PUBLIC), Err(BadKey::Private(_))));
        assert!(matches!(verifying_key(PRIVATE), Err(BadKey::Public(_))));
        assert!(matches!(verifying_key(PUBLIC_P384), Err(BadKey::Public(_))));
        assert!(matches!(verifying_key(""), Err(BadKey::Public(_))));
    }
}
