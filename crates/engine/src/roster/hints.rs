//! Hints for whoever reads Redis beside us: which workspaces were heard lately (`ws:<id>`), and where they take
//! messages (`ws:<id>:url`), as seed 003 has them.
//!
//! They decide nothing. Who is silent is known from the beats themselves, within 20 ms of its TTL, so nobody here
//! waits for the keys to expire either.

use reveille_core::fleet::Worker;
use reveille_core::id::WorkspaceId;
use reveille_core::presence::About;
use reveille_store::Store;
use std::sync::Arc;
use tokio::sync::mpsc;

type HeardWorkspaces = Vec<(WorkspaceId, Option<String>)>;

/// Where a workspace takes messages, if it is known.
type UrlOf = Box<dyn Fn(&WorkspaceId) -> Option<Option<String>> + Send + Sync>;

pub struct RosterHints {
    url_of: UrlOf,
    heard: mpsc::Sender<HeardWorkspaces>,
}

impl RosterHints {
    /// The hints, and the task that leaves them in the store.
    pub fn new(store: Arc<dyn Store>, url_of: UrlOf) -> (Self, impl Future<Output = ()>) {
        let (heard, mut unwritten) = mpsc::channel::<HeardWorkspaces>(1);
        let task = async move {
            while let Some(heard) = unwritten.recv().await {
                if let Err(error) = store.hint(&heard).await {
                    tracing::debug!(%error, workspaces = heard.len(), "hints not written");
                }
            }
        };
        (Self { url_of, heard }, task)
    }

    /// Hands on who was heard. While the last hints are under way, new ones are dropped: the next beat brings
    /// them again.
    pub fn note(&self, beats: &[Worker]) {
        let Ok(place) = self.heard.try_reserve() else { return };
        let workspaces = beats.iter().filter(|worker| matches!(worker.about, About::Workspace(_)));
        let known = workspaces.filter(|worker| !worker.offline).filter_map(|worker| {
            let id = WorkspaceId::parse(worker.id.as_str()).ok()?;
            Some((id.clone(), (self.url_of)(&id)?))
        });
        let heard: HeardWorkspaces = known.collect();
        if !heard.is_empty() {
            place.send(heard);
        }
    }
}
