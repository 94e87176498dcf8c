//! A browser signs in: to the provider with a question, back with a code, and the code for a token.
//!
//! PKCE ties the code to whoever began (a code that leaks is of no use), `state` ties the answer to this browser (nobody
//! is signed in as somebody else by a link), and the nonce ties the token to this sign-in (no token is used twice).

use crate::provider::{DOCUMENT_LEN_MAX, PROVIDER_PATIENCE, ProviderDocuments};
use crate::token::{self, ExpectedClaims};
use crate::{Oidc, OidcError, VerifiedPerson};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use reveille_core::time::Millis;
use serde::{Deserialize, Serialize};
use url::Url;
use url::form_urlencoded::{Serializer, byte_serialize};

/// The longest code that is passed on.
pub const CODE_LEN_MAX: usize = 4_096;

/// What a browser keeps between the question and the answer. Whoever hands it out vouches for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingSignIn {
    pub state: String,
    pub nonce: String,
    /// The secret half of PKCE.
    pub verifier: String,
    /// Where to go afterwards.
    pub next: String,
    pub until: Millis,
}

impl PendingSignIn {
    /// Out of 96 random bytes.
    pub fn new(random: &[u8; 96], next: &str, until: Millis) -> Self {
        let text = |part: &[u8]| URL_SAFE_NO_PAD.encode(part);
        Self {
            state: text(&random[..32]),
            nonce: text(&random[32..64]),
            verifier: text(&random[64..]),
            next: next.to_owned(),
            until,
        }
    }
}

#[derive(Deserialize)]
struct TokenAnswer {
    id_token: String,
}

#[derive(Deserialize)]
struct TokenRefusal {
    #[serde(default)]
    error: String,
    #[serde(default)]
    error_description: String,
}

impl Oidc {
    /// Where to send a browser that begins this sign-in.
    pub async fn authorization_url(&self, pending: &PendingSignIn, now: Millis) -> Result<String, OidcError> {
        let (inner, settings) = (&self.0, &self.0.settings);
        let documents = inner.known.ask(&inner.http, settings, now).await?;
        let challenge = URL_SAFE_NO_PAD.encode(reveille_core::digest::sha256(pending.verifier.as_bytes()));
        let mut url = Url::parse(&documents.authorization_endpoint)
            .map_err(|error| OidcError::Unusable(error.to_string()))?;
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &settings.client_id)
            .append_pair("redirect_uri", &settings.redirect_url)
            .append_pair("scope", &settings.scopes.join(" "))
            .append_pair("state", &pending.state)
            .append_pair("nonce", &pending.nonce)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256");
        Ok(url.into())
    }

    /// Who came back with this code.
    pub async fn redeem(
        &self,
        pending: &PendingSignIn,
        code: &str,
        now: Millis,
    ) -> Result<VerifiedPerson, OidcError> {
        let (inner, settings) = (&self.0, &self.0.settings);
        if code.is_empty() || code.len() > CODE_LEN_MAX {
            return Err(OidcError::CodeRefused("it is no code".to_owned()));
        }
        let documents = inner.known.ask(&inner.http, settings, now).await?;
        let token = self.fetch_token(&documents, pending, code).await?;
        self.learn_keys_of(&token, now).await;
        let documents = inner.known.documents().unwrap_or(documents);
        let expected = ExpectedClaims {
            issuer: &settings.issuer,
            audience: &settings.client_id,
            groups_claim: &settings.groups_claim,
            of_sign_in: Some(&pending.nonce),
            now,
        };
        Ok(token::verify(&token, &documents.keys, &expected)?)
    }

    async fn fetch_token(
        &self,
        documents: &ProviderDocuments,
        pending: &PendingSignIn,
        code: &str,
    ) -> Result<String, OidcError> {
        let (form, authorization) = self.token_form(documents, pending, code);
        let url = &documents.token_endpoint;
        let reply = self.0.http.post_form(url, form, authorization, PROVIDER_PATIENCE).await;
        let reply = reply.map_err(|error| OidcError::Away(format!("{url}: {error}")))?;
        if reply.body.len() > DOCUMENT_LEN_MAX {
            return Err(OidcError::Unusable(format!("{url}: longer than {DOCUMENT_LEN_MAX} bytes")));
        }
        if reply.status == 200 {
            // The answer holds tokens, so it is not repeated.
            let answer: Result<TokenAnswer, _> = serde_json::from_slice(&reply.body);
            let no_token = || OidcError::Unusable(format!("{url}: there is no id_token in the answer"));
            return answer.map(|answer| answer.id_token).map_err(|_| no_token());
        }
        if reply.status >= 500 {
            return Err(OidcError::Away(format!("{url}: status {}", reply.status)));
        }
        let refusal: Option<TokenRefusal> = serde_json::from_slice(&reply.body).ok();
        let words = refusal.map_or_else(
            || format!("status {}", reply.status),
            |refusal| format!("{} {}", refusal.error, refusal.error_description).trim().to_owned(),
        );
        Err(OidcError::CodeRefused(words.chars().filter(|c| !c.is_control()).take(200).collect()))
    }

    /// The form that asks for a token, and the header that goes with it.
    fn token_form(
        &self,
        documents: &ProviderDocuments,
        pending: &PendingSignIn,
        code: &str,
    ) -> (String, Option<String>) {
        let settings = &self.0.settings;
        let mut form = Serializer::new(String::new());
        form.append_pair("grant_type", "authorization_code")
            .append_pair("code", code)
            .append_pair("redirect_uri", &settings.redirect_url)
            .append_pair("code_verifier", &pending.verifier);
        let mut authorization = None;
        match &settings.client_secret {
            Some(secret) if !documents.secret_in_form => {
                // Both are coded as in a form before they are put together (RFC 6749, 2.3.1).
                let coded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
                let pair = format!("{}:{}", coded(&settings.client_id), coded(&secret.0));
                authorization = Some(format!("Basic {}", STANDARD.encode(pair)));
            }
            secret => {
                form.append_pair("client_id", &settings.client_id);
                if let Some(secret) = secret {
                    form.append_pair("client_secret", &secret.0);
                }
            }
        }
        (form.finish(), authorization)
    }
}
