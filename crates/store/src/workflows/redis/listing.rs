//! Pages of runs.

use super::{RedisWorkflows, read};
use crate::redis::{IndexOrder, IndexQuery};
use crate::workflows::RunQuery;
use crate::{Page, StoreError, key_part};
use reveille_core::flow::{RunHead, RunState};

impl RedisWorkflows {
    pub(super) async fn list(&self, query: &RunQuery) -> Result<Page<RunHead>, StoreError> {
        let tenant = query.tenant.as_ref().map(|tenant| key_part(tenant.as_str()));
        let workflow = query.workflow.as_ref().map(ToString::to_string);
        let index = match (&tenant, &workflow, query.state) {
            (Some(tenant), Some(workflow), _) => format!("wf:runs:of:{tenant}:{workflow}"),
            // Most runs have succeeded: an index of them would gain nothing.
            (_, _, Some(state)) if state != RunState::Succeeded => format!("wf:runs:status:{state}"),
            (Some(tenant), None, _) => format!("wf:runs:org:{tenant}"),
            _ => "wf:runs:all".to_owned(),
        };
        let fields = [
            ("tenant", tenant),
            ("workflow", workflow),
            ("state", query.state.map(|state| state.to_string())),
            ("team", query.team.clone().filter(|team| !team.is_empty())),
        ];
        let index = IndexQuery {
            indexes: vec![self.key(&index)],
            order: IndexOrder::NewestFirst,
            cursor: query.cursor,
            limit: query.limit,
            look_through: None,
            updated_after: query.updated_after,
            updated_before: query.updated_before,
            hash: self.key("wf:run:"),
            record: None,
            fields: fields.into_iter().filter_map(|(field, wanted)| Some((field, wanted?))).collect(),
        };
        self.store.read_index(&index, |head| read(&String::from_utf8_lossy(head))).await
    }
}
