//! Workflows: saved, looked at, deleted.

use crate::ApiError;
use crate::auth::Auth;
use crate::body::Body;
use crate::convert;
use crate::convert::text::limit;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::routing::{get as read, post};
use axum::{Json, Router};
use reveille_api_types::workflow::{SavedReply, VersionQuery, WorkflowDetail, WorkflowQuery};
use reveille_core::flow::WorkflowDocument;
use reveille_core::id::{TenantId, WorkflowId};
use reveille_engine::{Engine, SaveError};
use reveille_roster::Scope;

pub fn routes() -> Router<Engine> {
    Router::new()
        .route("/workflows", post(save).get(list))
        .route("/workflows/{id}", read(get).delete(delete))
        .route("/workflows/{id}/graph", read(crate::graph::get))
        .route("/workflows/{id}/dry-run", post(crate::dry_run::dry_run))
        .merge(crate::runs::routes())
}

/// Saves a workflow, as a new version if there is one of that id.
#[utoipa::path(post, path = "/api/v1/workflows", tag = "workflows", request_body = Object, responses(
    (status = 201, body = SavedReply), (status = 400, description = "The step, the field and the reason; nothing is stored"),
    (status = 429, description = "The tenant has as many workflows as it may")))]
pub async fn save(
    State(engine): State<Engine>,
    auth: Auth,
    Body(document): Body<WorkflowDocument>,
) -> Result<(StatusCode, Json<SavedReply>), ApiError> {
    auth.needs(Scope::Operate)?;
    if document.org_id.as_ref().is_some_and(|org| org != auth.tenant.as_str()) {
        return Err(ApiError::forbidden("org_id: it is not this key's tenant"));
    }
    // What the server says of it when it is read is no part of it when it is saved again.
    let document = WorkflowDocument { org_id: None, version: None, created_by: None, ..document };
    let id = document.id.clone();
    let version = engine.workflows().save_workflow(&auth.tenant, document, &**auth.caller()).await?;
    Ok((StatusCode::CREATED, Json(SavedReply { id, version })))
}

/// Lists the tenant's workflows.
#[utoipa::path(get, path = "/api/v1/workflows", tag = "workflows", params(WorkflowQuery), responses((status = 200, body = [WorkflowDetail])))]
pub async fn list(
    State(engine): State<Engine>,
    auth: Auth,
    Query(query): Query<WorkflowQuery>,
) -> Result<Json<Vec<WorkflowDetail>>, ApiError> {
    auth.needs(Scope::Read)?;
    let tenant = tenant(&auth, query.tenant.as_deref())?;
    let after =
        query.after.as_deref().filter(|after| !after.is_empty()).map(WorkflowId::parse).transpose()?;
    let found = engine.workflows().workflows(&tenant, after.as_ref(), limit(query.limit.as_deref())?).await?;
    Ok(Json(found.iter().map(|saved| convert::workflow_detail(saved)).collect()))
}

/// Shows a workflow, its newest version unless told.
#[utoipa::path(get, path = "/api/v1/workflows/{id}", tag = "workflows", params(("id" = String, Path), VersionQuery), responses((status = 200, body = WorkflowDetail), (status = 404, description = "No such workflow")))]
pub async fn get(
    State(engine): State<Engine>,
    auth: Auth,
    Path(id): Path<String>,
    Query(query): Query<VersionQuery>,
) -> Result<Json<WorkflowDetail>, ApiError> {
    auth.needs(Scope::Read)?;
    let tenant = tenant(&auth, query.tenant.as_deref())?;
    let found = match WorkflowId::parse(&id) {
        Ok(id) => engine.workflows().workflow(&tenant, &id, query.version).await?,
        Err(_) => None,
    };
    found.map(|saved| Json(convert::workflow_detail(&saved))).ok_or_else(|| ApiError::not_found("workflow"))
}

/// Deletes a workflow. Runs that began with it go on.
#[utoipa::path(delete, path = "/api/v1/workflows/{id}", tag = "workflows", params(("id" = String, Path)), responses((status = 204, description = "Runs that began with it go on"), (status = 404, description = "No such workflow")))]
pub async fn delete(
    State(engine): State<Engine>,
    auth: Auth,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    auth.needs(Scope::Operate)?;
    let was_there = match WorkflowId::parse(&id) {
        Ok(id) => engine.workflows().delete_workflow(&auth.tenant, &id, &**auth.caller()).await?,
        Err(_) => false,
    };
    if was_there { Ok(StatusCode::NO_CONTENT) } else { Err(ApiError::not_found("workflow")) }
}

/// Whose workflows are meant: the key's own, unless an operator names others.
pub(crate) fn tenant(auth: &Auth, named: Option<&str>) -> Result<TenantId, ApiError> {
    let Some(named) = named else { return Ok(auth.tenant.clone()) };
    let tenant = TenantId::parse(named)?;
    if auth.sees(&tenant) {
        Ok(tenant)
    } else {
        Err(ApiError::forbidden("tenant: it is not this key's tenant"))
    }
}

impl From<SaveError> for ApiError {
    fn from(error: SaveError) -> Self {
        match error {
            SaveError::Bad(problem) => {
                let said = Self::new(StatusCode::BAD_REQUEST, "invalid_workflow", problem.to_string());
                let said = said.with("field", problem.field.as_str());
                match &problem.step {
                    Some(step) => said.with("step", step.as_str()),
                    None => said,
                }
            }
            SaveError::TooMany(max) => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_workflows", error.to_string())
                    .with("max", max)
            }
            SaveError::Store(error) => error.into(),
        }
    }
}
