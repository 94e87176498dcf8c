//! The exporter of traces as others see it.

#![allow(clippy::unwrap_used, reason = "a test may")]

mod otlp;
