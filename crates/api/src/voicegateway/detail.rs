//! What VoiceGateway's clients are told when something is wrong: `{"detail": …}`, with the field if there
//! is one to name.

use crate::ApiError;
use crate::error::approval_status;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use reveille_core::fleet::NoRoom;
use reveille_core::job::Refusal;
use reveille_core::presence::agent::BadBeat;
use reveille_core::quota::OverQuota;
use reveille_engine::{BeatError, DriveError, KeyError, SubscribeError};
use reveille_roster::RosterError;
use reveille_store::StoreError;
use serde::Serialize;
use utoipa::ToSchema;

/// Seconds after which a refused caller should try again.
const RETRY_AFTER_SECONDS: u64 = 30;

/// What VoiceGateway's and the console's callers are told when something is wrong.
#[derive(Debug, Serialize, ToSchema)]
pub struct Detail {
    #[serde(skip)]
    status: StatusCode,
    detail: String,
    /// The field of the body that it is about, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    /// The tenant's quota that refuses it, if one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    quota: Option<&'static str>,
    #[serde(skip)]
    retry_after_seconds: u64,
}

impl Detail {
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let retry_after_seconds = RETRY_AFTER_SECONDS;
        Self { status, detail: detail.into(), field: None, quota: None, retry_after_seconds }
    }

    pub fn bad_request(detail: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// A field of the body, and what is wrong with it.
    pub fn field(field: &str, problem: impl std::fmt::Display) -> Self {
        let detail = format!("{field}: {problem}");
        let unprocessable = Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail);
        Self { field: Some(field.to_owned()), ..unprocessable }
    }

    /// When a caller that was turned away should try again, if that is known better than usual.
    pub fn retry_after(self, seconds: u64) -> Self {
        Self { retry_after_seconds: seconds, ..self }
    }

    pub fn not_found(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("There is no such {what}"))
    }

    /// The list could not be written: the server is shutting down.
    pub fn unlistable() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "The list cannot be written now")
    }

    fn unavailable(error: &dyn std::error::Error) -> Self {
        tracing::warn!(%error, "a request failed");
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "The store is not available: nobody can say whether this was stored",
        )
    }
}

impl IntoResponse for Detail {
    fn into_response(self) -> Response {
        let (status, seconds) = (self.status, self.retry_after_seconds);
        let mut response = (status, axum::Json(self)).into_response();
        let headers = response.headers_mut();
        if matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<ApiError> for Detail {
    fn from(error: ApiError) -> Self {
        Self::new(error.status(), error.message()).retry_after(error.retry_after_seconds())
    }
}

impl From<BeatError> for Detail {
    fn from(error: BeatError) -> Self {
        match error {
            BeatError::Bad(BadBeat { field, problem }) => Self::field(field, problem),
            BeatError::NoRoom(NoRoom::Fleet) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "The fleet is full")
            }
            BeatError::NoRoom(NoRoom::Tenant(over)) => over.into(),
        }
    }
}

impl From<OverQuota> for Detail {
    fn from(over: OverQuota) -> Self {
        let detail = Self::new(StatusCode::TOO_MANY_REQUESTS, over.to_string());
        Self { quota: Some(over.quota.as_str()), ..detail }
    }
}

impl From<SubscribeError> for Detail {
    fn from(error: SubscribeError) -> Self {
        match error {
            SubscribeError::Tenant(over) => over.into(),
            SubscribeError::Server => Self::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
        }
    }
}

impl From<StoreError> for Detail {
    fn from(error: StoreError) -> Self {
        Self::unavailable(&error)
    }
}

impl From<RosterError> for Detail {
    fn from(error: RosterError) -> Self {
        Self::unavailable(&error)
    }
}

impl From<KeyError> for Detail {
    fn from(error: KeyError) -> Self {
        match error {
            KeyError::TooMany | KeyError::Registered(_) | KeyError::Unwritable(_) => {
                Self::new(StatusCode::CONFLICT, error.to_string())
            }
            KeyError::Roster(error) => error.into(),
        }
    }
}

impl From<DriveError> for Detail {
    fn from(error: DriveError) -> Self {
        match error {
            DriveError::Unknown => Self::not_found("intervention"),
            DriveError::Refused(Refusal::Approval(conflict)) => {
                Self::new(approval_status(conflict), conflict.to_string())
            }
            DriveError::Refused(refusal) => Self::new(StatusCode::CONFLICT, refusal.to_string()),
            DriveError::Unjudged(problem) => Self::new(StatusCode::SERVICE_UNAVAILABLE, problem),
            DriveError::QuotaExceeded | DriveError::Seen | DriveError::Busy => {
                Self::new(StatusCode::CONFLICT, error.to_string())
            }
            DriveError::Store(error) => error.into(),
        }
    }
}
