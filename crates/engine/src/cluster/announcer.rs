//! What every server notices by itself is told once.
//!
//! A worker's beat on the bus, and its silence, reach all servers. One of them tells of it, chosen by name. The
//! others hold what they noticed until they have read it among the events; what nobody told within a few seconds
//! they tell themselves, for whoever should have may be dead. One that reads of a change before it has noticed it
//! showed its own readers how things stood before: it says once more that something has changed.

use super::shared::SharedCluster;
use crate::observe::events::{LoggedEvent, What, WorkerChange};
use reveille_core::placement::Member;
use reveille_core::time::Millis;
use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long the one that should tell may take. Longer than it takes to notice that a server is gone.
const ANNOUNCED_WITHIN_MS: i64 = 5_000;
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// What was told longer ago than this is no news to whoever reads it when it starts.
const FRESH_MS: i64 = 30_000;

/// How this server knows of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeenBy {
    /// Nobody else has seen it.
    ThisServer,
    /// All servers see it for themselves.
    AllServers,
    /// Another server has seen it, and announces it.
    AnotherServer,
}

type MemberChange = (Member, WorkerChange);

/// What was noticed and not yet read, and what was read and not yet noticed, each since when.
#[derive(Default)]
pub struct Announcer(Mutex<Apart>);

#[derive(Default)]
struct Apart {
    noticed: FxHashMap<MemberChange, Millis>,
    read: FxHashMap<MemberChange, Millis>,
}

impl Announcer {
    /// Whether another has told of it a moment ago.
    fn was_announced(&self, change: &MemberChange, now: Millis) -> bool {
        self.lock().read.remove(change).is_some_and(|at| now.since(at) < ANNOUNCED_WITHIN_MS)
    }

    /// Another will tell.
    fn notice(&self, change: MemberChange, now: Millis) {
        self.lock().noticed.entry(change).or_insert(now);
    }

    /// Another has told.
    fn announced(&self, change: MemberChange, now: Millis) {
        let mut apart = self.lock();
        if apart.noticed.remove(&change).is_none() {
            apart.read.insert(change, now);
        }
    }

    /// What nobody has told.
    fn take_overdue(&self, now: Millis) -> Vec<MemberChange> {
        let is_over = |at: &Millis| now.since(*at) >= ANNOUNCED_WITHIN_MS;
        let mut apart = self.lock();
        apart.read.retain(|_, at| !is_over(at));
        apart.noticed.extract_if(|_, at| is_over(at)).map(|(change, _)| change).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Apart> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SharedCluster {
    /// Publishes the change, or leaves that to another server.
    pub(super) fn announce_once(&self, member: Member, change: WorkerChange, seen_by: SeenBy) {
        let now = self.runtime.now();
        if seen_by == SeenBy::ThisServer {
            return self.publish_change(member, change);
        }
        let noticed = (member.clone(), change);
        if self.announcer.was_announced(&noticed, now) {
            self.publish_change(member, WorkerChange::Changed);
        } else if seen_by == SeenBy::AllServers
            && elected(&self.membership.members(), &member) == Some(self.store.name())
        {
            self.publish_change(member, change);
        } else {
            self.announcer.notice(noticed, now);
        }
    }

    fn publish_change(&self, member: Member, change: WorkerChange) {
        let tenant = member.tenant.clone();
        self.observe.events().publish(self.runtime.now(), &tenant, What::Worker { member, change });
    }

    /// Another server has announced something.
    pub(super) fn on_announced(&self, event: LoggedEvent) {
        let now = self.runtime.now();
        let is_own = event.by.as_deref().is_none_or(|by| by == self.store.name());
        let is_old = now.since(event.at) > FRESH_MS;
        if let (What::Worker { member, change }, false, false) = (event.what, is_own, is_old) {
            self.announcer.announced((member, change), now);
        }
    }

    /// Announces what the server that should have did not.
    pub async fn announce_overdue(self: Arc<Self>) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            for (member, change) in self.announcer.take_overdue(self.runtime.now()) {
                self.publish_change(member, change);
            }
        }
    }
}

/// The same for everybody who knows of the same servers.
fn elected<'a>(here: &'a [String], member: &Member) -> Option<&'a str> {
    let rank = |name: &str| -> [u8; 32] {
        let Member { contract, tenant, id } = member;
        Sha256::digest(format!("{name}\0{}\0{tenant}\0{id}", contract.as_str())).into()
    };
    let ranked = here.iter().map(|name| (rank(name), name.as_str()));
    ranked.max().map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_core::id::{TenantId, WorkerId};
    use reveille_core::presence::Contract;

    fn joined(name: &str) -> MemberChange {
        let id = WorkerId::known(name);
        (Member { contract: Contract::Cap, tenant: TenantId::known("t"), id }, WorkerChange::Joined)
    }

    #[test]
    fn what_one_tells_the_others_keep_to_themselves() {
        let announcer = Announcer::default();
        announcer.notice(joined("w"), Millis(0));
        announcer.announced(joined("w"), Millis(10));
        assert_eq!(announcer.take_overdue(Millis(60_000)), []);
        assert!(!announcer.was_announced(&joined("w"), Millis(20)), "the next time nothing is left of it");
    }

    #[test]
    fn what_nobody_announces_is_announced() {
        let announcer = Announcer::default();
        announcer.notice(joined("w"), Millis(0));
        assert_eq!(announcer.take_overdue(Millis(ANNOUNCED_WITHIN_MS - 1)), []);
        assert_eq!(announcer.take_overdue(Millis(ANNOUNCED_WITHIN_MS)), [joined("w")]);
        assert_eq!(announcer.take_overdue(Millis(60_000)), []);
    }

    #[test]
    fn whoever_reads_before_it_notices_says_so() {
        let announcer = Announcer::default();
        announcer.announced(joined("w"), Millis(0));
        assert!(!announcer.was_announced(&joined("v"), Millis(10)));
        assert!(announcer.was_announced(&joined("w"), Millis(10)));
        announcer.announced(joined("w"), Millis(20));
        assert!(
            !announcer.was_announced(&joined("w"), Millis(20 + ANNOUNCED_WITHIN_MS)),
            "that was another time"
        );
    }

    #[test]
    fn every_server_picks_the_same_announcer_and_each_has_its_share() {
        let here: Vec<String> = ["a", "b", "c"].map(str::to_owned).into();
        let mut shares = [0; 3];
        for number in 0..300 {
            let (member, _) = joined(&format!("w{number}"));
            let told_by = elected(&here, &member).unwrap();
            let mut others = here.clone();
            others.reverse();
            assert_eq!(elected(&others, &member), Some(told_by));
            shares[here.iter().position(|name| name == told_by).unwrap()] += 1;
        }
        assert!(shares.iter().all(|share| *share > 50), "{shares:?}");
        assert_eq!(elected(&[], &joined("w").0), None);
    }
}
