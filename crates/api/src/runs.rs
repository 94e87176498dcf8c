//! Runs of workflows: started, watched, cancelled, repeated.

use crate::ApiError;
use crate::auth::Auth;
use crate::body::OptionalBody;
use crate::convert;
use crate::convert::text::{cursor, duration, limit};
use crate::workflows::tenant;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get as read, post};
use axum::{Json, Router};
use reveille_api_types::job::WaitQuery;
use reveille_api_types::run::{
    CancelBody, RerunBody, RunDetail, RunListQuery, RunPage, RunRecord, StartBody, StartQuery, StartedReply,
    TimelineLine, TimelineQuery,
};
use reveille_core::flow::{Run, RunState};
use reveille_core::id::{RunId, StepId, WorkflowId};
use reveille_core::request::Actor;
use reveille_core::time::Millis;
use reveille_engine::{Engine, RerunError, RunError, RunRequest, StartRunError, Started};
use reveille_roster::Scope;
use reveille_store::workflows::RunQuery;
use serde_json::json;

pub fn routes() -> Router<Engine> {
    Router::new()
        .route("/workflows/{id}/runs", post(start).get(list_of))
        .route("/workflows/{id}/runs/{run_id}/cancel", post(cancel_of))
        .route("/workflow-runs", read(list))
        .route("/workflow-runs/{id}", read(get).delete(delete))
        .route("/workflow-runs/{id}/timeline", read(timeline))
        .route("/workflow-runs/{id}/cancel", post(cancel))
        .route("/workflow-runs/{id}/rerun", post(rerun))
}

/// Starts a run of a workflow.
#[utoipa::path(post, path = "/api/v1/workflows/{id}/runs", tag = "runs", params(
    ("id" = String, Path), StartQuery,
    ("Idempotency-Key" = Option<String>, Header, description = "The same key starts the same run, within a tenant; `X-Idempotency-Key` is the same")), request_body = Option<StartBody>, responses(
    (status = 200, body = StartedReply), (status = 400, description = "The input does not fit"), (status = 404, description = "No such workflow"),
    (status = 429, description = "The tenant has as many runs under way as it may")))]
pub async fn start(
    State(engine): State<Engine>,
    auth: Auth,
    Path(id): Path<String>,
    Query(query): Query<StartQuery>,
    headers: HeaderMap,
    OptionalBody(body): OptionalBody<StartBody>,
) -> Result<Json<StartedReply>, ApiError> {
    auth.needs(Scope::Submit)?;
    if query.dry_run == Some(true) {
        return Err(ApiError::field(
            "dry_run",
            "a run that is started is run; a dry run has a path of its own",
        ));
    }
    if query.org_id.as_ref().is_some_and(|org| org != auth.tenant.as_str()) {
        return Err(ApiError::forbidden("org_id: it is not this key's tenant"));
    }
    let header =
        ["idempotency-key", "x-idempotency-key"].iter().find_map(|name| headers.get(*name)?.to_str().ok());
    let key = header.map(str::to_owned).or(query.idempotency_key).or(body.idempotency_key);
    let asked = RunRequest {
        tenant: auth.tenant.clone(),
        workflow: WorkflowId::parse(&id)?,
        input: body.input.unwrap_or_else(|| json!({})),
        idempotency_key: key.filter(|key| !key.is_empty()),
        started_by: Some(auth.caller().key.clone()),
        actor: Actor {
            principal_id: auth.name().to_owned(),
            team: query.team_id.unwrap_or_default(),
            ..Actor::default()
        },
    };
    Ok(Json(started(&engine.workflows().start_run(asked).await?)))
}

fn started(started: &Started) -> StartedReply {
    StartedReply { run_id: started.id().to_string(), existing: matches!(started, Started::Existing(_)) }
}

/// Lists the runs of one workflow, newest first.
#[utoipa::path(get, path = "/api/v1/workflows/{id}/runs", tag = "runs", params(("id" = String, Path), RunListQuery), responses((status = 200, body = [RunRecord])))]
pub async fn list_of(
    engine: State<Engine>,
    auth: Auth,
    Path(id): Path<String>,
    Query(query): Query<RunListQuery>,
) -> Result<Json<Vec<RunRecord>>, ApiError> {
    let query = RunListQuery { workflow_id: Some(id), ..query };
    let Json(page) = list(engine, auth, Query(query)).await?;
    Ok(Json(page.items))
}

/// Lists runs, newest first.
#[utoipa::path(get, path = "/api/v1/workflow-runs", tag = "runs", params(RunListQuery), responses((status = 200, body = RunPage)))]
pub async fn list(
    State(engine): State<Engine>,
    auth: Auth,
    Query(query): Query<RunListQuery>,
) -> Result<Json<RunPage>, ApiError> {
    auth.needs(Scope::Read)?;
    let tenant = match query.org_id.as_deref() {
        None => auth.list_of(),
        named => Some(tenant(&auth, named)?),
    };
    let state = match query.status.as_deref() {
        None => None,
        Some(word) => {
            let state = RunState::parse(word);
            Some(
                state
                    .ok_or_else(|| ApiError::field("status", format!("{word:?} is not a state of a run")))?,
            )
        }
    };
    let micros = |value: Option<i64>| value.map(|micros| Millis(micros / 1000));
    let query = RunQuery {
        tenant,
        workflow: query.workflow_id.as_deref().map(WorkflowId::parse).transpose()?,
        state,
        team: query.team_id,
        updated_after: micros(query.updated_after),
        updated_before: micros(query.updated_before),
        cursor: cursor(query.cursor.as_deref())?,
        limit: limit(query.limit.as_deref())?,
    };
    let page = engine.workflows().runs(&query).await?;
    Ok(Json(RunPage {
        items: page.items.iter().map(convert::run_record).collect(),
        next_cursor: page.next.map(|next| next.to_string()),
    }))
}

/// Shows a run and its steps.
#[utoipa::path(get, path = "/api/v1/workflow-runs/{id}", tag = "runs", params(("id" = String, Path), WaitQuery), responses((status = 200, body = RunDetail), (status = 404, description = "No such run")))]
pub async fn get(
    State(engine): State<Engine>,
    auth: Auth,
    Path(id): Path<String>,
    Query(query): Query<WaitQuery>,
) -> Result<Json<RunDetail>, ApiError> {
    auth.needs(Scope::Read)?;
    let mut run = visible(&engine, &auth, &id).await?;
    if let Some(patience) = duration("wait", query.wait.as_deref())?
        && !run.head.state.is_terminal()
    {
        let until = engine.now() + patience.as_millis() as i64;
        run = engine.workflows().run_after(&run.head.id, until).await?.ok_or_else(unknown)?;
    }
    let rollback = engine.workflows().rollback_made(&run.head).await?;
    Ok(Json(convert::run_detail(&run, rollback.map(|id| id.to_string()))))
}

/// Deletes a run that is over.
#[utoipa::path(delete, path = "/api/v1/workflow-runs/{id}", tag = "runs", params(("id" = String, Path)), responses((status = 204, description = "It is gone"), (status = 404, description = "No such run"), (status = 409, description = "It is not over, or still owes a cancel or a rollback; the error says which")))]
pub async fn delete(
    State(engine): State<Engine>,
    auth: Auth,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    auth.needs(Scope::Operate)?;
    let run = visible(&engine, &auth, &id).await?;
    if engine.workflows().delete_run(&run.head, &**auth.caller()).await? {
        return Ok(StatusCode::NO_CONTENT);
    }
    // One that owed nothing when it was read, and is not there to be deleted, is gone meanwhile.
    let waits_for = run.head.waits_for().ok_or_else(unknown)?;
    Err(ApiError::new(StatusCode::CONFLICT, "RUN_NOT_OVER", waits_for.to_string()))
}

/// Lists what happened in a run, oldest first.
#[utoipa::path(get, path = "/api/v1/workflow-runs/{id}/timeline", tag = "runs", params(("id" = String, Path), TimelineQuery), responses((status = 200, body = [TimelineLine]), (status = 404, description = "No such run")))]
pub async fn timeline(
    State(engine): State<Engine>,
    auth: Auth,
    Path(id): Path<String>,
    Query(query): Query<TimelineQuery>,
) -> Result<Json<Vec<TimelineLine>>, ApiError> {
    auth.needs(Scope::Read)?;
    let run = visible(&engine, &auth, &id).await?;
    let lines = engine
        .workflows()
        .timeline(&run.head.id, query.after.unwrap_or(0), limit(query.limit.as_deref())?)
        .await?;
    Ok(Json(lines.iter().map(|(n, line)| convert::timeline_line(&run.head, *n, line)).collect()))
}

/// Cancels a run and its jobs.
#[utoipa::path(post, path = "/api/v1/workflow-runs/{id}/cancel", tag = "runs", params(("id" = String, Path)), request_body = Option<CancelBody>, responses((status = 204, description = "It is cancelled, and its jobs are told"), (status = 404, description = "No such run"), (status = 409, description = "It is over")))]
pub async fn cancel(
    State(engine): State<Engine>,
    auth: Auth,
    Path(id): Path<String>,
    OptionalBody(body): OptionalBody<CancelBody>,
) -> Result<StatusCode, ApiError> {
    auth.needs_one_of(&[Scope::Submit, Scope::Operate])?;
    let run = visible(&engine, &auth, &id).await?;
    engine.workflows().cancel_run(&run.head.id, &**auth.caller(), &body.reason).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Cancels a run of this workflow.
#[utoipa::path(post, path = "/api/v1/workflows/{id}/runs/{run_id}/cancel", tag = "runs", params(("id" = String, Path), ("run_id" = String, Path)), request_body = Option<CancelBody>, responses((status = 204, description = "It is cancelled, and its jobs are told"), (status = 404, description = "No such run"), (status = 409, description = "It is over")))]
pub async fn cancel_of(
    State(engine): State<Engine>,
    auth: Auth,
    Path((workflow, id)): Path<(String, String)>,
    body: OptionalBody<CancelBody>,
) -> Result<StatusCode, ApiError> {
    auth.needs_one_of(&[Scope::Submit, Scope::Operate])?;
    if visible(&engine, &auth, &id).await?.head.workflow.as_str() != workflow {
        return Err(unknown());
    }
    cancel(State(engine), auth, Path(id), body).await
}

/// Starts a run again with the same input, from its beginning or from one of its steps.
#[utoipa::path(post, path = "/api/v1/workflow-runs/{id}/rerun", tag = "runs", params(("id" = String, Path)), request_body = Option<RerunBody>, responses((status = 200, body = StartedReply), (status = 400, description = "It cannot begin there"), (status = 404, description = "No such run"), (status = 409, description = "It is not over"),
    (status = 429, description = "The tenant has as many runs under way as it may")))]
pub async fn rerun(
    State(engine): State<Engine>,
    auth: Auth,
    Path(id): Path<String>,
    OptionalBody(body): OptionalBody<RerunBody>,
) -> Result<Json<StartedReply>, ApiError> {
    auth.needs(Scope::Submit)?;
    if body.dry_run == Some(true) {
        return Err(ApiError::field("dry_run", "a run that is started is run"));
    }
    let run = visible(&engine, &auth, &id).await?;
    let from = body.from_step.as_deref().map(StepId::parse).transpose()?;
    Ok(Json(started(
        &engine.workflows().rerun(&run.head.id, from.as_ref(), Some(auth.caller().key.clone())).await?,
    )))
}

/// The run, if this caller may see it. Another tenant's does not exist for it.
async fn visible(engine: &Engine, auth: &Auth, id: &str) -> Result<Run, ApiError> {
    let found = match RunId::parse(id) {
        Ok(id) => engine.workflows().run(&id).await?,
        Err(_) => None,
    };
    found.filter(|run| auth.sees(&run.head.tenant)).ok_or_else(unknown)
}

fn unknown() -> ApiError {
    ApiError::not_found("run")
}

impl From<StartRunError> for ApiError {
    fn from(error: StartRunError) -> Self {
        let message = error.to_string();
        match error {
            StartRunError::UnknownWorkflow(_) => Self::not_found("workflow"),
            StartRunError::Bad { field, problem } => Self::field(field, problem),
            StartRunError::TooMany(over) => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_runs", message)
                    .with("quota", over.quota.as_str())
                    .with("max", over.max)
            }
            StartRunError::Draining => Self::new(StatusCode::SERVICE_UNAVAILABLE, "draining", message),
            StartRunError::Busy(busy) => busy.into(),
            StartRunError::Store(error) => error.into(),
        }
    }
}

impl From<RunError> for ApiError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Unknown => unknown(),
            RunError::Refused(refusal) => {
                Self::new(StatusCode::CONFLICT, "RUN_NOT_CANCELLABLE", refusal.to_string())
            }
            RunError::Store(error) => error.into(),
        }
    }
}

impl From<RerunError> for ApiError {
    fn from(error: RerunError) -> Self {
        let message = error.to_string();
        match error {
            RerunError::Unknown => unknown(),
            RerunError::UnknownStep(_) | RerunError::NotDone(..) => Self::field("from_step", message),
            RerunError::NotOver => Self::new(StatusCode::CONFLICT, "RUN_NOT_OVER", message),
            RerunError::NotOfAWorkflow => Self::new(StatusCode::CONFLICT, "RUN_NOT_REPEATABLE", message),
            RerunError::Start(error) => error.into(),
        }
    }
}
