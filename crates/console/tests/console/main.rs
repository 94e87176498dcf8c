//! The console's pages, without a browser: through the router, over a real engine.

#![allow(clippy::unwrap_used, reason = "a test may")]

mod attacks;
mod browser;
mod forms;
mod house;
mod pages;
mod people;
mod rights;
mod sign_in;
mod trail;
