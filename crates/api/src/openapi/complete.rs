//! What generators of clients need and attributes leave out: how keys are sent, a name for every operation that no other
//! one has, which bodies may be left out, and what a refusal looks like.
//!
//! What is true of all operations is said here, once; what is true of one stands at its handler.

use crate::rate::UNCOUNTED;
use utoipa::openapi::header::Header;
use utoipa::openapi::path::{Operation, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::SchemaType;
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{Content, Object, OpenApi, Ref, RefOr, Required, Response, Schema, Type};

/// The one route that no layer is around: its refusals are all its own.
const HOT: &str = "/v1/agents/heartbeat";

pub struct Complete;

impl utoipa::Modify for Complete {
    fn modify(&self, api: &mut OpenApi) {
        let components = api.components.get_or_insert_default();
        components.add_security_scheme("key", key());
        components.add_security_scheme("bearer", bearer());
        for (path, item) in &mut api.paths.paths {
            let methods = [&mut item.get, &mut item.post, &mut item.patch, &mut item.delete];
            for operation in methods.into_iter().flatten() {
                name(path, operation);
                loosen_body(operation);
                loosen_headers(operation);
                if asks_for_key(operation) {
                    let shape = shape(operation);
                    take_tenant(operation, shape);
                    refuse(path, operation, shape);
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

fn key() -> SecurityScheme {
    let words = "A key. Where `auth.open` is set none is needed. The console's cookie is not taken here.";
    SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::with_description("X-API-Key", words)))
}

fn bearer() -> SecurityScheme {
    let http = HttpBuilder::new().scheme(HttpAuthScheme::Bearer);
    SecurityScheme::Http(http.description(Some("The same key, if there is no `X-API-Key`.")).build())
}

fn name(path: &str, operation: &mut Operation) {
    let path = path.trim_start_matches("/api").trim_start_matches("/v1").trim_start_matches('/');
    let noun = path.split('/').next().unwrap_or_default().replace(['-', '.'], "_");
    if let Some(id) = &mut operation.operation_id {
        *id = format!("{noun}_{id}");
    }
}

/// A body that may be left out is described as an option, which JSON knows as a null. Nobody takes a null.
fn loosen_body(operation: &mut Operation) {
    let Some(RefOr::T(body)) = &mut operation.request_body else { return };
    if body.required.is_some() {
        return;
    }
    body.required = Some(Required::False);
    for content in body.content.values_mut() {
        if let RefOr::T(content) = content
            && let Some(RefOr::T(Schema::OneOf(either))) = &content.schema
        {
            content.schema = either.items.iter().find(|item| matches!(item, RefOr::Ref(_))).cloned();
        }
    }
}

/// Nor is there a null in a header: it is there, or it is not.
fn loosen_headers(operation: &mut Operation) {
    for parameter in operation.parameters.iter_mut().flatten() {
        if let RefOr::T(parameter) = parameter
            && let Some(RefOr::T(Schema::Object(object))) = &mut parameter.schema
            && let SchemaType::Array(kinds) = &object.schema_type
            && let Some(kind) = kinds.iter().find(|kind| **kind != Type::Null).cloned()
        {
            object.schema_type = SchemaType::Type(kind);
        }
    }
}

fn asks_for_key(operation: &Operation) -> bool {
    operation.security != Some(vec![SecurityRequirement::default()])
}

/// The schema of what the surface says when something is wrong.
fn shape(operation: &Operation) -> &'static str {
    let tag = operation.tags.iter().flatten().next().map_or("", String::as_str);
    match tag {
        "voicegateway" | "openorca" => "Detail",
        "molecule" => "MoleculeError",
        _ => "Error",
    }
}

/// Where `detail` is spoken, only some look at the tenant, and say so themselves.
fn take_tenant(operation: &mut Operation, shape: &str) {
    if shape == "Detail" {
        return;
    }
    let words = "The tenant that an operator acts for; anybody else may only name its own";
    let tenant = ParameterBuilder::new()
        .name("X-Tenant-ID")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(words))
        .schema(Some(Object::with_type(Type::String)));
    operation.parameters.get_or_insert_default().push(RefOr::T(tenant.build()));
}

/// What can go wrong wherever a key is asked for.
const REFUSALS: [(&str, &str); 7] = [
    ("400", "Something in the request is wrong"),
    ("401", "No valid key"),
    ("403", "The key may not do this, or not for this tenant"),
    ("413", "The body is too large"),
    ("429", "The key calls too often"),
    ("500", "The store refused it, or holds something unreadable"),
    ("503", "It cannot be done now; ask again"),
];

fn refuse(path: &str, operation: &mut Operation, shape: &str) {
    let (has_body, has_parameters) = (operation.request_body.is_some(), operation.parameters.is_some());
    let responses = &mut operation.responses.responses;
    for (status, words) in REFUSALS {
        let can_happen = match status {
            "400" => path != HOT && (has_body || has_parameters),
            "413" => has_body,
            "429" => !UNCOUNTED.contains(&path),
            "500" => shape != "Detail",
            _ => true,
        };
        if can_happen {
            responses.entry(status.to_owned()).or_insert_with(|| RefOr::T(Response::new(words)));
        }
    }
    for (status, response) in responses {
        let RefOr::T(response) = response else { continue };
        if status.as_str() >= "400" && response.content.is_empty() {
            let content = Content::new(Some(Ref::from_schema_name(shape)));
            response.content.insert("application/json".to_owned(), RefOr::T(content));
        }
        if matches!(status.as_str(), "429" | "503") {
            let mut seconds = Header::new(Object::with_type(Type::Integer));
            seconds.description = Some("Seconds after which to try again".to_owned());
            response.headers.insert("Retry-After".to_owned(), RefOr::T(seconds));
        }
    }
}
