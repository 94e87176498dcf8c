//! What is known of the provider: where it takes sign-ins, and its keys.
//!
//! Both are fetched when somebody needs them, and again when a token names a key that is not known or when they are old.
//! What was known last stays in force while the provider is away. However many ask, there is a floor between two tries.

use crate::key_set::KeySet;
use crate::{OidcError, OidcSettings, trusted_url};
use jsonwebtoken::Algorithm;
use reveille_a2a::{A2aReply, HttpFetcher};
use reveille_core::time::Millis;
use serde::Deserialize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long one answer of the provider may take.
pub const PROVIDER_PATIENCE: Duration = Duration::from_secs(10);
/// The longest document of the provider that is read.
pub const DOCUMENT_LEN_MAX: usize = 1024 * 1024;
/// Between two tries while there are keys.
pub const REFRESH_FLOOR_MS: i64 = 30_000;
/// And while there are none.
pub const AWAY_FLOOR_MS: i64 = 2_000;
/// Keys are fetched again after so long, so that one that the provider took back is not believed for ever.
pub const KEYS_AGE_MS_MAX: i64 = 3600 * 1000;

/// What the provider says of itself.
pub(crate) struct ProviderDocuments {
    pub authorization_endpoint: String,
    pub token_endpoint: String,
    /// Whether it wants the client's secret in the form and not in a header.
    pub secret_in_form: bool,
    pub keys: KeySet,
}

#[derive(Default)]
pub(crate) struct KnownProvider {
    state: Mutex<ProviderState>,
    /// One try at a time.
    trying: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct ProviderState {
    documents: Option<Arc<ProviderDocuments>>,
    fetched_at: Option<Millis>,
    tried_at: Option<Millis>,
    problem: Option<OidcError>,
}

impl ProviderState {
    fn may_try(&self, now: Millis) -> bool {
        let floor = if self.documents.is_some() { REFRESH_FLOOR_MS } else { AWAY_FLOOR_MS };
        self.tried_at.is_none_or(|tried| now.since(tried) >= floor)
    }
}

impl KnownProvider {
    pub fn documents(&self) -> Option<Arc<ProviderDocuments>> {
        self.state().documents.clone()
    }

    /// Whether this key is not known, and may be asked for.
    pub fn lacks(&self, key: Option<&str>, algorithm: Algorithm, now: Millis) -> bool {
        let state = self.state();
        let is_known =
            state.documents.as_ref().is_some_and(|known| known.keys.find(key, algorithm).is_some());
        !is_known && state.may_try(now)
    }

    /// Whether what is known may be out of date, and may be asked for.
    pub fn is_old(&self, now: Millis) -> bool {
        let state = self.state();
        state.fetched_at.is_some_and(|at| now.since(at) >= KEYS_AGE_MS_MAX) && state.may_try(now)
    }

    /// What is known, fetched if it is not.
    pub async fn ask(
        &self,
        http: &HttpFetcher,
        settings: &OidcSettings,
        now: Millis,
    ) -> Result<Arc<ProviderDocuments>, OidcError> {
        match self.documents() {
            Some(known) if !self.is_old(now) => Ok(known),
            known => self.refresh(http, settings, now).await.or_else(|problem| known.ok_or(problem)),
        }
    }

    /// Fetches all of it, unless somebody just did.
    pub async fn refresh(
        &self,
        http: &HttpFetcher,
        settings: &OidcSettings,
        now: Millis,
    ) -> Result<Arc<ProviderDocuments>, OidcError> {
        let _one_at_a_time = self.trying.lock().await;
        {
            let mut state = self.state();
            if !state.may_try(now) {
                let problem = state.problem.clone();
                return match (problem, &state.documents) {
                    (None, Some(known)) => Ok(known.clone()),
                    (problem, _) => {
                        Err(problem.unwrap_or_else(|| OidcError::Away("not asked yet".to_owned())))
                    }
                };
            }
            state.tried_at = Some(now);
        }
        let fetched = fetch(http, settings).await.map(Arc::new);
        let mut state = self.state();
        state.problem = fetched.as_ref().err().cloned();
        match &fetched {
            Ok(documents) => {
                (state.documents, state.fetched_at) = (Some(documents.clone()), Some(now));
            }
            Err(error) => tracing::warn!(issuer = settings.issuer, %error, "identity provider not reached"),
        }
        fetched
    }

    fn state(&self) -> std::sync::MutexGuard<'_, ProviderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Deserialize)]
struct Discovered {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    #[serde(default)]
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

async fn fetch(http: &HttpFetcher, settings: &OidcSettings) -> Result<ProviderDocuments, OidcError> {
    let at = format!("{}/.well-known/openid-configuration", settings.issuer.trim_end_matches('/'));
    let discovered = get(http, &at).await?;
    let discovered: Discovered = serde_json::from_slice(&discovered.body)
        .map_err(|error| OidcError::Unusable(format!("{at}: {error}")))?;
    if discovered.issuer != settings.issuer {
        let words = format!("{at} is of the issuer {:?}, not {:?}", discovered.issuer, settings.issuer);
        return Err(OidcError::Unusable(words));
    }
    for endpoint in [&discovered.authorization_endpoint, &discovered.token_endpoint, &discovered.jwks_uri] {
        let bare = endpoint.split_once('?').map_or(endpoint.as_str(), |(bare, _)| bare);
        trusted_url(bare).map_err(|error| OidcError::Unusable(format!("{at}: {error}")))?;
    }
    let keys = get(http, &discovered.jwks_uri).await?;
    let keys = KeySet::read(&keys.body)
        .map_err(|error| OidcError::Unusable(format!("{}: {error}", discovered.jwks_uri)))?;
    // Unless told, a provider takes the header.
    let methods = discovered.token_endpoint_auth_methods_supported;
    let takes = |method: &str| methods.as_ref().is_some_and(|all| all.iter().any(|one| one == method));
    Ok(ProviderDocuments {
        secret_in_form: takes("client_secret_post") && !takes("client_secret_basic"),
        authorization_endpoint: discovered.authorization_endpoint,
        token_endpoint: discovered.token_endpoint,
        keys,
    })
}

async fn get(http: &HttpFetcher, url: &str) -> Result<A2aReply, OidcError> {
    let reply = http.get(url, PROVIDER_PATIENCE).await;
    let reply = reply.map_err(|error| OidcError::Away(format!("{url}: {error}")))?;
    if reply.status != 200 {
        return Err(OidcError::Away(format!("{url}: status {}", reply.status)));
    }
    if reply.body.len() > DOCUMENT_LEN_MAX {
        return Err(OidcError::Unusable(format!("{url}: longer than {DOCUMENT_LEN_MAX} bytes")));
    }
    Ok(reply)
}
