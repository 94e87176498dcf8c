//! A token, checked: signed by a key of the provider, for us, and now.
//!
//! Signature, issuer and audience are jsonwebtoken's to check. The times are checked here, because the time is an
//! argument, and the algorithm is chosen here: `RS256`, `ES256` or `EdDSA`, never one that shares a secret, never none.

use crate::VerifiedPerson;
use crate::key_set::KeySet;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Validation, decode, decode_header};
use reveille_core::time::Millis;
use serde_json::{Map, Value};

/// The longest token that is looked at.
pub const TOKEN_LEN_MAX: usize = 16 * 1024;
/// How far the provider's clock may be from ours.
pub const LEEWAY_MS: i64 = 30_000;
/// Groups of one person that are read, and how long each may be.
pub const GROUPS_MAX: usize = 1_000;
pub const GROUP_LEN_MAX: usize = 256;
/// The longest name that is kept.
pub const PERSON_NAME_LEN_MAX: usize = 128;

const ALGORITHMS: [Algorithm; 3] = [Algorithm::RS256, Algorithm::ES256, Algorithm::EdDSA];

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    #[error("it is no signed token, or longer than {TOKEN_LEN_MAX} bytes")]
    Unreadable,
    #[error("its algorithm is none of RS256, ES256, EdDSA")]
    Algorithm,
    #[error("the keys of the identity provider are not known; it cannot be asked at present")]
    NoKeys,
    #[error("it is signed with a key that the identity provider does not publish")]
    UnknownKey,
    #[error("the signature is wrong")]
    Signature,
    #[error("it is another issuer's")]
    Issuer,
    #[error("it is not for this server")]
    Audience,
    #[error("it has expired")]
    Expired,
    #[error("it is not good yet")]
    TooEarly,
    #[error("it belongs to another sign-in")]
    Nonce,
    #[error("it names nobody, or in a way that cannot be written down")]
    Subject,
}

/// What a token must say.
pub(crate) struct ExpectedClaims<'a> {
    pub issuer: &'a str,
    pub audience: &'a str,
    pub groups_claim: &'a str,
    /// For the token of a sign-in, the nonce that it was begun with.
    pub of_sign_in: Option<&'a str>,
    pub now: Millis,
}

/// The key that a token names, and its algorithm.
pub(crate) fn key_of(token: &str) -> Result<(Option<String>, Algorithm), TokenError> {
    if token.len() > TOKEN_LEN_MAX {
        return Err(TokenError::Unreadable);
    }
    let header = decode_header(token).map_err(|_| TokenError::Unreadable)?;
    // What a token says is critical must be understood, and nothing of it is.
    if header.crit.is_some() {
        return Err(TokenError::Unreadable);
    }
    if !ALGORITHMS.contains(&header.alg) {
        return Err(TokenError::Algorithm);
    }
    Ok((header.kid, header.alg))
}

pub(crate) fn verify(
    token: &str,
    keys: &KeySet,
    expected: &ExpectedClaims<'_>,
) -> Result<VerifiedPerson, TokenError> {
    let (id, algorithm) = key_of(token)?;
    let key = keys.find(id.as_deref(), algorithm).ok_or(TokenError::UnknownKey)?;
    let mut validation = Validation::new(algorithm);
    (validation.validate_exp, validation.validate_nbf) = (false, false);
    validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
    validation.set_issuer(&[expected.issuer]);
    validation.set_audience(&[expected.audience]);
    let decoded = decode::<Map<String, Value>>(token, key, &validation);
    let claims = decoded.map_err(|error| refused(error.kind()))?.claims;
    let until = check_times(&claims, expected.now)?;
    if let Some(nonce) = expected.of_sign_in {
        check_sign_in(&claims, expected.audience, nonce)?;
    }
    let text = |name: &str| claims.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let subject = text("sub").ok_or(TokenError::Subject)?.to_owned();
    let name = ["preferred_username", "email", "name"].into_iter().find_map(text).unwrap_or(&subject);
    Ok(VerifiedPerson {
        issuer: expected.issuer.to_owned(),
        name: plain(name),
        groups: groups(&claims, expected.groups_claim),
        subject,
        until,
    })
}

fn refused(kind: &ErrorKind) -> TokenError {
    match kind {
        ErrorKind::InvalidSignature => TokenError::Signature,
        ErrorKind::InvalidIssuer => TokenError::Issuer,
        ErrorKind::InvalidAudience => TokenError::Audience,
        ErrorKind::InvalidSubject => TokenError::Subject,
        ErrorKind::MissingRequiredClaim(claim) => match claim.as_str() {
            "iss" => TokenError::Issuer,
            "aud" => TokenError::Audience,
            "sub" => TokenError::Subject,
            _ => TokenError::Expired,
        },
        _ => TokenError::Unreadable,
    }
}

/// Until when it is good.
fn check_times(claims: &Map<String, Value>, now: Millis) -> Result<Millis, TokenError> {
    let time = |name: &str| claims.get(name).and_then(Value::as_f64).map(|s| Millis((s * 1000.0) as i64));
    let until = time("exp").ok_or(TokenError::Expired)?;
    if now.0 >= until.0.saturating_add(LEEWAY_MS) {
        return Err(TokenError::Expired);
    }
    let from = time("nbf");
    if from.is_none() && claims.contains_key("nbf") || from.is_some_and(|from| now.0 + LEEWAY_MS < from.0) {
        return Err(TokenError::TooEarly);
    }
    Ok(until)
}

/// A token that answers a sign-in names it, and if it is for several, we are who asked.
fn check_sign_in(claims: &Map<String, Value>, client: &str, nonce: &str) -> Result<(), TokenError> {
    if claims.get("nonce").and_then(Value::as_str) != Some(nonce) {
        return Err(TokenError::Nonce);
    }
    let is_for_several = claims.get("aud").and_then(Value::as_array).is_some_and(|aud| aud.len() > 1);
    match claims.get("azp").map(Value::as_str) {
        Some(party) if party != Some(client) => Err(TokenError::Audience),
        None if is_for_several => Err(TokenError::Audience),
        _ => Ok(()),
    }
}

/// The groups: a list of texts, or one text, under a name or at the end of a path.
fn groups(claims: &Map<String, Value>, claim: &str) -> Vec<String> {
    let at_path = || {
        let mut parts = claim.split('.');
        let first = claims.get(parts.next()?)?;
        parts.try_fold(first, |value, part| value.get(part))
    };
    let taken = |group: &str| !group.is_empty() && group.len() <= GROUP_LEN_MAX;
    match claims.get(claim).or_else(at_path) {
        Some(Value::String(group)) if taken(group) => vec![group.clone()],
        Some(Value::Array(all)) => {
            let texts = all.iter().filter_map(Value::as_str).filter(|group| taken(group));
            texts.take(GROUPS_MAX).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

/// A name as it can stand in a log line and on a page.
fn plain(name: &str) -> String {
    let mut plain = String::new();
    for c in name.chars().filter(|c| !c.is_control()) {
        if plain.len() + c.len_utf8() > PERSON_NAME_LEN_MAX {
            break;
        }
        plain.push(c);
    }
    plain
}
