//! Unique names: a random one for this start of the store, and a number after it.

use crate::{Origin, StoreError};
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) struct NameSource {
    life: u64,
    next: AtomicU64,
}

impl NameSource {
    pub fn new() -> Result<Self, StoreError> {
        let life = getrandom::u64()
            .map_err(|error| StoreError::Unavailable(format!("the system has no randomness: {error}")))?;
        Ok(Self { life, next: AtomicU64::new(0) })
    }

    /// Distinguishes a step whose answer was lost from another's.
    pub fn token(&self) -> String {
        format!("{:032x}", self.name())
    }

    /// Distinguishes one audit entry from every other.
    pub fn origin(&self) -> Origin {
        Origin(self.name().to_be_bytes())
    }

    fn name(&self) -> u128 {
        u128::from(self.life) << 64 | u128::from(self.next.fetch_add(1, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_given_twice() {
        let (one, other) = (NameSource::new().unwrap(), NameSource::new().unwrap());
        let names: std::collections::BTreeSet<_> =
            [one.token(), one.token(), other.token(), other.token()].into();
        assert_eq!(names.len(), 4);
        assert!(names.iter().all(|name| name.len() == 32), "{names:?}");
    }
}
