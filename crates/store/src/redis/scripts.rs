//! The scripts: one for each thing that must happen in one piece.

use redis::Script;

pub(super) struct Scripts {
    pub commit: Script,
    pub take: Script,
    pub renew: Script,
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

impl Scripts {
    pub fn new() -> Self {
        Self {
            commit: Script::new(include_str!("lua/commit.lua")),
            take: Script::new(include_str!("lua/take.lua")),
            renew: Script::new(include_str!("lua/renew.lua")),
            page: Script::new(include_str!("lua/page.lua")),
            prune: Script::new(include_str!("lua/prune.lua")),
            take_letter_off: Script::new(include_str!("lua/take_letter_off.lua")),
            put_blob: Script::new(include_str!("lua/put_blob.lua")),
            put_under: Script::new(include_str!("lua/put_under.lua")),
            delete_blobs: Script::new(include_str!("lua/delete_blobs.lua")),
            sweep_blobs: Script::new(include_str!("lua/sweep_blobs.lua")),
            swap: Script::new(include_str!("lua/swap.lua")),
            beat: Script::new(include_str!("lua/beat.lua")),
            adopt: Script::new(include_str!("lua/adopt.lua")),
            bury: Script::new(include_str!("lua/bury.lua")),
            announce: Script::new(include_str!("lua/announce.lua")),
        }
    }

    pub fn all(&self) -> [&Script; 15] {
        [
            &self.commit,
            &self.take,
            &self.renew,
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
