//! Bodies: JSON that says where it went wrong, and a limit that is enforced before reading.

use crate::surface::Surface;
use crate::{ApiError, BODY_LEN_MAX};
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, Request};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use serde::de::DeserializeOwned;

/// A JSON body.
pub struct Body<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let bytes = Bytes::from_request(request, state).await.map_err(|rejection| refused(&rejection))?;
        serde_json::from_slice(&bytes).map(Self).map_err(|_| explained::<T>(&bytes))
    }
}

/// A JSON body that may be left out.
pub struct OptionalBody<T>(pub T);

impl<T: DeserializeOwned + Default, S: Send + Sync> FromRequest<S> for OptionalBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let bytes = Bytes::from_request(request, state).await.map_err(|rejection| refused(&rejection))?;
        if bytes.is_empty() {
            return Ok(Self(T::default()));
        }
        serde_json::from_slice(&bytes).map(Self).map_err(|_| explained::<T>(&bytes))
    }
}

/// Reads once more, slowly, to name the field.
fn explained<T: DeserializeOwned>(bytes: &[u8]) -> ApiError {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    match serde_path_to_error::deserialize::<_, T>(&mut json) {
        Err(error) if error.path().iter().next().is_some() && error.inner().is_data() => {
            ApiError::field(&error.path().to_string(), error.inner())
        }
        Err(error) => {
            ApiError::bad_request(format!("the body is not the JSON that is expected: {}", error.inner()))
        }
        Ok(_) => ApiError::bad_request("something follows the JSON in the body"),
    }
}

/// Reads a part of a body that was taken as it was written.
pub fn read_part<T: DeserializeOwned>(field: &str, text: &str) -> Result<T, ApiError> {
    let mut json = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        let place = if path == "." { field.to_owned() } else { format!("{field}.{path}") };
        ApiError::field(&place, error.inner())
    })
}

fn refused(rejection: &BytesRejection) -> ApiError {
    if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
        too_long()
    } else {
        ApiError::bad_request(rejection.body_text())
    }
}

fn too_long() -> ApiError {
    ApiError::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "body_too_large",
        format!("the body is larger than {BODY_LEN_MAX} bytes"),
    )
}

/// A body that announces too much is refused before a byte of it is read.
pub async fn refuse_long_bodies(request: Request, next: Next) -> Response {
    let announced = request.headers().get(header::CONTENT_LENGTH);
    let announced = announced.and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|len| len > BODY_LEN_MAX as u64) {
        Surface::of(request.uri().path()).says(too_long())
    } else {
        next.run(request).await
    }
}
