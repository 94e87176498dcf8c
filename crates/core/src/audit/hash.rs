//! The hash of an entry, and the bytes it is taken over.
//!
//! Each field is written as a netstring: its length in decimal, a colon, its bytes in UTF-8, a comma.
//! So no field can run into the next, and any language can do it in three lines. The order is fixed:
//! the name of this format, `prev_hash`, `seq`, `tenant_id`, `at` (milliseconds), `event_type`,
//! `severity`, `action`, `identity`, `job_id`, `decision`, `matched_rule`, `reason`, `policy_version`, and
//! then each key of `extra` with its value, in the order of the keys. What is not there is empty.

use super::Draft;
use sha2::{Digest, Sha256};
use std::fmt;

/// Changes whenever the bytes below do.
const FORMAT: &str = "reveille.audit.1";
/// Most entries are shorter.
const LEN_USUAL: usize = 512;

/// SHA-256; in writing, 64 lower-case hexadecimal digits. All zeros come before the first entry.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    pub(super) fn of(prev_hash: &Self, seq: u64, draft: &Draft) -> Self {
        Self(Sha256::digest(encode(prev_hash, seq, draft)).into())
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.digits()).unwrap_or_default())
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Hash {
    /// What [`Display`](fmt::Display) writes; capital digits are read as well.
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        if text.len() != 2 * bytes.len() || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
        }
        Some(Self(bytes))
    }

    fn digits(&self) -> [u8; 64] {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut digits = [0; 64];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.0) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        digits
    }
}

fn encode(prev_hash: &Hash, seq: u64, draft: &Draft) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(LEN_USUAL);
    put(&mut bytes, FORMAT.as_bytes());
    put(&mut bytes, &prev_hash.digits());
    let (seq, at) = (seq.to_string(), draft.at.0.to_string());
    let fields = [
        seq.as_str(),
        draft.tenant.as_str(),
        &at,
        draft.event_type.as_str(),
        draft.severity.as_str(),
        &draft.action,
        &draft.identity,
        draft.job_id.as_ref().map_or("", |id| id.as_str()),
        draft.decision.map_or("", |decision| decision.as_str()),
        &draft.matched_rule,
        &draft.reason,
        &draft.policy_version,
    ];
    let extra = draft.extra.iter().flat_map(|(key, value)| [key.as_str(), value.as_str()]);
    for field in fields.into_iter().chain(extra) {
        put(&mut bytes, field.as_bytes());
    }
    bytes
}

fn put(bytes: &mut Vec<u8>, field: &[u8]) {
    bytes.extend_from_slice(field.len().to_string().as_bytes());
    bytes.push(b':');
    bytes.extend_from_slice(field);
    bytes.push(b',');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::{EventType, Severity};
    use crate::id::{JobId, TenantId};
    use crate::policy::Decision;
    use crate::time::Millis;

    fn draft() -> Draft {
        Draft {
            severity: Severity::High,
            identity: "ann".to_owned(),
            job_id: Some(JobId::known("j")),
            decision: Some(Decision::Deny),
            matched_rule: "no-prod".to_owned(),
            reason: "größer".to_owned(),
            policy_version: "7:ab".to_owned(),
            extra: [("topic".to_owned(), "job.a".to_owned())].into(),
            ..Draft::new(TenantId::known("acme"), Millis(5), EventType::Decision, "deny")
        }
    }

    /// Chains are kept for months: a change of these bytes breaks every one of them.
    #[test]
    fn the_bytes_under_the_hash_stay_as_they_are() {
        let bytes = String::from_utf8(encode(&Hash::default(), 12, &draft())).unwrap();
        let zeros = "0".repeat(64);
        let rest = "2:12,4:acme,1:5,15:safety.decision,4:HIGH,4:deny,3:ann,1:j,4:DENY,7:no-prod,8:größer,4:7:ab,\
                    5:topic,5:job.a,";
        assert_eq!(bytes, format!("16:reveille.audit.1,64:{zeros},{rest}"));
        // The same bytes, hashed by another program.
        let known = "102d95d93ed5cdbf4f6834d0dea018987eb29279ef6548aebfa73a203f38dbe2";
        assert_eq!(Hash::of(&Hash::default(), 12, &draft()).to_string(), known);
    }

    #[test]
    fn every_field_counts() {
        let changes: [fn(&mut Draft); 12] = [
            |draft| draft.tenant = TenantId::known("acme2"),
            |draft| draft.at = Millis(6),
            |draft| draft.event_type = EventType::Violation,
            |draft| draft.severity = Severity::Low,
            |draft| draft.action.push('x'),
            |draft| draft.identity.clear(),
            |draft| draft.job_id = None,
            |draft| draft.decision = None,
            |draft| draft.matched_rule.push('x'),
            |draft| draft.reason.push('x'),
            |draft| draft.policy_version.push('x'),
            |draft| drop(draft.extra.insert("topic".to_owned(), "job.b".to_owned())),
        ];
        let plain = Hash::of(&Hash::default(), 1, &draft());
        assert_ne!(Hash::of(&Hash([1; 32]), 1, &draft()), plain);
        assert_ne!(Hash::of(&Hash::default(), 2, &draft()), plain);
        for (number, change) in changes.iter().enumerate() {
            let mut other = draft();
            change(&mut other);
            assert_ne!(Hash::of(&Hash::default(), 1, &other), plain, "change {number}");
        }
    }

    #[test]
    fn no_field_runs_into_the_next() {
        let mut moved = draft();
        moved.matched_rule = "no-prodg".to_owned();
        moved.reason = "rößer".to_owned();
        assert_ne!(Hash::of(&Hash::default(), 1, &moved), Hash::of(&Hash::default(), 1, &draft()));
    }
}
