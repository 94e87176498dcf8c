//! Header blocks of NATS messages. A value that is written again reads the same, and cannot begin another header.

use super::FuzzTarget;
use crate::signal::FuzzSignal;
use reveille_bus::headers::{LINES_MAX, block, values};

const NAMES: [&str; 3] = ["traceparent", "tracestate", "x"];

pub const TARGET: FuzzTarget = FuzzTarget {
    name: "nats_headers",
    dictionary: &[
        "NATS/1.0",
        "NATS/1.0 503",
        "\r\n",
        "\n",
        "\r",
        ":",
        ": ",
        "traceparent",
        "TraceParent: ",
        "tracestate: ",
        "x: ",
        " ",
        "\t",
    ],
    run,
};

fn run(input: &[u8], signal: &mut FuzzSignal) {
    for name in NAMES {
        let found: Vec<&[u8]> = values(input, name).collect();
        assert!(found.len() < LINES_MAX, "{} values", found.len());
        signal.see_count(found.len());
        for text in found.into_iter().filter_map(|value| std::str::from_utf8(value).ok()) {
            written_again(name, text);
        }
    }
    // Whatever a value holds, it stays one value of one header.
    if let Ok(text) = std::str::from_utf8(input) {
        written_again("x", text);
    }
}

fn written_again(name: &str, value: &str) {
    let block = block([(name, value), ("last", "1")]);
    let kept: String = value.chars().filter(|letter| !matches!(letter, '\r' | '\n')).collect();
    assert_eq!(values(&block, name).collect::<Vec<_>>(), [kept.as_bytes().trim_ascii()]);
    assert_eq!(values(&block, "last").collect::<Vec<_>>(), [b"1"]);
    assert_eq!(block.split(|byte| *byte == b'\n').count(), 5, "lines of {block:?}");
}
