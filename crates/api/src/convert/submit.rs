//! A job as it is asked for, with the limits of the reference's gateway.

use super::compensation::compensation_message;
use crate::ApiError;
use bytes::Bytes;
use reveille_api_types::submit::{SubmitReply, SubmitRequest};
use reveille_core::id::{JobId, TenantId, Topic};
use reveille_core::job::{Job, State};
use reveille_core::request::{
    Actor, Budget, Hints, LABEL_KEY_LEN_MAX, LABEL_VALUE_LEN_MAX, Needs, Place, Priority, Request,
};
use reveille_wire::convert::{compensation as compensation_of, kept_compensation};
use serde_json::json;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

const PROMPT_CHARS_MAX: usize = 50_000;
const LABELS_MAX: usize = 50;
const TAGS_MAX: usize = 50;
const WORD_LEN_MAX: usize = 256;
const TOPIC_DEFAULT: &str = "job.default";

/// The request and its context blob, or the field that is wrong.
pub fn job_request(
    body: SubmitRequest,
    id: JobId,
    tenant: &TenantId,
    caller: &str,
) -> Result<(Request, Bytes), ApiError> {
    check(&body, tenant)?;
    let context = context_blob(&body)?;
    let compensation =
        body.compensation.map(|undo| kept_compensation(&compensation_message(undo))).unwrap_or_default();
    let word = |value: Option<String>| value.unwrap_or_default();
    let request = Request {
        tenant: tenant.clone(),
        topic: Topic::parse(body.topic.as_deref().unwrap_or(TOPIC_DEFAULT))?,
        priority: match body.priority.as_deref() {
            None | Some("") => Priority::default(),
            Some(word) => Priority::parse(word).ok_or_else(|| {
                ApiError::field("priority", format!("{word:?} is none of batch, interactive, critical"))
            })?,
        },
        trace_id: id.to_string(),
        context_ptr: format!("redis://ctx:{id}"),
        labels: body.labels.into_iter().filter(|(key, _)| !key.starts_with('_')).collect(),
        env: BTreeMap::new(),
        actor: Actor {
            principal_id: body.principal_id.filter(|id| !id.is_empty()).unwrap_or_else(|| caller.to_owned()),
            actor_id: word(body.actor_id),
            actor_type: word(body.actor_type),
            team: word(body.team_id),
        },
        needs: Needs {
            capability: word(body.capability),
            risk_tags: body.risk_tags,
            requires: body.requires,
            pack_id: word(body.pack_id),
        },
        budget: Budget {
            max_input_tokens: body.max_input_tokens.unwrap_or(8_000),
            max_output_tokens: body.max_output_tokens.unwrap_or(1_024),
            max_total_tokens: body.max_total_tokens.unwrap_or_default(),
            deadline_ms: body.deadline_ms.unwrap_or_default(),
        },
        hints: Hints {
            max_input_tokens: i32::try_from(body.max_input_tokens.unwrap_or_default()).unwrap_or(i32::MAX),
            allow_summarization: body.allow_summarization,
            allow_retrieval: body.allow_retrieval,
            tags: body.tags,
        },
        place: Place {
            adapter_id: word(body.adapter_id),
            memory_id: word(body.memory_id),
            workflow_id: word(body.workflow_id),
            step_index: body.step_index.unwrap_or_default(),
            ..Place::default()
        },
        idempotency_key: body.idempotency_key.filter(|key| !key.is_empty()),
        compensation,
        delegated: None,
        submitted_by: None,
        submitter_name: None,
        trace: None,
        id,
    };
    if !request.compensation.is_empty() {
        // Over the bus there is nobody to tell; here a bad one is refused before anything is done.
        if request.place.workflow_id.is_empty() {
            return Err(ApiError::field("compensation", "means something only beside workflow_id"));
        }
        compensation_of(&request).map_err(|problem| ApiError::field("compensation", problem))?;
    }
    Ok((request, context))
}

fn check(body: &SubmitRequest, tenant: &TenantId) -> Result<(), ApiError> {
    for (field, named) in [("tenant_id", &body.tenant_id), ("org_id", &body.org_id)] {
        if named.as_deref().is_some_and(|named| !named.is_empty() && named != tenant.as_str()) {
            return Err(ApiError::field(field, "the tenant comes from the key; this is another one"));
        }
    }
    if body.prompt.as_ref().is_some_and(|prompt| prompt.chars().count() > PROMPT_CHARS_MAX) {
        return Err(ApiError::field("prompt", format!("has more than {PROMPT_CHARS_MAX} characters")));
    }
    let topic = body.topic.as_deref().unwrap_or(TOPIC_DEFAULT);
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let rest = topic
        .strip_prefix("job.")
        .filter(|rest| rest.split('.').all(|token| !token.is_empty()) && rest.chars().all(plain));
    if rest.is_none() || topic.len() > WORD_LEN_MAX {
        return Err(ApiError::field(
            "topic",
            format!(
                "must be job. and then letters, digits, dots, dashes or underscores, at most {WORD_LEN_MAX} bytes"
            ),
        ));
    }
    if body.actor_type.as_deref().is_some_and(|kind| !matches!(kind, "" | "human" | "service")) {
        return Err(ApiError::field("actor_type", "is neither human nor service"));
    }
    let words = [
        ("adapter_id", &body.adapter_id),
        ("memory_id", &body.memory_id),
        ("principal_id", &body.principal_id),
        ("actor_id", &body.actor_id),
        ("idempotency_key", &body.idempotency_key),
        ("pack_id", &body.pack_id),
        ("capability", &body.capability),
        ("team_id", &body.team_id),
        ("project_id", &body.project_id),
        ("workflow_id", &body.workflow_id),
    ];
    for (field, value) in words {
        if value.as_ref().is_some_and(|value| value.len() > WORD_LEN_MAX) {
            return Err(ApiError::field(field, format!("is longer than {WORD_LEN_MAX} bytes")));
        }
    }
    for (field, list) in [("tags", &body.tags), ("risk_tags", &body.risk_tags), ("requires", &body.requires)]
    {
        if list.len() > TAGS_MAX {
            return Err(ApiError::field(
                field,
                format!("has {} entries; at most {TAGS_MAX} are allowed", list.len()),
            ));
        }
        if list.iter().any(|item| item.len() > WORD_LEN_MAX) {
            return Err(ApiError::field(field, format!("has an entry longer than {WORD_LEN_MAX} bytes")));
        }
    }
    check_labels(&body.labels)
}

fn check_labels(labels: &BTreeMap<String, String>) -> Result<(), ApiError> {
    if labels.len() > LABELS_MAX {
        return Err(ApiError::field(
            "labels",
            format!("has {} entries; at most {LABELS_MAX} are allowed", labels.len()),
        ));
    }
    for (key, value) in labels {
        if key.is_empty() || key.len() > LABEL_KEY_LEN_MAX {
            return Err(ApiError::field("labels", format!("a key must have 1 to {LABEL_KEY_LEN_MAX} bytes")));
        }
        if value.len() > LABEL_VALUE_LEN_MAX {
            return Err(ApiError::field(
                "labels",
                format!("the value of {key:?} is longer than {LABEL_VALUE_LEN_MAX} bytes"),
            ));
        }
        if key.starts_with("_governance.") || key.starts_with("_ma.") {
            return Err(ApiError::field("labels", format!("{key:?} is reserved")));
        }
    }
    Ok(())
}

/// What the worker reads: the context byte for byte, with the prompt added where there is one.
fn context_blob(body: &SubmitRequest) -> Result<Bytes, ApiError> {
    let context = body.context.written().filter(|context| *context != "null");
    let blob = match (context, &body.prompt) {
        (None, None) => return Err(ApiError::field("prompt", "neither a prompt nor a context is given")),
        (Some(context), None) => Ok(context.to_owned()),
        (None, Some(prompt)) => serde_json::to_string(&json!({ "prompt": prompt })),
        (Some(context), Some(prompt)) => with_prompt(context, prompt),
    };
    blob.map(Bytes::from).map_err(|error| ApiError::field("context", error))
}

/// An object gets the prompt as one more field, unless it has one; anything else is put beside it.
fn with_prompt(context: &str, prompt: &str) -> serde_json::Result<String> {
    let context: &RawValue = serde_json::from_str(context)?;
    let prompt = serde_json::value::to_raw_value(prompt)?;
    let fields: BTreeMap<String, &RawValue> =
        match serde_json::from_str::<BTreeMap<String, &RawValue>>(context.get()) {
            Ok(mut fields) => {
                fields.entry("prompt".to_owned()).or_insert(&prompt);
                fields
            }
            Err(_) => BTreeMap::from([("prompt".to_owned(), &*prompt), ("context".to_owned(), context)]),
        };
    serde_json::to_string(&fields)
}

pub fn submit_reply(job: &Job) -> SubmitReply {
    let waits = job.state() == State::ApprovalRequired;
    SubmitReply {
        job_id: job.id().to_string(),
        trace_id: job.request.trace_id.clone(),
        status: waits.then(|| "approval_required".to_owned()),
        reason: job.last_verdict().filter(|_| waits).map(|recorded| recorded.verdict.reason.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &serde_json::Value) -> Result<(Request, Bytes), ApiError> {
        let request: SubmitRequest = serde_json::from_str(&body.to_string()).unwrap();
        job_request(request, JobId::known("0-1"), &TenantId::known("acme"), "ann")
    }

    #[test]
    fn the_worker_reads_the_context_with_the_prompt_in_it() {
        let exact: SubmitRequest =
            serde_json::from_str(r#"{"context": {"n": 12345678901234567890123, "a":  [] }}"#).unwrap();
        let (_, blob) = job_request(exact, JobId::known("0-1"), &TenantId::known("acme"), "ann").unwrap();
        assert_eq!(&blob[..], br#"{"n": 12345678901234567890123, "a":  [] }"#, "byte for byte");
        let context = |body| String::from_utf8(read(&body).unwrap().1.to_vec()).unwrap();
        assert_eq!(context(json!({"context": {"x": 1}})), r#"{"x":1}"#);
        assert_eq!(context(json!({"prompt": "hi"})), r#"{"prompt":"hi"}"#);
        assert_eq!(context(json!({"prompt": "hi", "context": {"x": 1}})), r#"{"prompt":"hi","x":1}"#);
        assert_eq!(context(json!({"prompt": "hi", "context": {"prompt": "own"}})), r#"{"prompt":"own"}"#);
        assert_eq!(context(json!({"prompt": "hi", "context": [1]})), r#"{"context":[1],"prompt":"hi"}"#);
    }

    #[test]
    fn every_limit_names_its_field() {
        let many =
            |count: usize| (0..count).map(|n| (n.to_string(), String::new())).collect::<BTreeMap<_, _>>();
        for (body, field) in [
            (json!({}), "prompt"),
            (json!({"prompt": "x".repeat(50_001)}), "prompt"),
            (json!({"prompt": "x", "topic": "echo"}), "topic"),
            (json!({"prompt": "x", "topic": "job."}), "topic"),
            (json!({"prompt": "x", "topic": "job.a b"}), "topic"),
            (json!({"prompt": "x", "topic": format!("job.{}", "x".repeat(300))}), "topic"),
            (json!({"prompt": "x", "priority": "soon"}), "priority"),
            (json!({"prompt": "x", "tenant_id": "zeta"}), "tenant_id"),
            (json!({"prompt": "x", "actor_type": "robot"}), "actor_type"),
            (json!({"prompt": "x", "labels": many(51)}), "labels"),
            (json!({"prompt": "x", "labels": {"k": "v".repeat(4097)}}), "labels"),
            (json!({"prompt": "x", "labels": {"_governance.x": ""}}), "labels"),
            (json!({"prompt": "x", "tags": vec!["t"; 51]}), "tags"),
            (json!({"prompt": "x", "idempotency_key": "k".repeat(257)}), "idempotency_key"),
        ] {
            let error = format!("{:?}", read(&body).err());
            assert!(error.contains(&format!("{field}:")), "{field}: {error}");
        }
    }

    #[test]
    fn what_undoes_a_job_is_kept_as_caps_message() {
        let undo = json!({"topic": "job.cancel", "labels": {"size": "m"}, "capability": "cancel"});
        let body = json!({"prompt": "x", "workflow_id": "trip", "step_index": 2, "compensation": undo});
        let (request, _) = read(&body).unwrap();
        assert_eq!((request.place.workflow_id.as_str(), request.place.step_index), ("trip", 2));
        let undo = compensation_of(&request).unwrap();
        assert_eq!((undo.topic.as_str(), undo.labels["size"].as_str()), ("job.cancel", "m"));
        assert_eq!((undo.needs.capability.as_str(), undo.budget), ("cancel", request.budget));
        for bad in [
            json!({"prompt": "x", "compensation": {"topic": "job.cancel"}}),
            json!({"prompt": "x", "workflow_id": "trip", "compensation": {}}),
            json!({"prompt": "x", "workflow_id": "trip", "compensation": {"topic": "job.c", "deadline_ms": -1}}),
        ] {
            let error = format!("{:?}", read(&bad).err());
            assert!(error.contains("compensation:"), "{bad}: {error}");
        }
    }

    #[test]
    fn labels_that_start_with_an_underscore_are_dropped() {
        let (request, _) = read(&json!({"prompt": "x", "labels": {"_own": "1", "colour": "red"}})).unwrap();
        assert_eq!(request.labels.into_keys().collect::<Vec<_>>(), ["colour"]);
        assert_eq!(request.tenant.as_str(), "acme");
    }
}
