//! The description of all this, made from the handlers and types themselves.

use crate::{
    approvals, audit, dead_letters, dry_run, graph, health, jobs, keys, overview, policy, pools, presence,
    quarantine, runs, stream, system, workers, workflows,
};
use axum::http::header;
use axum::response::IntoResponse;
use utoipa::OpenApi;
use utoipa::openapi::RefOr;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, SecurityScheme};

#[derive(OpenApi)]
#[openapi(
    info(title = "Reveille", description = "Keeps a fleet of AI-agent workers awake, known and at work."),
    paths(
        jobs::submit, jobs::list, jobs::get, jobs::cancel, jobs::remediate, jobs::explain, approvals::list,
        approvals::context, approvals::approve, approvals::reject, dead_letters::list, dead_letters::page, dead_letters::get,
        dead_letters::delete, dead_letters::retry, dead_letters::retry_many, dead_letters::stats, dead_letters::packets, workers::list, workers::get,
        overview::get, system::get, workers::drain, workers::undrain, pools::list, pools::drain, pools::undrain,
        policy::evaluate, policy::simulate, policy::explain, policy::replay, policy::decisions,
        quarantine::list, quarantine::show, quarantine::release, quarantine::discard,
        workflows::save, workflows::list, workflows::get, workflows::delete, graph::get, dry_run::dry_run, runs::start, runs::list_of, runs::list, runs::get,
        runs::delete, runs::timeline, runs::cancel, runs::cancel_of, runs::rerun,
        audit::events, audit::list, audit::verify,
        keys::create, keys::list, keys::revoke, presence::take, stream::events, health::alive, health::ready, health::metrics
    ),
    modifiers(&Keyed, &Complete),
    security(("key" = []))
)]
struct Api;

struct Keyed;

impl utoipa::Modify for Keyed {
    fn modify(&self, api: &mut utoipa::openapi::OpenApi) {
        let components = api.components.get_or_insert_default();
        components.add_security_scheme(
            "key",
            SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new("X-API-Key"))),
        );
    }
}

/// What generators of clients need and attributes leave out: a description of every answer, which `OpenAPI` 3.1 asks for,
/// and a name for every operation that no other one has.
struct Complete;

impl utoipa::Modify for Complete {
    fn modify(&self, api: &mut utoipa::openapi::OpenApi) {
        for (path, item) in &mut api.paths.paths {
            let noun = path.trim_start_matches("/api/v1").trim_start_matches('/').split('/').next();
            let noun = noun.unwrap_or_default().replace('-', "_");
            for operation in [&mut item.get, &mut item.post, &mut item.delete].into_iter().flatten() {
                if let Some(id) = &mut operation.operation_id {
                    *id = format!("{noun}_{id}");
                }
                for response in operation.responses.responses.values_mut() {
                    if let RefOr::T(response) = response
                        && response.description.is_empty()
                    {
                        "As asked for".clone_into(&mut response.description);
                    }
                }
            }
        }
    }
}

/// The document as it is served and checked in (`docs/openapi.json`).
pub fn document() -> String {
    Api::openapi().to_pretty_json().unwrap_or_default() + "\n"
}

pub async fn serve() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], document())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_operations_have_one_name() {
        let document: serde_json::Value = serde_json::from_str(&document()).unwrap();
        let items =
            document["paths"].as_object().unwrap().values().flat_map(|item| item.as_object().unwrap());
        let names: Vec<&str> =
            items.map(|(_, operation)| operation["operationId"].as_str().unwrap()).collect();
        let different: std::collections::BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(names.len(), different.len(), "{names:?}");
    }

    #[test]
    fn the_checked_in_description_is_this_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
        if std::env::var_os("REVEILLE_BLESS").is_some() {
            std::fs::write(path, document()).unwrap();
        }
        let checked_in = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            checked_in == document(),
            "docs/openapi.json is out of date; run the tests with REVEILLE_BLESS=1"
        );
    }
}
