//! What a caller is told when something is wrong: `{error, code, status}`, with a stable code.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use reveille_core::approval::Conflict;
use reveille_core::id::BadId;
use reveille_core::job::Refusal;
use reveille_core::policy::ExpensiveRule;
use reveille_core::quota::OverQuota;
use reveille_core::request::BadRequest;
use reveille_engine::{
    CheckpointError, DriveError, HeldReadError, KeyError, ReplayError, RetryError, RotateError, SubmitError,
    SubscribeError, TooManyQuestions,
};
use reveille_kernel::NoAnswer;
use reveille_roster::RosterError;
use reveille_store::StoreError;
use serde_json::{Map, Value};

/// Seconds after which a refused caller should try again.
const RETRY_AFTER_SECONDS: u64 = 30;

#[derive(Debug)]
pub struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
    more: Map<String, Value>,
    retry_after_seconds: u64,
}

impl ApiError {
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            more: Map::new(),
            retry_after_seconds: RETRY_AFTER_SECONDS,
        }
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", message)
    }

    /// A field of the request, and what is wrong with it.
    pub fn field(field: &str, problem: impl std::fmt::Display) -> Self {
        Self::bad_request(format!("{field}: {problem}")).with("field", field)
    }

    pub fn not_found(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", format!("there is no such {what}"))
    }

    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// What was wrong, for a person.
    pub fn message(&self) -> &str {
        &self.message
    }

    pub fn retry_after_seconds(&self) -> u64 {
        self.retry_after_seconds
    }

    /// When a caller that was turned away should try again, if that is known better than usual.
    pub fn retry_after(self, seconds: u64) -> Self {
        Self { retry_after_seconds: seconds, ..self }
    }

    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.more.insert(key.to_owned(), value.into());
        self
    }
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}: {}", self.code, self.message)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut body = self.more;
        body.insert("error".to_owned(), self.message.into());
        body.insert("code".to_owned(), self.code.into());
        body.insert("status".to_owned(), self.status.as_u16().into());
        let mut response = (self.status, axum::Json(Value::Object(body))).into_response();
        if matches!(self.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(self.retry_after_seconds));
        }
        response
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        tracing::warn!(%error, "a request failed");
        match error {
            StoreError::Full(what) => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "store_full",
                format!("{what}; nothing was stored"),
            ),
            StoreError::Unavailable(_) => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "store_unavailable",
                "the store is not available: nobody can say whether this was stored; ask again, with the same idempotency key",
            ),
            StoreError::Refused(_) => Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "store_refused",
                "the store refused the change; nothing was stored",
            ),
            StoreError::Corrupt(_) => Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "store_corrupt",
                "the store holds something unreadable",
            ),
        }
    }
}

impl From<HeldReadError> for ApiError {
    fn from(error: HeldReadError) -> Self {
        match error {
            HeldReadError::Unrecorded(unrecorded) => {
                tracing::warn!(error = %unrecorded, "what is held back was not shown");
                let words = "who reads this is recorded first, and the audit trail cannot be written now; nothing was shown";
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "audit_unavailable", words)
            }
            HeldReadError::Store(error) => error.into(),
        }
    }
}

impl From<CheckpointError> for ApiError {
    fn from(error: CheckpointError) -> Self {
        match &error {
            CheckpointError::Broken { tenant, seq } => {
                let broken = Self::new(StatusCode::CONFLICT, "chain_broken", error.to_string());
                broken.with("tenant", tenant.as_str()).with("seq", *seq)
            }
            CheckpointError::Store(error) => error.clone().into(),
        }
    }
}

impl From<BadRequest> for ApiError {
    fn from(bad: BadRequest) -> Self {
        Self::field(bad.field, bad.problem)
    }
}

impl From<TooManyQuestions> for ApiError {
    fn from(busy: TooManyQuestions) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_questions", busy.to_string()).retry_after(1)
    }
}

impl From<OverQuota> for ApiError {
    fn from(over: OverQuota) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "quota_exceeded", over.to_string())
            .with("quota", over.quota.as_str())
            .with("max", over.max)
    }
}

impl From<SubscribeError> for ApiError {
    fn from(error: SubscribeError) -> Self {
        match error {
            SubscribeError::Tenant(over) => over.into(),
            SubscribeError::Server => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_streams", error.to_string())
            }
        }
    }
}

impl From<ReplayError> for ApiError {
    fn from(error: ReplayError) -> Self {
        let message = error.to_string();
        match error {
            ReplayError::BadPolicy(problem) => Self::field("policy", problem),
            ReplayError::TooExpensive(ExpensiveRule { rule, .. }) => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "too_expensive", message).with("rule", rule)
            }
            ReplayError::Busy(busy) => busy.into(),
            ReplayError::Store(error) => error.into(),
        }
    }
}

impl From<BadId> for ApiError {
    fn from(bad: BadId) -> Self {
        Self::bad_request(bad.to_string())
    }
}

impl From<SubmitError> for ApiError {
    fn from(error: SubmitError) -> Self {
        let message = error.to_string();
        match error {
            SubmitError::Bad(bad) => bad.into(),
            SubmitError::UnknownTopic(_) => {
                Self::new(StatusCode::BAD_REQUEST, "unknown_topic", format!("topic: {message}"))
                    .with("field", "topic")
            }
            SubmitError::TooMany(_) => Self::new(StatusCode::TOO_MANY_REQUESTS, "BACKPRESSURE", message),
            SubmitError::QueueFull { tenant, live, max } => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, "queue_full", message)
                    .with("tenant", tenant.as_str())
                    .with("live", live)
                    .with("max", max)
            }
            SubmitError::TooManyKinds(tenant) => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_kinds", message)
                    .with("tenant", tenant.as_str())
            }
            SubmitError::QuotaExceeded => Self::new(StatusCode::SERVICE_UNAVAILABLE, "no_room", message),
            SubmitError::OverQuota(over) => over.into(),
            SubmitError::Seen => Self::new(StatusCode::CONFLICT, "seen", message),
            SubmitError::Draining => Self::new(StatusCode::SERVICE_UNAVAILABLE, "draining", message),
            SubmitError::Store(error) => error.into(),
        }
    }
}

impl From<DriveError> for ApiError {
    fn from(error: DriveError) -> Self {
        match error {
            DriveError::Unknown => Self::not_found("job"),
            DriveError::Refused(Refusal::Approval(conflict)) => {
                Self::new(approval_status(conflict), conflict.code(), conflict.to_string())
            }
            DriveError::Refused(refusal) => Self::new(StatusCode::CONFLICT, "conflict", refusal.to_string()),
            DriveError::Unjudged(problem) => NoAnswer::Down(problem).into(),
            DriveError::QuotaExceeded | DriveError::Seen | DriveError::Busy => {
                Self::new(StatusCode::CONFLICT, "conflict", error.to_string())
            }
            DriveError::Store(error) => error.into(),
        }
    }
}

impl From<NoAnswer> for ApiError {
    fn from(problem: NoAnswer) -> Self {
        let message = format!("policy cannot be asked now: {problem}; nothing was changed");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "safety_unavailable", message)
    }
}

/// What an answer that does not count is told: a conflict is a 409, whatever else went on.
pub fn approval_status(conflict: Conflict) -> StatusCode {
    match conflict {
        Conflict::OwnJob => StatusCode::FORBIDDEN,
        Conflict::AlreadyResolved
        | Conflict::StaleSnapshot
        | Conflict::StaleRequest
        | Conflict::NotActionable => StatusCode::CONFLICT,
    }
}

impl From<RetryError> for ApiError {
    fn from(error: RetryError) -> Self {
        let message = error.to_string();
        match error {
            RetryError::JobGone => Self::not_found("job"),
            RetryError::InputGone => Self::new(StatusCode::GONE, "input_expired", message),
            RetryError::NotOffered(_) => Self::field("remediation_id", message),
            RetryError::NotStopped(_) => Self::new(StatusCode::CONFLICT, "not_remediable", message),
            RetryError::KeyTaken(_) => Self::new(StatusCode::CONFLICT, "conflict", message),
            RetryError::Throttled(verdict) => Self::new(StatusCode::TOO_MANY_REQUESTS, "throttled", message)
                .with("rule_id", verdict.rule_id),
            RetryError::Submit(error) => error.into(),
            RetryError::Store(error) => error.into(),
        }
    }
}

impl From<KeyError> for ApiError {
    fn from(error: KeyError) -> Self {
        match error {
            KeyError::TooMany => Self::new(StatusCode::CONFLICT, "too_many_keys", error.to_string()),
            KeyError::Registered(_) => Self::new(StatusCode::CONFLICT, "key_registered", error.to_string()),
            KeyError::Unwritable(_) => Self::field("publicKey", error),
            KeyError::Roster(error) => error.into(),
        }
    }
}

impl From<RotateError> for ApiError {
    fn from(error: RotateError) -> Self {
        let message = error.to_string();
        match error {
            RotateError::Unknown => Self::not_found("key"),
            RotateError::Ended => Self::new(StatusCode::CONFLICT, "key_ended", message),
            RotateError::Replaced(next) => {
                Self::new(StatusCode::CONFLICT, "key_replaced", message).with("replaced_by", next.as_str())
            }
            RotateError::FromEnvironment => Self::new(StatusCode::CONFLICT, "key_from_environment", message),
            RotateError::PublicKeyNeeded | RotateError::NoPublicKey => {
                Self::new(StatusCode::CONFLICT, "other_kind_of_key", message)
            }
            RotateError::Overlap => Self::field("overlapSec", message),
            RotateError::Key(error) => error.into(),
        }
    }
}

impl From<RosterError> for ApiError {
    fn from(error: RosterError) -> Self {
        match error {
            RosterError::Full(what) => StoreError::Full(what).into(),
            RosterError::Unavailable(words) => StoreError::Unavailable(words).into(),
            RosterError::Refused(words) => StoreError::Refused(words).into(),
            RosterError::Corrupt(words) => StoreError::Corrupt(words).into(),
            RosterError::Newer { .. } => StoreError::Corrupt(error.to_string()).into(),
        }
    }
}

pub async fn no_such_path() -> ApiError {
    ApiError::new(
        StatusCode::NOT_FOUND,
        "no_such_path",
        "there is nothing here; /api/v1/openapi.json lists what there is",
    )
}

pub async fn no_such_method() -> ApiError {
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "this path does not take that method")
}
