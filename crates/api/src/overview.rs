//! `GET /api/v1/overview`: is the fleet alive, what is stuck and why, what waits for a person.

use crate::ApiError;
use crate::auth::Auth;
use crate::convert;
use axum::Json;
use axum::extract::State;
use reveille_api_types::overview::{Overview, Wait};
use reveille_core::job::State as JobState;
use reveille_engine::Engine;
use reveille_roster::Scope;
use reveille_store::JobQuery;
use std::collections::BTreeMap;

/// Jobs of one state that are looked at: the newest.
const LOOKED_AT: usize = 20;
/// Jobs that are named for each reason.
const NAMED: usize = 3;
/// What waits for a person is counted up to here.
const COUNTED_MAX: usize = 100;

/// Says whether the fleet is alive, what is stuck and why, and what waits for a person.
#[utoipa::path(get, path = "/api/v1/overview", tag = "fleet", responses((status = 200, body = Overview)))]
pub async fn get(State(engine): State<Engine>, auth: Auth) -> Result<Json<Overview>, ApiError> {
    let waiting = waiting(&engine, &auth).await?;
    let mut waits: BTreeMap<&str, Wait> = BTreeMap::new();
    let mut explainer = engine.jobs().explainer();
    for state in [JobState::Pending, JobState::Scheduled] {
        let page = engine.jobs().list(&newest(&auth, state, LOOKED_AT)).await?;
        for job in &page.items {
            let why = explainer.explain(job);
            let wait = waits.entry(why.code).or_insert_with(|| wait(why.code));
            wait.jobs += 1;
            wait.more |= page.next.is_some();
            if wait.examples.len() < NAMED {
                wait.examples.push(convert::waiting_job(job, why));
            }
        }
    }
    Ok(Json(Overview {
        at: engine.now().rfc3339(),
        fleet: convert::counts(engine.fleet().census().of(&auth.audience())),
        approvals: waiting.approvals,
        quarantined: waiting.quarantined,
        dead_letters: waiting.dead_letters,
        waits: waits.into_values().collect(),
        throughput: auth.is_operator().then(|| convert::throughput(&engine.figures())),
    }))
}

fn wait(code: &str) -> Wait {
    Wait { code: code.to_owned(), jobs: 0, more: false, examples: Vec::new() }
}

/// What waits for a person, as far as it is counted.
#[derive(Clone, Copy, Default)]
pub struct AttentionCounts {
    pub approvals: usize,
    pub quarantined: usize,
    pub dead_letters: u64,
}

impl AttentionCounts {
    pub fn of(overview: &Overview) -> Self {
        let Overview { approvals, quarantined, dead_letters, .. } = *overview;
        Self { approvals, quarantined, dead_letters }
    }
}

/// What waits for a person.
pub async fn waiting(engine: &Engine, auth: &Auth) -> Result<AttentionCounts, ApiError> {
    auth.needs(Scope::Read)?;
    let (jobs, tenant) = (engine.jobs(), auth.list_of());
    let approvals = newest(auth, JobState::ApprovalRequired, COUNTED_MAX);
    let held = newest(auth, JobState::OutputQuarantined, COUNTED_MAX);
    let (approvals, held, dead) =
        tokio::try_join!(jobs.list(&approvals), jobs.list(&held), jobs.count_dead_letters(tenant.as_ref()))?;
    Ok(AttentionCounts {
        approvals: approvals.items.len(),
        quarantined: held.items.len(),
        dead_letters: dead.values().sum(),
    })
}

fn newest(auth: &Auth, state: JobState, limit: usize) -> JobQuery {
    JobQuery { tenant: auth.list_of(), state: Some(state), limit, ..JobQuery::default() }
}
