//! What another server has written into the roster: keys, workspaces and drains, of which each server holds
//! copies. The roster counts its changes; a server that sees a count move reads anew.

use crate::Engine;
use crate::keys::Keys;
use crate::workspaces::Workspaces;
use reveille_core::presence::Drained;
use reveille_roster::RosterError;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Engine {
    pub(crate) async fn follow_roster(self) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            if let Err(error) = self.follow().await {
                let words = "changes by other servers are not seen; trying again";
                self.trouble.store.tell(self.now(), words, &"roster", &error);
            }
        }
    }

    /// Makes the copies anew if the roster has changed since they were made.
    pub(crate) async fn follow(&self) -> Result<(), RosterError> {
        let mut seen = self.followed.lock().await;
        let now = self.roster.generations().await?;
        if now.keys != seen.keys {
            while !self.follow_keys().await? {}
        }
        if now.workspaces != seen.workspaces {
            while !self.follow_workspaces().await? {}
        }
        if now.drains != seen.drains {
            while !self.follow_drains().await? {}
        }
        *seen = now;
        Ok(())
    }

    // A change that is made here is written first and known here then. What was read before it was written must not
    // take its place: these say no, and the roster is read again.

    async fn follow_keys(&self) -> Result<bool, RosterError> {
        let changes = self.keys.changes();
        Ok(self.keys.replace(Keys::load(&*self.roster).await?, changes))
    }

    async fn follow_workspaces(&self) -> Result<bool, RosterError> {
        let changes = self.workspaces.changes();
        Ok(self.workspaces.replace(Workspaces::load(&*self.roster).await?, changes))
    }

    async fn follow_drains(&self) -> Result<bool, RosterError> {
        let changes = self.drain_changes.load(Ordering::SeqCst);
        let drains = self.roster.drains().await?;
        let matches = {
            let mut placement = self.placement();
            if self.drain_changes.load(Ordering::SeqCst) != changes {
                return Ok(false);
            }
            let meant: BTreeSet<&Drained> = drains.iter().map(|drain| &drain.what).collect();
            let over: Vec<Drained> = placement
                .drains()
                .map(|drain| drain.what.clone())
                .filter(|what| !meant.contains(what))
                .collect();
            for what in over {
                placement.undrain(&what);
            }
            for drain in drains {
                placement.drain(drain);
            }
            placement.matches(self.now())
        };
        self.assign_all(matches);
        Ok(true)
    }
}
