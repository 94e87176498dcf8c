//! Which workers a job may go to.
//!
//! A job's [`Selector`] says which workers fit. Jobs with the same selector share a [`Lane`](super::lane::Lane),
//! which keeps those workers ordered by load and those jobs ordered by turn, so that placing a job is
//! a look at two first elements however large the fleet is. `placement` holds the lanes together.

use super::grants::JobOwner;
use super::routing::Routing;
use crate::fleet::Profile;
use crate::id::{PoolId, Topic, WorkspaceId};
use crate::request::Request;
use std::collections::{BTreeMap, BTreeSet};

/// Labels of a job that a worker's labels must answer.
const CONSTRAINT_PREFIXES: [&str; 3] = ["placement.", "constraint.", "node."];

/// Which workers fit. Two jobs with equal selectors are equal to placement.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Selector {
    pub target: Target,
    pub labels: BTreeMap<String, String>,
    /// Lower case.
    pub requires: BTreeSet<String>,
    /// What workers with a grant ask.
    pub owner: JobOwner,
    pub bounds: Bounds,
}

/// What a job waits for beside a worker. Jobs that share a limit share a lane, so that one which has to
/// wait for it holds up nobody else.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Bounds {
    /// Its topic, if that has a limit.
    pub topic: Option<Topic>,
    /// How many jobs of its tenant may be at workers at once, if its verdict says so.
    pub jobs_max: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Target {
    /// Workers of these pools: routing is mapped by a file. No pools means that nothing is mapped.
    Pools(Vec<PoolId>),
    /// Workers that serve the topic: routing is discovered.
    Topic { topic: Topic, pool: Option<PoolId> },
    /// One workspace: the job was delegated to it, whatever the files say of its topic.
    Workspace(WorkspaceId),
}

impl Selector {
    /// For workers without a grant. Whoever places the job adds who owns it.
    pub fn of(request: &Request, routing: &Routing) -> Self {
        let labels = request.labels.iter();
        let labels =
            labels.filter(|(key, _)| CONSTRAINT_PREFIXES.iter().any(|prefix| key.starts_with(prefix)));
        let requires: BTreeSet<String> =
            request.needs.requires.iter().map(|need| need.to_lowercase()).collect();
        let preferred = request.labels.get("preferred_pool").map(String::as_str);
        let target = match &request.delegated {
            Some(delegated) => Target::Workspace(delegated.to.clone()),
            None => routing.target(&request.topic, preferred, &requires),
        };
        let labels = labels.map(|(key, value)| (key.clone(), value.clone())).collect();
        let topic = routing.topic_max(&request.topic).map(|_| request.topic.clone());
        let owner = JobOwner::default();
        Self { target, labels, requires, owner, bounds: Bounds { topic, jobs_max: None } }
    }

    pub fn fits(&self, worker: &Profile) -> bool {
        self.owner.is_served_by(worker) && self.fits_whoever_owns_it(worker)
    }

    /// The same, whatever the worker's grant says.
    pub fn fits_whoever_owns_it(&self, worker: &Profile) -> bool {
        let (targeted, vouched) = match &self.target {
            // A pool lists what its workers can do, so it vouches for those that do not say.
            Target::Pools(pools) => (worker.pool.as_ref().is_some_and(|pool| pools.contains(pool)), true),
            Target::Topic { topic, pool } => {
                (worker.topics.contains(topic) && (pool.is_none() || *pool == worker.pool), false)
            }
            Target::Workspace(id) => return worker.workspace.as_ref() == Some(id),
        };
        targeted
            && self.capable(worker, vouched)
            && self.labels.iter().all(|(key, value)| answers(worker, key, value))
    }

    /// Whether anyone who listens on the topic may take such a job.
    pub fn open_to_anyone(&self) -> Option<&Topic> {
        match &self.target {
            Target::Topic { topic, pool: None } if self.labels.is_empty() && self.requires.is_empty() => {
                Some(topic)
            }
            _ => None,
        }
    }

    fn capable(&self, worker: &Profile, vouched: bool) -> bool {
        let has = |need: &String| worker.capabilities.iter().any(|own| own.eq_ignore_ascii_case(need));
        self.requires.iter().all(has) || (vouched && worker.capabilities.is_empty())
    }
}

/// Whether a worker answers one constraint: with a label of the same name, with or without the prefix,
/// or (for `constraint.x: true`) with a capability `x`.
fn answers(worker: &Profile, key: &str, value: &str) -> bool {
    let bare = CONSTRAINT_PREFIXES.iter().find_map(|prefix| key.strip_prefix(prefix)).unwrap_or(key);
    match worker.labels.get(key).or_else(|| worker.labels.get(bare)) {
        Some(own) => own == value,
        None => key.starts_with("constraint.") && value == "true" && worker.capabilities.contains(bare),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(pool: &str, capabilities: &[&str], labels: &[(&str, &str)], topics: &[&str]) -> Profile {
        Profile {
            pool: PoolId::parse(pool).ok(),
            capabilities: capabilities.iter().map(ToString::to_string).collect(),
            labels: labels.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect(),
            topics: topics.iter().map(|topic| Topic::known(*topic)).collect(),
            ..Profile::default()
        }
    }

    fn job(labels: &[(&str, &str)], requires: &[&str]) -> Request {
        let mut request = Request::plain("j", "job.echo");
        request.labels = labels.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        request.needs.requires = requires.iter().map(ToString::to_string).collect();
        request
    }

    #[test]
    fn discovered_routing_takes_workers_that_serve_the_topic() {
        let selector = |labels: &[(&str, &str)], requires: &[&str]| {
            Selector::of(&job(labels, requires), &Routing::Discovered)
        };
        let echo = profile("a", &["GPU"], &[("region", "eu"), ("node.disk", "ssd")], &["job.echo"]);
        assert!(selector(&[], &[]).fits(&echo));
        assert!(!selector(&[], &[]).fits(&profile("a", &[], &[], &["job.other"])));
        assert!(selector(&[], &["gpu"]).fits(&echo) && !selector(&[], &["tpu"]).fits(&echo));
        assert!(
            !selector(&[], &["gpu"]).fits(&profile("a", &[], &[], &["job.echo"])),
            "nobody vouches for it"
        );
        assert!(selector(&[("placement.region", "eu"), ("node.disk", "ssd")], &[]).fits(&echo));
        assert!(!selector(&[("placement.region", "us")], &[]).fits(&echo));
        assert!(!selector(&[("placement.zone", "1")], &[]).fits(&echo));
        assert!(selector(&[("constraint.GPU", "true")], &[]).fits(&echo));
        assert!(selector(&[("colour", "red")], &[]).fits(&echo), "other labels are not constraints");
        assert!(selector(&[("preferred_pool", "a")], &[]).fits(&echo));
        assert!(!selector(&[("preferred_pool", "b")], &[]).fits(&echo));
    }

    #[test]
    fn mapped_routing_takes_the_pools_of_the_topic() {
        let routing = Routing::mapped(
            [("job.echo", vec!["a", "b"])],
            [("a", vec!["gpu"]), ("b", vec![]), ("c", vec![])],
        );
        let selector =
            |labels: &[(&str, &str)], requires: &[&str]| Selector::of(&job(labels, requires), &routing);
        let (a, b) = (profile("a", &[], &[], &[]), profile("b", &["gpu"], &[], &[]));
        assert!(selector(&[], &[]).fits(&a) && selector(&[], &[]).fits(&b));
        assert!(selector(&[], &["gpu"]).fits(&a), "the pool vouches for a worker that does not say");
        assert!(
            !selector(&[], &["gpu"]).fits(&profile("a", &["cpu"], &[], &[])),
            "this one says, and lacks it"
        );
        assert!(!selector(&[], &["gpu"]).fits(&b), "the pool does not promise it");
        assert!(!selector(&[("preferred_pool", "b")], &[]).fits(&a));
        assert_eq!(
            selector(&[("preferred_pool", "c")], &[]).target,
            Target::Pools(vec![]),
            "c is not mapped to the topic"
        );
    }
}
