//! Packets of others: of the stock SDK, and of those who mean harm.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod hostile_bytes;
mod stock_sdk;
