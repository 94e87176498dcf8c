//! How a handler says that it did not succeed.

use std::fmt;

use reveille_wire::cap::{ErrorCode, JobStatus};

/// The longest message that goes into a result; the rest is cut.
const MESSAGE_LEN_MAX: usize = 4096;

/// A job that did not succeed, and whether another try may help.
///
/// `?` turns any error into [`Failure::failed`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    kind: FailureKind,
    message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FailureKind {
    Failed,
    Retryable,
    Fatal,
    Cancelled,
    TimedOut,
}

impl Failure {
    /// The job failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Failed, message)
    }

    /// The job failed for a reason that may pass: try it again.
    pub fn retryable(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Retryable, message)
    }

    /// The job failed so that what was done before it must be undone.
    pub fn fatal(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Fatal, message)
    }

    pub(crate) fn cancelled() -> Self {
        Self::new(FailureKind::Cancelled, "cancelled")
    }

    pub(crate) fn timed_out() -> Self {
        Self::new(FailureKind::TimedOut, "the deadline has passed")
    }

    fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        let mut message = message.into();
        message.truncate(message.floor_char_boundary(MESSAGE_LEN_MAX));
        Self { kind, message }
    }

    /// What the failure is for, in words.
    pub fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn into_message(self) -> String {
        self.message
    }

    pub(crate) fn status(&self) -> JobStatus {
        match self.kind {
            FailureKind::Failed => JobStatus::Failed,
            FailureKind::Retryable => JobStatus::FailedRetryable,
            FailureKind::Fatal => JobStatus::FailedFatal,
            FailureKind::Cancelled => JobStatus::Cancelled,
            FailureKind::TimedOut => JobStatus::Timeout,
        }
    }

    pub(crate) fn error_code(&self) -> ErrorCode {
        match self.kind {
            FailureKind::TimedOut => ErrorCode::JobTimeout,
            _ => ErrorCode::Unspecified,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

// This is why `Failure` is no `Error` itself: the two would overlap.
impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::failed(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_status() {
        assert_eq!(Failure::failed("x").status(), JobStatus::Failed);
        assert_eq!(Failure::retryable("x").status(), JobStatus::FailedRetryable);
        assert_eq!(Failure::fatal("x").status(), JobStatus::FailedFatal);
        assert_eq!(Failure::cancelled().status(), JobStatus::Cancelled);
        assert_eq!(Failure::timed_out().status(), JobStatus::Timeout);
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let failure = Failure::failed(format!("x{}", "é".repeat(MESSAGE_LEN_MAX)));
        assert_eq!(failure.message().len(), MESSAGE_LEN_MAX - 1);
    }

    #[test]
    fn any_error_becomes_a_failure() {
        let parsed: Result<u8, Failure> = "x".parse::<u8>().map_err(Failure::from);
        assert_eq!(parsed, Err(Failure::failed("invalid digit found in string")));
    }
}
