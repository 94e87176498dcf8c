//! Signatures of tokens, checked by ring, which TLS here rests on too.
//!
//! jsonwebtoken brings no cryptography of its own unless asked: what it could bring is a C library, or a crate for RSA
//! with an advisory. It takes any, once per process. Nothing is ever signed here.

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::signature;
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
    VerificationAlgorithm,
};

static RING: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// From now on tokens are checked by ring, if they were not before.
pub(crate) fn install() {
    let _ = RING.install_default();
}

struct RingVerifier {
    algorithm: Algorithm,
    key: DecodingKeyKind,
}

/// A key of another kind than the token's algorithm checks nothing.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "jsonwebtoken calls it so")]
fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    let family = match algorithm {
        Algorithm::RS256 => AlgorithmFamily::Rsa,
        Algorithm::ES256 => AlgorithmFamily::Ec,
        Algorithm::EdDSA => AlgorithmFamily::Ed,
        _ => return Err(ErrorKind::UnsupportedAlgorithm.into()),
    };
    if key.family() != family {
        return Err(ErrorKind::InvalidKeyFormat.into());
    }
    Ok(Box::new(RingVerifier { algorithm: *algorithm, key: key.kind().clone() }))
}

impl signature::Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signed: &Vec<u8>) -> Result<(), signature::Error> {
        let refused = |_| signature::Error::new();
        let checked_by = |algorithm: &'static dyn VerificationAlgorithm, key: &[u8]| {
            UnparsedPublicKey::new(algorithm, key).verify(message, signed).map_err(refused)
        };
        match (&self.key, self.algorithm) {
            (DecodingKeyKind::RsaModulusExponent { n, e }, Algorithm::RS256) => {
                let key = RsaPublicKeyComponents { n, e };
                key.verify(&RSA_PKCS1_2048_8192_SHA256, message, signed).map_err(refused)
            }
            (DecodingKeyKind::SecretOrDer(key), Algorithm::ES256) => {
                checked_by(&ECDSA_P256_SHA256_FIXED, key)
            }
            (DecodingKeyKind::SecretOrDer(key), Algorithm::EdDSA) => checked_by(&ED25519, key),
            _ => Err(signature::Error::new()),
        }
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}
