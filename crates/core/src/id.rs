//! The names of things, each its own type, from one list.
//!
//! An id is a short shared string: cloning one is a reference count, and no function can take a
//! worker's name where a job's was meant. What a valid id looks like is checked once, here.

use std::fmt;
use std::sync::Arc;

/// The longest id anyone may send us. Ids become store keys and bus subjects.
pub const ID_LEN_MAX: usize = 256;

/// Why a string cannot be an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadId {
    #[error("{0} is empty")]
    Empty(&'static str),
    #[error("{0} is longer than {ID_LEN_MAX} bytes")]
    TooLong(&'static str),
    #[error("{0} has a space or a control character")]
    Unprintable(&'static str),
}

fn check(what: &'static str, text: &str) -> Result<(), BadId> {
    if text.is_empty() {
        return Err(BadId::Empty(what));
    }
    if text.len() > ID_LEN_MAX {
        return Err(BadId::TooLong(what));
    }
    if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(BadId::Unprintable(what));
    }
    Ok(())
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $what:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// What this id names, for messages.
            pub const WHAT: &'static str = $what;

            /// Checks a string from outside.
            pub fn parse(text: &str) -> Result<Self, BadId> {
                check($what, text)?;
                Ok(Self(text.into()))
            }

            /// Takes a string that this program made or already checked.
            pub fn known(text: impl Into<Arc<str>>) -> Self {
                let text = text.into();
                debug_assert!(check($what, &text).is_ok(), "{} {text:?}", $what);
                Self(text)
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    )*};
}

ids! {
    /// One unit of work that somebody asked for.
    JobId = "job_id";
    /// One process that takes jobs.
    WorkerId = "worker_id";
    /// A named group of workers.
    PoolId = "pool";
    /// What kind of work a job is; also the subject its workers listen on.
    Topic = "topic";
    /// Whose job it is. It comes from the credential, never from a body.
    TenantId = "tenant_id";
    /// The public half of a key.
    KeyId = "key_id";
    /// One sign-in of a browser.
    SessionId = "session_id";
    /// A workflow, within its tenant.
    WorkflowId = "workflow_id";
    /// One run of a workflow.
    RunId = "run_id";
    /// A step of a workflow, within it.
    StepId = "step_id";
    /// One Molecule workspace; a UUID.
    WorkspaceId = "workspace_id";
}

/// What the ids of people begin with.
const PERSON: &str = "oidc:";

impl KeyId {
    /// Of whoever shows no key, where that is allowed.
    pub fn anonymous() -> Self {
        Self::known("anonymous")
    }

    pub fn is_anonymous(&self) -> bool {
        self.as_str() == "anonymous"
    }

    /// Of a person for whom an issuer vouches. An issuer has no `#` in it, and no key has an id like this one.
    pub fn person(issuer: &str, subject: &str) -> Result<Self, BadId> {
        Self::parse(&format!("{PERSON}{issuer}#{subject}"))
    }

    pub fn is_person(&self) -> bool {
        self.as_str().starts_with(PERSON)
    }

    /// What the issuer calls a person; nothing for a key.
    pub fn subject(&self) -> Option<&str> {
        self.as_str().strip_prefix(PERSON)?.split_once('#').map(|(_, subject)| subject)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_short_printable_and_not_empty() {
        assert_eq!(JobId::parse(""), Err(BadId::Empty("job_id")));
        assert_eq!(Topic::parse("job echo"), Err(BadId::Unprintable("topic")));
        assert_eq!(WorkerId::parse(&"w".repeat(257)), Err(BadId::TooLong("worker_id")));
        assert_eq!(JobId::parse("run:step@1").unwrap().as_str(), "run:step@1");
    }
}
