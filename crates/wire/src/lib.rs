//! The Cordum Agent Protocol on the wire: packets, subjects and signatures, byte for byte as a
//! stock worker expects them.
//!
//! What arrives goes through [`packet::decode`] and is valid afterwards; what leaves is built with
//! [`packet::envelope`]. Signatures are added with [`sign::sign`] and checked with [`sign::verify`]. The types are
//! generated from our own files under `proto/`; `tests/compare_descriptors.py` compares them with the published SDK.
//! Nothing here opens a socket or knows what a job means.

pub mod convert;
pub mod key;
pub mod packet;
pub mod sign;
pub mod subject;
pub mod upb;
pub mod validate;

mod record;
mod shape;

/// The protocol between control plane and workers, package `cordum.agent.v1`.
#[allow(clippy::all, clippy::pedantic, deprecated, unused_qualifications, rustdoc::all)]
pub mod cap {
    include!(concat!(env!("OUT_DIR"), "/cordum.agent.v1.rs"));
}

/// What the control plane serves beside the bus, package `cordum.v1`.
#[allow(clippy::all, clippy::pedantic, unused_qualifications, rustdoc::all)]
pub mod cordum {
    include!(concat!(env!("OUT_DIR"), "/cordum.v1.rs"));
}

/// Every message above as a serialised `google.protobuf.FileDescriptorSet`, imports included.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
