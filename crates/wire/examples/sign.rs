//! Signs a packet anew, for `tests/check_signature.py` to judge.
//!
//! Reads the packet as hex from a file, the private key as PEM, and writes the signed packet as
//! raw bytes.

use std::process::ExitCode;
use std::{env, fs};

use reveille_wire::{key, packet, sign};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [packet_path, key_path, out_path] = &arguments[..] else {
        eprintln!("usage: sign PACKET.hex PRIVATE-KEY-PEM OUTFILE");
        return ExitCode::FAILURE;
    };
    match sign_file(packet_path, key_path, out_path) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{packet_path}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn sign_file(packet_path: &str, key_path: &str, out_path: &str) -> Result<(), Box<dyn std::error::Error>> {
    let packet = packet::decode(&from_hex(&fs::read_to_string(packet_path)?)?)?;
    let key = key::signing_key(&fs::read_to_string(key_path)?)?;
    fs::write(out_path, sign::sign(&packet, &key))?;
    Ok(())
}

fn from_hex(text: &str) -> Result<Vec<u8>, std::num::ParseIntError> {
    let digits: Vec<char> = text.trim().chars().collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(&String::from_iter(pair), 16)).collect()
}
