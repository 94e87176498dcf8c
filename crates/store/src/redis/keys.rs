//! The names of keys in Redis, as the seeds and operators know them.

use crate::Receipt;
use crate::blobs::SLOT_TAG;
use reveille_core::id::{JobId, TenantId};

/// Makes keys. On a cluster all begin with one hash tag, so that one script reaches everything it needs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Keys {
    pub prefix: String,
    /// The tag; nothing where there is one Redis.
    pub tag: &'static str,
}

impl Keys {
    pub fn on_one(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned(), tag: "" }
    }

    pub fn on_a_cluster(prefix: &str) -> Self {
        Self { prefix: format!("{SLOT_TAG}{prefix}"), tag: SLOT_TAG }
    }

    pub fn is_on_a_cluster(&self) -> bool {
        !self.tag.is_empty()
    }

    pub fn of(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    pub fn record(&self, job: &JobId) -> String {
        self.of(&format!("job:rec:{job}"))
    }

    pub fn meta(&self, job: &JobId) -> String {
        self.of(&format!("job:meta:{job}"))
    }

    pub fn idempotency(&self, tenant: &TenantId, key: &str) -> String {
        self.of(&format!("job:idempotency:{}:{key}", part(tenant.as_str())))
    }

    /// The live jobs of a server.
    pub fn owners_jobs(&self, owner: &str) -> String {
        self.of(&format!("job:owner:{owner}"))
    }

    pub fn letter(&self, job: &str) -> String {
        self.of(&format!("dlq:entry:{job}"))
    }

    pub fn packet(&self, name: &str) -> String {
        self.of(&format!("dlq:packet:{name}"))
    }

    /// Marks a message as answered, for ten minutes.
    pub fn processed(&self, message: &Receipt) -> String {
        self.of(&format!("cordum:bus:processed:{message}"))
    }

    /// Shows operators that a message is being processed.
    pub fn in_flight(&self, message: &Receipt) -> String {
        self.of(&format!("cordum:bus:inflight:{message}"))
    }

    /// The lock of a job.
    pub fn job_lock(&self, job: &JobId) -> String {
        self.of(&format!("cordum:scheduler:job:{job}"))
    }
}

/// A name as one part of a key: no name can extend into the next part.
pub fn part(name: &str) -> String {
    name.replace('%', "%25").replace(':', "%3A")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_with_a_colon_has_no_share_in_anothers_keys() {
        let keys = Keys::default();
        let key = |tenant: &str, key: &str| keys.idempotency(&TenantId::known(tenant), key);
        assert_eq!(key("acme", "order-7"), "job:idempotency:acme:order-7");
        assert_ne!(key("a:b", "c"), key("a", "b:c"));
        assert_ne!(part("a:b"), part("a%3Ab"));
    }
}
