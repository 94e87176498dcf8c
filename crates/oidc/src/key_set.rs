//! The keys that a provider signs with, as it publishes them (JWKS).
//!
//! Each key is good for one algorithm, which its own kind says. What a token claims about its algorithm can choose among
//! keys and never what a key is used for.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::Value;

/// Keys of one provider that are looked at.
const KEYS_MAX: usize = 64;

#[derive(Default)]
pub(crate) struct KeySet(Vec<ProviderKey>);

struct ProviderKey {
    id: Option<String>,
    algorithm: Algorithm,
    key: DecodingKey,
}

#[derive(Deserialize)]
struct Published {
    keys: Vec<Value>,
}

impl KeySet {
    /// Keys of kinds that are not used here are left out; providers publish those too.
    pub fn read(document: &[u8]) -> Result<Self, String> {
        let published: Published = serde_json::from_slice(document).map_err(|error| error.to_string())?;
        let keys: Vec<ProviderKey> = published.keys.into_iter().take(KEYS_MAX).filter_map(read_key).collect();
        if keys.is_empty() {
            return Err("there is no RS256, ES256 or EdDSA key among its keys".to_owned());
        }
        Ok(Self(keys))
    }

    /// The key that a token names. One that names none can only mean the only one.
    pub fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Option<&DecodingKey> {
        let mut fitting = self.0.iter().filter(|key| key.algorithm == algorithm);
        match id {
            Some(id) => fitting.find(|key| key.id.as_deref() == Some(id)).map(|key| &key.key),
            None => fitting.next().filter(|_| fitting.next().is_none()).map(|key| &key.key),
        }
    }
}

fn read_key(json: Value) -> Option<ProviderKey> {
    let jwk: Jwk = serde_json::from_value(json).ok()?;
    let (algorithm, named) = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => (Algorithm::RS256, KeyAlgorithm::RS256),
        AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => {
            (Algorithm::ES256, KeyAlgorithm::ES256)
        }
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
            (Algorithm::EdDSA, KeyAlgorithm::EdDSA)
        }
        _ => return None,
    };
    let common = &jwk.common;
    let is_for_it = common.key_algorithm.as_ref().is_none_or(|given| *given == named)
        && common.public_key_use.as_ref().is_none_or(|given| *given == PublicKeyUse::Signature);
    let key = DecodingKey::from_jwk(&jwk).ok().filter(|_| is_for_it)?;
    Some(ProviderKey { id: jwk.common.key_id, algorithm, key })
}
