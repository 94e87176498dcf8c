//! The fleet, worker by worker.

use crate::ApiError;
use crate::auth::Auth;
use crate::body::OptionalBody;
use crate::convert;
use axum::Json;
use axum::extract::{Path, Query, State};
use reveille_api_types::drain::{DrainRequest, Drained, Undrained};
use reveille_api_types::worker::{PageQuery, Worker, WorkerPage};
use reveille_core::fleet::Who;
use reveille_core::id::{TenantId, WorkerId};
use reveille_core::placement::Member;
use reveille_core::presence::{self, Contract};
use reveille_engine::{Engine, WorkerView};
use reveille_roster::Scope;

const PAGE_LEN_MAX: usize = 5_000;

/// Lists the fleet: CAP workers, agents and workspaces.
#[utoipa::path(get, path = "/api/v1/workers", tag = "fleet", params(PageQuery), responses((status = 200, body = WorkerPage)))]
pub async fn list(
    State(engine): State<Engine>,
    auth: Auth,
    Query(query): Query<PageQuery>,
) -> Result<Json<WorkerPage>, ApiError> {
    auth.needs(Scope::Read)?;
    let limit = query.limit.unwrap_or(PAGE_LEN_MAX).clamp(1, PAGE_LEN_MAX);
    let contract = query.contract.as_deref().map(contract_of).transpose()?;
    let cursor_text = query.cursor.as_deref().filter(|text| !text.is_empty());
    let bad = || ApiError::field("cursor", "is not one that this server gave");
    let after = cursor_text.map(|text| cursor_of(text).ok_or_else(bad)).transpose()?;
    let mut page = engine.fleet().workers_after(&auth.audience(), contract, after.as_ref(), limit + 1);
    let more = page.len() > limit;
    page.truncate(limit);
    let last = page.last().map(|view| Member::of(&view.worker));
    let next_cursor = last.filter(|_| more).map(|last| cursor(&last));
    let items = page.iter().map(|view| convert::worker(view, engine.now())).collect();
    Ok(Json(WorkerPage { items, next_cursor }))
}

/// A cursor names the last member that was shown. The tenant's length goes before it, because a name may
/// have any sign in it.
fn cursor(member: &Member) -> String {
    let (contract, tenant) = (member.contract.as_str(), member.tenant.as_str());
    format!("{contract}:{}:{tenant}:{}", tenant.len(), member.id)
}

fn cursor_of(text: &str) -> Option<Member> {
    let (contract, rest) = text.split_once(':')?;
    let (len, rest) = rest.split_once(':')?;
    let (tenant, id) = rest.split_at_checked(len.parse().ok()?)?;
    Some(Member {
        contract: Contract::parse(contract)?,
        tenant: TenantId::parse(tenant).ok()?,
        id: WorkerId::parse(id.strip_prefix(':')?).ok()?,
    })
}

fn contract_of(word: &str) -> Result<Contract, ApiError> {
    Contract::parse(word).ok_or_else(|| ApiError::field("contract", "must be cap, voicegateway or molecule"))
}

/// Shows one member of the fleet.
#[utoipa::path(get, path = "/api/v1/workers/{id}", tag = "fleet", params(("id" = String, Path)), responses((status = 200, body = Worker), (status = 404, description = "No such worker")))]
pub async fn get(
    State(engine): State<Engine>,
    auth: Auth,
    Path(id): Path<String>,
) -> Result<Json<Worker>, ApiError> {
    auth.needs(Scope::Read)?;
    let view = find(&engine, &auth, &id).ok_or_else(|| ApiError::not_found("worker"))?;
    Ok(Json(convert::worker(&view, engine.now())))
}

/// A member that the caller may see. A name that several contracts have means the CAP worker first.
fn find(engine: &Engine, auth: &Auth, id: &str) -> Option<WorkerView> {
    let candidates = [Who::Worker(id), Who::Workspace(id), Who::Agent(&auth.tenant, id)];
    let found = candidates.into_iter().filter_map(|who| engine.fleet().worker(who));
    found.into_iter().find(|view| auth.sees(&view.worker.tenant))
}

/// Gives a worker no more jobs.
#[utoipa::path(post, path = "/api/v1/workers/{id}/drain", tag = "fleet", params(("id" = String, Path)), request_body = Option<DrainRequest>, responses((status = 200, body = Drained), (status = 404, description = "No such worker")))]
pub async fn drain(
    State(engine): State<Engine>,
    auth: Auth,
    Path(id): Path<String>,
    OptionalBody(body): OptionalBody<DrainRequest>,
) -> Result<Json<Drained>, ApiError> {
    auth.needs_everywhere(Scope::Operate)?;
    let what = presence::Drained::Worker(WorkerId::parse(&id)?);
    let is_known = engine.fleet().worker(Who::Worker(&id)).is_some();
    // A worker that is away can be drained before it comes back, if it was drained or known before.
    if !is_known && !engine.fleet().drains().iter().any(|drain| drain.what == what) {
        return Err(ApiError::not_found("worker"));
    }
    let drain = engine.fleet().drain_workers(what, convert::drain_seconds(&body)?, &**auth.caller()).await?;
    Ok(Json(convert::drained(&drain)))
}

/// Gives a worker jobs again.
#[utoipa::path(post, path = "/api/v1/workers/{id}/undrain", tag = "fleet", params(("id" = String, Path)), responses((status = 200, body = Undrained)))]
pub async fn undrain(
    State(engine): State<Engine>,
    auth: Auth,
    Path(id): Path<String>,
) -> Result<Json<Undrained>, ApiError> {
    auth.needs_everywhere(Scope::Operate)?;
    let what = presence::Drained::Worker(WorkerId::parse(&id)?);
    let was_drained = engine.fleet().undrain_workers(what, &**auth.caller()).await?;
    Ok(Json(Undrained { name: id, was_drained }))
}
