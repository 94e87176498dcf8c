//! Hints under the names that other programs read: `ws:<id>` and `ws:<id>:url`.

use super::RedisStore;
use crate::workspace_hints::HINT_TTL_MS;
use crate::{StoreError, WorkspaceHints};
use redis::Pipeline;
use reveille_core::id::WorkspaceId;

#[async_trait::async_trait]
impl WorkspaceHints for RedisStore {
    async fn hint(&self, heard: &[(WorkspaceId, Option<String>)]) -> Result<(), StoreError> {
        let mut pipeline = Pipeline::new();
        for (id, url) in heard {
            let (name, place) = (self.keys.of(&format!("ws:{id}")), self.keys.of(&format!("ws:{id}:url")));
            pipeline.cmd("SET").arg(name).arg("online").arg("PX").arg(HINT_TTL_MS).ignore();
            match url {
                Some(url) => pipeline.cmd("SET").arg(place).arg(url).arg("PX").arg(HINT_TTL_MS).ignore(),
                None => pipeline.cmd("DEL").arg(place).ignore(),
            };
        }
        Ok(self.link.pipeline(&pipeline).await?)
    }
}
