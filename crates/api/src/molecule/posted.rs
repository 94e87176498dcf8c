//! What comes in: JSON bodies, and the ids of workspaces, which are UUIDs.

use super::refusal::MoleculeRefusal;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use bytes::Bytes;
use reveille_core::id::WorkspaceId;
use serde::de::DeserializeOwned;

/// A JSON body. What is wrong with one is told in `detail`; the error is the reference's.
pub struct Posted<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Posted<T> {
    type Rejection = MoleculeRefusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, MoleculeRefusal> {
        let bytes = body(request, state).await?;
        parsed(&bytes, "invalid request body").map(Self)
    }
}

/// A JSON body that may be left out.
pub struct MaybePosted<T>(pub T);

impl<T: DeserializeOwned + Default, S: Send + Sync> FromRequest<S> for MaybePosted<T> {
    type Rejection = MoleculeRefusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, MoleculeRefusal> {
        let bytes = body(request, state).await?;
        if bytes.is_empty() {
            return Ok(Self(T::default()));
        }
        parsed(&bytes, "invalid request body").map(Self)
    }
}

async fn body<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, MoleculeRefusal> {
    Bytes::from_request(request, state).await.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            MoleculeRefusal::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", "request body too large")
        }
        _ => MoleculeRefusal::bad("invalid request body").with("detail", rejection.body_text()),
    })
}

pub fn parsed<T: DeserializeOwned>(bytes: &[u8], error: &str) -> Result<T, MoleculeRefusal> {
    serde_json::from_slice(bytes).map_err(|why| MoleculeRefusal::bad(error).with("detail", why.to_string()))
}

/// An id from a path or a body, however it spells its UUID.
pub fn workspace_id(text: &str) -> Result<WorkspaceId, MoleculeRefusal> {
    uuid(text).ok_or_else(|| MoleculeRefusal::bad("invalid workspace ID"))
}

pub fn uuid(text: &str) -> Option<WorkspaceId> {
    let id = uuid::Uuid::try_parse(text).ok()?;
    Some(WorkspaceId::known(id.to_string()))
}
