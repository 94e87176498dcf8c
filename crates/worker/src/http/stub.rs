//! A server for tests, on a free loopback port: it writes down what it was asked and says what the test
//! tells it to.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

/// Longer than anything takes here, so that only a bug runs into it.
const PATIENCE: Duration = Duration::from_secs(10);

/// One request as it came in.
#[derive(Debug, Clone)]
pub struct StubRequest {
    pub at: Instant,
    /// `POST /v1/x`.
    pub what: String,
    pub bearer: Option<String>,
    pub workspace: Option<String>,
    pub body: Value,
}

/// One answer as it goes out.
#[derive(Debug, Clone)]
pub struct StubReply {
    pub status: u16,
    pub body: Value,
    pub retry_after: Option<u64>,
    pub delay: Duration,
    pub hangs_up: bool,
}

impl StubReply {
    pub fn new(status: u16, body: Value) -> Self {
        Self { status, body, retry_after: None, delay: Duration::ZERO, hangs_up: false }
    }
}

type StubRule = Box<dyn FnMut(&StubRequest) -> StubReply + Send>;

pub struct Stub {
    pub address: SocketAddr,
    state: Arc<StubState>,
    _connections: JoinSet<()>,
}

struct StubState {
    asked: Mutex<Vec<StubRequest>>,
    rule: Mutex<StubRule>,
}

impl Stub {
    /// Answers each request with what `rule` makes of it.
    pub async fn start(rule: impl FnMut(&StubRequest) -> StubReply + Send + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(StubState { asked: Mutex::default(), rule: Mutex::new(Box::new(rule)) });
        let mut server = JoinSet::new();
        server.spawn(accept(listener, Arc::clone(&state)));
        Self { address, state, _connections: server }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn asked(&self) -> Vec<StubRequest> {
        self.state.asked.lock().unwrap().clone()
    }

    /// What was asked of one kind.
    pub fn asked_to(&self, what: &str) -> Vec<StubRequest> {
        self.asked().into_iter().filter(|asked| asked.what == what).collect()
    }

    /// Waits until `enough` of one kind have come.
    pub async fn wait_for(&self, what: &str, enough: usize) -> Vec<StubRequest> {
        self.wait_until(|asked| asked.iter().filter(|asked| asked.what == what).count() >= enough).await;
        self.asked_to(what)
    }

    pub async fn wait_until(&self, mut is_enough: impl FnMut(&[StubRequest]) -> bool) {
        let looking = async {
            while !is_enough(&self.asked()) {
                sleep(Duration::from_millis(2)).await;
            }
        };
        let in_time = timeout(PATIENCE, looking).await;
        let what: Vec<String> = self.asked().into_iter().map(|asked| asked.what).collect();
        assert!(in_time.is_ok(), "not asked in time; only {what:?}");
    }
}

async fn accept(listener: TcpListener, state: Arc<StubState>) {
    let mut connections = JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        let state = Arc::clone(&state);
        connections.spawn(async move {
            let service = service_fn(|request| answer(Arc::clone(&state), request));
            // A client that hangs up, or that is hung up on, is part of the tests.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
        });
    }
}

async fn answer(
    state: Arc<StubState>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let (parts, body) = request.into_parts();
    let header = |name: &str| parts.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    let body = body.collect().await?.to_bytes();
    let asked = StubRequest {
        at: Instant::now(),
        what: format!("{} {}", parts.method, parts.uri),
        bearer: header("authorization"),
        workspace: header("x-workspace-id"),
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
    };
    let reply = (state.rule.lock().unwrap())(&asked);
    state.asked.lock().unwrap().push(asked);
    sleep(reply.delay).await;
    let mut response = Response::builder().status(reply.status);
    if let Some(seconds) = reply.retry_after {
        response = response.header("retry-after", seconds);
    }
    if reply.hangs_up {
        response = response.header("connection", "close");
    }
    Ok(response.body(Full::new(Bytes::from(reply.body.to_string()))).unwrap())
}
