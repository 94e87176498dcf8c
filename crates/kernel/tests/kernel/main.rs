//! The kernel's client and its words as others see them.

#![allow(clippy::unwrap_used, reason = "a test may")]

mod convert;
mod grpc;
