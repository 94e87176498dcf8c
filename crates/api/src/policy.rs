//! Policy: what it would say, why, and what another one would have said.

use crate::ApiError;
use crate::auth::Auth;
use crate::body::Body;
use crate::convert;
use crate::convert::text::{limit, moment};
use crate::jobs::visible;
use axum::extract::{Path, Query, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use reveille_api_types::policy::{
    DecisionRecord, DecisionsQuery, PolicyAnswer, PolicyCheck, ReplayReply, ReplayRequest,
};
use reveille_core::id::TenantId;
use reveille_core::policy::Trace;
use reveille_core::request::Request;
use reveille_engine::Engine;
use reveille_kernel::Purpose;
use reveille_roster::Scope;

pub fn routes() -> Router<Engine> {
    Router::new()
        .route("/policy/evaluate", post(evaluate))
        .route("/policy/simulate", post(simulate))
        .route("/policy/explain", post(explain))
        .route("/policy/replay", post(replay))
        .route("/jobs/{id}/decisions", get(decisions))
}

/// Says what policy would decide about a job. Nothing is counted.
#[utoipa::path(post, path = "/api/v1/policy/evaluate", tag = "policy", request_body = PolicyCheck, responses((status = 200, body = PolicyAnswer), (status = 400, description = "A field is wrong; it is named")))]
pub async fn evaluate(
    State(engine): State<Engine>,
    auth: Auth,
    Body(body): Body<PolicyCheck>,
) -> Result<Json<PolicyAnswer>, ApiError> {
    let request = asked(&auth, body)?;
    let verdict = engine.jobs().policy().evaluate(&request, Purpose::Evaluate).await?;
    Ok(Json(convert::policy_answer(verdict, Trace::default())))
}

/// Says the same as evaluate: neither counts anything.
#[utoipa::path(post, path = "/api/v1/policy/simulate", tag = "policy", request_body = PolicyCheck, responses((status = 200, body = PolicyAnswer), (status = 400, description = "A field is wrong; it is named")))]
pub async fn simulate(
    State(engine): State<Engine>,
    auth: Auth,
    Body(body): Body<PolicyCheck>,
) -> Result<Json<PolicyAnswer>, ApiError> {
    let request = asked(&auth, body)?;
    let verdict = engine.jobs().policy().evaluate(&request, Purpose::Simulate).await?;
    Ok(Json(convert::policy_answer(verdict, Trace::default())))
}

/// Says what policy would decide about a job, and how each rule came out. Rules for other tenants are shown to operators only.
#[utoipa::path(post, path = "/api/v1/policy/explain", tag = "policy", request_body = PolicyCheck, responses((status = 200, body = PolicyAnswer), (status = 400, description = "A field is wrong; it is named")))]
pub async fn explain(
    State(engine): State<Engine>,
    auth: Auth,
    Body(body): Body<PolicyCheck>,
) -> Result<Json<PolicyAnswer>, ApiError> {
    let request = asked(&auth, body)?;
    if engine.jobs().policy().kernel_address().is_some() {
        let verdict = engine.jobs().policy().evaluate(&request, Purpose::Explain).await?;
        return Ok(Json(convert::policy_answer(verdict, Trace::default())));
    }
    let (verdict, trace) = engine.jobs().policy().policy_trace(&request);
    let trace = if auth.is_operator() { trace } else { trace.without_rules_of_others() };
    Ok(Json(convert::policy_answer(verdict, trace)))
}

fn asked(auth: &Auth, body: PolicyCheck) -> Result<Request, ApiError> {
    auth.needs(Scope::Read)?;
    let tenant = match convert::named_tenant(&body) {
        Some(name) => TenantId::parse(name)?,
        None => auth.tenant.clone(),
    };
    if !auth.sees(&tenant) {
        return Err(ApiError::forbidden("tenant: it is not this key's tenant"));
    }
    convert::policy_request(body, tenant)
}

/// Judges the jobs of the past by another policy. Nothing changes.
#[utoipa::path(post, path = "/api/v1/policy/replay", tag = "policy", request_body = ReplayRequest, responses((status = 200, body = ReplayReply), (status = 400, description = "The policy cannot be used; the reason is told"), (status = 422, description = "A rule takes more steps or memory than it may; it is named")))]
pub async fn replay(
    State(engine): State<Engine>,
    auth: Auth,
    Body(body): Body<ReplayRequest>,
) -> Result<Json<ReplayReply>, ApiError> {
    auth.needs(Scope::Read)?;
    let since = moment("since", &body.since, engine.now())?;
    let replay = engine.jobs().replay(body.policy, &auth.tenant, auth.list_of(), since).await?;
    Ok(Json(convert::replay_reply(replay)))
}

/// Lists what policy decided about a job, newest first.
#[utoipa::path(get, path = "/api/v1/jobs/{id}/decisions", tag = "jobs", params(("id" = String, Path), DecisionsQuery), responses((status = 200, body = Vec<DecisionRecord>), (status = 404, description = "No such job")))]
pub async fn decisions(
    State(engine): State<Engine>,
    auth: Auth,
    Path(id): Path<String>,
    Query(query): Query<DecisionsQuery>,
) -> Result<Json<Vec<DecisionRecord>>, ApiError> {
    auth.needs(Scope::Read)?;
    let job = visible(&engine, &auth, &id).await?;
    let newest = job.verdicts.iter().rev().take(limit(query.limit.as_deref())?);
    Ok(Json(newest.map(|recorded| convert::decision_record(&job, recorded)).collect()))
}
