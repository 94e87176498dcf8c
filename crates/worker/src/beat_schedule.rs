//! When the next beat is due. Pure: moments and chance are handed in.
//!
//! A beat that landed is followed by the next one a little early, never late, because the server counts
//! from its TTL. A beat that failed is followed by longer and longer pauses, and nothing, news neither,
//! goes out before a pause has ended: there is no way into a hot loop.

use std::time::Duration;

use tokio::time::Instant;

/// The longest that a server's `Retry-After` is believed.
const RETRY_AFTER_MAX: Duration = Duration::from_mins(5);
/// The jitter of an interval, and of a wait that the server asked for, as part of it.
const JITTER: f64 = 0.1;

/// How often to beat, and how patient to be.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    pub beat_every: Duration,
    /// News closer together than this share a beat.
    pub beat_gap_min: Duration,
    /// The pause after the first failure; it doubles with each one that follows.
    pub pause_min: Duration,
    pub pause_max: Duration,
}

#[derive(Debug)]
pub struct BeatSchedule {
    pace: Pace,
    failures: u32,
    beat_at: Instant,
    news_at: Instant,
}

impl BeatSchedule {
    /// The first beat is due at once.
    pub fn new(pace: Pace, now: Instant) -> Self {
        Self { pace, failures: 0, beat_at: now, news_at: now }
    }

    /// When to beat though nothing is new.
    pub fn beat_at(&self) -> Instant {
        self.beat_at
    }

    /// The earliest moment at which news may go out.
    pub fn news_at(&self) -> Instant {
        self.news_at
    }

    pub fn every(&self) -> Duration {
        self.pace.beat_every
    }

    /// The beat that began at `began` was taken, and the server wants the next one `every` so often.
    pub fn landed(&mut self, began: Instant, every: Duration, random: u64) {
        self.failures = 0;
        self.beat_at = began + every.mul_f64(1.0 - JITTER * share(random));
        self.news_at = began + self.pace.beat_gap_min;
    }

    /// The beat was not taken. A server that says when to come back is believed within reason.
    pub fn failed(&mut self, now: Instant, retry_after: Option<Duration>, random: u64) {
        let doublings = self.failures.min(16);
        self.failures = self.failures.saturating_add(1);
        let full = self.pace.pause_min.saturating_mul(1 << doublings).min(self.pace.pause_max);
        let pause = full.mul_f64(0.5 + 0.5 * share(random));
        let asked = retry_after.map(|after| after.min(RETRY_AFTER_MAX).mul_f64(1.0 + JITTER * share(random)));
        self.beat_at = now + pause.max(asked.unwrap_or_default());
        self.news_at = self.beat_at;
    }

    /// What stood in the way is gone; go on at once. The failures still count until a beat lands.
    pub fn resume(&mut self, now: Instant) {
        self.beat_at = now;
        self.news_at = now;
    }
}

/// Chance as a number from 0 up to 1.
fn share(random: u64) -> f64 {
    (random % 1024) as f64 / 1024.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: u64 = 0;
    const MOST: u64 = 1023;
    const PACE: Pace = Pace {
        beat_every: Duration::from_secs(15),
        beat_gap_min: Duration::from_secs(1),
        pause_min: Duration::from_secs(1),
        pause_max: Duration::from_secs(30),
    };

    fn beat_schedule() -> (BeatSchedule, Instant) {
        let now = Instant::now();
        (BeatSchedule::new(PACE, now), now)
    }

    #[test]
    fn the_first_beat_is_due_at_once() {
        let (beat_schedule, now) = beat_schedule();
        assert_eq!((beat_schedule.beat_at(), beat_schedule.news_at()), (now, now));
    }

    #[test]
    fn the_next_beat_counts_from_the_start_of_the_last_and_is_never_late() {
        let (mut beat_schedule, now) = beat_schedule();
        beat_schedule.landed(now, PACE.beat_every, LEAST);
        assert_eq!(beat_schedule.beat_at() - now, Duration::from_secs(15));
        assert_eq!(beat_schedule.news_at() - now, Duration::from_secs(1));
        beat_schedule.landed(now, PACE.beat_every, MOST);
        let early = (beat_schedule.beat_at() - now).as_millis();
        assert!((13_500..13_600).contains(&early), "{early}");
    }

    #[test]
    fn pauses_double_with_jitter_and_stop_at_their_limit() {
        let (mut beat_schedule, now) = beat_schedule();
        let mut pauses = |random| {
            beat_schedule.landed(now, PACE.beat_every, random);
            std::array::from_fn::<_, 7, _>(|_| {
                beat_schedule.failed(now, None, random);
                assert_eq!(beat_schedule.news_at(), beat_schedule.beat_at());
                (beat_schedule.beat_at() - now).as_millis()
            })
        };
        assert_eq!(pauses(LEAST), [500, 1000, 2000, 4000, 8000, 15_000, 15_000]);
        assert_eq!(pauses(MOST), [999, 1999, 3998, 7996, 15_992, 29_985, 29_985]);
    }

    #[test]
    fn a_server_that_says_when_to_come_back_is_believed_within_reason() {
        let (mut beat_schedule, now) = beat_schedule();
        let mut pause_s = |after_s, random| {
            beat_schedule.landed(now, PACE.beat_every, random);
            beat_schedule.failed(now, Some(Duration::from_secs(after_s)), random);
            (beat_schedule.beat_at() - now).as_secs_f64()
        };
        assert!((pause_s(20, LEAST) - 20.0).abs() < 0.001);
        assert!((21.9..22.0).contains(&pause_s(20, MOST)));
        assert!((pause_s(0, LEAST) - 0.5).abs() < 0.001, "never a hot loop");
        assert!((pause_s(86_400, LEAST) - 300.0).abs() < 0.001);
    }

    #[test]
    fn only_a_beat_that_landed_ends_a_row_of_failures() {
        let (mut beat_schedule, now) = beat_schedule();
        beat_schedule.failed(now, None, LEAST);
        beat_schedule.resume(now);
        assert_eq!(beat_schedule.beat_at(), now);
        beat_schedule.failed(now, None, LEAST);
        assert_eq!((beat_schedule.beat_at() - now).as_millis(), 1000);
    }

    #[test]
    fn a_very_long_outage_overflows_nothing() {
        let (mut beat_schedule, now) = beat_schedule();
        beat_schedule.failures = u32::MAX;
        beat_schedule.failed(now, None, LEAST);
        assert_eq!((beat_schedule.beat_at() - now).as_secs(), 15);
    }
}
