//! Hints in the store for other programs: which workspaces are alive, and their addresses.

use crate::StoreError;
use reveille_core::id::WorkspaceId;

/// How long a hint lasts: seed 003 has a workspace beat every 30 s and count as gone after two.
pub(crate) const HINT_TTL_MS: i64 = 60_000;

/// The port. Nothing here depends on it: a lost hint is written again with the next beat, and a stale one expires. A
/// store that nobody else reads keeps none.
#[async_trait::async_trait]
pub trait WorkspaceHints: Send + Sync + 'static {
    /// Writes hints about workspaces that have beaten, with the address of each. Nothing here reads them.
    async fn hint(&self, _heard: &[(WorkspaceId, Option<String>)]) -> Result<(), StoreError> {
        Ok(())
    }
}
