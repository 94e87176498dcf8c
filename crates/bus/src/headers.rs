//! The header block of a NATS message: `NATS/1.0`, then lines `Name: value`, then an empty line.
//!
//! Blocks come from untrusted clients. Whatever they contain, reading one only walks its first lines.

use bytes::Bytes;

const VERSION: &str = "NATS/1.0";

/// Lines that are read; anything further down is ignored.
pub const LINES_MAX: usize = 128;

/// A block with these headers. A line break inside a value would begin another header, so it is left out.
pub fn block<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Bytes {
    let mut text = format!("{VERSION}\r\n");
    for (name, value) in pairs {
        debug_assert!(!name.contains([':', '\r', '\n']), "{name:?}");
        text.push_str(name);
        text.push_str(": ");
        text.extend(value.chars().filter(|c| !matches!(c, '\r' | '\n')));
        text.push_str("\r\n");
    }
    text.push_str("\r\n");
    text.into()
}

/// The values under a name, in order, trimmed. Names are compared as in HTTP: clients spell the same header in more
/// than one way.
pub fn values<'a>(block: &'a [u8], name: &'a str) -> impl Iterator<Item = &'a [u8]> {
    let mut lines = block.split(|byte| *byte == b'\n').take(LINES_MAX);
    let is_block = lines.next().is_some_and(|first| first.starts_with(VERSION.as_bytes()));
    lines.filter(move |_| is_block).filter_map(move |line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (said, value) = (&line[..colon], &line[colon + 1..]);
        said.eq_ignore_ascii_case(name.as_bytes()).then(|| value.trim_ascii())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(block: &[u8]) -> Vec<&[u8]> {
        values(block, "traceparent").collect()
    }

    #[test]
    fn what_is_written_is_read() {
        let block =
            block([("traceparent", "00-a"), ("tracestate", "a=1,b: 2"), ("x", "1\r\ntraceparent: evil")]);
        assert_eq!(read(&block), [b"00-a"]);
        assert_eq!(values(&block, "TraceState").collect::<Vec<_>>(), [b"a=1,b: 2"]);
        assert_eq!(values(&block, "x").collect::<Vec<_>>(), [b"1traceparent: evil"]);
        assert!(block.ends_with(b"\r\n\r\n"));
    }

    #[test]
    fn strangers_blocks_are_walked_and_no_more() {
        let both: [&[u8]; 2] = [b"1", b"2"];
        assert_eq!(read(b"NATS/1.0 503\r\nTraceparent:1\r\ntraceparent:  2\t\r\n\r\n"), both);
        let many = format!("NATS/1.0\r\n{}traceparent: 1\r\n\r\n", "x: y\r\n".repeat(LINES_MAX));
        for nothing in [
            &b""[..],
            b"\xff\xfe\n:\n::",
            b"traceparent: 1",
            b"NATS/1.0\r\ntraceparent\r\n",
            b"NATS/1.0\r\ntrace parent: 1\r\n",
            many.as_bytes(),
        ] {
            assert_eq!(read(nothing), [b""; 0]);
        }
    }
}
