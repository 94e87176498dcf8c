//! W3C trace context: the first line is `traceparent`, the others are `tracestate`. What was taken is passed on as
//! headers that are taken again as the same, and is never longer than allowed.

use super::FuzzTarget;
use crate::signal::FuzzSignal;
use reveille_core::trace::{TRACESTATE_LEN_MAX, TraceContext};

pub const TARGET: FuzzTarget = FuzzTarget {
    name: "trace_context",
    dictionary: &[
        "00-",
        "-01",
        "-00",
        "ff-",
        "01-",
        "4bf92f3577b34da6a3ce929d0e0e4736",
        "00f067aa0ba902b7",
        "-",
        "\n",
        "a=1",
        ",",
        "tenant@system=x",
        "=",
        "@",
        " ",
        "\t",
        "00000000000000000000000000000000",
    ],
    run,
};

fn run(input: &[u8], signal: &mut FuzzSignal) {
    let mut lines = input.split(|byte| *byte == b'\n');
    let parent = lines.next();
    let Some(context) = TraceContext::read(parent, lines) else { return };
    signal.see((context.parent.sampled, context.state.is_some()));
    let headers = context.headers();
    assert!(headers.iter().all(|(_, value)| value.len() <= TRACESTATE_LEN_MAX), "{headers:?}");
    assert!(headers.iter().all(|(_, value)| !value.contains(['\r', '\n'])), "{headers:?}");
    let mut values = headers.iter().map(|(_, value)| value.as_bytes());
    assert_eq!(TraceContext::read(values.next(), values), Some(context), "passed on and read again");
}
