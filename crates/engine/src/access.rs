//! Who may call: keys, people for whom an identity provider vouches, the sessions of both, and how often each, and each
//! address without either, may call.

mod address_limits;
mod call_limits;
mod ended_sessions;
mod key_index;
mod keys;
mod people;
mod person_sessions;
mod rotation;
mod session_tokens;
mod worker_keys;
mod worker_sessions;

pub use address_limits::ADDRESSES_MAX;
pub use ended_sessions::{ENDED_SESSIONS_MAX, ENDED_SESSIONS_PER_KEY_MAX, EndedSessionIndex};
pub use key_index::{KeyIndex, Signer};
pub use keys::{Caller, ENVIRONMENT_KEY, KEY_PREFIX, KeyError, KeyStanding, NewKey};
pub use people::Unidentified;
pub use person_sessions::{
    PERSON_COOKIE_LEN_MAX, PersonSession, PersonSignInError, SIGN_IN_MS_MAX, SignedIn,
};
pub use rotation::{ROTATION_OVERLAP_MS, ROTATION_OVERLAP_MS_MAX, RotateError, Rotation};
pub use session_tokens::{BrowserSession, SESSION_MS, SESSION_TOKEN_LEN};
pub(crate) use worker_keys::packet_key_id;
pub use worker_keys::{NewPublicKey, ServerKey};
pub use worker_sessions::WORKER_SESSION_MS;

use crate::observe::Observe;
use crate::observe::audit_writer::AuditWriter;
use crate::roster::RosterWriter;
use crate::runtime::Runtime;
use address_limits::AddressLimits;
use call_limits::CallLimits;
use reveille_oidc::Oidc;
use reveille_roster::Roster;
use std::ops::Deref;
use std::sync::Arc;

/// A handle; clones are the same room.
#[derive(Clone)]
pub struct Access(Arc<Inner>);

pub struct Inner {
    runtime: Runtime,
    observe: Observe,
    roster: Arc<dyn Roster>,
    writer: RosterWriter,
    audit: AuditWriter,
    keys: Arc<KeyIndex>,
    oidc: Option<Oidc>,
    ended_sessions: Arc<EndedSessionIndex>,
    call_limits: CallLimits,
    address_limits: AddressLimits,
}

impl Deref for Access {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Access {
    #[expect(clippy::too_many_arguments, reason = "each is a collaborator, handed over once")]
    pub fn new(
        runtime: Runtime,
        observe: Observe,
        roster: Arc<dyn Roster>,
        writer: RosterWriter,
        audit: AuditWriter,
        keys: Arc<KeyIndex>,
        oidc: Option<Oidc>,
        ended_sessions: Arc<EndedSessionIndex>,
    ) -> Self {
        let (call_limits, address_limits) = (CallLimits::default(), AddressLimits::default());
        Self(Arc::new(Inner {
            runtime,
            observe,
            roster,
            writer,
            audit,
            keys,
            oidc,
            ended_sessions,
            call_limits,
            address_limits,
        }))
    }
}
