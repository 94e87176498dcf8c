//! MCP calls: what a job that stands for one is about, and which of them a filter lets through.

use super::document;
use super::pattern::Patterns;
use crate::request::Request;

/// The parts of an MCP call, each with the label that carries it.
const PARTS: [(&str, &str); 4] =
    [("server", "mcp.server"), ("tool", "mcp.tool"), ("resource", "mcp.resource"), ("action", "mcp.action")];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// Allowed and denied, for each of [`PARTS`].
    lists: [(Patterns, Patterns); 4],
}

impl Filter {
    pub fn new(written: &document::Mcp) -> Result<Self, String> {
        let list = |names: &[String]| Patterns::parse(names).map_err(|problem| format!("mcp: {problem}"));
        let lists = [
            (list(&written.allow_servers)?, list(&written.deny_servers)?),
            (list(&written.allow_tools)?, list(&written.deny_tools)?),
            (list(&written.allow_resources)?, list(&written.deny_resources)?),
            (list(&written.allow_actions)?, list(&written.deny_actions)?),
        ];
        Ok(Self { lists })
    }

    /// Why it does not let the call through. A job that is no MCP call has nothing to be stopped for.
    pub fn stops(&self, request: &Request) -> Option<String> {
        if !is_call(request) {
            return None;
        }
        for ((allow, deny), (part, label)) in self.lists.iter().zip(PARTS) {
            let value = request.labels.get(label).map_or("", String::as_str);
            if !value.is_empty() && deny.any(value) {
                return Some(format!("the MCP {part} {value} is denied"));
            }
            if !allow.is_empty() && !allow.any(value) {
                return Some(format!("the MCP {part} {value:?} is not among those that are allowed"));
            }
        }
        None
    }
}

pub fn is_call(request: &Request) -> bool {
    PARTS.iter().any(|(_, label)| request.labels.contains_key(*label))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denial_counts_more_than_an_allowance() {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let filter = Filter::new(&document::Mcp {
            allow_servers: list(&["git*", "jira"]),
            deny_servers: list(&["github-admin"]),
            deny_actions: list(&["delete"]),
            ..document::Mcp::default()
        });
        let filter = filter.unwrap();
        let stops = |labels: &[(&str, &str)]| {
            let mut request = Request::plain("j", "job.mcp");
            request.labels = labels.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
            filter.stops(&request)
        };
        assert_eq!(stops(&[]), None, "no MCP call");
        assert_eq!(stops(&[("mcp.server", "github"), ("mcp.action", "read")]), None);
        assert!(stops(&[("mcp.server", "github-admin")]).unwrap().contains("denied"));
        assert!(stops(&[("mcp.server", "slack")]).unwrap().contains("not among"));
        assert!(stops(&[("mcp.server", "jira"), ("mcp.action", "delete")]).unwrap().contains("delete"));
        assert!(stops(&[("mcp.tool", "x")]).unwrap().contains("server"), "a call without a server");
    }
}
