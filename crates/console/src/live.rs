//! `GET /ui/live`: tells a page that something it shows has changed. It says no more than that; the page asks for
//! itself again, so that there is one drawing of everything.

use crate::Console;
use crate::session::Session;
use axum::extract::{Query, State};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::unfold;
use reveille_api::ApiError;
use reveille_api::stream::{Watch, WatchItem, answer};
use reveille_engine::{BrowserSession, Engine, NextEvents, What};
use serde::Deserialize;
use std::time::Duration;

/// What comes in quick succession is told together: a page can be drawn anew so often, and need not be more.
const PACE: Duration = Duration::from_millis(500);

#[derive(Deserialize)]
pub struct LiveQuery {
    /// `worker`, `job`, `run`, or ids, with spaces between.
    #[serde(default)]
    what: String,
}

struct LiveFeed {
    engine: Engine,
    /// Nothing for those who have no key.
    signed_in: Option<BrowserSession>,
    watch: Watch,
    wanted: Vec<String>,
}

pub async fn follow(
    State(console): State<Console>,
    session: Session,
    Query(wanted): Query<LiveQuery>,
) -> Result<Response, ApiError> {
    let wanted = wanted.what.split_whitespace().take(8).map(str::to_owned).collect();
    let watch = Watch::new(&console.engine, session.auth.caller(), session.auth.audience(), None, PACE)?;
    let feed = LiveFeed { engine: console.engine, signed_in: session.signed_in, watch, wanted };
    Ok(answer(unfold(feed, LiveFeed::next)))
}

impl LiveFeed {
    async fn next(mut self) -> Option<(Bytes, Self)> {
        loop {
            let said: &'static [u8] = match self.watch.next().await {
                WatchItem::End => return None,
                WatchItem::Look if self.is_signed_out() => return None,
                WatchItem::Look => continue,
                WatchItem::KeepAlive => b": still here\n\n",
                WatchItem::Events(NextEvents::StartAfresh(_)) => b"event: changed\ndata: all\n\n",
                WatchItem::Events(NextEvents::Events(events)) => {
                    if !events.iter().any(|(_, event)| self.wants(&event.what)) {
                        continue;
                    }
                    b"event: changed\ndata: some\n\n"
                }
            };
            return Some((Bytes::from_static(said), self));
        }
    }

    fn is_signed_out(&self) -> bool {
        self.signed_in.as_ref().is_some_and(|session| self.engine.access().session_is_over(session))
    }

    fn wants(&self, what: &What) -> bool {
        let (kind, id) = match what {
            What::Worker { member, .. } => ("worker", member.id.as_str()),
            What::Job { id, .. } => ("job", id.as_str()),
            What::Run { id, .. } => ("run", id.as_str()),
            What::Workspace { id, .. } => ("worker", id.as_str()),
        };
        self.wanted.iter().any(|wanted| wanted == kind || wanted == id)
    }
}
