//! One name for one request: what an approval is bound to.

use crate::digest::sha256_hex;
use crate::request::Request;
use serde_json::Value;

/// SHA-256 over the request as JSON with sorted keys. The trace and labels such as `approval_granted` may
/// differ without the request meaning anything else, so they are left out.
pub fn job_hash(request: &Request) -> String {
    let mut canonical = serde_json::to_value(request).unwrap_or_default();
    if let Value::Object(fields) = &mut canonical {
        fields.remove("trace_id");
        fields.remove("trace");
        if let Some(Value::Object(labels)) = fields.get_mut("labels") {
            labels.retain(|key, _| !key.starts_with("approval_"));
            if labels.is_empty() {
                fields.remove("labels");
            }
        }
    }
    sha256_hex(canonical.to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::TraceContext;

    const TRACEPARENT: &[u8] = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn the_hash_names_what_is_asked_for_and_nothing_else() {
        let plain = Request::plain("j", "job.echo");
        let hash = job_hash(&plain);
        assert_eq!(hash.len(), 64);
        assert!(hash.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)));
        let check = |change: fn(&mut Request), is_same: bool| {
            let mut request = plain.clone();
            change(&mut request);
            assert_eq!(job_hash(&request) == hash, is_same, "{request:?}");
        };
        check(|_| (), true);
        check(|r| "another".clone_into(&mut r.trace_id), true);
        check(|r| r.follow(TraceContext::read([TRACEPARENT], [])), true);
        check(|r| drop(r.labels.insert("approval_granted".into(), "true".into())), true);
        check(|r| drop(r.labels.insert("size".into(), "s".into())), false);
        check(|r| r.needs.risk_tags = vec!["prod".into()], false);
        check(|r| r.budget.max_total_tokens = 1, false);
        check(|r| "redis://ctx:other".clone_into(&mut r.context_ptr), false);
        check(|r| r.compensation = "undo".into(), false);
    }
}
