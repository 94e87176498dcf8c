//! The gate: who a client is, by the secret it brought.

use reveille_core::id::{KeyId, TenantId};

/// Asked once for every client, or again when it brings another secret.
///
/// `admit(None)` says whether the door is open: if it lets someone in without a secret, clients
/// that bring none are that guest. A client that does bring one is judged by it even then, so that
/// a mistyped secret is noticed instead of silently meaning somebody else.
#[async_trait::async_trait]
pub trait Gate: Send + Sync + 'static {
    async fn admit(&self, secret: Option<&str>) -> Result<Guest, Denied>;
}

/// Somebody who was let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guest {
    pub tenant: TenantId,
    pub role: Role,
    /// The key that it showed, if it had to show one.
    pub key: Option<KeyId>,
}

/// What a guest may do. Workers take jobs of every tenant, so being one is a matter of trust.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Everything that a worker does, blobs included.
    Worker,
    /// Asks for jobs of its own tenant and takes them back; hears nothing but its own replies.
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

/// Lets in everyone who brings no secret, all as one tenant. It knows no secrets.
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
