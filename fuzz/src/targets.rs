//! The targets, one file each: what is read, what must hold of it, and the words that inputs are made of.

mod agent_urls;
mod expressions;
mod nats_frames;
mod nats_headers;
mod packets;
mod policies;
mod resp_frames;
mod scanners;
mod schemas;
mod trace_context;
mod workflows;

use crate::signal::FuzzSignal;

/// Something that reads what strangers wrote.
pub struct FuzzTarget {
    /// Also the folder of its corpus.
    pub name: &'static str,
    /// Words that matter to it.
    pub dictionary: &'static [&'static str],
    /// Panics if something does not hold of the input.
    pub run: fn(&[u8], &mut FuzzSignal),
}

pub const TARGETS: &[FuzzTarget] = &[
    nats_frames::TARGET,
    nats_headers::TARGET,
    resp_frames::TARGET,
    packets::TARGET,
    policies::TARGET,
    workflows::TARGET,
    expressions::TARGET,
    schemas::TARGET,
    scanners::TARGET,
    agent_urls::TARGET,
    trace_context::TARGET,
];

/// Cuts bytes into pieces of one to eight bytes, the same way each time.
fn pieces(input: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = input;
    std::iter::from_fn(move || {
        let len = usize::from(rest.first()? % 8 + 1).min(rest.len());
        let (piece, behind) = rest.split_at(len);
        rest = behind;
        Some(piece)
    })
}
