//! How long to wait before trying again: 1 s doubled each time, plus jitter, at most 30 s.
//!
//! A job that found no worker is not woken on this schedule (it is placed the moment a worker fits),
//! but the schedule still says when it has waited long enough to give up: after as long as fifty
//! tries would have taken. That moment is computed, so waiting costs no writes. A job that policy
//! throttles has as many tries.

use crate::time::Millis;

pub const BASE_MS: i64 = 1_000;
pub const MAX_MS: i64 = 30_000;
pub const JITTER_MS: i64 = 500;
/// The first delay of a job that policy could not be asked about.
pub const UNJUDGED_MS: i64 = 5_000;
/// The first delay of a job that policy throttles.
pub const THROTTLE_MS: i64 = 5_000;
/// Scheduling tries before a job fails and goes to the dead letters.
pub const TRIES_MAX: u32 = 50;

/// The delay after try number `tries` (from zero). `random` is any random number.
pub fn delay_ms(tries: u32, random: u64) -> i64 {
    jittered(doubled(tries), random)
}

/// How long a job waits that policy could not be asked about: 5 s, then doubled each time, at most 30 s.
pub fn unjudged_ms(tries: u32, random: u64) -> i64 {
    jittered(doubled_from(UNJUDGED_MS, tries), random)
}

/// How long a job waits that policy throttled `before` times before: 5 s, then doubled each time, at most 30 s. Who
/// asked at different moments is judged at different moments, so there is no jitter.
pub fn throttled_ms(before: u32) -> i64 {
    doubled_from(THROTTLE_MS, before)
}

/// When a job that has waited since `since` has used up its tries.
pub fn exhausted_at(since: Millis) -> Millis {
    since + (0..TRIES_MAX).map(doubled).sum::<i64>()
}

/// How many tries a job that has waited since `since` has had by `now`.
pub fn tries_by(since: Millis, now: Millis) -> u32 {
    let mut left = now.since(since);
    (0..TRIES_MAX)
        .take_while(|tries| {
            left -= doubled(*tries);
            left >= 0
        })
        .count() as u32
}

fn jittered(ms: i64, random: u64) -> i64 {
    (ms + (random % JITTER_MS as u64) as i64).min(MAX_MS)
}

fn doubled(tries: u32) -> i64 {
    doubled_from(BASE_MS, tries)
}

fn doubled_from(base: i64, tries: u32) -> i64 {
    base.checked_shl(tries).filter(|ms| tries < 16 && *ms < MAX_MS).unwrap_or(MAX_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_doubles_and_stops_at_thirty_seconds() {
        let delays: Vec<i64> = (0..7).map(|tries| delay_ms(tries, 0)).collect();
        assert_eq!(delays, [1000, 2000, 4000, 8000, 16000, 30000, 30000]);
        assert_eq!(delay_ms(0, 499), 1499);
        assert_eq!(delay_ms(0, 500), 1000);
        assert_eq!(delay_ms(u32::MAX, 499), MAX_MS);
        let delays: Vec<i64> = (0..5).map(|tries| unjudged_ms(tries, 0)).collect();
        assert_eq!(delays, [5000, 10_000, 20_000, 30_000, 30_000]);
        let delays: Vec<i64> = (0..5).map(throttled_ms).collect();
        assert_eq!(delays, [5000, 10_000, 20_000, 30_000, 30_000]);
        assert_eq!(throttled_ms(u32::MAX), MAX_MS);
    }

    #[test]
    fn fifty_tries_last_as_long_as_their_delays() {
        let end = exhausted_at(Millis(0));
        assert_eq!(end, Millis(31_000 + 45 * 30_000));
        assert_eq!(tries_by(Millis(0), end), TRIES_MAX);
        assert_eq!(tries_by(Millis(0), end - 1), TRIES_MAX - 1);
        assert_eq!(tries_by(Millis(0), Millis(999)), 0);
        assert_eq!(tries_by(Millis(0), Millis(3000)), 2);
    }
}
