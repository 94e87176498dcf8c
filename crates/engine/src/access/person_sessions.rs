//! People at browsers: the way to the identity provider and back, and the session that comes of it.
//!
//! Nothing is stored. What a browser keeps, on the way and afterwards, is sealed with the secret that sessions rest on:
//! who it is and which of their groups count here. Their roles are not in it; they follow from the groups and the settings
//! of whichever server is asked. A session ends as those of keys do (`ended_sessions.rs`).

use super::Access;
use super::keys::Caller;
use super::people::{Unidentified, person_key};
use super::session_tokens::{BrowserSession, SESSION_TOKEN_LEN, SessionToken};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use reveille_core::audit::Action;
use reveille_core::id::SessionId;
use reveille_core::time::Millis;
use reveille_oidc::{OidcError, PendingSignIn, VerifiedPerson};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use std::sync::Arc;

/// How long somebody may take at the identity provider.
pub const SIGN_IN_MS_MAX: i64 = 10 * 60 * 1000;
/// What a browser keeps of a session; they forget longer cookies.
pub const PERSON_COOKIE_LEN_MAX: usize = 3_500;

/// Why somebody is not signed in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PersonSignInError {
    #[error("nobody vouches for people here: there is no [oidc] in the settings")]
    NotConfigured,
    #[error("this sign-in was begun in another browser, took too long, or was finished before")]
    NotBegun,
    #[error(transparent)]
    Provider(#[from] OidcError),
    #[error(transparent)]
    Unidentified(#[from] Unidentified),
    #[error("too many groups that have roles here: they do not fit into a cookie")]
    TooManyGroups,
}

/// A person who has just signed in.
pub struct SignedIn {
    /// What the browser keeps.
    pub cookie: String,
    /// Where it wanted to go.
    pub next: String,
}

/// A person's session, as a browser showed it.
pub struct PersonSession {
    pub caller: Arc<Caller>,
    pub session: BrowserSession,
    /// What the forms of this session bring along.
    pub form_token: SessionToken,
}

/// What is sealed.
#[derive(Serialize, Deserialize)]
struct PersonCookie {
    issuer: String,
    subject: String,
    name: String,
    groups: Vec<String>,
    id: SessionId,
    end: Millis,
}

const PENDING: &str = "person signs in";
const SESSION: &str = "person session";
const FORM: &str = "person form";

impl Access {
    /// Where to send a browser that wants to sign in, and what it keeps until it comes back.
    pub async fn begin_person_sign_in(&self, next: &str) -> Result<(String, String), PersonSignInError> {
        let oidc = self.oidc().ok_or(PersonSignInError::NotConfigured)?;
        let now = self.runtime.now();
        let mut random = [0; 96];
        for chunk in random.chunks_exact_mut(8) {
            chunk.copy_from_slice(&self.runtime.random().to_be_bytes());
        }
        let pending = PendingSignIn::new(&random, next, now + SIGN_IN_MS_MAX);
        let url = oidc.authorization_url(&pending, now).await?;
        Ok((url, self.seal(PENDING, &pending)))
    }

    /// A browser comes back. Whoever it is signed in as is in the audit trail; failures are counted.
    pub async fn finish_person_sign_in(
        &self,
        kept: &str,
        state: &str,
        code: &str,
    ) -> Result<SignedIn, PersonSignInError> {
        let done = self.redeem(kept, state, code).await;
        if done.is_err() {
            self.observe.metrics().sign_in_failed();
        }
        done
    }

    async fn redeem(&self, kept: &str, state: &str, code: &str) -> Result<SignedIn, PersonSignInError> {
        let oidc = self.oidc().ok_or(PersonSignInError::NotConfigured)?;
        let now = self.runtime.now();
        let pending: PendingSignIn = self.unseal(PENDING, kept).ok_or(PersonSignInError::NotBegun)?;
        if pending.state != state || now >= pending.until {
            return Err(PersonSignInError::NotBegun);
        }
        let verified = oidc.redeem(&pending, code, now).await?;
        let cookie = self.begin_person_session(verified).await?;
        Ok(SignedIn { cookie, next: pending.next })
    }

    async fn begin_person_session(&self, verified: VerifiedPerson) -> Result<String, PersonSignInError> {
        let person = self.person(verified.clone(), None)?;
        let caller = Caller::of_person(&person);
        let grants = &self.runtime.settings().role_grants;
        let mut groups = verified.groups;
        groups.retain(|group| grants.iter().any(|grant| grant.group == *group));
        let kept = PersonCookie {
            issuer: verified.issuer,
            subject: verified.subject,
            name: verified.name,
            groups,
            id: SessionId::known(format!("{:016x}{:016x}", self.runtime.random(), self.runtime.random())),
            end: self.session_end(&caller.key),
        };
        let cookie = self.seal(SESSION, &kept);
        if cookie.len() > PERSON_COOKIE_LEN_MAX {
            return Err(PersonSignInError::TooManyGroups);
        }
        self.record_session_act(&caller, Action::SignedIn).await;
        Ok(cookie)
    }

    /// Whose session it is, if we sealed it, nobody has ended it, and they still have a role.
    pub fn resume_person_session(&self, cookie: &str) -> Option<PersonSession> {
        let kept: PersonCookie = self.unseal(SESSION, cookie)?;
        if self.oidc()?.issuer() != kept.issuer {
            return None;
        }
        let (payload, _) = cookie.split_once('.')?;
        let form_token = self.sealed_by(FORM, payload)?.finalize().into_bytes().into();
        let verified = VerifiedPerson {
            issuer: kept.issuer,
            subject: kept.subject,
            name: kept.name,
            groups: kept.groups,
            until: kept.end,
        };
        let session = BrowserSession { key: person_key(&verified).ok()?, id: kept.id, end: kept.end };
        if self.session_is_over(&session) {
            return None;
        }
        let person = self.person(verified, Some(session.clone())).ok()?;
        Some(PersonSession { caller: Arc::new(Caller::of_person(&person)), session, form_token })
    }

    /// A text that only we can have made: what it says, and a token over it.
    fn seal(&self, purpose: &str, what: &impl Serialize) -> String {
        let payload = URL_SAFE_NO_PAD.encode(serde_json::to_vec(what).unwrap_or_default());
        let token = self.sealed_by(purpose, &payload).map(|mac| mac.finalize().into_bytes());
        format!("{payload}.{}", URL_SAFE_NO_PAD.encode(token.unwrap_or_default()))
    }

    fn unseal<T: for<'a> Deserialize<'a>>(&self, purpose: &str, text: &str) -> Option<T> {
        let (payload, token) = text.split_once('.')?;
        let token = URL_SAFE_NO_PAD.decode(token).ok().filter(|token| token.len() == SESSION_TOKEN_LEN)?;
        self.sealed_by(purpose, payload)?.verify_slice(&token).ok()?;
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()
    }

    /// No length of key is wrong for an HMAC, so there is always one.
    fn sealed_by(&self, purpose: &str, payload: &str) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.runtime.settings().session_secret.0).ok()?;
        mac.update(format!("reveille {purpose}\n").as_bytes());
        mac.update(payload.as_bytes());
        Some(mac)
    }
}
