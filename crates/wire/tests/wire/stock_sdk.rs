//! Packets that the published SDK built and signed, as files of hex in `tests/captured`.
//!
//! They were made by `check_signature.py --sign`. To try many random ones:
//!
//! ```text
//! python crates/wire/tests/check_signature.py --sign /tmp/captured --random 2000
//! CAPTURED=/tmp/captured cargo test -p reveille-wire stock_sdk
//! ```

use std::path::{Path, PathBuf};
use std::{env, fs};

use bytes::Bytes;
use reveille_wire::cap::BusPacket;
use reveille_wire::{key, packet, sign, upb};

/// How many packets are kept with the code; a test over none would prove nothing.
const CAPTURED_MIN: usize = 6;

fn directory() -> PathBuf {
    let ours = || Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captured");
    env::var_os("CAPTURED").map_or_else(ours, PathBuf::from)
}

fn for_each_captured(check: impl Fn(&str, &[u8])) {
    let mut count = 0;
    for entry in fs::read_dir(directory()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "hex") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let digits: Vec<char> = text.trim().chars().collect();
        let byte = |pair: &[char]| u8::from_str_radix(&String::from_iter(pair), 16).unwrap();
        let bytes: Vec<u8> = digits.chunks(2).map(byte).collect();
        check(&path.display().to_string(), &bytes);
        count += 1;
    }
    assert!(count >= CAPTURED_MIN, "only {count} packets in {}", directory().display());
}

fn read_key(name: &str) -> String {
    fs::read_to_string(directory().join(name)).unwrap()
}

#[test]
fn the_sdks_signatures_verify() {
    let key = key::verifying_key(&read_key("public.pem")).unwrap();
    for_each_captured(|name, bytes| {
        packet::decode(bytes).unwrap_or_else(|bad| panic!("{name}: {bad}"));
        assert_eq!(sign::verify(bytes, &key), Ok(()), "{name}");
    });
}

#[test]
fn our_bytes_are_the_sdks_bytes() {
    for_each_captured(|name, bytes| {
        assert_eq!(upb::encode(&packet::decode(bytes).unwrap()), bytes, "{name}");
    });
}

#[test]
fn what_we_sign_differs_from_the_sdks_in_the_signature_only() {
    let key = key::signing_key(&read_key("private.pem")).unwrap();
    let unsigned = |bytes: &[u8]| BusPacket { signature: Bytes::new(), ..packet::decode(bytes).unwrap() };
    for_each_captured(|name, bytes| {
        let signed = sign::sign(&packet::decode(bytes).unwrap(), &key);
        assert_eq!(sign::verify(&signed, key.verifying_key()), Ok(()), "{name}");
        assert_eq!(unsigned(&signed), unsigned(bytes), "{name}");
        assert_eq!(upb::encode(&packet::decode(&signed).unwrap()), signed, "{name}");
    });
}
