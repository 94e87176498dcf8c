//! What undoes a job, as CAP's message, field by field.

use reveille_api_types::submit::CompensationBody;
use reveille_wire::cap;

pub fn compensation_message(body: CompensationBody) -> cap::Compensation {
    let budget = cap::Budget { deadline_ms: body.deadline_ms, ..cap::Budget::default() };
    cap::Compensation {
        topic: body.topic,
        context_ptr: body.context_ptr,
        labels: body.labels.into_iter().filter(|(key, _)| !key.starts_with('_')).collect(),
        budget: (body.deadline_ms != 0).then_some(budget),
        meta: Some(cap::JobMetadata {
            capability: body.capability,
            risk_tags: body.risk_tags,
            requires: body.requires,
            pack_id: body.pack_id,
            idempotency_key: body.idempotency_key,
            ..cap::JobMetadata::default()
        }),
        ..cap::Compensation::default()
    }
}
