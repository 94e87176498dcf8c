//! The pictures of workflows as others see them.

#![allow(clippy::unwrap_used, reason = "a test may")]

mod pictures;
