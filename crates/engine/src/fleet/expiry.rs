//! Members that fall silent or are retired: their jobs go elsewhere, and those who watch are told.

use super::Fleet;
use crate::base::Base;
use crate::cluster::{Cluster, SeenBy};
use crate::jobs::Jobs;
use crate::observe::Observe;
use crate::observe::events::WorkerChange;
use crate::runtime::Runtime;
use reveille_core::id::WorkspaceId;
use reveille_core::placement::LostMember;
use reveille_core::presence::Contract;
use reveille_core::time::Millis;
use std::sync::Arc;

/// What becomes of those who leave.
#[derive(Clone)]
pub struct Departures {
    runtime: Runtime,
    observe: Observe,
    cluster: Arc<dyn Cluster>,
    jobs: Jobs,
}

impl Departures {
    pub fn new(base: Base, jobs: Jobs) -> Self {
        let Base { runtime, observe, cluster, .. } = base;
        Self { runtime, observe, cluster, jobs }
    }

    pub fn member_gone(&self, gone: LostMember) {
        let Some(member) = gone.member else {
            tracing::warn!(jobs = gone.jobs.len(), "anonymous worker gone; its jobs are reassigned");
            for id in gone.jobs {
                self.runtime.spawn(self.jobs.clone().lose_attempt(id, None));
            }
            return;
        };
        let (contract, worker) = (member.contract.as_str(), member.id.clone());
        tracing::warn!(%worker, contract, jobs = gone.jobs.len(), "left the fleet: silent for its TTL, or retired");
        if gone.restored {
            self.observe.metrics().fleet().stale_restored(self.runtime.now());
        }
        for id in gone.jobs {
            self.runtime.spawn(self.jobs.clone().worker_gone(id, worker.clone()));
        }
        let change = match member.contract {
            Contract::Cap => WorkerChange::Left,
            Contract::VoiceGateway | Contract::Molecule => WorkerChange::Offline,
        };
        self.cluster.announce(member, change, SeenBy::AllServers);
    }
}

impl Fleet {
    /// This server was not listening for a while: nobody's silence counts for so long.
    pub(crate) fn forgive(&self, away_ms: i64, now: Millis) {
        self.placement.lock().credit_downtime(away_ms, now);
    }

    /// Declares dead whose TTL has lapsed.
    pub(crate) fn expire(&self, now: Millis) {
        let (gone, is_slow) = {
            let mut table = self.placement.lock();
            (table.expire(now), table.fleet().is_mass_expiry())
        };
        if self.observe.metrics().fleet().mass_expiry(is_slow) && is_slow {
            tracing::error!("most of the fleet is silent; mass-expiry guard slows expiry; check the network");
        }
        for gone in gone {
            let workspace = gone.member.as_ref().filter(|member| member.contract == Contract::Molecule);
            let workspace = workspace.map(|workspace| WorkspaceId::known(workspace.id.as_str()));
            self.departures.member_gone(gone);
            if let Some(workspace) = workspace {
                self.runtime.spawn(self.workspaces.clone().workspace_is_silent(workspace));
            }
        }
    }
}
