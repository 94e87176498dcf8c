//! A circuit breaker: whether to ask a service that has failed lately.
//!
//! It is a value. Replicas that share one compare and swap it as a whole, so that all of them see the
//! circuit open at the same moment.

use crate::time::Millis;
use serde::{Deserialize, Serialize};

/// How long one question may take.
pub const TIMEOUT_MS: i64 = 2_000;
/// Failures in a row that open the circuit.
pub const FAILURES_MAX: u32 = 3;
/// How long nobody is asked then.
pub const OPEN_MS: i64 = 30_000;
/// Questions that try whether the service is back.
pub const PROBES_MAX: u32 = 3;
/// Answers that close the circuit again.
pub const ANSWERS_TO_CLOSE: u32 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Breaker {
    Closed {
        failures: u32,
    },
    Open {
        until: Millis,
    },
    /// `until` is when the last probe has an answer or never will.
    HalfOpen {
        probes: u32,
        answers: u32,
        until: Millis,
    },
}

impl Default for Breaker {
    fn default() -> Self {
        Self::Closed { failures: 0 }
    }
}

impl Breaker {
    /// The breaker after one more question was let through; nothing if none may be asked now.
    pub fn admit(self, now: Millis) -> Option<Self> {
        let probe = |probes, answers| Self::HalfOpen { probes, answers, until: now + TIMEOUT_MS };
        match self {
            Self::Closed { .. } => Some(self),
            Self::Open { until } => has_come(until, now, OPEN_MS).then(|| probe(1, 0)),
            Self::HalfOpen { probes, answers, .. } if probes < PROBES_MAX => Some(probe(probes + 1, answers)),
            // Whoever sent the probes has died with them.
            Self::HalfOpen { until, .. } => has_come(until, now, TIMEOUT_MS).then(|| probe(1, 0)),
        }
    }

    /// The service answered. An answer from before the circuit opened changes nothing.
    pub fn answered(self) -> Self {
        match self {
            Self::Closed { .. } => Self::default(),
            Self::Open { .. } => self,
            Self::HalfOpen { answers, .. } if answers + 1 >= ANSWERS_TO_CLOSE => Self::default(),
            Self::HalfOpen { probes, answers, until } => {
                Self::HalfOpen { probes, answers: answers + 1, until }
            }
        }
    }

    /// It did not, or answered with an error.
    pub fn failed(self, now: Millis) -> Self {
        match self {
            Self::Closed { failures } if failures + 1 < FAILURES_MAX => {
                Self::Closed { failures: failures + 1 }
            }
            Self::Closed { .. } | Self::HalfOpen { .. } => Self::Open { until: now + OPEN_MS },
            Self::Open { .. } => self,
        }
    }

    pub const NAMES: [&str; 3] = ["closed", "half-open", "open"];

    /// As operators read it.
    pub fn name(self) -> &'static str {
        let [closed, half_open, open] = Self::NAMES;
        match self {
            Self::Closed { .. } => closed,
            Self::HalfOpen { .. } => half_open,
            Self::Open { .. } => open,
        }
    }
}

/// Whether a moment that was at most `ahead_ms` away has come. One that is further away was set by a clock
/// that has been put back since.
fn has_come(moment: Millis, now: Millis, ahead_ms: i64) -> bool {
    moment <= now || moment.since(now) > ahead_ms
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seed 004, section 6, "Circuit Breaker Constants".
    #[test]
    fn seed_004_section_6_constants() {
        assert_eq!(
            (TIMEOUT_MS, FAILURES_MAX, OPEN_MS, PROBES_MAX, ANSWERS_TO_CLOSE),
            (2_000, 3, 30_000, 3, 2)
        );
    }

    type Row<'a> = (&'a str, &'a [(i64, Now)], &'a [(i64, Now)], Option<Breaker>);

    #[derive(Clone, Copy)]
    enum Now {
        Ask,
        Answer,
        Fail,
    }

    /// Seed 004, section 6, the state diagram, one row for each arrow and each thing that is no arrow:
    /// what happens at which second, and where that leads; `None` where nobody may ask.
    #[test]
    fn seed_004_section_6_diagram() {
        use Now::{Answer, Ask, Fail};
        let closed = |failures| Some(Breaker::Closed { failures });
        let open = |second: i64| Some(Breaker::Open { until: Millis(second * 1000) });
        let half = |probes, answers, second: i64| {
            Some(Breaker::HalfOpen { probes, answers, until: Millis(second * 1000) })
        };
        let opened: &[(i64, Now)] = &[(0, Fail), (0, Fail), (0, Fail)];
        let rows: [Row<'_>; 14] = [
            ("closed lets everything through", &[], &[(0, Ask), (0, Ask), (0, Ask), (0, Ask)], closed(0)),
            ("two failures leave it closed", &[], &[(0, Fail), (0, Fail)], closed(2)),
            ("a success resets the failures", &[], &[(0, Fail), (0, Fail), (0, Answer)], closed(0)),
            ("three failures in a row open it", &[], opened, open(30)),
            ("open lets nothing through", opened, &[(29, Ask)], None),
            ("late failures do not prolong it", opened, &[(2, Fail)], open(30)),
            ("late answers do not close it", opened, &[(2, Answer), (2, Answer)], open(30)),
            ("after 30 s a probe goes out", opened, &[(30, Ask)], half(1, 0, 32)),
            ("and two more", opened, &[(30, Ask), (30, Ask), (31, Ask)], half(3, 0, 33)),
            ("but no fourth", opened, &[(30, Ask), (30, Ask), (31, Ask), (31, Ask)], None),
            ("one answer is not enough", opened, &[(30, Ask), (31, Answer)], half(1, 1, 32)),
            ("two answers close it", opened, &[(30, Ask), (30, Ask), (31, Answer), (31, Answer)], closed(0)),
            ("any failure opens it for 30 s again", opened, &[(30, Ask), (31, Answer), (32, Fail)], open(62)),
            (
                "probes that died with their sender do not block it for ever",
                opened,
                &[(30, Ask), (30, Ask), (30, Ask), (32, Ask)],
                half(1, 0, 34),
            ),
        ];
        for (what, before, then, expected) in rows {
            let mut breaker = Some(Breaker::default());
            for (second, event) in before.iter().chain(then) {
                let now = Millis(second * 1000);
                breaker = breaker.and_then(|breaker| match event {
                    Ask => breaker.admit(now),
                    Answer => Some(breaker.answered()),
                    Fail => Some(breaker.failed(now)),
                });
            }
            assert_eq!(breaker, expected, "{what}");
        }
    }

    #[test]
    fn a_clock_that_was_put_back_does_not_keep_it_open() {
        let open = Breaker::Open { until: Millis(3_600_000) };
        assert_eq!(open.admit(Millis(0)).map(Breaker::name), Some("half-open"));
    }
}
