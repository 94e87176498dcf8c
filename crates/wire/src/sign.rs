//! Packet signatures: ECDSA over P-256 and SHA-256, as DER in field 14 of the envelope.
//!
//! The signature covers the packet's bytes without field 14. Verifying cuts that field out of the bytes that arrived:
//! every implementation serialises slightly differently, so encoding the decoded packet again would refuse honest
//! senders. Signing is the other way round: the receiver does encode again, so what is signed is written in its order
//! (see [`crate::upb`]).
//!
//! The packets of the trust handshake are signed in the same way, except that what they are for is signed with them, so
//! that none can stand for another.
//!
//! The caller has to know which key belongs to a sender; a signature does not say who made it.

use bytes::Bytes;
use p256::ecdsa::DerSignature;
use p256::ecdsa::signature::{Signer, Verifier};
use prost::encoding::{WireType, encode_key, encode_varint};

use crate::cap::BusPacket;
use crate::cap::bus_packet::Payload;
use crate::key::{SigningKey, VerifyingKey};
use crate::record::{Malformed, records};
use crate::upb;

/// `BusPacket.signature`.
const SIGNATURE_FIELD: u32 = 14;

/// Why a packet does not count as signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadSignature {
    #[error("the packet is not protobuf")]
    Malformed,
    #[error("the packet has no signature")]
    Missing,
    #[error("the packet has more than one signature")]
    Repeated,
    #[error("the signature is not ECDSA in DER")]
    NotDer,
    #[error("the signature does not fit the packet and the key")]
    Wrong,
}

impl From<Malformed> for BadSignature {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

/// Checks the signature of a packet as it was received.
pub fn verify(received: &[u8], key: &VerifyingKey) -> Result<(), BadSignature> {
    verify_for(b"", received, key)
}

/// The same of a packet of the trust handshake. `payload` is what it says.
pub fn verify_trust(received: &[u8], payload: &Payload, key: &VerifyingKey) -> Result<(), BadSignature> {
    verify_for(trust_purpose(payload), received, key)
}

fn verify_for(purpose: &[u8], received: &[u8], key: &VerifyingKey) -> Result<(), BadSignature> {
    let (unsigned, signature) = cut(received)?;
    let signature = DerSignature::from_bytes(signature).map_err(|_| BadSignature::NotDer)?;
    key.verify(&[purpose, &unsigned].concat(), &signature).map_err(|_| BadSignature::Wrong)
}

/// Serialises a packet with a fresh signature; one that it already has is replaced.
pub fn sign(packet: &BusPacket, key: &SigningKey) -> Bytes {
    sign_for(b"", packet, key)
}

/// The same of a packet of the trust handshake.
pub fn sign_trust(packet: &BusPacket, key: &SigningKey) -> Bytes {
    sign_for(packet.payload.as_ref().map_or(b"", trust_purpose), packet, key)
}

fn sign_for(purpose: &[u8], packet: &BusPacket, key: &SigningKey) -> Bytes {
    let unsigned = upb::encode(&BusPacket { signature: Bytes::new(), ..packet.clone() });
    let signature: DerSignature = key.sign(&[purpose, &unsigned].concat());

    // Field 14 goes where upb would have written it: before the first field with a higher number.
    let lower = records(&unsigned).map_while(Result::ok).take_while(|record| record.number < SIGNATURE_FIELD);
    let place = lower.map(|record| record.raw.len()).sum();
    let (before, after) = unsigned.split_at(place);
    let mut signed = Vec::with_capacity(unsigned.len() + signature.as_bytes().len() + 4);
    signed.extend_from_slice(before);
    encode_key(SIGNATURE_FIELD, WireType::LengthDelimited, &mut signed);
    encode_varint(signature.as_bytes().len() as u64, &mut signed);
    signed.extend_from_slice(signature.as_bytes());
    signed.extend_from_slice(after);
    signed.into()
}

/// What is signed before a packet of the trust handshake; nothing for any other.
fn trust_purpose(payload: &Payload) -> &'static [u8] {
    match payload {
        Payload::WorkerHandshakeChallengeRequest(_) => b"CAP-WORKER-HANDSHAKE-CHALLENGE-REQUEST-V1\0",
        Payload::WorkerHandshakeChallenge(_) => b"CAP-WORKER-HANDSHAKE-CHALLENGE-V1\0",
        Payload::WorkerHandshakeAuthenticate(_) => b"CAP-WORKER-HANDSHAKE-AUTHENTICATE-V1\0",
        Payload::WorkerHandshakeResult(_) => b"CAP-WORKER-HANDSHAKE-RESULT-V1\0",
        _ => b"",
    }
}

/// Splits a packet into the bytes that were signed and the signature over them.
fn cut(received: &[u8]) -> Result<(Vec<u8>, &[u8]), BadSignature> {
    let mut unsigned = Vec::with_capacity(received.len());
    let mut signature = None;
    for record in records(received) {
        let record = record?;
        if record.number != SIGNATURE_FIELD {
            unsigned.extend_from_slice(record.raw);
        } else if record.wire_type != WireType::LengthDelimited {
            return Err(BadSignature::Malformed);
        } else if signature.replace(record.value).is_some() {
            return Err(BadSignature::Repeated);
        }
    }
    match signature {
        Some(signature) if !signature.is_empty() => Ok((unsigned, signature)),
        _ => Err(BadSignature::Missing),
    }
}

#[cfg(test)]
mod tests {
    use reveille_core::time::Millis;

    use super::*;
    use crate::cap::{JobCancel, WorkerHandshakeChallenge, WorkerHandshakeResult};
    use crate::{key, packet};

    fn keys() -> (SigningKey, VerifyingKey) {
        let signing = key::signing_key(include_str!("../tests/captured/private.pem")).unwrap();
        let verifying = *signing.verifying_key();
        (signing, verifying)
    }

    fn cancel() -> BusPacket {
        let cancel = JobCancel { job_id: "j1".into(), requested_by: "ops".into(), ..Default::default() };
        let mut packet = packet::envelope("scheduler", "trace", Millis(1), Payload::JobCancel(cancel));
        packet.auth_token = "token".into();
        packet
    }

    #[test]
    fn what_was_signed_verifies_and_says_the_same() {
        let (signing, verifying) = keys();
        let signed = sign(&cancel(), &signing);
        assert_eq!(verify(&signed, &verifying), Ok(()));
        let decoded = packet::decode(&signed).unwrap();
        assert_eq!(BusPacket { signature: Bytes::new(), ..decoded }, cancel());
    }

    #[test]
    fn an_old_signature_is_replaced() {
        let (signing, _) = keys();
        let old = BusPacket { signature: Bytes::from_static(b"old"), ..cancel() };
        assert_eq!(sign(&old, &signing), sign(&cancel(), &signing));
    }

    #[test]
    fn a_changed_bit_anywhere_is_noticed() {
        let (signing, verifying) = keys();
        let signed = sign(&cancel(), &signing);
        for position in 0..signed.len() {
            let mut changed = signed.to_vec();
            changed[position] ^= 1;
            assert!(verify(&changed, &verifying).is_err(), "byte {position}");
        }
    }

    #[test]
    fn a_signature_must_be_there_once_and_whole() {
        let (signing, verifying) = keys();
        let signed = sign(&cancel(), &signing);
        assert_eq!(verify(&packet::encode(&cancel()), &verifying), Err(BadSignature::Missing));
        assert_eq!(verify(b"", &verifying), Err(BadSignature::Missing));
        assert_eq!(verify(b"\x72\x00", &verifying), Err(BadSignature::Missing));
        assert_eq!(verify(b"\x72\x01x", &verifying), Err(BadSignature::NotDer));
        assert_eq!(verify(b"\x70\x01", &verifying), Err(BadSignature::Malformed));
        assert_eq!(verify(&signed[..signed.len() - 1], &verifying), Err(BadSignature::Malformed));
        assert_eq!(verify(&[&signed[..], b"\x72\x01x"].concat(), &verifying), Err(BadSignature::Repeated));
    }

    #[test]
    fn another_key_does_not_fit() {
        let (signing, _) = keys();
        let other = SigningKey::from_slice(&[7; 32]).unwrap();
        assert_eq!(verify(&sign(&cancel(), &signing), other.verifying_key()), Err(BadSignature::Wrong));
    }

    #[test]
    fn a_packet_of_the_trust_handshake_stands_for_no_other() {
        let (signing, verifying) = keys();
        let challenge = Payload::WorkerHandshakeChallenge(WorkerHandshakeChallenge::default());
        let result = Payload::WorkerHandshakeResult(WorkerHandshakeResult::default());
        let packet = packet::envelope("s", "t", Millis(1), challenge.clone());
        let signed = sign_trust(&packet, &signing);
        assert_eq!(verify_trust(&signed, &challenge, &verifying), Ok(()));
        assert_eq!(verify_trust(&signed, &result, &verifying), Err(BadSignature::Wrong));
        assert_eq!(verify(&signed, &verifying), Err(BadSignature::Wrong), "it is no ordinary packet");
        assert_eq!(verify_trust(&sign(&packet, &signing), &challenge, &verifying), Err(BadSignature::Wrong));
    }
}
