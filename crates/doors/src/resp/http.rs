//! HTTP at the RESP door: a web page that tries to pass its request off as commands.
//!
//! A browser can be made to send a request to any port. Its lines look like unknown commands, and the body may hold
//! ones that are known. Redis ends such connections at the first sign, and so does this door.

use super::frame::RespFrame;

/// A word that only HTTP begins a line with, in whatever form it came.
pub(super) fn is_http_command(frame: &RespFrame) -> bool {
    frame
        .first()
        .is_some_and(|name| name.eq_ignore_ascii_case(b"POST") || name.eq_ignore_ascii_case(b"Host:"))
}

/// `<method> <target> HTTP/1.1`. Only words on a line can be that; in an array, the last one may be any value.
pub(super) fn is_request_line(words: &RespFrame) -> bool {
    let version = words.last().and_then(|word| word.split_at_checked(b"HTTP/".len()));
    version.is_some_and(|(name, number)| {
        name.eq_ignore_ascii_case(b"HTTP/") && number.first().is_some_and(u8::is_ascii_digit)
    })
}
