//! What can be scraped: the page of a server that has worked, and everything that is written over its names.

#![allow(clippy::unwrap_used, reason = "a test may")]

mod dashboards;
mod names;
mod page;
