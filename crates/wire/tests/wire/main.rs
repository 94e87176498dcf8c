//! Packets of others: of the stock SDK, of those who break a rule, and of those who mean harm.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod hostile_bytes;
mod stock_sdk;
mod validate;
