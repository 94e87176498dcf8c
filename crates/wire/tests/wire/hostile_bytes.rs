//! Whatever arrives, decoding and verifying answer; they never panic.

use proptest::prelude::*;
use reveille_core::time::Millis;
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::cap::{JobRequest, WorkerHandshakeChallengeRequest};
use reveille_wire::key::SigningKey;
use reveille_wire::{packet, sign};

fn key() -> SigningKey {
    SigningKey::from_slice(&[7; 32]).unwrap()
}

/// A packet whole enough that damage to it reaches the deeper code.
fn good(payload: Payload) -> Vec<u8> {
    sign::sign(&packet::envelope("w", "t", Millis(1), payload), &key()).to_vec()
}

fn good_packets() -> impl Strategy<Value = Vec<u8>> {
    let labels = [(String::new(), String::new()), ("workflow".to_owned(), "1".to_owned())].into();
    let job = JobRequest { job_id: "j".into(), topic: "job.echo".into(), labels, ..Default::default() };
    let trust = WorkerHandshakeChallengeRequest { trace_id: "t".into(), ..Default::default() };
    prop_oneof![
        Just(good(Payload::JobRequest(job))),
        Just(good(Payload::WorkerHandshakeChallengeRequest(trust))),
    ]
}

proptest! {
    #[test]
    fn random_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
        let _ = packet::decode(&bytes);
        prop_assert!(sign::verify(&bytes, key().verifying_key()).is_err());
    }

    #[test]
    fn a_damaged_packet_is_answered_and_no_longer_signed(
        mut bytes in good_packets(),
        position in any::<prop::sample::Index>(),
        value in any::<u8>(),
    ) {
        let position = position.index(bytes.len());
        prop_assume!(bytes[position] != value);
        bytes[position] = value;
        let _ = packet::decode(&bytes);
        prop_assert!(sign::verify(&bytes, key().verifying_key()).is_err());
    }

    #[test]
    fn a_packet_cut_short_is_answered_and_no_longer_signed(
        bytes in good_packets(),
        len in any::<prop::sample::Index>(),
    ) {
        let bytes = &bytes[..len.index(bytes.len())];
        let _ = packet::decode(bytes);
        prop_assert!(sign::verify(bytes, key().verifying_key()).is_err());
    }
}
