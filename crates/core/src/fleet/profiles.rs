//! Profiles, each stored once and kept as long as a worker has it.

use super::{Profile, ProfileIx};
use rustc_hash::FxHashMap;
use std::sync::Arc;

#[derive(Default)]
pub struct Profiles {
    entries: Vec<(Arc<Profile>, u32)>,
    by_value: FxHashMap<Arc<Profile>, ProfileIx>,
    free: Vec<ProfileIx>,
}

impl Profiles {
    pub fn get(&self, ix: ProfileIx) -> &Arc<Profile> {
        &self.entries[ix as usize].0
    }

    /// One more worker has this profile.
    pub fn hold(&mut self, profile: Profile) -> ProfileIx {
        if let Some(ix) = self.by_value.get(&profile) {
            self.entries[*ix as usize].1 += 1;
            return *ix;
        }
        let entry = (Arc::new(profile), 1);
        let ix = if let Some(ix) = self.free.pop() {
            self.entries[ix as usize] = entry.clone();
            ix
        } else {
            self.entries.push(entry.clone());
            (self.entries.len() - 1) as ProfileIx
        };
        self.by_value.insert(entry.0, ix);
        ix
    }

    /// One worker fewer has it; the last one takes it along.
    pub fn release(&mut self, ix: ProfileIx) {
        let (profile, workers) = &mut self.entries[ix as usize];
        *workers -= 1;
        if *workers == 0 {
            self.by_value.remove(profile);
            self.free.push(ix);
        }
    }
}
