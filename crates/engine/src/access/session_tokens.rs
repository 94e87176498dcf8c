//! Session tokens: proof that somebody has shown a key, for those who should not keep the key itself, such as a browser.
//!
//! A session token is an HMAC over the key's hash and words that say what it is good for, and until when. Its key is a
//! secret that is not in the database, so that whoever has the database cannot make one. Nothing is stored: every
//! server that knows key and secret can check it, and a key that is revoked or has expired takes its tokens along.

use super::{Access, Caller};
use crate::secret::hash;
use hmac::{Hmac, KeyInit, Mac};
use reveille_core::id::KeyId;
use reveille_roster::KeyHash;
use sha2::Sha256;
use std::sync::Arc;

/// Bytes of a session token.
pub const SESSION_TOKEN_LEN: usize = 32;

impl Access {
    /// A token over these words by the key that has this secret.
    pub fn session_token_by_secret(
        &self,
        secret: &str,
        words: &str,
    ) -> Option<(Arc<Caller>, [u8; SESSION_TOKEN_LEN])> {
        let caller = self.authenticate(secret)?;
        Some((caller, self.mac(&hash(secret), words)?.finalize().into_bytes().into()))
    }

    /// Whose token it is, if it is one over these words by a key that still opens something.
    pub fn verify_session_token(&self, key: &KeyId, words: &str, token: &[u8]) -> Option<Arc<Caller>> {
        let (hash, caller) = self.keys.of_id(key, self.runtime.now())?;
        self.mac(&hash, words)?.verify_slice(token).ok()?;
        Some(caller)
    }

    /// The token of this key over these words.
    pub fn session_token(&self, key: &KeyId, words: &str) -> Option<[u8; SESSION_TOKEN_LEN]> {
        let (hash, _) = self.keys.of_id(key, self.runtime.now())?;
        Some(self.mac(&hash, words)?.finalize().into_bytes().into())
    }

    /// No length of key is wrong for an HMAC, so there is always one.
    fn mac(&self, hash: &KeyHash, words: &str) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.runtime.settings().session_secret.0).ok()?;
        mac.update(hash);
        mac.update(words.as_bytes());
        Some(mac)
    }
}
