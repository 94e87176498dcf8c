//! When the agent may be woken about results. Pure: moments are handed in.
//!
//! An agent that is woken may delegate again, whose result would wake it again: hence at most one
//! message in five minutes. A result in between is owed and announced when the time is over.

use std::time::Duration;

use tokio::time::Instant;

#[derive(Debug)]
pub struct Cooldown {
    every: Duration,
    last: Option<Instant>,
    owed_since: Option<Instant>,
    is_out: bool,
}

impl Cooldown {
    pub fn new(every: Duration) -> Self {
        Self { every, last: None, owed_since: None, is_out: false }
    }

    /// There is something to announce.
    pub fn owe(&mut self, now: Instant) {
        self.owed_since.get_or_insert(now);
    }

    /// When to announce it; nothing while nothing is owed, or while a message is under way.
    pub fn due(&self) -> Option<Instant> {
        let since = self.owed_since.filter(|_| !self.is_out)?;
        Some(self.last.map_or(since, |last| since.max(last + self.every)))
    }

    /// A message about everything that is owed goes out.
    pub fn sent(&mut self, now: Instant) {
        self.last = Some(now);
        self.owed_since = None;
        self.is_out = true;
    }

    /// The message has arrived.
    pub fn arrived(&mut self) {
        self.is_out = false;
    }

    /// The message got nowhere; the next one waits its time too.
    pub fn lost(&mut self, now: Instant) {
        self.is_out = false;
        self.owe(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_mins(5);

    fn cooldown() -> (Cooldown, impl Fn(u64) -> Instant) {
        let start = Instant::now();
        (Cooldown::new(EVERY), move |seconds| start + Duration::from_secs(seconds))
    }

    #[test]
    fn the_first_result_is_announced_at_once() {
        let (mut cooldown, at) = cooldown();
        assert_eq!(cooldown.due(), None);
        cooldown.owe(at(10));
        cooldown.owe(at(20));
        assert_eq!(cooldown.due(), Some(at(10)));
        cooldown.sent(at(20));
        cooldown.arrived();
        assert_eq!(cooldown.due(), None);
    }

    #[test]
    fn a_result_within_the_cooldown_is_announced_when_it_ends() {
        let (mut cooldown, at) = cooldown();
        cooldown.owe(at(0));
        cooldown.sent(at(0));
        cooldown.arrived();
        cooldown.owe(at(61));
        assert_eq!(cooldown.due(), Some(at(300)));
        cooldown.sent(at(300));
        cooldown.arrived();
        cooldown.owe(at(700));
        assert_eq!(cooldown.due(), Some(at(700)));
    }

    #[test]
    fn there_is_one_message_at_a_time() {
        let (mut cooldown, at) = cooldown();
        cooldown.owe(at(0));
        cooldown.sent(at(0));
        cooldown.owe(at(400));
        assert_eq!(cooldown.due(), None);
        cooldown.arrived();
        assert_eq!(cooldown.due(), Some(at(400)));
    }

    #[test]
    fn a_lost_message_is_sent_again_after_the_cooldown() {
        let (mut cooldown, at) = cooldown();
        cooldown.owe(at(0));
        cooldown.sent(at(0));
        cooldown.lost(at(10));
        assert_eq!(cooldown.due(), Some(at(300)));
    }
}
