//! `GET /openorca/events`: the console's stream.
//!
//! It begins with the whole picture, so that nothing is lost between the console's snapshot and its
//! stream. After that, whatever happens to one member within a moment is told once, as it then is. There
//! is no frame that takes a node away: a member that is gone is shown offline, and a new picture follows.

use super::scene::{Scene, Standing};
use super::scene_for;
use super::tally::Tally;
use crate::stream::{Watch, WatchItem, answer};
use crate::types::openorca::{ConsoleFrame, FleetNode, Intervention, resolution};
use crate::voicegateway::{Detail, Principal, TenantHeader, TenantQuery};
use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::response::Response;
use futures_util::stream::unfold;
use reveille_core::id::JobId;
use reveille_core::job::{self, Job};
use reveille_core::placement::Member;
use reveille_core::time::Millis;
use reveille_engine::{Engine, Event, EventId, NextEvents, What};
use reveille_store::StoreError;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// What happens within this time is told together.
const PACE: Duration = Duration::from_millis(100);
/// Interventions that one stream keeps count of.
const WAITING_MAX: usize = 10_000;

/// Streams the fleet: first all of it, then what changes.
#[utoipa::path(get, path = "/openorca/events", tag = "openorca", params(TenantQuery, TenantHeader), responses(
    (status = 200, description = "Server-sent events, each a ConsoleFrame", body = String, content_type = "text/event-stream"),
    (status = 429, description = "The tenant has as many streams open as it may; `quota` names it")))]
pub async fn follow(
    State(engine): State<Engine>,
    principal: Principal,
    Query(query): Query<TenantQuery>,
    Extension(tally): Extension<Arc<Tally>>,
) -> Result<Response, Detail> {
    let scene = scene_for(engine, &principal, &query, tally)?;
    let watch = Watch::new(&scene.engine, &principal.caller, scene.audience.clone(), None, PACE)?;
    let feed =
        ConsoleFeed { scene, watch, standing: Standing::default(), snapshot_owed: false, health_owed: None };
    Ok(answer(unfold(feed, ConsoleFeed::next)))
}

struct ConsoleFeed {
    scene: Scene,
    watch: Watch,
    standing: Standing,
    /// The store failed; a picture is sent when it works again.
    snapshot_owed: bool,
    /// Something changed at this time, and the count was older.
    health_owed: Option<Instant>,
}

impl ConsoleFeed {
    async fn next(mut self) -> Option<(Bytes, Self)> {
        let mut out = Vec::new();
        while out.is_empty() {
            match self.watch.next().await {
                WatchItem::End => return None,
                WatchItem::KeepAlive => self.keep_alive(&mut out),
                WatchItem::Look => self.look(&mut out).await,
                WatchItem::Events(NextEvents::StartAfresh(_)) => self.replace(&mut out).await,
                WatchItem::Events(NextEvents::Events(events)) => {
                    if let Err(error) = self.tell(&events, &mut out).await {
                        self.store_failed(&error, &mut out);
                    }
                }
            }
        }
        Some((out.into(), self))
    }

    fn keep_alive(&mut self, out: &mut Vec<u8>) {
        self.tell_health(Instant::now(), out);
        let (status, message) = if self.snapshot_owed {
            ("degraded", Some("the store is not available"))
        } else {
            ("connected", None)
        };
        ConsoleFrame::RuntimeStatus { status, message }.write(out);
    }

    async fn look(&mut self, out: &mut Vec<u8>) {
        if self.snapshot_owed {
            self.replace(out).await;
        } else if let Some(since) = self.health_owed {
            self.tell_health(since, out);
        }
    }

    async fn replace(&mut self, out: &mut Vec<u8>) {
        match self.scene.snapshot().await {
            Ok((snapshot, standing)) => {
                self.standing = standing;
                self.snapshot_owed = false;
                self.health_owed = None;
                ConsoleFrame::SnapshotReplace { snapshot: &snapshot }.write(out);
            }
            Err(error) => self.store_failed(&error, out),
        }
    }

    fn store_failed(&mut self, error: &StoreError, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.snapshot_owed, true) {
            tracing::warn!(%error, "a console is not told everything");
            let message = Some("the store is not available");
            ConsoleFrame::RuntimeStatus { status: "degraded", message }.write(out);
        }
    }

    fn tell_health(&mut self, since: Instant, out: &mut Vec<u8>) {
        self.standing.roll_over(self.scene.engine.now());
        let (health, is_fresh) = self.scene.health(&self.standing, since);
        self.health_owed = (!is_fresh).then_some(since);
        ConsoleFrame::FleetUpdated { fleet_health: &health }.write(out);
    }

    async fn tell(&mut self, events: &[(EventId, Arc<Event>)], out: &mut Vec<u8>) -> Result<(), StoreError> {
        let EventSubjects { mut members, jobs } = EventSubjects::of(events);
        for (id, span) in &jobs {
            let Some(job) = self.scene.engine.jobs().job(id).await? else { continue };
            self.tell_job(&job, span, out);
            let holder = self.scene.holder(&job).map(|(member, _)| member);
            members.extend(holder.filter(|member| {
                self.scene.audience.includes(&member.tenant)
                    && self.scene.engine.fleet().worker(member.who()).is_some()
            }));
        }
        let mut somebody_left = false;
        for member in &members {
            let node = self.scene.node(member).await?;
            somebody_left |= node.is_none();
            let node = node.unwrap_or_else(|| FleetNode::gone(member, self.scene.ids));
            ConsoleFrame::AgentUpdated { agent: &node }.write(out);
        }
        if somebody_left {
            self.replace(out).await;
        } else if !members.is_empty() || !jobs.is_empty() {
            self.tell_health(Instant::now(), out);
        }
        Ok(())
    }

    fn tell_job(&mut self, job: &Job, span: &RangeInclusive<Millis>, out: &mut Vec<u8>) {
        let task = self.scene.task(job);
        if span.contains(&job.created_at) {
            ConsoleFrame::TaskCreated { task: &task }.write(out);
        } else {
            ConsoleFrame::TaskUpdated { task: &task }.write(out);
        }
        let succeeded = |mark: &&job::Mark| mark.event == job::Event::Succeed && span.contains(&mark.at);
        if let Some(mark) = job.marks.iter().find(succeeded) {
            self.standing.completed(mark.at, self.scene.engine.now());
        }
        let waiting = &mut self.standing.waiting;
        if let Some(intervention) = Intervention::of(job) {
            if waiting.len() < WAITING_MAX && waiting.insert(job.id().clone()) {
                ConsoleFrame::InterventionCreated { intervention: &intervention }.write(out);
            }
            return;
        }
        let was_waiting = waiting.remove(job.id());
        // Policy may have let it go, or not, before a person did.
        let ended_there = job.ending().is_some_and(|ending| ending.from == job::State::ApprovalRequired);
        let by_policy = if ended_there { "deny" } else { "approve" };
        if let Some(resolution) = resolution(job, span).or(was_waiting.then_some(by_policy)) {
            ConsoleFrame::InterventionResolved { intervention_id: job.id().as_str(), resolution }.write(out);
        }
    }
}

/// Who and what a batch of events is about, and when that was.
struct EventSubjects {
    members: BTreeSet<Member>,
    jobs: BTreeMap<JobId, RangeInclusive<Millis>>,
}

impl EventSubjects {
    fn of(events: &[(EventId, Arc<Event>)]) -> Self {
        let mut batch = Self { members: BTreeSet::new(), jobs: BTreeMap::new() };
        for (_, event) in events {
            match &event.what {
                What::Worker { member, .. } => {
                    batch.members.insert(member.clone());
                }
                What::Job { id, .. } => {
                    let span = batch.jobs.entry(id.clone()).or_insert(event.at..=event.at);
                    *span = event.at.min(*span.start())..=event.at.max(*span.end());
                }
                // A workspace that changes for the eye also changes as a member, and a run by its jobs.
                What::Workspace { .. } | What::Run { .. } => {}
            }
        }
        batch
    }
}
