//! Names made of content.

use sha2::{Digest, Sha256};
use std::fmt::Write;

pub fn sha256(content: &[u8]) -> [u8; 32] {
    Sha256::digest(content).into()
}

/// SHA-256, as 64 lower-case hexadecimal digits.
pub fn sha256_hex(content: &[u8]) -> String {
    let mut text = String::with_capacity(64);
    for byte in sha256(content) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}
