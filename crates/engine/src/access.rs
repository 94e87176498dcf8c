//! Who may call: keys, the session tokens made from them, and how often each key may call.

mod call_limits;
mod key_index;
mod keys;
mod session_tokens;

pub use key_index::KeyIndex;
pub use keys::{Caller, KEY_PREFIX, KeyError, KeyStanding, NewKey};
pub use session_tokens::SESSION_TOKEN_LEN;

use crate::observe::Observe;
use crate::observe::audit_writer::AuditWriter;
use crate::roster::RosterWriter;
use crate::runtime::Runtime;
use call_limits::CallLimits;
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
    call_limits: CallLimits,
}

impl Deref for Access {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Access {
    pub fn new(
        runtime: Runtime,
        observe: Observe,
        roster: Arc<dyn Roster>,
        writer: RosterWriter,
        audit: AuditWriter,
        keys: Arc<KeyIndex>,
    ) -> Self {
        let call_limits = CallLimits::default();
        Self(Arc::new(Inner { runtime, observe, roster, writer, audit, keys, call_limits }))
    }
}
