//! CAP packets. A packet that was taken is written and taken again as the same, what is made of it belongs to the
//! credential's tenant, and a signature holds for the bytes that were signed.

use super::FuzzTarget;
use crate::signal::FuzzSignal;
use reveille_core::id::TenantId;
use reveille_wire::cap::BusPacket;
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::convert::{self, Unusable};
use reveille_wire::key::{SigningKey, VerifyingKey, signing_key, verifying_key};
use reveille_wire::{packet, sign, upb};
use std::sync::LazyLock;

const PRIVATE: &str = include_str!("../../../crates/wire/tests/captured/private.pem");
const PUBLIC: &str = include_str!("../../../crates/wire/tests/captured/public.pem");
/// Signing takes longer than everything else; one packet in so many, by its length.
const SIGNED_EVERY: usize = 16;

pub const TARGET: FuzzTarget = FuzzTarget {
    name: "packets",
    dictionary: &[
        "\x0a\x05trace",
        "\x12\x06w-echo",
        "\x1a\x00",
        "\x20\x01",
        "\x52\x00",
        "\x5a\x00",
        "\x62\x00",
        "\x0a\x02j1",
        "\x12\x08job.echo",
        "tenant_id",
        "acme",
        "\x7a\x04\x0a\x00\x12\x00",
        "redis://ctx:j1",
    ],
    run,
};

fn run(input: &[u8], signal: &mut FuzzSignal) {
    let taken = match packet::decode(input) {
        Ok(taken) => taken,
        Err(refusal) => return signal.see_words(&refusal.to_string()),
    };
    signal.see(taken.payload.as_ref().map(std::mem::discriminant));
    let written = upb::encode(&taken);
    match packet::decode(&written) {
        Ok(again) => assert_eq!(upb::encode(&again), written, "written again"),
        Err(refusal) => panic!("a packet that was taken is refused when it is written again: {refusal}"),
    }
    if input.len().is_multiple_of(SIGNED_EVERY) {
        signed(&taken);
    }
    if let Err(problem) = convert(taken) {
        signal.see_words(&problem.to_string());
    }
}

fn signed(taken: &BusPacket) {
    static KEYS: LazyLock<Option<(SigningKey, VerifyingKey)>> =
        LazyLock::new(|| Some((signing_key(PRIVATE).ok()?, verifying_key(PUBLIC).ok()?)));
    let Some((private, public)) = &*KEYS else { panic!("the captured keys are keys") };
    let mut signed = sign::sign(taken, private).to_vec();
    assert_eq!(sign::verify(&signed, public), Ok(()), "what we sign");
    if let Some(last) = signed.last_mut() {
        *last ^= 1;
    }
    assert!(sign::verify(&signed, public).is_err(), "what was changed after it was signed");
}

fn convert(taken: BusPacket) -> Result<(), Unusable> {
    let tenant = TenantId::known("acme");
    match taken.payload {
        Some(Payload::JobRequest(job)) => {
            let request = convert::request(job, taken.trace_id, &tenant)?;
            assert_eq!(request.tenant, tenant, "a packet chose its tenant");
            convert::compensation(&request).map(drop)
        }
        Some(Payload::JobResult(result)) => convert::report(result).map(drop),
        Some(Payload::JobProgress(told)) => convert::progress(&taken.sender_id, told).map(drop),
        Some(Payload::JobCancel(cancel)) => convert::cancellation(cancel).map(drop),
        Some(Payload::Heartbeat(heartbeat)) => {
            let (worker, _) = convert::beat(heartbeat)?;
            assert_eq!(worker.as_str(), taken.sender_id, "a beat in another's name");
            Ok(())
        }
        Some(Payload::Handshake(handshake)) => convert::introduction(&handshake).map(drop),
        _ => Ok(()),
    }
}
