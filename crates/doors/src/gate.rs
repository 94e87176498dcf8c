//! The gate: identifies a client by its secret.

use reveille_core::fleet::{ServedTenants, WorkerCredential};
use reveille_core::id::{KeyId, TenantId};
use reveille_store::Blobs;
use std::sync::Arc;

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

    /// Whether a guest whose role is limited may listen as this worker. If so, nobody else may for as long as it does.
    fn claim(&self, _guest: &Guest, _worker: &str) -> bool {
        false
    }

    /// The blobs that a guest whose role is limited may touch, if there are any for it.
    fn blobs(&self, _guest: &Guest) -> Option<Arc<dyn Blobs>> {
        None
    }
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

/// What a guest may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// Everything that a worker does, for every tenant, blobs included.
    Worker,
    /// Takes the jobs that its grant names, and reports on them.
    LimitedWorker {
        credential: Arc<WorkerCredential>,
        /// It may do what a submitter does, too.
        submits: bool,
    },
    /// Submits and cancels jobs of its own tenant; receives nothing but its own replies.
    Submitter,
}

/// Whether a subscription is let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listening<'s> {
    Allowed,
    /// If the guest may be this worker, which is for the gate to say.
    As(&'s str),
    Refused,
}

impl Role {
    pub fn may_publish(&self, subject: &str) -> bool {
        match self {
            Self::Worker => true,
            Self::LimitedWorker { submits, .. } => {
                REPORTS.contains(&subject) || (*submits && ORDERS.contains(&subject))
            }
            Self::Submitter => ORDERS.contains(&subject),
        }
    }

    /// A reply inbox belongs to whoever made up its second token.
    pub fn may_subscribe<'s>(&self, pattern: &'s str) -> Listening<'s> {
        let own_inbox = pattern.strip_prefix("_INBOX.").is_some_and(|rest| !rest.starts_with(['*', '>']));
        match self {
            Self::Worker => Listening::Allowed,
            _ if own_inbox => Listening::Allowed,
            Self::Submitter => Listening::Refused,
            Self::LimitedWorker { credential, .. } => {
                if pattern.split('.').any(|token| token == "*" || token == ">") {
                    return Listening::Refused;
                }
                let own = pattern.strip_prefix("worker.").and_then(|rest| rest.strip_suffix(".jobs"));
                match own {
                    Some(worker) => Listening::As(worker),
                    // What is said there is about the tenants that it serves.
                    None if pattern == "sys.job.cancel" => Listening::Allowed,
                    None if pattern.starts_with("job.") && credential.grant.has_topic(pattern) => {
                        Listening::Allowed
                    }
                    None => Listening::Refused,
                }
            }
        }
    }

    /// Whose jobs such a guest may be given.
    pub fn tenants(&self) -> ServedTenants {
        match self {
            Self::Worker => ServedTenants::Everyone,
            Self::LimitedWorker { credential, .. } => credential.grant.tenants.clone(),
            Self::Submitter => ServedTenants::default(),
        }
    }
}

/// What a worker says of itself and of its jobs.
const REPORTS: [&str; 6] = [
    "sys.heartbeat",
    "sys.handshake",
    "sys.job.progress",
    "sys.job.result",
    "sys.worker.handshake.challenge",
    "sys.worker.handshake.authenticate",
];

/// What whoever has jobs done says.
const ORDERS: [&str; 2] = ["sys.job.submit", "sys.job.cancel"];

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
    use reveille_core::fleet::WorkerGrant;

    fn limited(topics: &[&str], submits: bool) -> Role {
        let grant = WorkerGrant {
            topics: topics.iter().map(ToString::to_string).collect(),
            ..WorkerGrant::of_tenant(&TenantId::known("acme"))
        };
        let credential = WorkerCredential { key: KeyId::known("k"), grant, signs_as: None };
        Role::LimitedWorker { credential: Arc::new(credential), submits }
    }

    #[test]
    fn a_limited_worker_takes_its_topics_reports_and_hears_nothing_else() {
        let worker = limited(&["job.echo", "job.mail.*"], false);
        for subject in ["job.echo", "job.mail.send", "_INBOX.abc.*", "sys.job.cancel"] {
            assert_eq!(worker.may_subscribe(subject), Listening::Allowed, "{subject}");
        }
        assert_eq!(worker.may_subscribe("worker.w1.jobs"), Listening::As("w1"));
        for subject in [
            "job.pay",
            "job.*",
            "job.mail.*",
            "job.>",
            ">",
            "worker.*.jobs",
            "worker.>",
            "_INBOX.>",
            "sys.job.submit",
            "sys.job.result",
            "sys.job.dlq",
            "sys.heartbeat",
            "sys.workflow.event",
        ] {
            assert_eq!(worker.may_subscribe(subject), Listening::Refused, "{subject}");
        }
        for subject in REPORTS {
            assert!(worker.may_publish(subject), "{subject}");
        }
        for subject in ["sys.job.submit", "sys.job.cancel", "job.echo", "worker.w1.jobs", "_INBOX.x.1"] {
            assert!(!worker.may_publish(subject), "{subject}");
        }
        let both = limited(&[], true);
        assert!(both.may_publish("sys.job.submit") && both.may_publish("sys.job.result"));
        assert_eq!(both.may_subscribe("job.any"), Listening::Allowed);
    }

    #[test]
    fn a_submitter_hears_nothing_but_its_own_replies() {
        let (worker, submitter) = (Role::Worker, Role::Submitter);
        for subject in ["worker.w.jobs", "job.echo", ">", "_INBOX.>", "_INBOX.*.x", "sys.job.result"] {
            let heard = (worker.may_subscribe(subject), submitter.may_subscribe(subject));
            assert_eq!(heard, (Listening::Allowed, Listening::Refused), "{subject}");
        }
        assert_eq!(submitter.may_subscribe("_INBOX.abc.*"), Listening::Allowed);
        for subject in ["sys.job.result", "sys.heartbeat", "worker.w.jobs", "job.echo", "sys.job.progress"] {
            assert!(worker.may_publish(subject) && !submitter.may_publish(subject), "{subject}");
        }
        assert!(submitter.may_publish("sys.job.submit") && submitter.may_publish("sys.job.cancel"));
    }
}
