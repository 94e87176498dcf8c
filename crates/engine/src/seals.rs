//! Seals: proof that somebody has shown a key, for those who should not keep the key itself, such as a browser.
//!
//! A seal is an HMAC under the key's hash over words that say what it is good for, and until when. Nothing is stored:
//! every server that knows the key can check it, and a key that is revoked or has expired takes its seals along.

use crate::keys::Caller;
use crate::{Engine, keys};
use hmac::{Hmac, KeyInit, Mac};
use reveille_core::id::KeyId;
use reveille_roster::KeyHash;
use sha2::Sha256;
use std::sync::Arc;

/// Bytes of a seal.
pub const SEAL_LEN: usize = 32;

impl Engine {
    /// Seals words with the key that has this secret.
    pub fn seal_by_secret(&self, secret: &str, words: &str) -> Option<(Arc<Caller>, [u8; SEAL_LEN])> {
        let caller = self.authenticate(secret)?;
        Some((caller, mac(&keys::hash(secret), words)?.finalize().into_bytes().into()))
    }

    /// Whose seal it is, if it is one over these words by a key that still opens something.
    pub fn sealed_by(&self, key: &KeyId, words: &str, seal: &[u8]) -> Option<Arc<Caller>> {
        let (hash, caller) = self.keys.of_id(key, self.now())?;
        mac(&hash, words)?.verify_slice(seal).ok()?;
        Some(caller)
    }

    /// The seal that this key puts on these words.
    pub fn seal(&self, key: &KeyId, words: &str) -> Option<[u8; SEAL_LEN]> {
        let (hash, _) = self.keys.of_id(key, self.now())?;
        Some(mac(&hash, words)?.finalize().into_bytes().into())
    }
}

/// No length of key is wrong for an HMAC, so there is always one.
fn mac(hash: &KeyHash, words: &str) -> Option<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(hash).ok()?;
    mac.update(words.as_bytes());
    Some(mac)
}
