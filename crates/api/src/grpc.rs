//! The gRPC surface: policy as a service for other schedulers, and jobs for programs that would rather
//! speak gRPC than HTTP. Keys, tenants and limits are those of the HTTP surface.

mod jobs;
mod output;
mod policy;

use crate::ApiError;
use crate::auth::{Auth, secret};
use crate::unauthenticated::too_many;
use axum::extract::State;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use reveille_core::id::TenantId;
use reveille_core::rate::RetryAfter;
use reveille_engine::Engine;
use reveille_kernel::cap::safety_kernel_server::SafetyKernelServer;
use reveille_kernel::cordum::cordum_api_server::CordumApiServer;
use reveille_kernel::cordum::output_policy_service_server::OutputPolicyServiceServer;
use reveille_wire::convert::Unusable;
use std::net::IpAddr;
use tonic::service::Routes;
use tonic::transport::server::{TcpConnectInfo, TlsConnectInfo};
use tonic::{Code, Request, Status};

/// The largest message that is read.
pub const MESSAGE_LEN_MAX: usize = 4 * 1024 * 1024;

#[derive(Clone)]
struct Services {
    engine: Engine,
}

/// Every service. Whoever shows no valid key, or calls too often, is turned away by the headers alone, before
/// a message is read.
pub fn services(engine: Engine) -> Routes {
    let guard = from_fn_with_state(engine.clone(), guard);
    Routes::from(bare_services(engine).into_axum_router().layer(guard))
}

async fn guard(
    State(engine): State<Engine>,
    request: axum::extract::Request,
    next: Next,
) -> axum::response::Response {
    if let Some(secret) = secret(request.headers()) {
        engine.access().learn_keys_of(secret).await;
    }
    let known = Auth::of(request.headers(), &engine).map_err(|error| match address(&request) {
        Some(address) if error.status() == StatusCode::UNAUTHORIZED => {
            engine.access().count_stranger(address).err().map_or(error, too_many)
        }
        _ => error,
    });
    let counted = known.and_then(|auth| {
        engine.access().count_call(&auth.caller().key).map_err(|RetryAfter(seconds)| {
            let words = format!("this key calls too often; try again in {seconds} s");
            ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", words)
        })
    });
    match counted {
        Ok(()) => next.run(request).await,
        Err(error) => Status::from(error).into_http(),
    }
}

/// Where the connection comes from.
fn address(request: &axum::extract::Request) -> Option<IpAddr> {
    let extensions = request.extensions();
    let clear = extensions.get::<TcpConnectInfo>();
    let info =
        clear.or_else(|| extensions.get::<TlsConnectInfo<TcpConnectInfo>>().map(TlsConnectInfo::get_ref));
    Some(info?.remote_addr()?.ip())
}

fn bare_services(engine: Engine) -> Routes {
    let services = Services { engine };
    Routes::new(SafetyKernelServer::new(services.clone()).max_decoding_message_size(MESSAGE_LEN_MAX))
        .add_service(
            OutputPolicyServiceServer::new(services.clone()).max_decoding_message_size(MESSAGE_LEN_MAX),
        )
        .add_service(CordumApiServer::new(services).max_decoding_message_size(MESSAGE_LEN_MAX))
}

impl Services {
    /// Who is calling, by the same headers as over HTTP.
    fn auth<T>(&self, request: &Request<T>) -> Result<Auth, ApiError> {
        Auth::of(request.metadata().as_ref(), &self.engine)
    }
}

/// The tenant that a question is about: the one it names, if the caller may ask for it.
fn tenant(auth: &Auth, named: &str) -> Result<TenantId, ApiError> {
    let tenant = if named.is_empty() { auth.tenant.clone() } else { TenantId::parse(named)? };
    if auth.sees(&tenant) {
        Ok(tenant)
    } else {
        Err(ApiError::forbidden("tenant: it is not this key's tenant"))
    }
}

impl From<Unusable> for ApiError {
    fn from(unusable: Unusable) -> Self {
        Self::bad_request(unusable.to_string())
    }
}

impl From<ApiError> for Status {
    fn from(error: ApiError) -> Self {
        let code = match error.status() {
            StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE => Code::InvalidArgument,
            StatusCode::UNAUTHORIZED => Code::Unauthenticated,
            StatusCode::FORBIDDEN => Code::PermissionDenied,
            StatusCode::NOT_FOUND => Code::NotFound,
            StatusCode::CONFLICT => Code::FailedPrecondition,
            StatusCode::TOO_MANY_REQUESTS => Code::ResourceExhausted,
            StatusCode::SERVICE_UNAVAILABLE => Code::Unavailable,
            _ => Code::Internal,
        };
        Self::new(code, error.to_string())
    }
}
