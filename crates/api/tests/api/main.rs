//! What a server answers over HTTP, and that policy rules it all. One binary: each would link everything that a
//! server is made of.

#![allow(clippy::unwrap_used, reason = "a test may")]

mod governance;
mod http;
