//! A workspace beats, is well or unwell, and falls silent.

use super::{WorkspaceError, WorkspaceHook, Workspaces};
use crate::cluster::{PeerMessage, SeenBy};
use crate::observe::events::WorkerChange;
use crate::runtime::RETRY_PAUSE;
use reveille_core::fleet::{BeatSource, Who};
use reveille_core::id::{WorkerId, WorkspaceId};
use reveille_core::placement::{Member, WorkspaceBeatOutcome};
use reveille_core::presence::workspace::{Pulse, Workspace, WorkspaceStatus, transition};
use reveille_core::presence::{About, Contract};
use serde_json::json;
use std::time::Duration;

/// The longest task or error that a beat may tell of.
pub const TOLD_LEN_MAX: usize = 4_096;
/// What stands before its id.
pub(crate) const LOCK: &str = "cordum:workspace:silent:";
/// How long another server has to say that a workspace is silent.
const CLAIM_MS: i64 = 10_000;

impl Workspaces {
    /// A workspace says that it lives, and how it is doing.
    pub async fn workspace_beat(&self, id: &WorkspaceId, pulse: Pulse) -> Result<(), WorkspaceError> {
        let workspace = self.index.find(id).ok_or(WorkspaceError::NotFound)?;
        if workspace.is_removed() {
            return Err(WorkspaceError::Removed);
        }
        for (field, text) in [("current_task", &pulse.current_task), ("sample_error", &pulse.sample_error)] {
            if text.len() > TOLD_LEN_MAX {
                return Err(WorkspaceError::bad(field, format!("is longer than {TOLD_LEN_MAX} bytes")));
            }
        }
        if !(0.0..=1.0).contains(&pulse.error_rate) {
            return Err(WorkspaceError::bad("error_rate", "is not between 0 and 1"));
        }
        self.observe.metrics().fleet().beats(1);
        let pulse = completed(pulse, self.heard_pulse(id).map(|(pulse, _)| pulse));
        self.note_pulse(&workspace, pulse.clone());
        self.follow_pulse(id, pulse).await
    }

    /// The status that a beat asks for. It is looked at after the beat was taken in, so that whoever declares
    /// the workspace offline at this moment either sees the beat or is seen by it.
    async fn follow_pulse(&self, id: &WorkspaceId, pulse: Pulse) -> Result<(), WorkspaceError> {
        let Some(known) = self.index.find(id).filter(|known| !known.is_removed()) else {
            // It was retired while it beat, and does not come back by that.
            let gone = self.placement.lock().remove_member(Who::Workspace(id.as_str()));
            if let Some(gone) = gone {
                self.departures.member_gone(gone);
            }
            return Err(WorkspaceError::Removed);
        };
        if transition(known.status, &pulse).is_none() {
            return Ok(());
        }
        let (workspaces, id) = (self.clone(), id.clone());
        self.runtime.run_detached(async move { workspaces.move_status(&id, &pulse).await }).await
    }

    /// Another status, if the beat still says so once this workspace is locked.
    async fn move_status(&self, id: &WorkspaceId, pulse: &Pulse) -> Result<(), WorkspaceError> {
        let _lock = self.index.lock(id).await;
        let Some(known) = self.index.find(id) else { return Ok(()) };
        let Some((status, event)) = transition(known.status, pulse) else { return Ok(()) };
        let payload = match (known.status, status) {
            (_, WorkspaceStatus::Degraded) if pulse.wedged => {
                json!({ "runtime_state": "wedged", "sample_error": pulse.sample_error })
            }
            (_, WorkspaceStatus::Degraded) => {
                json!({ "error_rate": pulse.error_rate, "sample_error": pulse.sample_error })
            }
            (WorkspaceStatus::Provisioning, _) => json!({ "recovered_from": known.status.as_str() }),
            _ => json!({}),
        };
        let changed = Workspace { status, updated_at: self.runtime.now(), ..(*known).clone() };
        self.keep_workspace(changed, Some((event, payload))).await?;
        Ok(())
    }

    /// Its TTL has lapsed: the event, the status, and then the word to the world. Tried until it works.
    pub(crate) async fn workspace_is_silent(self, id: WorkspaceId) {
        loop {
            let lock = self.index.lock(&id).await;
            let Some(known) = self.index.find(&id) else { return };
            let is_offline = self.heard_pulse(&id).is_some_and(|(_, offline)| offline);
            let is_awake = matches!(known.status, WorkspaceStatus::Online | WorkspaceStatus::Degraded);
            if !is_offline || !is_awake {
                return;
            }
            // All servers hear the same silence; one of them says so. Whoever else looks later finds it said.
            if !self.locks.claim(&format!("{LOCK}{id}"), CLAIM_MS).await {
                drop(lock);
                tokio::time::sleep(Duration::from_millis(CLAIM_MS as u64)).await;
                continue;
            }
            let changed = Workspace {
                status: WorkspaceStatus::Offline,
                updated_at: self.runtime.now(),
                ..(*known).clone()
            };
            let kept = self.keep_workspace(changed, Some(("WORKSPACE_OFFLINE", json!({})))).await;
            drop(lock);
            match kept {
                Ok(()) => break,
                Err(error) => {
                    tracing::warn!(workspace = %id, %error, "workspace not marked offline; retrying");
                }
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
        // It may have beaten while that was written, and its beat found nothing to change.
        if let Some((pulse, false)) = self.heard_pulse(&id)
            && let Err(error) = self.follow_pulse(&id, pulse).await
        {
            tracing::debug!(workspace = %id, %error, "workspace row not updated; its next beat retries");
        }
    }

    /// The latest beat, and whether it was too long ago.
    fn heard_pulse(&self, id: &WorkspaceId) -> Option<(Pulse, bool)> {
        let placement = self.placement.lock();
        let worker = placement.fleet().lookup(Who::Workspace(id.as_str()))?;
        match &worker.about {
            About::Workspace(pulse) => Some(((**pulse).clone(), worker.offline)),
            _ => None,
        }
    }

    /// Another server has heard a beat.
    pub(crate) fn on_peer_pulse(&self, workspace: &WorkspaceId, pulse: Pulse) {
        if let Some(workspace) = self.index.find(workspace) {
            self.take_pulse(&workspace, pulse, SeenBy::AnotherServer);
        }
    }

    /// Calls back the room of delegations.
    pub(super) fn call_back(&self, call: impl FnOnce(&dyn WorkspaceHook)) {
        if let Some(delegations) = self.delegations.get() {
            call(&*delegations);
        }
    }

    /// Takes a beat into the fleet, lets go what waited for it, and tells of another task.
    pub(super) fn note_pulse(&self, workspace: &Workspace, pulse: Pulse) {
        self.cluster.publish(&|| PeerMessage::Pulse {
            workspace: workspace.id.clone(),
            pulse: Box::new(pulse.clone()),
        });
        // Whoever hears a workspace that was away gives it what it should have.
        if self.take_pulse(workspace, pulse, SeenBy::ThisServer).is_some_and(|pulsed| pulsed.was_away) {
            self.call_back(|hook| hook.returned(&workspace.id));
        }
    }

    /// The same, of a beat that this server or another has heard.
    fn take_pulse(
        &self,
        workspace: &Workspace,
        pulse: Pulse,
        seen_by: SeenBy,
    ) -> Option<WorkspaceBeatOutcome> {
        let now = self.runtime.now();
        let task = json!({ "current_task": pulse.current_task, "active_tasks": pulse.active_tasks });
        let current_task = pulse.current_task.clone();
        let (pulsed, matches) = {
            let mut placement = self.placement.lock();
            let source = if seen_by == SeenBy::AnotherServer {
                BeatSource::AnotherServer
            } else {
                BeatSource::ThisServer
            };
            let pulsed = placement.workspace_beat(
                &workspace.id,
                &workspace.tenant,
                Some(pulse),
                workspace.at_once(),
                source,
                now,
            );
            (pulsed, placement.reserve_waiting(now))
        };
        self.jobs.assign_all(matches);
        let Some(pulsed) = pulsed else {
            tracing::warn!(workspace = %workspace.id, "the fleet is full; the heartbeat was ignored");
            return None;
        };
        if pulsed.change.changed {
            let change = if pulsed.change.joined { WorkerChange::Joined } else { WorkerChange::Changed };
            let (tenant, id) = (workspace.tenant.clone(), WorkerId::known(workspace.id.as_str()));
            self.cluster.announce(Member { contract: Contract::Molecule, tenant, id }, change, seen_by);
        }
        if seen_by == SeenBy::ThisServer && pulsed.before.current_task != current_task {
            self.publish_workspace_event(workspace, "TASK_UPDATED", task);
        }
        Some(pulsed)
    }
}

/// Some senders beat at every change of their task and know nothing else: they send zeros for the uptime and
/// the errors. A workspace that has been up for a while cannot be up for zero seconds without having
/// registered again, so such a beat says nothing about its health.
fn completed(pulse: Pulse, before: Option<Pulse>) -> Pulse {
    let is_partial = |before: &Pulse| {
        pulse.uptime_seconds == 0
            && pulse.error_rate == 0.0
            && pulse.sample_error.is_empty()
            && !pulse.wedged
            && before.uptime_seconds > 0
    };
    match before.filter(is_partial) {
        Some(before) => {
            Pulse { active_tasks: pulse.active_tasks, current_task: pulse.current_task, ..before }
        }
        None => pulse,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beat_that_knows_only_the_task_says_nothing_about_health() {
        let sick =
            Pulse { error_rate: 0.7, sample_error: "boom".into(), uptime_seconds: 90, ..Pulse::default() };
        let task = Pulse { current_task: "reading".into(), active_tasks: 1, ..Pulse::default() };
        let merged = completed(task.clone(), Some(sick.clone()));
        assert_eq!(merged, Pulse { current_task: "reading".into(), active_tasks: 1, ..sick.clone() });
        assert_eq!(completed(task.clone(), Some(Pulse::default())), task, "it has just started");
        let well = Pulse { uptime_seconds: 120, ..Pulse::default() };
        assert_eq!(completed(well.clone(), Some(sick)), well);
    }
}
