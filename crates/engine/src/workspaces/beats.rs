//! A workspace beats, is well or unwell, and falls silent.

use super::WorkspaceError;
use crate::Engine;
use crate::chorus::Sight;
use reveille_core::fleet::{BeatSource, Who};
use reveille_core::id::WorkspaceId;
use reveille_core::placement::Pulsed;
use reveille_core::presence::About;
use reveille_core::presence::workspace::{Pulse, Workspace, WorkspaceStatus, transition};
use serde_json::json;
use std::time::Duration;

/// The longest task or error that a beat may tell of.
pub const TOLD_LEN_MAX: usize = 4_096;
const PAUSE: Duration = Duration::from_secs(1);
/// What stands before its id.
pub(crate) const LOCK: &str = "cordum:workspace:silent:";
/// How long another server has to say that a workspace is silent.
const TOLD_BY_ANOTHER: Duration = Duration::from_secs(10);

impl Engine {
    /// A workspace says that it lives, and how it is doing.
    pub async fn workspace_beat(&self, id: &WorkspaceId, pulse: Pulse) -> Result<(), WorkspaceError> {
        let workspace = self.workspaces.find(id).ok_or(WorkspaceError::NotFound)?;
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
        self.metrics.fleet.beats(1);
        let pulse = completed(pulse, self.heard_pulse(id).map(|(pulse, _)| pulse));
        self.note_pulse(&workspace, pulse.clone());
        self.follow_pulse(id, pulse).await
    }

    /// The status that a beat asks for. It is looked at after the beat was taken in, so that whoever declares
    /// the workspace offline at this moment either sees the beat or is seen by it.
    async fn follow_pulse(&self, id: &WorkspaceId, pulse: Pulse) -> Result<(), WorkspaceError> {
        let Some(known) = self.workspaces.find(id).filter(|known| !known.is_removed()) else {
            // It was retired while it beat, and does not come back by that.
            let gone = self.placement().forget(Who::Workspace(id.as_str()));
            if let Some(gone) = gone {
                self.member_is_gone(gone);
            }
            return Err(WorkspaceError::Removed);
        };
        if transition(known.status, &pulse).is_none() {
            return Ok(());
        }
        let (engine, id) = (self.clone(), id.clone());
        self.run_detached(async move { engine.move_status(&id, &pulse).await }).await
    }

    /// Another status, if the beat still says so once it is this workspace's turn.
    async fn move_status(&self, id: &WorkspaceId, pulse: &Pulse) -> Result<(), WorkspaceError> {
        let _turn = self.workspaces.turn(id).await;
        let Some(known) = self.workspaces.find(id) else { return Ok(()) };
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
        let changed = Workspace { status, updated_at: self.now(), ..(*known).clone() };
        self.keep_workspace(changed, Some((event, payload))).await?;
        Ok(())
    }

    /// Its TTL has lapsed: the event, the status, and then the word to the world. Tried until it works.
    pub(crate) async fn workspace_is_silent(self, id: WorkspaceId) {
        loop {
            let turn = self.workspaces.turn(&id).await;
            let Some(known) = self.workspaces.find(&id) else { return };
            let is_offline = self.heard_pulse(&id).is_some_and(|(_, offline)| offline);
            let is_awake = matches!(known.status, WorkspaceStatus::Online | WorkspaceStatus::Degraded);
            if !is_offline || !is_awake {
                return;
            }
            if !self.is_ours_to_tell(&id).await {
                drop(turn);
                tokio::time::sleep(TOLD_BY_ANOTHER).await;
                continue;
            }
            let changed =
                Workspace { status: WorkspaceStatus::Offline, updated_at: self.now(), ..(*known).clone() };
            let kept = self.keep_workspace(changed, Some(("WORKSPACE_OFFLINE", json!({})))).await;
            drop(turn);
            match kept {
                Ok(()) => break,
                Err(error) => tracing::warn!(workspace = %id, %error, "not marked offline; trying again"),
            }
            tokio::time::sleep(PAUSE).await;
        }
        // It may have beaten while that was written, and its beat found nothing to change.
        if let Some((pulse, false)) = self.heard_pulse(&id)
            && let Err(error) = self.follow_pulse(&id, pulse).await
        {
            tracing::debug!(workspace = %id, %error, "its next beat brings it back");
        }
    }

    /// All servers hear the same silence; one of them says so. Whoever else looks later finds it said.
    async fn is_ours_to_tell(&self, id: &WorkspaceId) -> bool {
        if !self.is_one_of_many() {
            return true;
        }
        let name = format!("{LOCK}{id}");
        let lock = self.store.lock(&name, TOLD_BY_ANOTHER.as_millis() as i64).await;
        // A store that is away keeps nobody from saying what is true.
        lock.map_or(true, |lock| lock.is_some())
    }

    /// The latest beat, and whether it was too long ago.
    fn heard_pulse(&self, id: &WorkspaceId) -> Option<(Pulse, bool)> {
        let placement = self.placement();
        let worker = placement.fleet().lookup(Who::Workspace(id.as_str()))?;
        match &worker.about {
            About::Workspace(pulse) => Some(((**pulse).clone(), worker.offline)),
            _ => None,
        }
    }

    /// Takes a beat into the fleet, lets go what waited for it, and tells of another task.
    pub(super) fn note_pulse(&self, workspace: &Workspace, pulse: Pulse) {
        self.tell_others_pulse(&workspace.id, &pulse);
        // Whoever hears a workspace that was away gives it what it should have.
        if self.hear_pulse(workspace, pulse, Sight::First).is_some_and(|pulsed| pulsed.was_away) {
            self.spawn(self.clone().deliver_again(workspace.id.clone()));
        }
    }

    /// The same, of a beat that this server or another has heard.
    pub(crate) fn hear_pulse(&self, workspace: &Workspace, pulse: Pulse, sight: Sight) -> Option<Pulsed> {
        let now = self.now();
        let task = json!({ "current_task": pulse.current_task, "active_tasks": pulse.active_tasks });
        let current_task = pulse.current_task.clone();
        let (pulsed, matches) = {
            let mut placement = self.placement();
            let source =
                if sight == Sight::Second { BeatSource::AnotherServer } else { BeatSource::ThisServer };
            let pulsed = placement.pulse(
                &workspace.id,
                &workspace.tenant,
                Some(pulse),
                workspace.at_once(),
                source,
                now,
            );
            (pulsed, placement.matches(now))
        };
        self.assign_all(matches);
        let Some(pulsed) = pulsed else {
            tracing::warn!(workspace = %workspace.id, "the fleet is full; the heartbeat was ignored");
            return None;
        };
        self.tell_pulse(workspace, &pulsed, sight);
        if sight == Sight::First && pulsed.before.current_task != current_task {
            self.tell_workspace(workspace, "TASK_UPDATED", task);
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
