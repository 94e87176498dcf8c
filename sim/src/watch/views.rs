//! What a server shows when everything has settled is what is stored.

use crate::breakage::Breakage;
use crate::invariants::InvariantResult;
use crate::plan::TENANTS;
use crate::world::World;
use reveille_core::id::TenantId;
use reveille_engine::{Audience, Engine};

/// Every server has heard of every change by now.
pub fn agree(world: &World, engine: &Engine) -> InvariantResult {
    if !world.plan.is_shared() {
        return Ok(());
    }
    for tenant in TENANTS.map(TenantId::known) {
        for view in engine.workspaces().workspaces_of(&tenant) {
            let (id, status) = (&view.workspace.id, view.workspace.status);
            let kept = world.look_up(|archive| archive.status(id));
            if kept != Some(status) {
                return Err(format!("{id} is {} here and {kept:?} in the roster", status.as_str()));
            }
        }
        // What one server hears over HTTP the others know by its word only.
        let are_told = world.breakage != Some(Breakage::MuteServers);
        for agent in world.agents().iter().filter(|agent| are_told && agent.key.0 == tenant) {
            let shown = engine
                .fleet()
                .agents(&Audience::Tenant(tenant.clone()), usize::MAX)
                .into_iter()
                .find(|shown| shown.id == agent.key.1);
            if shown.is_none_or(|shown| shown.offline) {
                return Err(format!("{tenant}'s agent {} beats and is not shown as alive", agent.key.1));
            }
        }
    }
    let shown = engine.fleet().workers();
    for worker in world.workers().iter().filter(|worker| worker.beats(world.now())) {
        if !shown.iter().any(|view| view.worker.id == worker.plan.name) {
            return Err(format!("{} beats and is not listed", worker.plan.name));
        }
    }
    if engine.fleet().drains().is_empty() {
        Ok(())
    } else {
        Err("somebody is drained, and nobody is".to_owned())
    }
}
