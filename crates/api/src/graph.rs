//! The picture of a workflow: numbers for whoever draws it, or an SVG for whoever asks for one.

use crate::ApiError;
use crate::auth::Auth;
use crate::convert;
use crate::workflows::tenant;
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use reveille_api_types::graph::GraphDetail;
use reveille_api_types::workflow::VersionQuery;
use reveille_core::id::WorkflowId;
use reveille_diagram::{Layout, draw_svg};
use reveille_engine::Engine;
use reveille_roster::Scope;

const SVG: &str = "image/svg+xml";

/// Draws a workflow: numbers, or an SVG for whoever asks for one.
#[utoipa::path(get, operation_id = "graph", path = "/api/v1/workflows/{id}/graph", tag = "workflows", params(("id" = String, Path), VersionQuery), responses(
    (status = 200, description = "Where its steps stand and what lies between them; with `Accept: image/svg+xml` a picture",
     content((GraphDetail = "application/json"), (String = "image/svg+xml"))),
    (status = 404, description = "No such workflow")))]
pub async fn get(
    State(engine): State<Engine>,
    auth: Auth,
    Path(id): Path<String>,
    Query(query): Query<VersionQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    auth.needs(Scope::Read)?;
    let tenant = tenant(&auth, query.tenant.as_deref())?;
    let found = match WorkflowId::parse(&id) {
        Ok(id) => engine.workflows().flow(&tenant, &id, query.version).await?,
        Err(_) => None,
    };
    let flow = found.ok_or_else(|| ApiError::not_found("workflow"))?;
    let layout = Layout::of(&flow);
    let vary = (header::VARY, "Accept");
    if !wants_svg(&headers) {
        return Ok(([vary], Json(convert::graph_detail(&flow, &layout))).into_response());
    }
    // Whoever opens it by itself gets a picture and nothing that runs.
    let policy = (header::CONTENT_SECURITY_POLICY, "default-src 'none'; style-src 'unsafe-inline'");
    Ok(([(header::CONTENT_TYPE, SVG), vary, policy], draw_svg(&flow, &layout)).into_response())
}

fn wants_svg(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|accept| accept.to_str().ok());
    let mut kinds = accepted.flat_map(|accept| accept.split(','));
    kinds.any(|kind| kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(SVG))
}
