//! The lanes, and which workers are in which of them.
//!
//! Which lanes a worker is in follows from its profile alone, so it is kept per profile. A worker's rank
//! (its score, and how long it has had it) is the same in all its lanes and is kept once.

use crate::fleet::{Fleet, Profile, ProfileIx, Slot, Worker};
use crate::id::{TenantId, Topic};
use crate::placement::lane::{LANES_MAX, Lane, Rank};
use crate::placement::{Selector, Target};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::Arc;

pub type LaneIx = usize;

#[derive(Default)]
pub struct LaneIndex {
    lanes: Vec<Option<Lane>>,
    by_selector: FxHashMap<Selector, LaneIx>,
    free: Vec<LaneIx>,
    /// The lanes of each profile in use.
    of_profile: FxHashMap<ProfileIx, (Arc<Profile>, Vec<LaneIx>)>,
    /// The rank of each worker; nothing when it cannot take a job now.
    rank: Vec<Option<Rank>>,
    stamps: u64,
    /// Lanes in which a job might have become placeable.
    touched: BTreeSet<LaneIx>,
}

impl LaneIndex {
    /// A lane that is in use.
    #[expect(
        clippy::expect_used,
        reason = "reservations point only at lanes that exist; a lane with jobs is never dropped"
    )]
    pub fn lane(&self, ix: LaneIx) -> &Lane {
        self.lanes[ix].as_ref().expect("the lane exists")
    }

    #[expect(clippy::expect_used, reason = "as above")]
    pub fn lane_mut(&mut self, ix: LaneIx) -> &mut Lane {
        self.lanes[ix].as_mut().expect("the lane exists")
    }

    pub fn has_lanes_max(&self) -> bool {
        self.by_selector.len() >= LANES_MAX
    }

    /// Whether one more selector would be one too many.
    pub fn is_full_for(&self, selector: &Selector) -> bool {
        self.has_lanes_max()
            && !self.by_selector.contains_key(selector)
            && self.lanes.iter().flatten().all(|lane| !lane.waiting.is_empty())
    }

    /// Whether jobs of this tenant wait for such workers already.
    pub fn is_waited_in(&self, selector: &Selector, tenant: &TenantId) -> bool {
        self.by_selector.get(selector).is_some_and(|ix| self.lane(*ix).waiting.has(tenant))
    }

    /// The lane of a selector, made if need be.
    pub fn lane_for(&mut self, selector: Selector, fleet: &Fleet) -> LaneIx {
        if let Some(ix) = self.by_selector.get(&selector) {
            return *ix;
        }
        if self.has_lanes_max() {
            self.drop_idle();
        }
        let ix = self.free.pop().unwrap_or_else(|| {
            self.lanes.push(None);
            self.lanes.len() - 1
        });
        let mut lane = Lane::new(selector.clone());
        let mut fitting = rustc_hash::FxHashSet::default();
        for (profile_ix, (profile, lanes)) in &mut self.of_profile {
            if selector.fits(profile) {
                lanes.push(ix);
                fitting.insert(*profile_ix);
            }
        }
        if !fitting.is_empty() {
            for (slot, _) in fleet.iter().filter(|(_, worker)| fitting.contains(&worker.profile)) {
                lane.members += 1;
                lane.ready.extend(self.rank.get(slot as usize).copied().flatten());
            }
        }
        self.lanes[ix] = Some(lane);
        self.by_selector.insert(selector, ix);
        ix
    }

    /// Changes a worker (or brings it in, or removes it) and moves it to where it then belongs. A change
    /// that moves nothing, such as most beats, costs two comparisons.
    pub fn update<T>(&mut self, slot: Slot, fleet: &mut Fleet, change: impl FnOnce(&mut Fleet) -> T) -> T {
        let before = fleet.get(slot).map(|worker| worker.profile);
        let rank_before = self.rank.get(slot as usize).copied().flatten();
        // The profile's number may get a new owner during the change, so its lanes are looked up first.
        let lanes_before = before.map(|profile| fleet.profile(profile).clone());
        let answer = change(fleet);
        let worker = fleet.get(slot);
        let after = worker.map(|worker| fleet.profile(worker.profile));
        let score = worker.filter(|worker| worker.can_take()).map(Worker::score);
        let same_profile =
            matches!((&lanes_before, after), (Some(before), Some(after)) if Arc::ptr_eq(before, after));
        if same_profile && rank_before.map(|rank| rank.score) == score {
            return answer;
        }
        if let Some(before) = before {
            self.leave(slot, before, !same_profile);
        }
        if let (Some(worker), Some(profile)) = (worker, after) {
            self.learn_profile(worker.profile, profile);
            self.join(slot, worker.profile, score, !same_profile);
        }
        answer
    }

    /// Puts a worker into its lanes: it is new, or the lanes are.
    pub fn insert(&mut self, slot: Slot, fleet: &Fleet) {
        let Some(worker) = fleet.get(slot) else { return };
        self.learn_profile(worker.profile, fleet.profile(worker.profile));
        let score = worker.can_take().then(|| worker.score());
        self.join(slot, worker.profile, score, true);
    }

    pub fn is_ready(&self, slot: Slot, lane: LaneIx, fleet: &Fleet) -> bool {
        let rank = self.rank.get(slot as usize).copied().flatten();
        fleet.get(slot).is_some() && rank.is_some_and(|rank| self.lane(lane).ready.contains(&rank))
    }

    pub fn least_loaded(&self, lane: LaneIx) -> Option<Slot> {
        self.lane(lane).ready.first().map(|rank| rank.slot)
    }

    pub fn touch(&mut self, lane: LaneIx) {
        self.touched.insert(lane);
    }

    pub fn touch_topic(&mut self, topic: &Topic) {
        let serves =
            |lane: &Lane| matches!(&lane.selector.target, Target::Topic { topic: own, .. } if own == topic);
        self.touch_where(serves);
    }

    /// The lanes of a topic that has a limit.
    pub fn touch_bounded(&mut self, topic: &Topic) {
        self.touch_where(|lane| lane.selector.bounds.topic.as_ref() == Some(topic));
    }

    pub fn touch_all(&mut self) {
        self.touch_where(|_| true);
    }

    pub fn untouch(&mut self, lane: LaneIx) {
        self.touched.remove(&lane);
    }

    pub fn touched(&self) -> Vec<LaneIx> {
        self.touched.iter().copied().collect()
    }

    fn touch_where(&mut self, wanted: impl Fn(&Lane) -> bool) {
        let lanes = self.lanes.iter().enumerate();
        let waiting = lanes
            .filter(|(_, lane)| lane.as_ref().is_some_and(|lane| !lane.waiting.is_empty() && wanted(lane)));
        self.touched.extend(waiting.map(|(ix, _)| ix));
    }

    fn leave(&mut self, slot: Slot, profile: ProfileIx, for_good: bool) {
        let rank = self.rank.get_mut(slot as usize).and_then(Option::take);
        let Some((_, lanes)) = self.of_profile.get(&profile) else { return };
        for ix in lanes {
            let Some(lane) = self.lanes[*ix].as_mut() else { continue };
            lane.members -= u32::from(for_good);
            if let Some(rank) = &rank {
                lane.ready.remove(rank);
            }
        }
    }

    /// Puts the worker where its load says; without a score it cannot take a job and is only a member.
    fn join(&mut self, slot: Slot, profile: ProfileIx, score: Option<u32>, newly: bool) {
        self.stamps += 1;
        let rank = score.map(|score| Rank { score, stamp: self.stamps, slot });
        if self.rank.len() <= slot as usize {
            self.rank.resize(slot as usize + 1, None);
        }
        self.rank[slot as usize] = rank;
        let Some((_, lanes)) = self.of_profile.get(&profile) else { return };
        for ix in lanes {
            let Some(lane) = self.lanes[*ix].as_mut() else { continue };
            lane.members += u32::from(newly);
            lane.ready.extend(rank);
            if rank.is_some() && !lane.waiting.is_empty() {
                self.touched.insert(*ix);
            }
        }
    }

    /// Works out the lanes of a profile that was not seen before, or whose number has a new owner.
    fn learn_profile(&mut self, ix: ProfileIx, profile: &Arc<Profile>) {
        if self.of_profile.get(&ix).is_some_and(|(known, _)| Arc::ptr_eq(known, profile)) {
            return;
        }
        let fits = |(lane, entry): (LaneIx, &Option<Lane>)| {
            entry.as_ref().filter(|entry| entry.selector.fits(profile)).map(|_| lane)
        };
        let lanes = self.lanes.iter().enumerate().filter_map(fits).collect();
        self.of_profile.insert(ix, (profile.clone(), lanes));
    }

    fn drop_idle(&mut self) {
        for ix in 0..self.lanes.len() {
            if let Some(lane) = self.lanes[ix].take_if(|lane| lane.waiting.is_empty()) {
                self.by_selector.remove(&lane.selector);
                self.touched.remove(&ix);
                self.free.push(ix);
            }
        }
        let lanes = &self.lanes;
        for (_, of_profile) in self.of_profile.values_mut() {
            of_profile.retain(|ix| lanes[*ix].is_some());
        }
    }
}
