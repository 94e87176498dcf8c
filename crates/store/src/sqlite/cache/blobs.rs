//! Small blobs that were stored a moment ago: the context a worker is about to fetch, the result a client waits for.
//! What is here matches the file; what is not here may still be in the file.

use crate::BlobKey;
use bytes::Bytes;
use reveille_core::time::Millis;
use std::collections::{HashMap, VecDeque};

/// Larger blobs are read from the file.
const VALUE_LEN_MAX: usize = 64 * 1024;
/// Maximum total size.
const TOTAL_LEN_MAX: usize = 64 * 1024 * 1024;
/// Approximate overhead of an entry beyond its key and value.
const ENTRY_LEN: usize = 160;

#[derive(Default)]
pub(in crate::sqlite) struct BlobCache {
    blobs: HashMap<BlobKey, CachedBlob>,
    /// In the order they came; an entry whose number is not the blob's belongs to a value that is gone.
    order: VecDeque<(BlobKey, u64)>,
    number_last: u64,
    /// Of everything in `order`, gone values included, so that those are bounded too.
    total_len: usize,
}

struct CachedBlob {
    value: Bytes,
    expires_at: Millis,
    number: u64,
}

impl BlobCache {
    /// The value and when it expires; the caller checks whether it has.
    pub fn get(&self, key: &BlobKey) -> Option<(Bytes, Millis)> {
        self.blobs.get(key).map(|entry| (entry.value.clone(), entry.expires_at))
    }

    pub fn put(&mut self, key: &BlobKey, value: &Bytes, expires_at: Millis) {
        self.remove(key);
        if value.len() > VALUE_LEN_MAX {
            return;
        }
        self.number_last += 1;
        self.total_len += place_len(key) + value.len();
        // A copy: a slice from a socket would keep the whole read buffer alive.
        let value = Bytes::copy_from_slice(value);
        self.blobs.insert(key.clone(), CachedBlob { value, expires_at, number: self.number_last });
        self.order.push_back((key.clone(), self.number_last));
        while self.total_len > TOTAL_LEN_MAX {
            self.forget_oldest();
        }
    }

    pub fn remove(&mut self, key: &BlobKey) {
        if let Some(entry) = self.blobs.remove(key) {
            // The place in the order stays until its turn comes, and its key with it.
            self.total_len -= entry.value.len();
        }
    }

    fn forget_oldest(&mut self) {
        let Some((key, number)) = self.order.pop_front() else { return };
        self.total_len -= place_len(&key);
        if let Some(entry) = self.blobs.get(&key).filter(|entry| entry.number == number) {
            self.total_len -= entry.value.len();
            self.blobs.remove(&key);
        }
    }
}

fn place_len(key: &BlobKey) -> usize {
    ENTRY_LEN + 2 * key.as_str().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> BlobKey {
        BlobKey::parse(&format!("ctx:{number}")).unwrap()
    }

    #[test]
    fn the_oldest_make_room_and_the_total_is_kept() {
        let mut cache = BlobCache::default();
        let value = Bytes::from(vec![7; VALUE_LEN_MAX]);
        let fitting = TOTAL_LEN_MAX / VALUE_LEN_MAX;
        for number in 0..2 * fitting {
            cache.put(&key(number), &value, Millis(1));
            assert!(cache.total_len <= TOTAL_LEN_MAX);
        }
        assert!(cache.get(&key(0)).is_none());
        assert!(cache.get(&key(2 * fitting - 1)).is_some());
    }

    #[test]
    fn replacing_one_blob_for_ever_fills_nothing_up() {
        let mut cache = BlobCache::default();
        for number in 0..1_000_000_usize {
            cache.put(&key(0), &Bytes::from(number.to_le_bytes().to_vec()), Millis(1));
        }
        assert!(cache.order.len() * ENTRY_LEN <= TOTAL_LEN_MAX);
        let (value, _) = cache.get(&key(0)).unwrap();
        assert_eq!(value[..], 999_999_usize.to_le_bytes());
    }

    #[test]
    fn a_value_that_became_too_large_is_not_kept() {
        let mut cache = BlobCache::default();
        cache.put(&key(0), &Bytes::from_static(b"small"), Millis(1));
        cache.put(&key(0), &Bytes::from(vec![0; VALUE_LEN_MAX + 1]), Millis(1));
        assert!(cache.get(&key(0)).is_none());
        cache.put(&key(1), &Bytes::from_static(b"small"), Millis(1));
        cache.remove(&key(1));
        assert!(cache.get(&key(1)).is_none());
    }
}
