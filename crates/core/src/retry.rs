//! Retries: the job of a dead letter, submitted again; and a job that policy stopped, submitted as a
//! remediation of that policy has it.

use crate::digest::sha256_hex;
use crate::id::{BadId, ID_LEN_MAX, JobId, Topic};
use crate::job::DeadLetter;
use crate::policy::Remediation;
use crate::request::{Place, Request};

/// Hexadecimal digits that tell the successors of one job apart.
const SUFFIX_LEN: usize = 8;

/// The same request under a new name, with the old job as its parent. It keeps the trace, so that both
/// jobs are in it. Its name follows from the dead letter, so retrying twice is retrying once.
pub fn retry(old: &Request, letter: &DeadLetter) -> Request {
    successor(old, "retry", format!("retry:{}:{}", letter.job_id, letter.created_at.0))
}

/// The request as a remediation has it. Applying the same one twice is applying it once.
pub fn remedy(old: &Request, remediation: &Remediation) -> Result<Request, BadId> {
    let Remediation { id, replacement_topic, replacement_capability, add_labels, remove_labels, .. } =
        remediation;
    let mut request = successor(old, "remedy", format!("remedy:{}:{id}", old.id));
    if !replacement_topic.is_empty() {
        request.topic = Topic::parse(replacement_topic)?;
    }
    if !replacement_capability.is_empty() {
        request.needs.capability.clone_from(replacement_capability);
    }
    request.labels.retain(|name, _| !remove_labels.contains(name));
    request.labels.extend(add_labels.clone());
    Ok(request)
}

fn successor(old: &Request, word: &str, key: String) -> Request {
    let suffix = &sha256_hex(key.as_bytes())[..SUFFIX_LEN];
    let room = ID_LEN_MAX - word.len() - 2 - SUFFIX_LEN;
    let id = JobId::known(format!("{}-{word}-{suffix}", shortened(old.id.as_str(), room)));
    let place = Place { parent_job_id: old.id.to_string(), ..old.place.clone() };
    Request { id, place, idempotency_key: Some(key), ..old.clone() }
}

/// At most so many bytes, whole characters only.
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
    fn a_remedy_changes_what_it_says_and_nothing_else() {
        let mut old = Request::plain("j", "job.deploy");
        old.labels = [("env", "prod"), ("force", "1"), ("size", "s")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        let remediation = Remediation {
            id: "stage".to_owned(),
            replacement_topic: "job.stage".to_owned(),
            replacement_capability: "stage".to_owned(),
            add_labels: [("env".to_owned(), "staging".to_owned())].into(),
            remove_labels: vec!["force".to_owned()],
            ..Remediation::default()
        };
        let new = remedy(&old, &remediation).unwrap();
        assert_eq!((new.topic.as_str(), new.needs.capability.as_str()), ("job.stage", "stage"));
        let labels: Vec<_> = new.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(labels, ["env=staging", "size=s"]);
        assert!(new.id.as_str().starts_with("j-remedy-") && new.place.parent_job_id == "j");
        assert_eq!(new, remedy(&old, &remediation).unwrap());
        let unlike = Request {
            id: old.id.clone(),
            topic: old.topic.clone(),
            labels: old.labels.clone(),
            needs: old.needs.clone(),
            place: old.place.clone(),
            idempotency_key: None,
            ..new
        };
        assert_eq!(unlike, old);
        let nowhere = Remediation { replacement_topic: "two words".to_owned(), ..remediation };
        assert!(remedy(&old, &nowhere).is_err());
    }

    #[test]
    fn a_long_name_stays_a_name() {
        let old = Request::plain(&"ä".repeat(ID_LEN_MAX / 2), "job.echo");
        let again = retry(&old, &letter(&old));
        assert!(JobId::parse(again.id.as_str()).is_ok(), "{}", again.id);
    }
}
