//! Sessions of browsers that were ended before their time, as they are stored.
//!
//! A session rests on a sealed cookie, so nothing is stored of one that goes on. What is stored is that one is over,
//! until the moment at which its cookie would have been worth nothing anyway.

use reveille_core::id::{KeyId, SessionId};
use reveille_core::time::Millis;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedSessions {
    /// Whose they are.
    pub key: KeyId,
    /// Nothing for every session of the key that would have ended no later than `until`.
    pub session: Option<SessionId>,
    /// When it would have ended by itself.
    pub until: Millis,
}
