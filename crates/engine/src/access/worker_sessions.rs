//! Sessions of workers that have proven in the trust handshake that they have a registered key.
//!
//! A session's token names the key and the session's end, and carries an HMAC over both and the worker. Nothing is stored:
//! every server with the same secret knows it for what it is, and it is over with its key. It travels in the packets of
//! its worker, so whoever can read those can use it until it ends; a worker that signs its packets needs none.

use super::{Access, Signer};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use hmac::{Hmac, KeyInit, Mac};
use reveille_core::id::{KeyId, WorkerId};
use reveille_core::time::Millis;
use sha2::Sha256;

/// How long a session lasts, unless its key ends before.
pub const WORKER_SESSION_MS: i64 = 3600 * 1000;
const TOKEN_PREFIX: &str = "wks_";

impl Access {
    /// A session for a worker that has this key, and when it ends.
    pub(crate) fn begin_worker_session(&self, signer: &Signer) -> Option<(String, Millis)> {
        let end = self.runtime.now() + WORKER_SESSION_MS;
        let end = signer.expires_at.map_or(end, |expiry| expiry.min(end));
        let body = format!("{}~{}~{:016x}", signer.id, end.0, self.runtime.random());
        let mac = self.worker_mac("session", &[body.as_bytes(), signer.public.worker.as_str().as_bytes()])?;
        let proof = BASE64URL.encode(mac.finalize().into_bytes());
        Some((format!("{TOKEN_PREFIX}{body}~{proof}"), end))
    }

    /// The key that this worker has proven to have, if this is its session and the key is still good.
    pub(crate) fn resume_worker_session(&self, token: &str, worker: &WorkerId) -> Option<Signer> {
        let (body, proof) = token.strip_prefix(TOKEN_PREFIX)?.rsplit_once('~')?;
        let mac = self.worker_mac("session", &[body.as_bytes(), worker.as_str().as_bytes()])?;
        mac.verify_slice(&BASE64URL.decode(proof).ok()?).ok()?;
        let mut parts = body.split('~');
        let (id, end) = (KeyId::parse(parts.next()?).ok()?, parts.next()?.parse().ok()?);
        let is_over = self.runtime.now() >= Millis(end);
        let mut signers = self.signers(worker).into_iter();
        signers.find(|signer| signer.id == id).filter(|_| !is_over)
    }

    /// Over words that only the servers of this installation can have made. No length of key is wrong for an HMAC, so
    /// there is always one.
    pub(crate) fn worker_mac(&self, purpose: &str, words: &[&[u8]]) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.runtime.settings().session_secret.0).ok()?;
        for word in [b"worker", purpose.as_bytes()].iter().chain(words) {
            mac.update(&(word.len() as u64).to_be_bytes());
            mac.update(word);
        }
        Some(mac)
    }
}
