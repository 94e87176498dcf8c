//! Trying again: the job of a dead letter, asked for anew.

use crate::digest::sha256_hex;
use crate::id::{ID_LEN_MAX, JobId};
use crate::job::DeadLetter;
use crate::request::{Place, Request};

/// Hexadecimal digits that tell the retries of one job apart.
const MARK_LEN: usize = 8;

/// The same request under a new name, with the old job as its parent. It keeps the trace, so that both
/// are one story. Its name follows from the letter, so asking twice is asking once.
pub fn retry(old: &Request, letter: &DeadLetter) -> Request {
    let key = format!("retry:{}:{}", letter.job_id, letter.created_at.0);
    let mark = &sha256_hex(key.as_bytes())[..MARK_LEN];
    let room = ID_LEN_MAX - "-retry-".len() - MARK_LEN;
    let id = JobId::known(format!("{}-retry-{mark}", shortened(old.id.as_str(), room)));
    let place = Place { parent_job_id: old.id.to_string(), ..old.place.clone() };
    Request { id, place, idempotency_key: Some(key), ..old.clone() }
}

/// At most so many bytes, whole letters only.
fn shortened(text: &str, len_max: usize) -> &str {
    let len = (0..=len_max.min(text.len())).rev().find(|len| text.is_char_boundary(*len));
    &text[..len.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::State;
    use crate::time::Millis;

    fn letter(request: &Request) -> DeadLetter {
        DeadLetter {
            job_id: request.id.clone(),
            tenant: request.tenant.clone(),
            topic: request.topic.clone(),
            status: State::Failed,
            reason: String::new(),
            reason_code: None,
            last_state: State::Running,
            attempts: 1,
            created_at: Millis(7),
        }
    }

    #[test]
    fn a_retry_is_named_after_the_old_job_and_asked_for_once() {
        let old = Request::plain("j", "job.echo");
        let again = retry(&old, &letter(&old));
        let mark = again.id.as_str().strip_prefix("j-retry-").unwrap();
        assert!(mark.len() == 8 && mark.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_eq!(again, retry(&old, &letter(&old)));
        assert_eq!(again.place.parent_job_id, "j");
        let later = DeadLetter { created_at: Millis(8), ..letter(&old) };
        assert_ne!(again.id, retry(&old, &later).id, "an id that was given out anew is another job");
    }

    #[test]
    fn a_long_name_stays_a_name() {
        let old = Request::plain(&"ä".repeat(ID_LEN_MAX / 2), "job.echo");
        let again = retry(&old, &letter(&old));
        assert!(JobId::parse(again.id.as_str()).is_ok(), "{}", again.id);
    }
}
