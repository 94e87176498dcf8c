//! People: whoever an identity provider vouches for, and what their groups are worth here.
//!
//! A person is their issuer and subject, whatever they are called and whichever token or session they come with. What
//! they may do is worked out from their groups and the settings each time they come. A [`Caller`] acts in one tenant,
//! or everywhere, with the scopes that the person has there, so that a rule asks a person what it asks a key.

use super::keys::Caller;
use super::session_tokens::BrowserSession;
use super::{Access, KeyStanding};
use reveille_core::id::{BadId, KeyId, TenantId};
use reveille_oidc::{Oidc, TokenError, VerifiedPerson};
use reveille_roster::{Reach, Role, Scope};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Groups that are told to somebody who has no role.
const GROUPS_TOLD_MAX: usize = 20;

/// Somebody whom an identity provider vouches for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    verified: VerifiedPerson,
    key: KeyId,
    roles: Vec<(Reach, Role)>,
    /// Where they are if they act for no tenant in particular.
    home: TenantId,
    /// Nothing for whoever came with a token.
    session: Option<BrowserSession>,
}

/// Why somebody is nobody here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unidentified {
    #[error("the key is wrong, expired or revoked")]
    Key,
    #[error("the token is not taken: {0}")]
    Token(#[from] TokenError),
    #[error("{}", no_role(name, groups))]
    NoRole { name: String, groups: Vec<String> },
}

fn no_role(name: &str, groups: &[String]) -> String {
    if groups.is_empty() {
        return format!("{name} has no role here: the identity provider names no groups");
    }
    let more = if groups.len() > GROUPS_TOLD_MAX { ", …" } else { "" };
    let told = groups[..groups.len().min(GROUPS_TOLD_MAX)].join(", ");
    format!("{name} has no role here; none of these groups has one: {told}{more}")
}

impl Access {
    /// Who shows this, over HTTP or gRPC: a key, or a token of the identity provider.
    pub fn identify(&self, secret: &str) -> Result<Arc<Caller>, Unidentified> {
        if let Some(caller) = self.authenticate(secret) {
            return Ok(caller);
        }
        match self.oidc() {
            Some(oidc) if Oidc::is_token(secret) => {
                let person = self.person(oidc.verify_bearer(secret, self.runtime.now())?, None)?;
                Ok(Arc::new(Caller::of_person(&person)))
            }
            _ => Err(Unidentified::Key),
        }
    }

    /// Before that, keys of the provider are fetched that this token may need.
    pub async fn learn_keys_of(&self, secret: &str) {
        if let Some(oidc) = self.oidc().filter(|_| Oidc::is_token(secret)) {
            oidc.learn_keys_of(secret, self.runtime.now()).await;
        }
    }

    /// Who vouches for people, if somebody does.
    pub fn oidc(&self) -> Option<&Oidc> {
        self.oidc.as_ref()
    }

    /// What somebody is here.
    pub(super) fn person(
        &self,
        verified: VerifiedPerson,
        session: Option<BrowserSession>,
    ) -> Result<Arc<Person>, Unidentified> {
        let settings = self.runtime.settings();
        let key = person_key(&verified).map_err(|_| TokenError::Subject)?;
        let is_in = |group: &String| verified.groups.contains(group);
        let grants = settings.role_grants.iter().filter(|grant| is_in(&grant.group));
        let roles: Vec<_> = grants.map(|grant| (grant.reach.clone(), grant.role)).collect();
        if roles.is_empty() {
            return Err(Unidentified::NoRole { name: verified.name, groups: verified.groups });
        }
        self.keys.note_person(&key, &verified.name);
        Ok(Arc::new(Person { verified, key, roles, home: settings.default_tenant.clone(), session }))
    }

    /// Whether a person who was let in before would be let in now.
    pub(super) fn person_still_holds(&self, person: &Person) -> bool {
        match &person.session {
            Some(session) => !self.session_is_over(session),
            None => self.runtime.now() < person.verified.until,
        }
    }

    /// Whether somebody who was let in before would be let in now, and to the same things. Asked again and again for
    /// as long as a connection is open.
    pub fn still_holds(&self, caller: &Caller) -> bool {
        if let Some(person) = &caller.person {
            return self.person_still_holds(person);
        }
        if caller.key.is_anonymous() {
            return self.anonymous().is_some();
        }
        matches!(self.key_standing(&caller.key), KeyStanding::Valid(now) if *now == *caller)
    }
}

pub(super) fn person_key(verified: &VerifiedPerson) -> Result<KeyId, BadId> {
    KeyId::person(&verified.issuer, &verified.subject)
}

impl Person {
    /// Every tenant that a role of theirs names.
    fn tenants(&self) -> BTreeSet<&TenantId> {
        let named = self.roles.iter().filter_map(|(reach, _)| match reach {
            Reach::Tenant(tenant) => Some(tenant),
            Reach::Everywhere => None,
        });
        named.collect()
    }

    fn scopes(&self, holds: impl Fn(&Reach) -> bool) -> Vec<Scope> {
        let roles = self.roles.iter().filter(|(reach, _)| holds(reach));
        let scopes: BTreeSet<Scope> = roles.flat_map(|(reach, role)| role.scopes(reach)).copied().collect();
        scopes.into_iter().collect()
    }
}

impl Caller {
    /// A person who has named no tenant: everywhere, if a role of theirs holds everywhere, else in the first of their own.
    pub(super) fn of_person(person: &Arc<Person>) -> Self {
        let everywhere = person.scopes(|reach| *reach == Reach::Everywhere);
        match person.tenants().first() {
            Some(first) if everywhere.is_empty() => Self::of_person_in(person, first),
            _ => Self::placed(person, &person.home, everywhere, true),
        }
    }

    fn of_person_in(person: &Arc<Person>, tenant: &TenantId) -> Self {
        let holds = |reach: &Reach| match reach {
            Reach::Everywhere => true,
            Reach::Tenant(of) => of == tenant,
        };
        Self::placed(person, tenant, person.scopes(holds), false)
    }

    fn placed(person: &Arc<Person>, tenant: &TenantId, scopes: Vec<Scope>, everywhere: bool) -> Self {
        Self {
            key: person.key.clone(),
            name: person.verified.name.clone(),
            tenant: tenant.clone(),
            scopes,
            everywhere,
            worker: None,
            person: Some(person.clone()),
        }
    }

    /// The same caller in this tenant, with what they may do there; nothing if they may do nothing there.
    pub fn acting_for(self: &Arc<Self>, tenant: Option<&TenantId>) -> Option<Arc<Self>> {
        let Some(person) = &self.person else {
            return tenant.is_none_or(|tenant| self.sees(tenant)).then(|| self.clone());
        };
        // Operators keep all they may do, as they do with a key.
        let Some(tenant) = tenant.filter(|_| !self.may_everywhere(Scope::Admin)) else {
            return Some(self.clone());
        };
        let there = Self::of_person_in(person, tenant);
        (!there.scopes.is_empty()).then(|| Arc::new(there))
    }

    /// The tenants that somebody may look at one by one; nothing for those who may look at any.
    pub fn tenants_to_choose(&self) -> Option<Vec<&TenantId>> {
        match &self.person {
            _ if self.everywhere => None,
            None => Some(vec![&self.tenant]),
            Some(person) if person.roles.iter().any(|(reach, _)| *reach == Reach::Everywhere) => None,
            Some(person) => Some(person.tenants().into_iter().collect()),
        }
    }

    /// Whether there is more than one.
    pub fn may_choose_tenant(&self) -> bool {
        self.tenants_to_choose().is_none_or(|tenants| tenants.len() > 1)
    }

    /// What stands in a record of whoever did something where there is room for one text: a name for a key, and for a
    /// person who they are.
    pub fn recorded_name(&self) -> &str {
        if self.person.is_some() { self.key.as_str() } else { &self.name }
    }
}
