//! Who may talk to whom: oneself, siblings (roots are siblings of each other), and anybody up or down
//! the line.

use super::WorkspaceIndex;
use reveille_core::id::WorkspaceId;
use reveille_core::presence::workspace::Workspace;
use std::sync::Arc;

/// A family tree deeper than this is a mistake.
const DEPTH_MAX: usize = 64;

impl WorkspaceIndex {
    pub fn may_talk(&self, one: &Workspace, other: &Workspace) -> bool {
        if one.tenant != other.tenant {
            return false;
        }
        one.id == other.id
            || one.parent_id == other.parent_id
            || self.descends(one, &other.id)
            || self.descends(other, &one.id)
    }

    /// Whether `ancestor` is somewhere above.
    pub fn descends(&self, workspace: &Workspace, ancestor: &WorkspaceId) -> bool {
        let mut parent = workspace.parent_id.clone();
        for _ in 0..DEPTH_MAX {
            match parent {
                Some(id) if id == *ancestor => return true,
                Some(id) => parent = self.find(&id).and_then(|found| found.parent_id.clone()),
                None => return false,
            }
        }
        false
    }

    pub fn children(&self, id: &WorkspaceId) -> Vec<Arc<Workspace>> {
        let mut children = self.all();
        children.retain(|other| other.parent_id.as_ref() == Some(id) && !other.is_removed());
        children.sort_by(|a, b| a.id.cmp(&b.id));
        children
    }

    /// Children, their children, and so on.
    pub fn descendants(&self, id: &WorkspaceId) -> Vec<Arc<Workspace>> {
        let mut all = self.all();
        all.retain(|other| !other.is_removed() && self.descends(other, id));
        all.sort_by(|a, b| a.id.cmp(&b.id));
        all
    }

    /// Siblings, children and the parent, by id.
    pub fn peers(&self, workspace: &Workspace) -> Vec<Arc<Workspace>> {
        let is_peer = |other: &Workspace| {
            other.tenant == workspace.tenant
                && other.id != workspace.id
                && !other.is_removed()
                && (other.parent_id == workspace.parent_id
                    || other.parent_id.as_ref() == Some(&workspace.id)
                    || workspace.parent_id.as_ref() == Some(&other.id))
        };
        let mut peers = self.all();
        peers.retain(|other| is_peer(other));
        peers.sort_by(|a, b| a.id.cmp(&b.id));
        peers
    }
}
