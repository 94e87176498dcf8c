//! Words left in the store for programs beside this one: which workspaces were heard, and where they take messages.

use crate::StoreError;
use reveille_core::id::WorkspaceId;

/// How long a hint lasts: seed 003 has a workspace beat every 30 s and count as gone after two.
pub(crate) const HINT_TTL_MS: i64 = 60_000;

/// The port. Nothing here depends on it: a hint that is lost is left again with the next beat, and one that is stale
/// lapses. A store that nobody else reads keeps none.
#[async_trait::async_trait]
pub trait WorkspaceHints: Send + Sync + 'static {
    /// Leaves a word for others to read of workspaces that were heard, and where each takes messages. It is only a
    /// hint: nobody here reads it.
    async fn hint(&self, _heard: &[(WorkspaceId, Option<String>)]) -> Result<(), StoreError> {
        Ok(())
    }
}
