//! What undoes a job, as it is asked for over HTTP: CAP's message, field by field.

use reveille_wire::cap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// What is not said is as the job has it. Its priority is always critical.
#[derive(Serialize, Deserialize, ToSchema, Default)]
#[serde(default, deny_unknown_fields)]
pub struct CompensationBody {
    /// `job.…`: who undoes it.
    pub topic: String,
    /// Where its input is; the job's own unless told.
    pub context_ptr: String,
    /// `saga_parallel: "true"` on all of them lets them go at once.
    pub labels: BTreeMap<String, String>,
    pub capability: String,
    pub risk_tags: Vec<String>,
    pub requires: Vec<String>,
    pub pack_id: String,
    /// Made of the workflow, the job and the topic unless told.
    pub idempotency_key: String,
    /// Milliseconds that it may take.
    pub deadline_ms: i64,
}

impl CompensationBody {
    pub fn into_message(self) -> cap::Compensation {
        let budget = cap::Budget { deadline_ms: self.deadline_ms, ..cap::Budget::default() };
        cap::Compensation {
            topic: self.topic,
            context_ptr: self.context_ptr,
            labels: self.labels.into_iter().filter(|(key, _)| !key.starts_with('_')).collect(),
            budget: (self.deadline_ms != 0).then_some(budget),
            meta: Some(cap::JobMetadata {
                capability: self.capability,
                risk_tags: self.risk_tags,
                requires: self.requires,
                pack_id: self.pack_id,
                idempotency_key: self.idempotency_key,
                ..cap::JobMetadata::default()
            }),
            ..cap::Compensation::default()
        }
    }
}
