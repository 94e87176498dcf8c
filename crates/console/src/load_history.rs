//! How things have been: the fleet every five seconds, and the server's own figures for an hour.
//!
//! It lives as long as the server does and no longer: what must outlast it is for a Prometheus to keep.

use maud::{Markup, html};
use reveille_core::placement::Member;
use reveille_engine::{Audience, Engine, Figures, in_hand, is_away};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const EVERY: Duration = Duration::from_secs(5);
/// Ten minutes of a worker.
const BEATS: usize = 120;
/// Of a larger fleet, the others have no history.
const MEMBERS_MAX: usize = 10_000;
/// An hour of the server, a figure every ten seconds.
const FIGURES: usize = 360;

pub struct LoadHistory {
    kept: Mutex<LoadSamples>,
}

#[derive(Default)]
struct LoadSamples {
    /// What each had in hand; nothing while it was away.
    members: HashMap<Member, VecDeque<Option<u32>>>,
    hour: VecDeque<Figures>,
}

impl LoadHistory {
    pub fn start(engine: &Engine) -> Arc<Self> {
        let history = Arc::new(Self { kept: Mutex::default() });
        let (own, engine) = (history.clone(), engine.clone());
        tokio::spawn(async move {
            let mut clock = tokio::time::interval(EVERY);
            for round in 0_u64.. {
                clock.tick().await;
                if engine.is_draining() {
                    return;
                }
                own.feel(&engine);
                if round % 2 == 0 {
                    own.note(engine.figures());
                }
            }
        });
        history
    }

    fn kept(&self) -> MutexGuard<'_, LoadSamples> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn feel(&self, engine: &Engine) {
        let (now, ttls) = (engine.now(), engine.settings().ttls);
        let views = engine.fleet().workers_after(&Audience::Everyone, None, None, MEMBERS_MAX);
        let mut kept = self.kept();
        let mut before = std::mem::take(&mut kept.members);
        for view in views {
            let member = Member::of(&view.worker);
            let mut beats = before.remove(&member).unwrap_or_default();
            if beats.len() == BEATS {
                beats.pop_front();
            }
            beats.push_back((!is_away(&view.worker, &ttls, now)).then(|| in_hand(&view.worker)));
            kept.members.insert(member, beats);
        }
    }

    fn note(&self, figures: Figures) {
        let mut kept = self.kept();
        if kept.hour.len() == FIGURES {
            kept.hour.pop_front();
        }
        kept.hour.push_back(figures);
    }

    /// The last figures, and those before them.
    pub fn hour(&self) -> Vec<Figures> {
        self.kept().hour.iter().cloned().collect()
    }

    /// What a worker had in hand, as a line with gaps where it was away.
    pub fn sparkline(&self, member: &Member) -> Markup {
        let beats: Vec<Option<u32>> =
            self.kept().members.get(member).map(|beats| beats.iter().copied().collect()).unwrap_or_default();
        if beats.len() < 2 {
            return html! { p.note { "There is no history yet: it is taken every five seconds while the server runs." } };
        }
        let most = beats.iter().flatten().copied().max().unwrap_or(0).max(1);
        let x = |n: usize| (BEATS - beats.len() + n) * 5;
        html! {
            svg.spark viewBox="0 0 600 60" preserveAspectRatio="none" role="img" aria-label={ "Jobs in hand over the last ten minutes, at most " (most) } {
                @for (n, beat) in beats.iter().enumerate() {
                    @match beat {
                        Some(jobs) => { rect.here x=(x(n)) y=(54 - jobs * 50 / most) width="4.5" height=(jobs * 50 / most + 5) {} },
                        None => { rect.away x=(x(n)) y="0" width="4.5" height="60" {} },
                    }
                }
            }
            p.quiet { "Jobs in hand every five seconds, at most " (most) "; grey where it was away." }
        }
    }
}
