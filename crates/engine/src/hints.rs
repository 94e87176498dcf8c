//! Hints for whoever reads Redis beside us: which workspaces were heard lately (`ws:<id>`), and where they take
//! messages (`ws:<id>:url`), as seed 003 has them.
//!
//! They decide nothing. Who is silent is known from the beats themselves, within 20 ms of its TTL, so nobody here
//! waits for the keys to expire either.

use crate::Engine;
use reveille_core::fleet::Worker;
use reveille_core::id::WorkspaceId;
use reveille_core::presence::About;
use tokio::sync::mpsc;

pub(crate) type Heard = Vec<(WorkspaceId, Option<String>)>;

impl Engine {
    /// Hands on who was heard. While the last hints are under way, new ones are dropped: the next beat brings
    /// them again.
    pub(crate) fn hint_at(&self, beats: &[Worker], hints: &mpsc::Sender<Heard>) {
        let Ok(place) = hints.try_reserve() else { return };
        let workspaces = beats.iter().filter(|worker| matches!(worker.about, About::Workspace(_)));
        let known = workspaces.filter(|worker| !worker.offline).filter_map(|worker| {
            let known = self.workspaces.find(&WorkspaceId::parse(worker.id.as_str()).ok()?)?;
            Some((known.id.clone(), known.url.clone()))
        });
        let heard: Heard = known.collect();
        if !heard.is_empty() {
            place.send(heard);
        }
    }

    pub(crate) async fn hint_on(self, mut unsaid: mpsc::Receiver<Heard>) {
        while let Some(heard) = unsaid.recv().await {
            if let Err(error) = self.store.hint(&heard).await {
                tracing::debug!(%error, workspaces = heard.len(), "hints were not left");
            }
        }
    }
}
