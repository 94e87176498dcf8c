//! What another server has written into the roster: keys, ended sessions, workspaces and drains, of which each server holds
//! copies. The roster counts its changes; a server that sees a count move reads again.

use crate::observe::{Observe, Trouble};
use reveille_roster::{Generations, Roster, RosterError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A copy of something in the roster.
#[async_trait::async_trait]
pub trait RosterCopy: Send + Sync {
    /// Reads it again. Says no if it was changed here meanwhile: what was read may be older than that.
    async fn reload(&self) -> Result<bool, RosterError>;
}

pub struct Refresh {
    pub roster: Arc<dyn Roster>,
    pub observe: Observe,
    pub keys: Arc<dyn RosterCopy>,
    pub sessions: Arc<dyn RosterCopy>,
    pub workspaces: Arc<dyn RosterCopy>,
    pub drains: Arc<dyn RosterCopy>,
    /// The changes that the copies have.
    pub seen: Mutex<Generations>,
}

impl Refresh {
    pub async fn run(self: Arc<Self>) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            if let Err(error) = self.refresh().await {
                let words = "changes by other servers not read; retrying";
                self.observe.log(Trouble::Store, words, &"roster", &error);
            }
        }
    }

    /// Reads the copies again that the roster has changed since they were read.
    pub async fn refresh(&self) -> Result<(), RosterError> {
        let mut seen = self.seen.lock().await;
        let now = self.roster.generations().await?;
        let copies = [
            (now.keys != seen.keys, &self.keys),
            (now.sessions != seen.sessions, &self.sessions),
            (now.workspaces != seen.workspaces, &self.workspaces),
            (now.drains != seen.drains, &self.drains),
        ];
        for (_, copy) in copies.iter().filter(|(has_changed, _)| *has_changed) {
            while !copy.reload().await? {}
        }
        *seen = now;
        Ok(())
    }
}
