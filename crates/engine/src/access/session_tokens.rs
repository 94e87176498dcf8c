//! Session tokens: proof that somebody has shown a key, for those who should not keep the key itself, such as a browser.
//!
//! A session token is an HMAC over the key's hash and words that name the session, its end, and what the token is good
//! for. Its key is a secret that is not in the database, so that whoever has the database cannot make one. Nothing is
//! stored of a session that goes on: every server that knows key and secret can check it, and a key that is revoked or
//! has expired takes its sessions along. One that is ended before its time is written down (`ended_sessions.rs`).

use super::{Access, Caller};
use crate::secret::hash;
use hmac::{Hmac, KeyInit, Mac};
use reveille_core::audit::Action;
use reveille_core::id::{KeyId, SessionId};
use reveille_core::time::Millis;
use reveille_roster::{KeyHash, RosterError};
use sha2::Sha256;
use std::sync::Arc;

/// Bytes of a session token.
pub const SESSION_TOKEN_LEN: usize = 32;
/// How long a browser stays signed in.
pub const SESSION_MS: i64 = 12 * 3600 * 1000;

pub type SessionToken = [u8; SESSION_TOKEN_LEN];

/// One sign-in of a browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrowserSession {
    pub key: KeyId,
    pub id: SessionId,
    pub end: Millis,
}

/// What a token is good for.
#[derive(Clone, Copy)]
enum Purpose {
    Session,
    Form,
}

impl BrowserSession {
    fn words(&self, purpose: Purpose) -> String {
        let purpose = match purpose {
            Purpose::Session => "session",
            Purpose::Form => "form",
        };
        format!("console {purpose} {} until {}", self.id, self.end.0)
    }
}

impl Access {
    /// A browser shows a key and gets a session. Whoever signs in is in the audit trail, once in a while; who fails to
    /// is only counted, since strangers can fail as often as they like.
    pub async fn sign_in(&self, secret: &str) -> Option<(BrowserSession, SessionToken)> {
        let Some(caller) = self.authenticate(secret) else {
            self.observe.metrics().sign_in_failed();
            return None;
        };
        self.record_session_act(&caller, Action::SignedIn).await;
        self.begin_session(secret)
    }

    /// A browser is done with its session, which is over at every server.
    pub async fn sign_out(&self, caller: &Caller, session: &BrowserSession) -> Result<(), RosterError> {
        self.end_session(session).await?;
        self.record_session_act(caller, Action::SignedOut).await;
        Ok(())
    }

    /// The same for every session of the caller's key.
    pub async fn sign_out_everywhere(&self, caller: &Caller) -> Result<(), RosterError> {
        self.end_all_sessions(&caller.key).await?;
        self.record_session_act(caller, Action::SignedOut).await;
        Ok(())
    }

    pub(super) async fn record_session_act(&self, caller: &Caller, action: Action) {
        let entry = self.audit.act(&caller.tenant, action, &caller.into());
        self.audit.record_together(entry).await;
    }

    /// Begins a session of the key that has this secret.
    pub fn begin_session(&self, secret: &str) -> Option<(BrowserSession, SessionToken)> {
        let key = self.authenticate(secret)?.key.clone();
        let id = SessionId::known(format!("{:016x}{:016x}", self.runtime.random(), self.runtime.random()));
        let session = BrowserSession { end: self.session_end(&key), key, id };
        let token = self.mac(&hash(secret), &session, Purpose::Session)?.finalize().into_bytes().into();
        Some((session, token))
    }

    /// Whose session it is, if this is its token, the key still opens something, and nobody has ended it.
    pub fn resume_session(&self, session: &BrowserSession, token: &[u8]) -> Option<Arc<Caller>> {
        let (hash, caller) = self.keys.of_id(&session.key, self.runtime.now())?;
        self.mac(&hash, session, Purpose::Session)?.verify_slice(token).ok()?;
        (!self.session_is_over(session)).then_some(caller)
    }

    /// What the forms of this session bring along.
    pub fn form_token(&self, session: &BrowserSession) -> Option<SessionToken> {
        let (hash, _) = self.keys.of_id(&session.key, self.runtime.now())?;
        Some(self.mac(&hash, session, Purpose::Form)?.finalize().into_bytes().into())
    }

    /// No length of key is wrong for an HMAC, so there is always one.
    fn mac(&self, hash: &KeyHash, session: &BrowserSession, purpose: Purpose) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.runtime.settings().session_secret.0).ok()?;
        mac.update(hash);
        mac.update(session.words(purpose).as_bytes());
        Some(mac)
    }
}
