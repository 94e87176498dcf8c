//! The compensation that came with a job, as a job of its own.

use super::Unusable;
use crate::cap;
use bytes::Bytes;
use prost::Message;
use reveille_core::id::Topic;
use reveille_core::request::{Budget, Hints, Needs, Place, Priority, Request};

/// A compensation as a request keeps it: the message, byte for byte.
pub fn kept_compensation(compensation: &cap::Compensation) -> Bytes {
    compensation.encode_to_vec().into()
}

/// What undoes a job: its compensation's fields, falling back to the job's own. It must name its topic, since the
/// job's own topic would repeat what is to be undone. The input is the job's unless the compensation points to
/// another.
pub fn compensation(of: &Request) -> Result<Request, Unusable> {
    let undo = cap::Compensation::decode(of.compensation.clone())
        .map_err(|error| Unusable::Field(format!("compensation: {error}")))?;
    let meta = undo.meta.unwrap_or_default();
    for named in [&undo.tenant_id, &meta.tenant_id].into_iter().chain(undo.env.get("tenant_id")) {
        if !named.is_empty() && named != of.tenant.as_str() {
            let problem = format!("compensation.tenant_id {named:?} is not the job's tenant {}", of.tenant);
            return Err(Unusable::Field(problem));
        }
    }
    let or = |said: String, own: &String| if said.is_empty() { own.clone() } else { said };
    let or_list = |said: Vec<String>, own: &Vec<String>| if said.is_empty() { own.clone() } else { said };
    let mut request = of.clone();
    request.topic =
        Topic::parse(&undo.topic).map_err(|problem| Unusable::Field(format!("compensation: {problem}")))?;
    request.priority = Priority::Critical;
    request.context_ptr = or(undo.context_ptr, &of.context_ptr);
    request.labels.extend(meta.labels);
    request.labels.extend(undo.labels);
    request.env.extend(undo.env);
    request.actor.principal_id = or(undo.principal_id, &of.actor.principal_id);
    request.actor.actor_id = or(meta.actor_id, &of.actor.actor_id);
    request.needs = Needs {
        capability: or(meta.capability, &of.needs.capability),
        risk_tags: or_list(meta.risk_tags, &of.needs.risk_tags),
        requires: or_list(meta.requires, &of.needs.requires),
        pack_id: or(meta.pack_id, &of.needs.pack_id),
    };
    if let Some(budget) = undo.budget {
        request.budget = Budget {
            max_input_tokens: budget.max_input_tokens,
            max_output_tokens: budget.max_output_tokens,
            max_total_tokens: budget.max_total_tokens,
            deadline_ms: budget.deadline_ms,
        };
    }
    if let Some(hints) = undo.context_hints {
        request.hints = Hints {
            max_input_tokens: hints.max_input_tokens,
            allow_summarization: hints.allow_summarization,
            allow_retrieval: hints.allow_retrieval,
            tags: hints.tags,
        };
    }
    request.place = Place {
        adapter_id: or(undo.adapter_id, &of.place.adapter_id),
        memory_id: or(undo.memory_id, &of.place.memory_id),
        parent_job_id: of.id.to_string(),
        ..of.place.clone()
    };
    // The job's idempotency key stays with the job, and a compensation has no compensation.
    request.idempotency_key = Some(meta.idempotency_key).filter(|key| !key.is_empty());
    request.compensation = Bytes::new();
    request.delegated = None;
    request.check().map_err(|problem| Unusable::Field(format!("compensation: {problem}")))?;
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_core::id::TenantId;

    fn job(compensation: &cap::Compensation) -> Request {
        let mut request = Request::plain("j", "job.book");
        request.labels.insert("colour".into(), "red".into());
        request.labels.insert("size".into(), "s".into());
        request.env.insert("stage".into(), "prod".into());
        request.needs = Needs { capability: "book".into(), requires: vec!["gpu".into()], ..Needs::default() };
        request.budget.deadline_ms = 5_000;
        request.place.workflow_id = "trip".into();
        request.place.step_index = 3;
        request.idempotency_key = Some("mine".into());
        request.compensation = kept_compensation(compensation);
        request
    }

    #[test]
    fn it_is_the_job_with_what_the_compensation_says_otherwise() {
        let plain = job(&cap::Compensation { topic: "job.cancel".into(), ..cap::Compensation::default() });
        let undo = compensation(&plain).unwrap();
        assert_eq!((undo.topic.as_str(), undo.priority), ("job.cancel", Priority::Critical));
        assert_eq!((&undo.labels, &undo.env, &undo.needs), (&plain.labels, &plain.env, &plain.needs));
        assert_eq!((&undo.context_ptr, undo.budget), (&plain.context_ptr, plain.budget));
        assert_eq!((undo.place.workflow_id.as_str(), undo.place.step_index), ("trip", 3));
        assert_eq!((undo.place.parent_job_id.as_str(), undo.idempotency_key), ("j", None));
        assert!(undo.compensation.is_empty());

        let other = job(&cap::Compensation {
            topic: "job.cancel".into(),
            context_ptr: "redis://ctx:other".into(),
            labels: [("size".to_owned(), "m".to_owned())].into(),
            env: [("stage".to_owned(), "test".to_owned())].into(),
            budget: Some(cap::Budget { deadline_ms: 9, ..cap::Budget::default() }),
            meta: Some(cap::JobMetadata {
                capability: "cancel".into(),
                idempotency_key: "once".into(),
                ..cap::JobMetadata::default()
            }),
            ..cap::Compensation::default()
        });
        let undo = compensation(&other).unwrap();
        assert_eq!((undo.labels["size"].as_str(), undo.labels["colour"].as_str()), ("m", "red"));
        assert_eq!((undo.env["stage"].as_str(), undo.context_ptr.as_str()), ("test", "redis://ctx:other"));
        assert_eq!((undo.needs.capability.as_str(), undo.needs.requires.len()), ("cancel", 1));
        assert_eq!((undo.budget.deadline_ms, undo.idempotency_key.as_deref()), (9, Some("once")));
    }

    #[test]
    fn what_cannot_be_one_says_why() {
        let unreadable = Request { compensation: "\u{7f}\u{7f}".into(), ..Request::plain("j", "job.a") };
        let no_topic = job(&cap::Compensation::default());
        let others = job(&cap::Compensation {
            topic: "job.cancel".into(),
            tenant_id: "zeta".into(),
            ..cap::Compensation::default()
        });
        let late = job(&cap::Compensation {
            topic: "job.cancel".into(),
            budget: Some(cap::Budget { deadline_ms: -1, ..cap::Budget::default() }),
            ..cap::Compensation::default()
        });
        for (request, words) in
            [(unreadable, "compensation"), (no_topic, "topic"), (others, "zeta"), (late, "deadline_ms")]
        {
            let problem = compensation(&request).unwrap_err().to_string();
            assert!(problem.contains(words), "{problem}");
        }
        let own = cap::Compensation {
            topic: "job.cancel".into(),
            tenant_id: "default".into(),
            ..cap::Compensation::default()
        };
        assert_eq!(compensation(&job(&own)).unwrap().tenant, TenantId::known("default"));
    }
}
