//! The gate: identifies a client by its secret.

use reveille_core::id::{KeyId, TenantId};

/// Asked once for every client, again when it presents another secret, and then for as long as it is connected.
///
/// `admit(None)` says whether the door is open: if it admits someone without a secret, clients that present none are
/// that guest. A client that does present one is judged by it even then, so that a mistyped secret is noticed instead
/// of silently meaning a different identity.
#[async_trait::async_trait]
pub trait Gate: Send + Sync + 'static {
    async fn admit(&self, secret: Option<&str>) -> Result<Guest, Denied>;

    /// Whether a guest would still be admitted as who it is. Every connection asks every second, so this answers from
    /// memory.
    fn standing(&self, guest: &Guest) -> Standing;
}

/// What has become of a guest's right to be here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Valid,
    /// Its key was good until a time that has passed.
    Expired,
    /// Its key was revoked, or no longer gives the role and the tenant that the guest has.
    Revoked,
}

/// A client that was admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guest {
    pub tenant: TenantId,
    pub role: Role,
    /// The key that it presented, if one was required.
    pub key: Option<KeyId>,
}

/// What a guest may do. Workers take jobs of every tenant, so they have to be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Everything that a worker does, blobs included.
    Worker,
    /// Submits and cancels jobs of its own tenant; receives nothing but its own replies.
    Submitter,
}

impl Role {
    pub fn may_publish(self, subject: &str) -> bool {
        self == Self::Worker || matches!(subject, "sys.job.submit" | "sys.job.cancel")
    }

    /// A reply inbox belongs to whoever made up its second token.
    pub fn may_subscribe(self, pattern: &str) -> bool {
        let own_inbox = || pattern.strip_prefix("_INBOX.").is_some_and(|rest| !rest.starts_with(['*', '>']));
        self == Self::Worker || own_inbox()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the secret is missing or not known here")]
pub struct Denied;

/// Admits everyone who presents no secret, all as one tenant. It knows no secrets.
#[derive(Debug, Clone)]
pub struct OpenGate(pub TenantId);

#[async_trait::async_trait]
impl Gate for OpenGate {
    async fn admit(&self, secret: Option<&str>) -> Result<Guest, Denied> {
        match secret {
            None => Ok(Guest { tenant: self.0.clone(), role: Role::Worker, key: None }),
            Some(_) => Err(Denied),
        }
    }

    fn standing(&self, _: &Guest) -> Standing {
        Standing::Valid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_submitter_hears_nothing_but_its_own_replies() {
        let (worker, submitter) = (Role::Worker, Role::Submitter);
        for subject in ["worker.w.jobs", "job.echo", ">", "_INBOX.>", "_INBOX.*.x", "sys.job.result"] {
            assert!(worker.may_subscribe(subject) && !submitter.may_subscribe(subject), "{subject}");
        }
        assert!(submitter.may_subscribe("_INBOX.abc.*"));
        for subject in ["sys.job.result", "sys.heartbeat", "worker.w.jobs", "job.echo", "sys.job.progress"] {
            assert!(worker.may_publish(subject) && !submitter.may_publish(subject), "{subject}");
        }
        assert!(submitter.may_publish("sys.job.submit") && submitter.may_publish("sys.job.cancel"));
    }
}
