//! Roles: what a person may do, as named sets of scopes.
//!
//! Asking for work, approving it and releasing what was held back are in three roles: no role but `admin` has two of them.
//! Who has several roles has all of their scopes, and still approves and releases nothing of their own.

use crate::Scope;
use reveille_core::id::TenantId;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    Viewer,
    Submitter,
    Approver,
    Operator,
    Admin,
}

/// Where a role holds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    Everywhere,
    Tenant(TenantId),
}

/// Whoever is in the group has the role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleGrant {
    pub group: String,
    pub reach: Reach,
    pub role: Role,
}

impl Role {
    pub const ALL: [Self; 5] = [Self::Viewer, Self::Submitter, Self::Approver, Self::Operator, Self::Admin];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Submitter => "submitter",
            Self::Approver => "approver",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == word)
    }

    /// An `admin` of one tenant may do there what a key of the tenant can, and nothing that concerns others.
    pub fn scopes(self, reach: &Reach) -> &'static [Scope] {
        match (self, reach) {
            (Self::Viewer, _) => &[Scope::Read],
            (Self::Submitter, _) => &[Scope::Read, Scope::Submit],
            (Self::Approver, _) => &[Scope::Read, Scope::Approve],
            (Self::Operator, _) => &[Scope::Read, Scope::Operate, Scope::Release],
            (Self::Admin, Reach::Tenant(_)) => &[Scope::Read, Scope::Write],
            (Self::Admin, Reach::Everywhere) => &[Scope::Admin],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn submitting_approving_and_releasing_are_in_three_roles() {
        let tenant = Reach::Tenant(TenantId::known("acme"));
        let separate = [Scope::Submit, Scope::Approve, Scope::Release];
        for role in Role::ALL {
            for reach in [&tenant, &Reach::Everywhere] {
                let scopes = role.scopes(reach);
                let held = separate.iter().filter(|scope| Scope::any_implies(scopes, **scope)).count();
                assert_eq!(
                    held,
                    match role {
                        Role::Viewer => 0,
                        Role::Admin => 3,
                        _ => 1,
                    },
                    "{role:?}"
                );
                let is_operator = Scope::any_implies(scopes, Scope::Admin);
                assert_eq!(is_operator, role == Role::Admin && *reach == Reach::Everywhere);
            }
            assert_eq!(Role::parse(role.as_str()), Some(role));
        }
    }
}
