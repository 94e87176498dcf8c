//! The scripts: one for each thing that must happen in one piece.

use super::keys::Keys;
use redis::Script;

pub(super) struct Scripts {
    pub commit: Script,
    pub take: Script,
    pub renew: Script,
    pub held: Script,
    pub page: Script,
    pub prune: Script,
    pub take_letter_off: Script,
    pub put_blob: Script,
    pub put_under: Script,
    pub delete_blobs: Script,
    pub sweep_blobs: Script,
    pub swap: Script,
    pub beat: Script,
    pub adopt: Script,
    pub bury: Script,
    pub announce: Script,
}

/// A script as it is run. While a cluster moves our slot to another node, key by key, a script would stop at the
/// first key that has left, with half of its work done. So it looks for one first that is nowhere, and which a node
/// that is giving up the slot therefore says it has given up.
pub(super) fn script(keys: &Keys, text: &str) -> Script {
    if !keys.is_on_a_cluster() {
        return Script::new(text);
    }
    Script::new(&format!("redis.call('EXISTS', '{}')\n{text}", keys.of("reveille:nothing")))
}

impl Scripts {
    pub fn new(keys: &Keys) -> Self {
        let script = |text| script(keys, text);
        Self {
            commit: script(include_str!("lua/commit.lua")),
            take: script(include_str!("lua/take.lua")),
            renew: script(include_str!("lua/renew.lua")),
            held: script(include_str!("lua/held.lua")),
            page: script(include_str!("lua/page.lua")),
            prune: script(include_str!("lua/prune.lua")),
            take_letter_off: script(include_str!("lua/take_letter_off.lua")),
            put_blob: script(include_str!("lua/put_blob.lua")),
            put_under: script(include_str!("lua/put_under.lua")),
            delete_blobs: script(include_str!("lua/delete_blobs.lua")),
            sweep_blobs: script(include_str!("lua/sweep_blobs.lua")),
            swap: script(include_str!("lua/swap.lua")),
            beat: script(include_str!("lua/beat.lua")),
            adopt: script(include_str!("lua/adopt.lua")),
            bury: script(include_str!("lua/bury.lua")),
            announce: script(include_str!("lua/announce.lua")),
        }
    }

    pub fn all(&self) -> [&Script; 16] {
        [
            &self.commit,
            &self.take,
            &self.renew,
            &self.held,
            &self.page,
            &self.prune,
            &self.take_letter_off,
            &self.put_blob,
            &self.put_under,
            &self.delete_blobs,
            &self.sweep_blobs,
            &self.swap,
            &self.beat,
            &self.adopt,
            &self.bury,
            &self.announce,
        ]
    }
}
