//! Names made of content.

use sha2::{Digest, Sha256};
use std::fmt::Write;

/// SHA-256, as 64 lower-case hexadecimal digits.
pub fn sha256_hex(content: &[u8]) -> String {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(content) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}
