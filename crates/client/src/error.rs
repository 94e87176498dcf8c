//! What can go wrong, in words that can be shown as they are.
//!
//! Nothing here keeps the request: it has the key in it.

use serde_json::Value;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The address is none that this client can ask.
    #[error("{0:?} must start with http:// or https://")]
    Url(String),
    /// A certificate or a key cannot be used.
    #[error("{0}")]
    Tls(String),
    /// Nobody can say whether it was done: no answer came.
    #[error("{url} does not answer ({reason}); is `reveille serve` running?")]
    Unreachable { url: String, reason: String },
    /// The server says no. `code` is its own word for why and stays the same between versions; `message` is for
    /// people. Policy's no has the code `safety_denied`, and `job_id` is the job that was kept with the decision.
    #[error("{message}{} [{status} {code}]", of_job(.job_id.as_deref()))]
    Refused { status: u16, code: String, message: String, job_id: Option<String> },
    /// Somebody else answered, or another version, or more than is read.
    #[error("reading the answer: {0}")]
    Unreadable(String),
    /// It was not over when the time to wait was. Nothing has happened to it.
    #[error("it is not over after {} s", .0.as_secs())]
    WaitTimeout(Duration),
}

impl Error {
    /// What an answer with this status stands for. VoiceGateway's paths say `detail`, all others `error` and `code`;
    /// a proxy may say anything.
    pub(crate) fn refused(status: u16, answer: &str) -> Self {
        let said: Value = serde_json::from_str(answer).unwrap_or_default();
        let text = |field: &str| said[field].as_str().map(str::to_owned);
        Self::Refused {
            status,
            code: text("code").unwrap_or_else(|| "-".to_owned()),
            message: text("error").or_else(|| text("detail")).unwrap_or_else(|| "no reason given".to_owned()),
            job_id: text("job_id"),
        }
    }
}

fn of_job(id: Option<&str>) -> String {
    id.map_or(String::new(), |id| format!(" (job {id})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(status: u16, answer: &str, words: &str) {
        assert_eq!(Error::refused(status, answer).to_string(), words);
    }

    #[test]
    fn a_refusal_is_told_in_the_servers_words() {
        check(
            404,
            r#"{"error":"there is no such job","code":"not_found","status":404}"#,
            "there is no such job [404 not_found]",
        );
        check(
            403,
            r#"{"error":"hands off","code":"safety_denied","job_id":"j-1"}"#,
            "hands off (job j-1) [403 safety_denied]",
        );
        check(422, r#"{"detail":"agent_id is missing"}"#, "agent_id is missing [422 -]");
        check(502, "<html>Bad Gateway</html>", "no reason given [502 -]");
        check(500, "", "no reason given [500 -]");
    }
}
