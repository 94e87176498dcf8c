//! A real kernel at the other end of a real connection: in plain text, over TLS, hanging and away.

use reveille_core::policy::Decision;
use reveille_core::request::Request as Job;
use reveille_kernel::cap::safety_kernel_server::{SafetyKernel, SafetyKernelServer};
use reveille_kernel::{GrpcKernel, Kernel, KernelKey, KernelTarget, Purpose};
use reveille_wire::cap::{
    DecisionType, ListSnapshotsRequest, ListSnapshotsResponse, PolicyCheckRequest, PolicyCheckResponse,
};
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Identity, Server, ServerTlsConfig};
use tonic::{Request, Response, Status};

/// Allows whoever shows the key, and says what it was asked.
struct Echo;

fn said(word: &str, request: &Request<PolicyCheckRequest>) -> Result<Response<PolicyCheckResponse>, Status> {
    if request.metadata().get("x-api-key").is_none_or(|key| key != "vk_1") {
        return Err(Status::unauthenticated("a key is needed"));
    }
    Ok(Response::new(PolicyCheckResponse {
        decision: DecisionType::Allow as i32,
        reason: format!("{word} {}", request.get_ref().topic),
        ..PolicyCheckResponse::default()
    }))
}

#[tonic::async_trait]
impl SafetyKernel for Echo {
    async fn check(
        &self,
        request: Request<PolicyCheckRequest>,
    ) -> Result<Response<PolicyCheckResponse>, Status> {
        said("check", &request)
    }

    async fn evaluate(
        &self,
        request: Request<PolicyCheckRequest>,
    ) -> Result<Response<PolicyCheckResponse>, Status> {
        said("evaluate", &request)
    }

    async fn explain(
        &self,
        request: Request<PolicyCheckRequest>,
    ) -> Result<Response<PolicyCheckResponse>, Status> {
        said("explain", &request)
    }

    async fn simulate(
        &self,
        request: Request<PolicyCheckRequest>,
    ) -> Result<Response<PolicyCheckResponse>, Status> {
        said("simulate", &request)
    }

    async fn list_snapshots(
        &self,
        _: Request<ListSnapshotsRequest>,
    ) -> Result<Response<ListSnapshotsResponse>, Status> {
        Ok(Response::new(ListSnapshotsResponse::default()))
    }
}

async fn serve(tls: Option<ServerTlsConfig>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut server = Server::builder();
    if let Some(tls) = tls {
        server = server.tls_config(tls).unwrap();
    }
    let server = server.add_service(SafetyKernelServer::new(Echo));
    tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
    address
}

fn target(address: String) -> KernelTarget {
    KernelTarget { address, key: Some(KernelKey::new("vk_1".to_owned())), ..KernelTarget::default() }
}

async fn ask(target: &KernelTarget, purpose: Purpose) -> Result<String, String> {
    let kernel = GrpcKernel::new(target).unwrap();
    let answer = kernel.judge(&Job::plain("j", "job.echo"), None, purpose).await;
    answer
        .map(|verdict| {
            assert_eq!(verdict.decision, Decision::Allow);
            verdict.reason
        })
        .map_err(|problem| problem.to_string())
}

#[tokio::test]
async fn every_question_is_asked_by_its_own_name() {
    let target = target(serve(None).await.to_string());
    let rows = [
        (Purpose::Check, "check job.echo"),
        (Purpose::Evaluate, "evaluate job.echo"),
        (Purpose::Simulate, "simulate job.echo"),
        (Purpose::Explain, "explain job.echo"),
    ];
    for (purpose, expected) in rows {
        assert_eq!(ask(&target, purpose).await.as_deref(), Ok(expected));
    }
    let without = KernelTarget { key: None, ..target };
    let problem = ask(&without, Purpose::Check).await.unwrap_err();
    assert_eq!(problem, "the safety kernel refuses the question (Unauthenticated): a key is needed");
}

#[tokio::test]
async fn tls_trusts_the_given_authority_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let identity = Identity::from_pem(made.cert.pem(), made.signing_key.serialize_pem());
    let port = serve(Some(ServerTlsConfig::new().identity(identity))).await.port();
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, made.cert.pem()).unwrap();

    let trusting = KernelTarget { tls_ca: Some(ca), ..target(format!("localhost:{port}")) };
    assert_eq!(ask(&trusting, Purpose::Check).await.as_deref(), Ok("check job.echo"));
    for doubting in [
        KernelTarget { tls_required: true, ..target(format!("localhost:{port}")) },
        KernelTarget { insecure: true, ..target(format!("localhost:{port}")) },
    ] {
        let problem = ask(&doubting, Purpose::Check).await.unwrap_err();
        assert!(problem.contains("cannot be reached") || problem.contains("Unknown"), "{problem}");
    }
}

#[tokio::test]
async fn a_kernel_that_is_away_is_a_problem_in_words_and_is_asked_again_when_it_is_back() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let kernel = GrpcKernel::new(&target(address.to_string())).unwrap();
    let job = Job::plain("j", "job.echo");
    let problem = kernel.judge(&job, None, Purpose::Check).await.unwrap_err();
    assert!(problem.to_string().contains("cannot be reached"), "{problem}");

    let listener = TcpListener::bind(address).await.unwrap();
    let server = Server::builder().add_service(SafetyKernelServer::new(Echo));
    tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
    let verdict = kernel.judge(&job, None, Purpose::Check).await.unwrap();
    assert_eq!(verdict.reason, "check job.echo");
}
