//! A provider on loopback, its tokens, and those that only look like them.

#![allow(clippy::unwrap_used, reason = "a test may")]

mod bearer;
mod sign_in;

use reveille_core::time::Millis;
use reveille_oidc::Oidc;
use reveille_test_kit::{TestClock, TestPerson, TestProvider};
use std::sync::Arc;

pub use reveille_test_kit::NOON;

/// A provider at noon, and a server that knows it.
pub async fn provider() -> (TestProvider, Oidc) {
    let provider = TestProvider::start(Arc::new(TestClock::standing_still())).await;
    let oidc = provider.oidc();
    (provider, oidc)
}

pub fn ann() -> TestPerson {
    TestPerson::new("248289", "ann", &["dev", "ops"])
}

pub fn at(ms: i64) -> Millis {
    Millis(NOON.0 + ms)
}
