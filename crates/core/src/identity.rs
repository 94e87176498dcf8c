//! Who did something, as far as we know ourselves: the name that was given with a credential, and which credential.
//!
//! Names are given twice now and then, and a key that is revoked keeps its name, so both are recorded. What somebody
//! calls themselves is a claim, and stands apart from that.

use crate::id::KeyId;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Identity {
    /// What the credential is called; empty where none was asked for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The credential; nothing for the server itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<KeyId>,
    /// The name that a packet brought along, which nobody has checked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub claim: String,
}

impl Identity {
    pub fn of_key(name: &str, key: &KeyId) -> Self {
        Self { name: name.to_owned(), key: Some(key.clone()), claim: String::new() }
    }

    /// What to call them where it does not matter whether that is so.
    pub fn shown(&self) -> &str {
        if self.claim.is_empty() { &self.name } else { &self.claim }
    }
}

/// Somebody who needs no credential, such as a part of the server.
impl From<&str> for Identity {
    fn from(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }
}

impl From<&Self> for Identity {
    fn from(identity: &Self) -> Self {
        identity.clone()
    }
}
