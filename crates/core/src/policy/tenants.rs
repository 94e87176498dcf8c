//! What the policy file says of single tenants. It can only take away what rules allow.

use super::document::TenantRules;
use super::mcp;
use super::pattern::Patterns;
use crate::id::TenantId;
use crate::request::Request;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub struct Tenants(BTreeMap<String, Tenant>);

#[derive(Debug)]
struct Tenant {
    allow_topics: Patterns,
    deny_topics: Patterns,
    allowed_repo_hosts: Patterns,
    max_concurrent_jobs: u32,
    max_queued_jobs: u32,
    mcp: Option<mcp::Filter>,
}

impl Tenants {
    pub fn new(written: BTreeMap<String, TenantRules>) -> Result<Self, String> {
        let make = |(name, rules): (String, TenantRules)| {
            let bad = |problem| format!("tenants.{name}: {problem}");
            let tenant = Tenant {
                allow_topics: Patterns::parse(&rules.allow_topics).map_err(bad)?,
                deny_topics: Patterns::parse(&rules.deny_topics).map_err(bad)?,
                allowed_repo_hosts: Patterns::parse(&lowercase(&rules.allowed_repo_hosts)).map_err(bad)?,
                max_concurrent_jobs: rules.max_concurrent_jobs,
                max_queued_jobs: rules.max_queued_jobs,
                mcp: rules.mcp.as_ref().map(mcp::Filter::new).transpose().map_err(bad)?,
            };
            Ok((name, tenant))
        };
        written.into_iter().map(make).collect::<Result<_, _>>().map(Self)
    }

    /// Why the tenant's own lists refuse the topic, if they do.
    pub fn refuse_topic(&self, request: &Request) -> Option<String> {
        let (tenant, topic) = (request.tenant.as_str(), request.topic.as_str());
        let rules = self.0.get(tenant)?;
        if rules.deny_topics.any(topic) {
            return Some(format!("tenant {tenant} may not use {topic}"));
        }
        let allowed = rules.allow_topics.is_empty() || rules.allow_topics.any(topic);
        (!allowed).then(|| format!("{topic} is not among the topics of tenant {tenant}"))
    }

    /// Whether the tenant has a list of topics, and this one is on it.
    pub fn allow_something(&self) -> bool {
        self.0.values().any(|rules| !rules.allow_topics.is_empty())
    }

    pub fn allow_topic(&self, request: &Request) -> bool {
        self.0
            .get(request.tenant.as_str())
            .is_some_and(|rules| rules.allow_topics.any(request.topic.as_str()))
    }

    /// Why an allowed job is refused after all: an MCP call or a repository that the tenant may not use.
    pub fn refuse_call(&self, request: &Request) -> Option<(&'static str, String)> {
        let rules = self.0.get(request.tenant.as_str())?;
        if let Some(reason) = rules.mcp.as_ref().and_then(|filter| filter.stops(request)) {
            return Some(("tenant-mcp", reason));
        }
        if rules.allowed_repo_hosts.is_empty() {
            return None;
        }
        let problem = match repo_host(request)? {
            Ok(host) if rules.allowed_repo_hosts.any(&host) => return None,
            Ok(host) => format!("repositories of {host} are not allowed"),
            Err(problem) => problem,
        };
        Some(("tenant-repo-hosts", problem))
    }

    pub fn limits(&self) -> BTreeMap<TenantId, u32> {
        let limited = self.0.iter().filter(|(_, rules)| rules.max_concurrent_jobs > 0);
        let limits = limited
            .filter_map(|(name, rules)| Some((TenantId::parse(name).ok()?, rules.max_concurrent_jobs)));
        limits.collect()
    }

    pub fn jobs_max(&self, tenant: &TenantId) -> Option<u32> {
        self.0.get(tenant.as_str()).map(|rules| rules.max_concurrent_jobs).filter(|max| *max > 0)
    }

    /// How many jobs of a tenant may be under way at once, if the file says so.
    pub fn queue_max(&self, tenant: &TenantId) -> Option<u32> {
        self.0.get(tenant.as_str()).map(|rules| rules.max_queued_jobs).filter(|max| *max > 0)
    }
}

/// Names of hosts are the same in capitals.
fn lowercase(hosts: &[String]) -> Vec<String> {
    hosts.iter().map(|host| host.to_ascii_lowercase()).collect()
}

/// The host of the repository that a job is about, however it is spelled. A worker goes by the address, so that is what
/// counts, and a host beside it that is another one is refused.
fn repo_host(request: &Request) -> Option<Result<String, String>> {
    let label = |name: &str| request.labels.get(name).map(|value| value.to_ascii_lowercase());
    let (claimed, url) = (label("repo_host"), label("repo_url"));
    let Some(url) = url else { return claimed.map(Ok) };
    let host = host_of(&url);
    Some(match claimed {
        Some(claimed) if claimed != host => Err(format!("repo_host {claimed} is not the host of repo_url")),
        _ => Ok(host.to_owned()),
    })
}

/// Nothing if programs disagree about where the host ends.
fn host_of(url: &str) -> &str {
    if url.contains(|c: char| c == '\\' || c.is_whitespace() || c.is_control()) {
        return "";
    }
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = after_scheme.split(['/', '?', '#']).next().unwrap_or_default();
    let after_user = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    after_user.split(':').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_a_repository_is_found_in_every_spelling() {
        for (url, host) in [
            ("https://github.com/a/b.git", "github.com"),
            ("git@github.com:a/b.git", "github.com"),
            ("ssh://git@github.com:22/a", "github.com"),
            ("https://github.com@evil.example/a", "evil.example"),
            ("github.com/a/b", "github.com"),
            ("https://GitHub.com/a", "github.com"),
            ("https://evil.example\\@github.com/a", ""),
        ] {
            let mut request = Request::plain("j", "job.a");
            request.labels.insert("repo_url".to_owned(), url.to_owned());
            assert_eq!(repo_host(&request), Some(Ok(host.to_owned())), "{url}");
        }
    }
}
