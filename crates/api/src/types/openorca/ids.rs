//! How nodes are called in the console, so that no two members ever share a node.
//!
//! | member | within a tenant | in an operator's view of everybody |
//! |---|---|---|
//! | agent `a1` | `a1` | `acme/a1` |
//! | CAP worker `w1` | `cap:w1` | `acme/cap:w1` |
//! | workspace `u1` | `ws:u1` | `acme/ws:u1` |
//!
//! An agent whose id begins with one of the prefixes is called `agent:…`; a `/` in a tenant's name is
//! written `%2F`.

use reveille_core::id::TenantId;
use reveille_core::placement::Member;
use reveille_core::presence::Contract;
use reveille_engine::Audience;

const PREFIXES: [&str; 3] = ["agent:", "cap:", "ws:"];

#[derive(Debug, Clone, Copy)]
pub struct NodeIds {
    shows_tenants: bool,
}

impl NodeIds {
    pub fn of(audience: &Audience) -> Self {
        Self { shows_tenants: *audience == Audience::Everyone }
    }

    pub fn node(self, member: &Member) -> String {
        let id = member.id.as_str();
        let prefix = match member.contract {
            Contract::Cap => "cap:",
            Contract::Molecule => "ws:",
            Contract::VoiceGateway if PREFIXES.iter().any(|prefix| id.starts_with(prefix)) => "agent:",
            Contract::VoiceGateway => "",
        };
        self.within(&member.tenant, &format!("{prefix}{id}"))
    }

    /// A name that is unique within its tenant, made unique in this view.
    pub fn within(self, tenant: &TenantId, name: &str) -> String {
        if !self.shows_tenants {
            return name.to_owned();
        }
        let tenant = tenant.as_str().replace('%', "%25").replace('/', "%2F");
        format!("{tenant}/{name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_core::id::WorkerId;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_members_share_a_node() {
        let mut members = Vec::new();
        for tenant in ["a", "a/b", "a%2Fb", "b/cap:x"] {
            for contract in Contract::ALL {
                for id in ["x", "cap:x", "ws:x", "agent:x", "agent:cap:x", "b/x", "/x"] {
                    let (tenant, id) = (TenantId::known(tenant), WorkerId::known(id));
                    members.push(Member { contract, tenant, id });
                }
            }
        }
        let everyone = NodeIds::of(&Audience::Everyone);
        let nodes: BTreeSet<String> = members.iter().map(|member| everyone.node(member)).collect();
        assert_eq!(nodes.len(), members.len());
        let own = NodeIds::of(&Audience::Tenant(TenantId::known("a")));
        let own_members: Vec<&Member> = members.iter().filter(|m| m.tenant.as_str() == "a").collect();
        let nodes: BTreeSet<String> = own_members.iter().map(|member| own.node(member)).collect();
        assert_eq!(nodes.len(), own_members.len());
        assert!(nodes.contains("x") && nodes.contains("cap:x") && nodes.contains("agent:cap:x"));
    }
}
