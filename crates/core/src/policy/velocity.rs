//! How often is too often: sliding windows, exact to the request.
//!
//! A window remembers the moments of the last requests that counted, one more than is allowed and no more,
//! so that a flood costs what a trickle does. Several servers tell each other what they count.

use super::document;
use crate::request::Request;
use crate::time::Millis;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Requests that a rule may allow in its window.
const REQUESTS_MAX: u32 = 100_000;
/// Windows kept; beyond that the idle ones go.
const WINDOWS_MAX: usize = 100_000;

/// One part of what is counted apart.
#[derive(Debug, Clone, PartialEq, Eq)]
enum KeyPart {
    Tenant,
    Topic,
    ActorId,
    ActorType,
    PackId,
    Capability,
    Label(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Velocity {
    pub max_requests: u32,
    window_ms: i64,
    key: Vec<KeyPart>,
}

impl Velocity {
    pub fn new(written: &document::Velocity) -> Result<Self, String> {
        if !(1..=REQUESTS_MAX).contains(&written.max_requests) {
            return Err(format!("velocity.max_requests must be from 1 to {REQUESTS_MAX}"));
        }
        if written.window_seconds == 0 {
            return Err("velocity.window_seconds must be at least 1".to_owned());
        }
        let key = written.key.split(':').map(part).collect::<Result<_, _>>()?;
        let window_ms = i64::from(written.window_seconds) * 1000;
        Ok(Self { max_requests: written.max_requests, window_ms, key })
    }

    fn key_of(&self, request: &Request) -> String {
        let mut key = String::new();
        for part in &self.key {
            let value = match part {
                KeyPart::Tenant => request.tenant.as_str(),
                KeyPart::Topic => request.topic.as_str(),
                KeyPart::ActorId => &request.actor.actor_id,
                KeyPart::ActorType => &request.actor.actor_type,
                KeyPart::PackId => &request.needs.pack_id,
                KeyPart::Capability => &request.needs.capability,
                KeyPart::Label(name) => request.labels.get(name).map_or("", String::as_str),
            };
            key.push_str(value);
            // No name has one, so that `a` and `b` are not `ab`.
            key.push('\0');
        }
        key
    }
}

fn part(name: &str) -> Result<KeyPart, String> {
    Ok(match name {
        "tenant" => KeyPart::Tenant,
        "topic" => KeyPart::Topic,
        "actor_id" => KeyPart::ActorId,
        "actor_type" => KeyPart::ActorType,
        "pack_id" => KeyPart::PackId,
        "capability" => KeyPart::Capability,
        other => match other.strip_prefix("labels.") {
            Some(label) if !label.is_empty() => KeyPart::Label(label.to_owned()),
            _ => {
                return Err(format!(
                    "velocity.key: {name:?} is none of tenant, topic, actor_id, actor_type, pack_id, capability, labels.X"
                ));
            }
        },
    })
}

/// Whether asking counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counting {
    /// A new request.
    New,
    /// A job that was counted when it was new.
    AlreadyCounted,
    /// Counted for the answer, and not kept.
    DryRun,
}

/// The windows of every rule and key: moments, oldest first.
#[derive(Debug, Default)]
pub struct Windows {
    moments: FxHashMap<(String, String), VecDeque<Millis>>,
    /// What was counted since somebody last asked for it; nothing where nobody does.
    counted: Option<Vec<Counted>>,
}

/// A request that was counted, for those who count the same elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    rule: String,
    key: String,
    max_requests: u32,
}

impl Windows {
    /// Windows whose owner tells others what it counts.
    pub fn shared() -> Self {
        Self { counted: Some(Vec::new()), ..Self::default() }
    }

    /// What was counted since this was last asked.
    pub fn take_counted(&mut self) -> Vec<Counted> {
        self.counted.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Somebody else has counted a request. It counts here from the moment that we hear of it.
    pub fn hear(&mut self, counted: Counted, now: Millis) {
        let Counted { rule, key, max_requests } = counted;
        push(self.window((rule, key)), max_requests, now);
    }

    fn window(&mut self, key: (String, String)) -> &mut VecDeque<Millis> {
        if self.moments.len() >= WINDOWS_MAX && !self.moments.contains_key(&key) {
            self.forget_idle();
        }
        self.moments.entry(key).or_default()
    }

    /// How many requests there were in the window, this one included, counted to one more than allowed.
    pub fn count(
        &mut self,
        rule: &str,
        velocity: &Velocity,
        request: &Request,
        counting: Counting,
        now: Millis,
    ) -> u32 {
        let key = (rule.to_owned(), velocity.key_of(request));
        if let (Some(counted), Counting::New) = (&mut self.counted, counting) {
            let ((rule, key), max_requests) = (key.clone(), velocity.max_requests);
            counted.push(Counted { rule, key, max_requests });
        }
        let window = self.window(key);
        while window.front().is_some_and(|at| *at <= now - velocity.window_ms) {
            window.pop_front();
        }
        let unseen = match counting {
            Counting::New => {
                push(window, velocity.max_requests, now);
                0
            }
            Counting::AlreadyCounted => 0,
            Counting::DryRun => 1,
        };
        window.len() as u32 + unseen
    }

    /// Half of them go, the idlest.
    fn forget_idle(&mut self) {
        let mut last: Vec<Option<Millis>> =
            self.moments.values().map(|window| window.back().copied()).collect();
        let half = last.len() / 2;
        let (_, middle, _) = last.select_nth_unstable(half);
        let middle = *middle;
        self.moments.retain(|_, window| window.back().copied() > middle);
    }
}

fn push(window: &mut VecDeque<Millis>, max_requests: u32, now: Millis) {
    window.push_back(now);
    if window.len() > max_requests as usize + 1 {
        window.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn velocity(max_requests: u32, key: &str) -> Velocity {
        Velocity::new(&document::Velocity { max_requests, window_seconds: 10, key: key.to_owned() }).unwrap()
    }

    fn job(actor: &str) -> Request {
        let mut request = Request::plain("j", "job.a");
        actor.clone_into(&mut request.actor.actor_id);
        request
    }

    #[test]
    fn requests_are_counted_by_key_within_a_window_that_slides() {
        let (velocity, mut windows) = (velocity(3, "actor_id:labels.x"), Windows::default());
        let mut ask =
            |actor: &str, counting, at| windows.count("r", &velocity, &job(actor), counting, Millis(at));
        assert_eq!(ask("ann", Counting::New, 0), 1);
        assert_eq!(ask("ann", Counting::New, 1_000), 2);
        assert_eq!(ask("ann", Counting::AlreadyCounted, 1_500), 2, "a job counts once");
        assert_eq!(ask("bob", Counting::New, 1_500), 1);
        assert_eq!(ask("ann", Counting::DryRun, 2_000), 3);
        assert_eq!(ask("ann", Counting::DryRun, 2_000), 3, "looking counts nothing");
        assert_eq!(ask("ann", Counting::New, 2_000), 3);
        assert_eq!(ask("ann", Counting::New, 3_000), 4);
        assert_eq!(ask("ann", Counting::New, 4_000), 4, "counted to one more than allowed");
        assert_eq!(ask("ann", Counting::New, 11_500), 4, "those from 2 s on are still there");
        assert_eq!(ask("ann", Counting::New, 40_000), 1);
    }

    #[test]
    fn what_one_counts_the_other_counts_too() {
        let velocity = velocity(3, "actor_id");
        let (mut here, mut there) = (Windows::shared(), Windows::shared());
        for at in 0..6 {
            let (one, other) = if at % 2 == 0 { (&mut here, &mut there) } else { (&mut there, &mut here) };
            let count = one.count("r", &velocity, &job("ann"), Counting::New, Millis(at));
            assert_eq!(i64::from(count), (at + 1).min(4));
            one.count("r", &velocity, &job("ann"), Counting::DryRun, Millis(at));
            let counted = one.take_counted();
            assert_eq!(counted.len(), 1, "looking is told nobody");
            for counted in counted {
                other.hear(counted, Millis(at));
            }
            assert_eq!(one.take_counted(), []);
        }
        assert_eq!(here.count("r", &velocity, &job("bob"), Counting::New, Millis(7)), 1);
        assert_eq!(
            here.count("r", &velocity, &job("ann"), Counting::AlreadyCounted, Millis(20_000)),
            0,
            "it slides"
        );
    }

    #[test]
    fn a_flood_of_keys_does_not_use_up_the_memory() {
        let (velocity, mut windows) = (velocity(1, "actor_id"), Windows::default());
        for number in 0..WINDOWS_MAX + 10 {
            let request = job(&number.to_string());
            windows.count("r", &velocity, &request, Counting::New, Millis(number as i64));
        }
        assert!(windows.moments.len() <= WINDOWS_MAX);
        let last = job(&(WINDOWS_MAX + 9).to_string());
        assert_eq!(
            windows.count("r", &velocity, &last, Counting::DryRun, Millis(WINDOWS_MAX as i64 + 10)),
            2
        );
    }

    #[test]
    fn what_cannot_be_counted_is_refused() {
        let bad = |max_requests, window_seconds, key: &str| {
            Velocity::new(&document::Velocity { max_requests, window_seconds, key: key.to_owned() }).is_err()
        };
        assert!(bad(0, 1, "tenant") && bad(1, 0, "tenant") && bad(1, 1, "") && bad(1, 1, "tenant:x"));
        assert!(bad(1, 1, "labels."));
    }
}
