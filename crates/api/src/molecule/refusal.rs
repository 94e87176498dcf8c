//! What a Molecule client is told when something is wrong: `{"error": …}`, in the reference's words, with
//! our stable code beside it.

use crate::ApiError;
use crate::types::molecule::answer::MovedWorkspace;
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use reveille_a2a::A2aError;
use reveille_engine::{DelegateError, SubscribeError, WorkspaceError};
use reveille_roster::RosterError;
use serde_json::{Map, Value};

/// Seconds after which somebody who was turned away may try again.
const RETRY_AFTER_SECONDS: u64 = 10;

pub enum MoleculeRefusal {
    /// A refusal that is the same on every surface.
    Common(ApiError),
    Ours {
        status: StatusCode,
        body: Map<String, Value>,
        retry_after: Option<u64>,
    },
    /// It is elsewhere now.
    Moved {
        location: String,
        body: MovedWorkspace,
    },
}

impl MoleculeRefusal {
    pub fn new(status: StatusCode, code: &str, error: impl Into<String>) -> Self {
        let mut body = Map::new();
        body.insert("error".to_owned(), error.into().into());
        body.insert("code".to_owned(), code.into());
        Self::Ours { status, body, retry_after: None }
    }

    pub fn bad(error: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", error)
    }

    pub fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", "workspace not found")
    }

    pub fn token_missing() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "missing workspace auth token")
    }

    pub fn token_wrong() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "invalid workspace auth token")
    }

    pub fn forbidden(error: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", error)
    }

    /// It may work later.
    pub fn unavailable(error: impl Into<String>) -> Self {
        let refused = Self::new(StatusCode::SERVICE_UNAVAILABLE, "workspace_unavailable", error);
        refused.retry_after(RETRY_AFTER_SECONDS)
    }

    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        if let Self::Ours { body, .. } = &mut self {
            body.insert(key.to_owned(), value.into());
        }
        self
    }

    pub fn retry_after(mut self, seconds: u64) -> Self {
        if let Self::Ours { retry_after, .. } = &mut self {
            *retry_after = Some(seconds);
        }
        self
    }
}

impl IntoResponse for MoleculeRefusal {
    fn into_response(self) -> Response {
        match self {
            Self::Common(error) => error.into_response(),
            Self::Ours { status, body, retry_after } => {
                let mut response = (status, Json(Value::Object(body))).into_response();
                if let Some(seconds) = retry_after {
                    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
                }
                response
            }
            Self::Moved { location, body } => {
                (StatusCode::MOVED_PERMANENTLY, [(header::LOCATION, location)], Json(body)).into_response()
            }
        }
    }
}

impl From<ApiError> for MoleculeRefusal {
    fn from(error: ApiError) -> Self {
        Self::Common(error)
    }
}

impl From<RosterError> for MoleculeRefusal {
    fn from(error: RosterError) -> Self {
        Self::Common(error.into())
    }
}

impl From<WorkspaceError> for MoleculeRefusal {
    fn from(error: WorkspaceError) -> Self {
        let words = error.to_string();
        match error {
            WorkspaceError::NotFound => Self::not_found(),
            WorkspaceError::Removed => Self::new(StatusCode::GONE, "gone", words).with("status", "removed"),
            WorkspaceError::TokenMissing => Self::token_missing(),
            WorkspaceError::TokenWrong => Self::token_wrong(),
            WorkspaceError::NotKin => Self::forbidden(words),
            WorkspaceError::Bad { field, .. } => Self::bad(words).with("field", field),
            WorkspaceError::BadUrl(A2aError::Unreachable(_)) => {
                Self::bad("invalid request body").with("field", "url").with("detail", words)
            }
            WorkspaceError::BadUrl(_) => Self::bad("invalid request body")
                .with("field", "url")
                .with("detail", "url: messages may not be sent there"),
            WorkspaceError::TooMany => Self::new(StatusCode::CONFLICT, "too_many_workspaces", words),
            WorkspaceError::OverQuota(over) => Self::Common(over.into()),
            WorkspaceError::Roster(error) => error.into(),
        }
    }
}

impl From<SubscribeError> for MoleculeRefusal {
    fn from(error: SubscribeError) -> Self {
        Self::Common(error.into())
    }
}

impl From<DelegateError> for MoleculeRefusal {
    fn from(error: DelegateError) -> Self {
        let words = error.to_string();
        match error {
            DelegateError::Workspace(error) => error.into(),
            DelegateError::Submit(error) => Self::Common(error.into()),
            DelegateError::Oneself | DelegateError::BadTask(_) => Self::bad(words),
            DelegateError::Throttled => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, "throttled", words).retry_after(RETRY_AFTER_SECONDS)
            }
            DelegateError::NotFound => Self::new(StatusCode::NOT_FOUND, "not_found", words),
            DelegateError::Refused(_) => Self::new(StatusCode::CONFLICT, "conflict", words),
            DelegateError::Roster(error) => error.into(),
        }
    }
}
