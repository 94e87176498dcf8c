//! What a worker's credential lets it serve. A worker without one came through an open door, or with an operator's
//! key, and serves everybody.

use crate::id::{ID_LEN_MAX, KeyId, PoolId, TenantId, Topic, WorkerId};
use crate::policy::pattern::Pattern;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// Patterns of topics that one grant may have.
pub const GRANT_TOPICS_MAX: usize = 64;
/// Pools that one grant may name.
pub const GRANT_POOLS_MAX: usize = 64;
/// Tenants that one grant may name; more than that is everyone.
pub const GRANT_TENANTS_MAX: usize = 256;

/// Which jobs whoever has a worker's credential may be given.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerGrant {
    /// Patterns as policies have them; none means every topic.
    pub topics: BTreeSet<String>,
    /// Pools that it may join; none means any.
    pub pools: BTreeSet<PoolId>,
    pub tenants: ServedTenants,
}

/// Whose jobs somebody may see.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServedTenants {
    Everyone,
    Only(BTreeSet<TenantId>),
}

/// A grant, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WorkerCredential {
    pub key: KeyId,
    pub grant: WorkerGrant,
    /// The only worker that has it: it signs with the key.
    pub signs_as: Option<WorkerId>,
}

/// Why a grant cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadGrant {
    #[error("more than {0} {1}")]
    TooMany(usize, &'static str),
    #[error("{0:?} is no pattern of topics: {1}")]
    Pattern(String, String),
}

/// Nobody: what is not said is not allowed.
impl Default for ServedTenants {
    fn default() -> Self {
        Self::Only(BTreeSet::new())
    }
}

/// As commands say it: names, or a star.
impl fmt::Display for ServedTenants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everyone => f.write_str("*"),
            Self::Only(tenants) => {
                let names: Vec<&str> = tenants.iter().map(TenantId::as_str).collect();
                f.write_str(&names.join(","))
            }
        }
    }
}

impl ServedTenants {
    pub fn only(tenant: &TenantId) -> Self {
        Self::Only(BTreeSet::from([tenant.clone()]))
    }

    pub fn include(&self, tenant: &TenantId) -> bool {
        match self {
            Self::Everyone => true,
            Self::Only(tenants) => tenants.contains(tenant),
        }
    }
}

impl WorkerGrant {
    /// Every topic and pool of one tenant.
    pub fn of_tenant(tenant: &TenantId) -> Self {
        Self { tenants: ServedTenants::only(tenant), ..Self::default() }
    }

    /// Checks a grant from outside.
    pub fn check(&self) -> Result<(), BadGrant> {
        let tenants = match &self.tenants {
            ServedTenants::Everyone => 0,
            ServedTenants::Only(tenants) => tenants.len(),
        };
        for (count, max, what) in [
            (self.topics.len(), GRANT_TOPICS_MAX, "topics"),
            (self.pools.len(), GRANT_POOLS_MAX, "pools"),
            (tenants, GRANT_TENANTS_MAX, "tenants"),
        ] {
            if count > max {
                return Err(BadGrant::TooMany(max, what));
            }
        }
        for text in &self.topics {
            let bad = |problem: String| BadGrant::Pattern(text.clone(), problem);
            if text.is_empty() || text.len() > ID_LEN_MAX {
                return Err(bad(format!("it must have 1 to {ID_LEN_MAX} bytes")));
            }
            Pattern::parse(text).map_err(bad)?;
        }
        Ok(())
    }

    pub fn has_topic(&self, topic: &str) -> bool {
        let matches = |text: &String| Pattern::parse(text).is_ok_and(|pattern| pattern.matches(topic));
        self.topics.is_empty() || self.topics.iter().any(matches)
    }

    /// Whether a worker of this pool, or of none, is within the grant.
    pub fn has_pool(&self, pool: Option<&PoolId>) -> bool {
        self.pools.is_empty() || pool.is_some_and(|pool| self.pools.contains(pool))
    }

    /// Whether such a job may be shown to whoever has this.
    pub fn serves(&self, tenant: &TenantId, topic: &Topic) -> bool {
        self.tenants.include(tenant) && self.has_topic(topic.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(topics: &[&str], pools: &[&str], tenants: &[&str]) -> WorkerGrant {
        WorkerGrant {
            topics: topics.iter().map(ToString::to_string).collect(),
            pools: pools.iter().map(|name| PoolId::known(*name)).collect(),
            tenants: ServedTenants::Only(tenants.iter().map(|name| TenantId::known(*name)).collect()),
        }
    }

    #[test]
    fn a_grant_names_what_it_allows_and_nothing_else() {
        let narrow = grant(&["job.echo", "job.mail.*"], &["gpu"], &["acme"]);
        let serves =
            |tenant: &str, topic: &str| narrow.serves(&TenantId::known(tenant), &Topic::known(topic));
        assert!(serves("acme", "job.echo") && serves("acme", "job.mail.send"));
        assert!(!serves("acme", "job.other") && !serves("beta", "job.echo"));
        assert!(narrow.has_pool(Some(&PoolId::known("gpu"))));
        assert!(!narrow.has_pool(Some(&PoolId::known("cpu"))) && !narrow.has_pool(None));

        let wide = grant(&[], &[], &["acme"]);
        assert!(wide.has_topic("job.any") && wide.has_pool(None));
        assert!(!WorkerGrant::default().serves(&TenantId::known("acme"), &Topic::known("job.echo")));
    }

    #[test]
    fn a_grant_that_cannot_be_is_refused() {
        let many: Vec<String> = (0..=GRANT_TENANTS_MAX).map(|number| format!("t{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        for (grant, said) in [
            (grant(&["job.[a"], &[], &[]), "has a [ without a ]"),
            (grant(&[""], &[], &[]), "must have 1 to"),
            (grant(&[], &[], &many), "more than 256 tenants"),
        ] {
            let problem = grant.check().unwrap_err().to_string();
            assert!(problem.contains(said), "{problem}");
        }
        assert_eq!(grant(&["job.*"], &["gpu"], &["acme"]).check(), Ok(()));
    }

    #[test]
    fn a_grant_is_kept_as_it_is_and_one_that_says_nothing_serves_nobody() {
        for tenants in [ServedTenants::Everyone, ServedTenants::only(&TenantId::known("acme"))] {
            let grant = WorkerGrant { tenants, ..WorkerGrant::default() };
            let json = serde_json::to_string(&grant).unwrap();
            assert_eq!(serde_json::from_str::<WorkerGrant>(&json).unwrap(), grant);
        }
        assert_eq!(serde_json::from_str::<WorkerGrant>("{}").unwrap(), WorkerGrant::default());
    }
}
