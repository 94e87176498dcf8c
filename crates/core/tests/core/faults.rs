//! Faults of the reference that the core alone can show. `docs/faults.md` lists them all.

use reveille_core::output::OutputDecision;
use reveille_core::policy::{ContentMetadata, Decision, Document, FailMode, Policy};
use reveille_core::request::Request;
use reveille_core::scan::SCAN_LEN_MAX;
use serde_json::{Value, json};

fn policy(document: Value) -> Policy {
    let source = document.to_string();
    Policy::new(serde_json::from_value::<Document>(document).unwrap(), source.as_bytes()).unwrap()
}

/// The reference cuts a content to what it reads before it asks whether it is too large to be read, so that
/// neither this nor a limit on the size ever comes true.
#[test]
fn fault_8_4_5_a_result_too_large_to_be_looked_at_is_noticed() {
    let request = Request::plain("j", "job.a");
    let policy = policy(json!({"output_rules": [
        {"id": "huge", "match": {"max_output_bytes": 10_485_760}, "decision": "deny"},
        {"id": "leak", "match": {"scanners": ["secret"]}, "decision": "quarantine"},
    ]}));
    let looked = |len: usize, mode| {
        let content = vec![b'x'; len];
        let sheet = ContentMetadata { len: len as u64, has_error: false };
        let verdict = policy.output().check_content(&request, sheet, &content, mode).verdict;
        (verdict.decision, verdict.rule_id)
    };
    let allowed = (OutputDecision::Allow, "default".to_owned());
    for mode in [FailMode::Open, FailMode::Closed] {
        assert_eq!(looked(SCAN_LEN_MAX, mode), allowed, "all of it was read");
        assert_eq!(looked(10_485_761, mode), (OutputDecision::Deny, "huge".to_owned()));
    }
    assert_eq!(looked(SCAN_LEN_MAX + 1, FailMode::Open), allowed);
    assert_eq!(looked(SCAN_LEN_MAX + 1, FailMode::Closed), (OutputDecision::Quarantine, "leak".to_owned()));
}

/// The reference refuses conditions by looking for pieces of words.
#[test]
fn fault_8_4_10_ordinary_words_are_no_danger_in_a_condition() {
    for word in ["required", "important", "execution", "runtime", "a } in braces"] {
        let policy = policy(json!({
            "rules": [{"id": "r", "when": format!("job.labels.kind == '{word}'"), "decision": "allow"}],
        }));
        let mut request = Request::plain("j", "job.a");
        assert_eq!(policy.evaluate(&request).decision, Decision::Deny);
        request.labels.insert("kind".to_owned(), word.to_owned());
        assert_eq!(policy.evaluate(&request).decision, Decision::Allow, "{word}");
    }
}
