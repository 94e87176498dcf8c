//! OIDC: what an identity provider says about a person, checked.
//!
//! [`Oidc`] is a handle on one provider. It fetches what the provider publishes about itself and its keys
//! (`provider.rs`), checks tokens with these keys (`token.rs`, `key_set.rs`), and takes a browser through the
//! authorization code flow with PKCE (`sign_in.rs`). What somebody may do here is not decided here: a token names
//! groups, and the engine knows what they are worth.
//!
//! Deliberately not here: refresh tokens, logout at the provider, user info. A person's groups are those that the token
//! names, and hold until it ends.

mod key_set;
mod provider;
mod ring_verifier;
mod sign_in;
mod token;

pub use provider::{AWAY_FLOOR_MS, DOCUMENT_LEN_MAX, KEYS_AGE_MS_MAX, PROVIDER_PATIENCE, REFRESH_FLOOR_MS};
pub use sign_in::{CODE_LEN_MAX, PendingSignIn};
pub use token::{GROUP_LEN_MAX, GROUPS_MAX, LEEWAY_MS, PERSON_NAME_LEN_MAX, TOKEN_LEN_MAX, TokenError};

use provider::KnownProvider;
use reveille_a2a::HttpFetcher;
use reveille_core::time::Millis;
use std::sync::Arc;
use token::ExpectedClaims;
use url::{Host, Url};

/// What the operator says of the provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OidcSettings {
    /// As the provider spells it; tokens must name exactly this.
    pub issuer: String,
    pub client_id: String,
    /// Nothing for a public client, which PKCE alone protects.
    pub client_secret: Option<ClientSecret>,
    /// Where the provider sends browsers back to: the console's own address and `/ui/oidc/callback`.
    pub redirect_url: String,
    /// What is asked for at a sign-in.
    pub scopes: Vec<String>,
    /// The claim that holds a person's groups: its name, or a path such as `realm_access.roles`.
    pub groups_claim: String,
    /// For whom bearer tokens must be.
    pub audience: String,
}

/// Never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientSecret(pub String);

impl std::fmt::Debug for ClientSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ClientSecret")
    }
}

/// What a provider has said of somebody, and until when that holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedPerson {
    pub issuer: String,
    /// Who it is, for the issuer, for ever.
    pub subject: String,
    /// What to call them. Others may be called the same.
    pub name: String,
    pub groups: Vec<String>,
    pub until: Millis,
}

/// Why somebody cannot be signed in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OidcError {
    #[error("the identity provider cannot be asked: {0}")]
    Away(String),
    #[error("the identity provider gives an answer of no use: {0}")]
    Unusable(String),
    #[error("the identity provider does not take the code: {0}")]
    CodeRefused(String),
    #[error("the identity provider's token is not taken: {0}")]
    Token(#[from] TokenError),
}

/// A handle on one provider; clones are the same.
#[derive(Clone)]
pub struct Oidc(Arc<Inner>);

struct Inner {
    settings: OidcSettings,
    host: String,
    http: HttpFetcher,
    known: KnownProvider,
}

impl Oidc {
    /// Nothing is fetched yet: a provider that is away does not keep a server from starting.
    pub fn new(settings: OidcSettings) -> Result<Self, BadUrl> {
        let host = trusted_url(&settings.issuer)?.host_str().unwrap_or_default().to_owned();
        trusted_url(&settings.redirect_url)?;
        ring_verifier::install();
        let (http, known) = (HttpFetcher::new(), KnownProvider::default());
        Ok(Self(Arc::new(Inner { settings, host, http, known })))
    }

    pub fn issuer(&self) -> &str {
        &self.0.settings.issuer
    }

    /// What to call the provider on a page.
    pub fn host(&self) -> &str {
        &self.0.host
    }

    /// Whether this looks like a token, and not like a key.
    pub fn is_token(text: &str) -> bool {
        text.len() <= TOKEN_LEN_MAX && text.bytes().filter(|byte| *byte == b'.').count() == 2
    }

    /// Who shows this token, by the keys that are known. See [`Self::learn_keys_of`].
    pub fn verify_bearer(&self, token: &str, now: Millis) -> Result<VerifiedPerson, TokenError> {
        let documents = self.0.known.documents().ok_or(TokenError::NoKeys)?;
        let settings = &self.0.settings;
        let expected = ExpectedClaims {
            issuer: &settings.issuer,
            audience: &settings.audience,
            groups_claim: &settings.groups_claim,
            of_sign_in: None,
            now,
        };
        token::verify(token, &documents.keys, &expected)
    }

    /// Fetches the provider's keys if this token may need newer ones, and not more often than is decent, so that
    /// made-up tokens make nobody call the provider.
    pub async fn learn_keys_of(&self, token: &str, now: Millis) {
        let inner = &self.0;
        let Ok((key, algorithm)) = token::key_of(token) else { return };
        if inner.known.lacks(key.as_deref(), algorithm, now) {
            // What went wrong is logged there; the token is then not known.
            let _ = inner.known.refresh(&inner.http, &inner.settings, now).await;
        } else if inner.known.is_old(now) {
            let oidc = self.clone();
            tokio::spawn(async move {
                let _ = oidc.0.known.refresh(&oidc.0.http, &oidc.0.settings, now).await;
            });
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{url:?}: {why}")]
pub struct BadUrl {
    url: String,
    why: String,
}

/// A URL over which secrets may go: https, or this machine.
pub fn trusted_url(text: &str) -> Result<Url, BadUrl> {
    let bad = |why: &str| BadUrl { url: text.to_owned(), why: why.to_owned() };
    let url = Url::parse(text).map_err(|error| bad(&error.to_string()))?;
    let is_loopback = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => return Err(bad("there is no host")),
    };
    match url.scheme() {
        _ if url.query().is_some() || url.fragment().is_some() => Err(bad("it has a query or a fragment")),
        "https" => Ok(url),
        "http" if is_loopback => Ok(url),
        _ => Err(bad("https is needed beyond this machine")),
    }
}
