//! Whether this server is alone or one of several, chosen once at the start: [`Alone`] or [`SharedCluster`].
//!
//! Servers learn of each other's work in three ways, and each promises something else.
//!
//! | way | what goes through it | order | loss |
//! |---|---|---|---|
//! | peer messages, over the bus | jobs committed, beats heard over HTTP, requests counted | per sender | may be lost; whoever depends on it looks in the store a little later |
//! | the event log, in the store | what subscribers see | one order for all servers | a job's event is in the commit of its step; others are appended once each, retried while the store is away, and lost with a killed server; a gap makes every reader start afresh |
//! | generations, in the roster | that keys, workspaces or drains have changed | none: a count that grows | cannot be lost: whoever sees a count move reads all of it again |
//!
//! A live job belongs to whoever committed it last. Every server counts what is at workers, whoever gave it to
//! them, so that no worker is given too much; what must be exact is a precondition of the commit.

mod alone;
mod announcer;
mod event_log;
mod job_cache;
mod lease;
mod membership;
mod peer_message;
mod shared;

pub use alone::Alone;
pub use announcer::SeenBy;
pub use job_cache::JobCache;
#[cfg(test)]
pub use lease::STRIKES_MAX;
pub use lease::{LeaderLease, Lease};
pub use peer_message::{PeerJob, PeerMessage, PeerMessages};
pub use shared::SharedCluster;

use crate::observe::events::WorkerChange;
use bytes::Bytes;
use reveille_core::id::JobId;
use reveille_core::job::Job;
use reveille_core::placement::Member;
use reveille_core::time::Millis;
use reveille_store::Quota;
use std::time::Duration;

pub trait Cluster: Send + Sync + 'static {
    /// What this server is called among the others; nothing where there are none.
    fn name(&self) -> &str;

    /// The servers that share the work, by the last beat; none where there is only one.
    fn members(&self) -> Vec<String>;

    /// Whether the shared store has not been heard for so long that others have taken over by now, or the bus
    /// is away: whoever can choose another server should.
    fn is_cut_off(&self) -> bool;

    /// Whether another server may change what this one holds in memory.
    fn others_may_act(&self) -> bool;

    /// Publishes a committed job to those who watch, here and at the other servers.
    fn publish_committed(&self, job: &Job);

    /// The event that a step of the job carries into the event log, where there is one.
    fn step_event(&self, job: &Job) -> Option<Bytes>;

    /// Tells the other servers something; it may be lost.
    fn publish(&self, message: &dyn Fn() -> PeerMessage);

    /// A member of the fleet has changed, and one server tells those who watch.
    fn announce(&self, member: Member, change: WorkerChange, seen_by: SeenBy);

    /// Jobs as this server last committed them, where reading them costs a trip.
    fn job_cache(&self) -> Option<&JobCache>;

    /// What a commit must find room for. A server that is alone counts by itself.
    fn quota(&self, of: &dyn Fn() -> Quota) -> Quota;

    /// When to look at a job that is due then: another server may change it, and its message may be lost.
    fn look_by(&self, due: Millis, now: Millis) -> Millis;

    /// How long whoever waits for a job relies on being woken.
    fn wake_patience(&self) -> Duration;

    /// The last revision of a job that ended lately, where a message about it may come late.
    fn ended_revision(&self, job: &JobId) -> Option<u64>;

    /// Whether what was committed then may have been taken over by another server meanwhile.
    fn is_late(&self, committed_at: Millis, now: Millis) -> bool;
}
