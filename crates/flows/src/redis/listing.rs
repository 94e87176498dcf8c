//! Pages of runs.

use super::{RedisFlows, read};
use crate::RunQuery;
use reveille_core::flow::{Head, RunState};
use reveille_store::{Page, StoreError, key_part, page_len};

/// Entries of an index that one script looks at; others wait for it.
const LOOKED_AT: u32 = 2_000;

impl RedisFlows {
    pub(super) async fn list(&self, query: &RunQuery) -> Result<Page<Head>, StoreError> {
        let tenant = query.tenant.as_ref().map_or(String::new(), |tenant| key_part(tenant.as_str()));
        let workflow = query.workflow.as_ref().map_or("", |workflow| workflow.as_str());
        let index = match query {
            RunQuery { tenant: Some(_), workflow: Some(_), .. } => format!("wf:runs:of:{tenant}:{workflow}"),
            // Most runs have succeeded: there is no gain in their index.
            RunQuery { state: Some(state), .. } if *state != RunState::Succeeded => {
                format!("wf:runs:status:{state}")
            }
            RunQuery { tenant: Some(_), .. } => format!("wf:runs:org:{tenant}"),
            _ => "wf:runs:all".to_owned(),
        };
        let len = page_len(query.limit);
        let mut last = query.cursor.map_or("+inf".to_owned(), |cursor| cursor.to_string());
        let mut found = Vec::new();
        while found.len() <= len {
            let mut script = self.scripts.page.key(self.key(&index));
            script.arg(&self.prefix).arg(&last).arg(len + 1 - found.len()).arg(LOOKED_AT);
            script.arg(query.updated_after.map_or(i64::MIN, |at| at.0));
            script.arg(query.updated_before.map_or(i64::MAX, |at| at.0));
            script.arg(&tenant).arg(workflow).arg(query.state.map_or("", RunState::as_str));
            script.arg(query.team.as_deref().unwrap_or_default());
            let reply: Vec<Option<String>> = self.link.run_surely(&script).await?;
            let mut parts = reply.into_iter();
            last = parts.next().flatten().unwrap_or_default();
            while let (Some(Some(seq)), Some(head)) = (parts.next(), parts.next()) {
                let seq = seq.parse().map_err(|_| StoreError::Corrupt(format!("{seq:?} is no place")))?;
                // One that was removed between two looks has no head.
                found.extend(head.map(|head| read(&head).map(|head| (seq, head))).transpose()?);
            }
            if last.is_empty() {
                break;
            }
        }
        Ok(Page::take(len, found.into_iter()))
    }
}
