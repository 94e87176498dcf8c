//! A workflow gone through with an input, and nothing done.

use crate::ApiError;
use crate::auth::Auth;
use crate::body::{OptionalBody, read_part};
use crate::convert;
use axum::Json;
use axum::extract::{Path, State};
use reveille_api_types::dry_run::{DryRunBody, DryRunReply};
use reveille_core::flow::WorkflowDocument;
use reveille_core::id::WorkflowId;
use reveille_core::request::Actor;
use reveille_engine::{Engine, RunRequest};
use reveille_roster::Scope;
use serde_json::json;

/// Goes through a workflow with an input, and does nothing.
#[utoipa::path(post, path = "/api/v1/workflows/{id}/dry-run", tag = "workflows", params(("id" = String, Path)), request_body = Option<DryRunBody>, responses(
    (status = 200, body = DryRunReply, description = "What would become of each step; nothing is stored, sent or counted"),
    (status = 400, description = "The input does not fit, or the document cannot be saved"), (status = 404, description = "No such workflow")))]
pub async fn dry_run(
    State(engine): State<Engine>,
    auth: Auth,
    Path(id): Path<String>,
    OptionalBody(body): OptionalBody<DryRunBody>,
) -> Result<Json<DryRunReply>, ApiError> {
    auth.needs_one_of(&[Scope::Submit, Scope::Operate])?;
    let document: Option<WorkflowDocument> =
        body.workflow.written().map(|text| read_part("workflow", text)).transpose()?;
    if document.as_ref().is_some_and(|document| document.id != id) {
        return Err(ApiError::field("workflow", format!("its id is not {id:?}")));
    }
    let asked = RunRequest {
        tenant: auth.tenant.clone(),
        workflow: WorkflowId::parse(&id)?,
        input: body.input.unwrap_or_else(|| json!({})),
        idempotency_key: None,
        started_by: Some(auth.caller().key.clone()),
        actor: Actor { principal_id: auth.name().to_owned(), ..Actor::default() },
    };
    let mut reply = convert::dry_run_reply(engine.workflows().dry_run(&asked, document).await?);
    if body.environment.is_some() {
        reply.warnings.push("environment: policy does not look at it".to_owned());
    }
    Ok(Json(reply))
}
