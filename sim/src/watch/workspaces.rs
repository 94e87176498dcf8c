//! Molecule workspaces: online while they beat, offline on time, and the same in memory as in the roster.

use super::{LastHeard, NOTICED_MS, TICK_MS};
use crate::invariants::InvariantResult;
use crate::plan::TENANTS;
use crate::world::World;
use reveille_core::id::{TenantId, WorkspaceId};
use reveille_core::presence::workspace::WorkspaceStatus;
use reveille_core::time::Millis;
use reveille_engine::{Engine, WorkspaceView};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A workspace that has been silent for so long is offline.
const WORKSPACE_TTL_MS: i64 = 60_000;
/// How long a new status may need to be written down: one that could not be is tried again.
const WRITTEN_MS: i64 = 1_500;

#[derive(Default)]
pub struct WorkspacesWatched(Mutex<KnownWorkspaces>);

#[derive(Default)]
struct KnownWorkspaces {
    up_at: Option<Millis>,
    heard: BTreeMap<WorkspaceId, (LastHeard, Millis)>,
    restored: BTreeMap<WorkspaceId, LastHeard>,
    /// Workspaces whose registration is under way: it may have been taken already.
    asking: BTreeSet<WorkspaceId>,
    /// Workspaces whose record and row differ, since when.
    differ: BTreeMap<WorkspaceId, Millis>,
}

impl WorkspacesWatched {
    fn known(&self) -> MutexGuard<'_, KnownWorkspaces> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn heard(&self, id: &WorkspaceId, now: Millis) {
        self.heard_between(id, now, now);
    }

    /// It asks to be registered, and has no answer yet.
    pub fn asks(&self, id: &WorkspaceId) {
        self.known().asking.insert(id.clone());
    }

    pub fn is_answered(&self, id: &WorkspaceId) {
        self.known().asking.remove(id);
    }

    /// It spoke then and was answered now: the server may have taken it for heard anywhere in between.
    pub fn heard_between(&self, id: &WorkspaceId, spoke_at: Millis, now: Millis) {
        let hearing = LastHeard { at: spoke_at, doubt_ms: now.since(spoke_at) };
        self.known().heard.insert(id.clone(), (hearing, now));
    }

    pub fn new_life(&self) {
        *self.known() = KnownWorkspaces::default();
    }

    /// The server starts, and the roster says that these are online.
    pub fn restored(&self, online: Vec<WorkspaceId>, now: Millis) {
        self.known().restored = online.into_iter().map(|id| (id, LastHeard::at(now))).collect();
    }

    pub fn up(&self, now: Millis) {
        self.known().up_at = Some(now);
    }

    pub fn paused(&self, ms: i64) {
        let mut known = self.known();
        let KnownWorkspaces { up_at, heard, restored, differ, .. } = &mut *known;
        let heard = heard.values_mut().map(|(hearing, _)| hearing);
        heard.chain(restored.values_mut()).for_each(|hearing| hearing.paused(ms));
        for at in differ.values_mut().chain(up_at) {
            *at = *at + ms + TICK_MS;
        }
    }
}

pub fn look(world: &World, engine: &Engine, now: Millis) -> InvariantResult {
    let mut known = world.workspaces_watched.known();
    for tenant in TENANTS.map(TenantId::known) {
        for view in engine.workspaces().workspaces_of(&tenant) {
            if view.workspace.tenant != tenant {
                return Err(format!("{tenant} sees {} of {}", view.workspace.id, view.workspace.tenant));
            }
            known.is_told_truly(world, &view, now)?;
            known.is_kept(world, &view, now)?;
        }
    }
    Ok(())
}

impl KnownWorkspaces {
    fn is_told_truly(&self, world: &World, view: &WorkspaceView, now: Millis) -> InvariantResult {
        let id = &view.workspace.id;
        let (earliest, latest) = match (self.heard.get(id), self.restored.get(id)) {
            // A beat that met trouble may leave the status to the next one.
            (Some((hearing, taken_at)), _) => {
                let is_sure = world.roster_calm.since() < *taken_at;
                (is_sure.then_some(hearing.at), hearing.latest())
            }
            (None, Some(restored)) => (Some(restored.at), restored.latest().max(self.up_at.unwrap_or(now))),
            (None, None) => return Ok(()),
        };
        let is_offline = view.workspace.status == WorkspaceStatus::Offline;
        let dead_at = latest + WORKSPACE_TTL_MS + NOTICED_MS;
        let late_ms = now.since(dead_at.max(world.roster_calm.since()));
        if !is_offline && late_ms > WRITTEN_MS && !self.asking.contains(id) {
            return Err(format!("{id} is {} {late_ms} ms too long", view.workspace.status.as_str()));
        }
        let silent_ms = earliest.map_or(i64::MAX, |earliest| now.since(earliest));
        if is_offline && (WRITTEN_MS..WORKSPACE_TTL_MS).contains(&silent_ms) {
            return Err(format!("{id} is offline {silent_ms} ms after it was last heard"));
        }
        Ok(())
    }

    /// What the server answers is what a restart would find.
    fn is_kept(&mut self, world: &World, view: &WorkspaceView, now: Millis) -> InvariantResult {
        let id = &view.workspace.id;
        let kept = world.look_up(|archive| archive.status(id));
        if kept == Some(view.workspace.status) || now < world.roster_calm.since() {
            self.differ.remove(id);
            return Ok(());
        }
        let since = *self.differ.entry(id.clone()).or_insert(now);
        if now.since(since) > WRITTEN_MS {
            let status = view.workspace.status;
            return Err(format!("{id} is {} here and {kept:?} in the roster", status.as_str()));
        }
        Ok(())
    }
}
