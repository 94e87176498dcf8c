//! People: who vouches for them, and what their groups are worth.

use anyhow::{Context, Result, bail};
use reveille_core::id::TenantId;
use reveille_oidc::{ClientSecret, OidcSettings, trusted_url};
use reveille_roster::{Reach, Role, RoleGrant};
use serde::Deserialize;
use std::path::PathBuf;

/// Where browsers come back to, on the console.
const CALLBACK: &str = "/ui/oidc/callback";

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OidcSection {
    /// The identity provider, as it spells itself. Unset: nobody vouches for people, and there are keys only.
    pub issuer: Option<String>,
    pub client_id: Option<String>,
    /// A file with the client's secret; without one the client is a public one.
    pub client_secret_file: Option<PathBuf>,
    /// The console's address as browsers know it, with the path that the provider sends them back to.
    pub redirect_url: Option<String>,
    /// What is asked for at a sign-in.
    pub scopes: String,
    /// The claim that names a person's groups.
    pub groups_claim: String,
    /// For whom bearer tokens must be; the client unless told.
    pub audience: Option<String>,
    /// What groups are worth.
    pub roles: Vec<RoleRow>,
}

/// Whoever is in the group has the role in the tenant.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoleRow {
    pub group: String,
    /// A tenant, or `*` for all of them.
    pub tenant: String,
    pub role: String,
}

impl Default for OidcSection {
    fn default() -> Self {
        Self {
            issuer: None,
            client_id: None,
            client_secret_file: None,
            redirect_url: None,
            scopes: "openid profile email".to_owned(),
            groups_claim: "groups".to_owned(),
            audience: None,
            roles: Vec::new(),
        }
    }
}

impl OidcSection {
    pub fn check(&self) -> Result<()> {
        self.role_grants()?;
        let Some(issuer) = &self.issuer else {
            let set = [
                ("client_id", self.client_id.is_some()),
                ("client_secret_file", self.client_secret_file.is_some()),
                ("redirect_url", self.redirect_url.is_some()),
                ("audience", self.audience.is_some()),
                ("roles", !self.roles.is_empty()),
            ];
            return match set.iter().find(|(_, is_set)| *is_set) {
                Some((key, _)) => bail!("oidc.issuer is missing: oidc.{key} needs it"),
                None => Ok(()),
            };
        };
        trusted_url(issuer).context("oidc.issuer")?;
        anyhow::ensure!(self.client_id.is_some(), "oidc.client_id is missing: oidc.issuer needs it");
        let redirect = self.redirect_url.as_ref();
        let redirect = redirect.context("oidc.redirect_url is missing: oidc.issuer needs it")?;
        let redirect_path = trusted_url(redirect).context("oidc.redirect_url")?.path().to_owned();
        anyhow::ensure!(
            redirect_path == CALLBACK,
            "oidc.redirect_url = {redirect:?}: it must end with {CALLBACK}, such as https://reveille.example{CALLBACK}"
        );
        let is_oidc = self.scopes.split_whitespace().any(|scope| scope == "openid");
        anyhow::ensure!(is_oidc, "oidc.scopes = {:?}: openid must be one of them", self.scopes);
        anyhow::ensure!(!self.groups_claim.is_empty(), "oidc.groups_claim is empty");
        anyhow::ensure!(
            !self.roles.is_empty(),
            "oidc.roles is missing: without it nobody who signs in could do anything"
        );
        Ok(())
    }

    pub fn role_grants(&self) -> Result<Vec<RoleGrant>> {
        let grant = |(at, row): (usize, &RoleRow)| {
            let place = format!("oidc.roles[{at}]");
            anyhow::ensure!(!row.group.is_empty(), "{place}.group is empty");
            let reach = match row.tenant.as_str() {
                "*" => Reach::Everywhere,
                name => Reach::Tenant(TenantId::parse(name).with_context(|| format!("{place}.tenant"))?),
            };
            let words = || format!("{place}.role = {:?}: it is none of {}", row.role, role_words());
            let role = Role::parse(&row.role).with_context(words)?;
            Ok(RoleGrant { group: row.group.clone(), reach, role })
        };
        self.roles.iter().enumerate().map(grant).collect()
    }

    /// Nothing where nobody vouches for people. Reads the client's secret.
    pub fn settings(&self) -> Result<Option<OidcSettings>> {
        let (Some(issuer), Some(client_id), Some(redirect_url)) =
            (&self.issuer, &self.client_id, &self.redirect_url)
        else {
            return Ok(None);
        };
        let client_secret = match &self.client_secret_file {
            None => None,
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .with_context(|| format!("oidc.client_secret_file: reading {}", path.display()))?;
                let secret = text.trim();
                anyhow::ensure!(!secret.is_empty(), "oidc.client_secret_file: {} is empty", path.display());
                Some(ClientSecret(secret.to_owned()))
            }
        };
        Ok(Some(OidcSettings {
            issuer: issuer.clone(),
            client_id: client_id.clone(),
            client_secret,
            redirect_url: redirect_url.clone(),
            scopes: self.scopes.split_whitespace().map(str::to_owned).collect(),
            groups_claim: self.groups_claim.clone(),
            audience: self.audience.clone().unwrap_or_else(|| client_id.clone()),
        }))
    }
}

fn role_words() -> String {
    Role::ALL.map(Role::as_str).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"
        issuer = "https://id.example/realms/acme"
        client_id = "reveille"
        redirect_url = "https://reveille.example/ui/oidc/callback"
        roles = [{ group = "ops", tenant = "*", role = "admin" }, { group = "dev", tenant = "acme", role = "submitter" }]
    "#;

    fn read(text: &str) -> Result<OidcSection> {
        let section: OidcSection = toml::from_str(text)?;
        section.check()?;
        Ok(section)
    }

    #[test]
    fn a_whole_section_becomes_settings_and_grants() {
        let section = read(WHOLE).unwrap();
        let settings = section.settings().unwrap().unwrap();
        assert_eq!((settings.audience.as_str(), settings.client_secret), ("reveille", None));
        assert_eq!(settings.scopes, ["openid", "profile", "email"]);
        let grants = section.role_grants().unwrap();
        assert_eq!((&grants[0].reach, grants[0].role), (&Reach::Everywhere, Role::Admin));
        let acme = Reach::Tenant(TenantId::known("acme"));
        assert_eq!((&grants[1].reach, grants[1].role), (&acme, Role::Submitter));
        assert_eq!(OidcSection::default().settings().unwrap(), None);
    }

    #[test]
    fn what_is_missing_or_unsafe_is_named() {
        let without = |key: &str| {
            let lines = WHOLE.lines().filter(|line| !line.trim_start().starts_with(key));
            lines.collect::<Vec<_>>().join("\n")
        };
        let with = |from: &str, to: &str| WHOLE.replace(from, to);
        for (text, part) in [
            (without("issuer"), "oidc.issuer is missing: oidc.client_id needs it"),
            (without("client_id"), "oidc.client_id is missing"),
            (without("redirect_url"), "oidc.redirect_url is missing"),
            (without("roles"), "oidc.roles is missing"),
            (with("https://id.example", "http://id.example"), "https is needed beyond this machine"),
            (with("https://reveille", "http://reveille"), "oidc.redirect_url"),
            (with("/ui/oidc/callback", "/callback"), "it must end with /ui/oidc/callback"),
            (with("submitter", "owner"), "oidc.roles[1].role"),
            (with("\"acme\"", "\"a b\""), "oidc.roles[1].tenant"),
            (with("\"dev\"", "\"\""), "oidc.roles[1].group"),
            (format!("{WHOLE}\nscopes = \"profile\""), "openid must be one of them"),
        ] {
            let error = format!("{:#}", read(&text).unwrap_err());
            assert!(error.contains(part), "{error}");
        }
        for loopback in ["http://127.0.0.1:9000", "http://localhost:9000", "http://[::1]:9000"] {
            read(&with("https://id.example/realms/acme", loopback)).unwrap();
        }
    }
}
