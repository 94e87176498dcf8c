//! From a topic to the pools that serve it: mapped by `pools.yaml`, or discovered when there is none.

use super::Target;
use crate::id::{PoolId, Topic};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone, PartialEq, Default)]
pub enum Routing {
    /// No file: a topic goes to the workers that say they serve it or are seen listening on it.
    #[default]
    Discovered,
    Mapped(Pools),
}

/// `pools.yaml` as it is written.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pools {
    pub topics: BTreeMap<Topic, Mapping>,
    pub pools: BTreeMap<PoolId, Pool>,
}

/// Where a topic goes: a pool, several, or those and how many of its jobs may be at workers at once.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged, expecting = "a pool, a list of pools, or a map with `pools` and `max_concurrent_jobs`")]
pub enum Mapping {
    Plain(OneOrMany),
    Limited(Limited),
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limited {
    pub pools: OneOrMany,
    /// Zero means no limit.
    #[serde(default)]
    pub max_concurrent_jobs: u32,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany {
    One(PoolId),
    Many(Vec<PoolId>),
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pool {
    /// What its workers can do.
    pub requires: Vec<String>,
    pub status: PoolStatus,
    pub description: String,
    pub drain_started_at: Option<String>,
    pub drain_timeout_seconds: Option<u64>,
    pub on_worker_lost: OnWorkerLost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PoolStatus {
    #[default]
    Active,
    Draining,
    Inactive,
}

/// What becomes of a job whose worker died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnWorkerLost {
    #[default]
    Requeue,
    Fail,
}

impl Mapping {
    pub fn pools(&self) -> &[PoolId] {
        match self {
            Self::Plain(pools) | Self::Limited(Limited { pools, .. }) => pools.pools(),
        }
    }
}

impl OneOrMany {
    pub fn pools(&self) -> &[PoolId] {
        match self {
            Self::One(pool) => std::slice::from_ref(pool),
            Self::Many(pools) => pools,
        }
    }
}

impl Pools {
    /// Names what a file got wrong.
    pub fn check(&self) -> Result<(), String> {
        if self.topics.is_empty() {
            return Err("topics: at least one topic must be mapped to a pool".to_owned());
        }
        for (topic, pools) in &self.topics {
            if pools.pools().is_empty() {
                return Err(format!("topics.{topic}: the list of pools is empty"));
            }
        }
        Ok(())
    }
}

impl Routing {
    /// Which pools, or which topic's listeners, a job may go to.
    pub fn target(&self, topic: &Topic, preferred_pool: Option<&str>, requires: &BTreeSet<String>) -> Target {
        let preferred = |pool: &PoolId| preferred_pool.is_none_or(|name| name == pool.as_str());
        let Self::Mapped(map) = self else {
            let pool = preferred_pool.and_then(|name| PoolId::parse(name).ok());
            return Target::Topic { topic: topic.clone(), pool };
        };
        let mapped = map.topics.get(topic).map_or(&[][..], Mapping::pools);
        let fits = |pool: &&PoolId| {
            let known = map.pools.get(*pool);
            let offers = |need: &String| {
                known.is_some_and(|pool| pool.requires.iter().any(|own| own.eq_ignore_ascii_case(need)))
            };
            preferred(pool)
                && known.is_none_or(|pool| pool.status == PoolStatus::Active)
                && requires.iter().all(offers)
        };
        Target::Pools(mapped.iter().filter(fits).cloned().collect())
    }

    pub fn has_topic(&self, topic: &Topic) -> bool {
        match self {
            Self::Discovered => true,
            Self::Mapped(map) => map.topics.contains_key(topic),
        }
    }

    /// How many jobs of a topic may be at workers at once, if that has a limit.
    pub fn topic_max(&self, topic: &Topic) -> Option<u32> {
        match self {
            Self::Mapped(map) => match map.topics.get(topic)? {
                Mapping::Limited(limited) => Some(limited.max_concurrent_jobs).filter(|max| *max > 0),
                Mapping::Plain(_) => None,
            },
            Self::Discovered => None,
        }
    }

    pub fn on_worker_lost(&self, pool: Option<&PoolId>) -> OnWorkerLost {
        match (self, pool) {
            (Self::Mapped(map), Some(pool)) => {
                map.pools.get(pool).map_or(OnWorkerLost::Requeue, |pool| pool.on_worker_lost)
            }
            _ => OnWorkerLost::Requeue,
        }
    }

    /// A map from literals, for tests and examples.
    pub fn mapped<'a>(
        topics: impl IntoIterator<Item = (&'a str, Vec<&'a str>)>,
        pools: impl IntoIterator<Item = (&'a str, Vec<&'a str>)>,
    ) -> Self {
        let many = |names: Vec<&str>| {
            Mapping::Plain(OneOrMany::Many(names.into_iter().map(PoolId::known).collect()))
        };
        let pool = |requires: Vec<&str>| Pool {
            requires: requires.into_iter().map(str::to_owned).collect(),
            ..Pool::default()
        };
        Self::Mapped(Pools {
            topics: topics.into_iter().map(|(topic, names)| (Topic::known(topic), many(names))).collect(),
            pools: pools.into_iter().map(|(name, requires)| (PoolId::known(name), pool(requires))).collect(),
        })
    }
}
