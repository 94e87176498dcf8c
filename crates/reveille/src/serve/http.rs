//! The HTTP listener. Whatever a client does, it takes one place, so many bytes and so much time, and gives them
//! back: a client that keeps us waiting too long is closed, and when all places are taken, the one that has kept us
//! waiting longest makes room for a newcomer. One address takes so many places, and is answered so often without a key.

mod bodies;
mod clients;
mod places;

use super::tls::ReloadingTls;
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Request, Response};
use bodies::{SentBody, TakenBody};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use places::{Place, Places};
use reveille_a2a::AddressRules;
use reveille_api::unauthenticated::{AnswerReader, UnauthenticatedLimit};
use reveille_doors::tls::DoorTls;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How long a client may take to send a request, whole, to read an answer, or to think of the next request.
const CLIENT_WITHIN: Duration = Duration::from_secs(30);
/// Bytes of a request's head, and of answers that are written and not yet sent.
const BUFFER_LEN_MAX: usize = 64 * 1024;
/// How long requests that are under way at the end may take.
const FINISH_WITHIN: Duration = Duration::from_secs(5);

/// What a listener allows.
#[derive(Clone)]
pub struct HttpLimits {
    pub connections_max: usize,
    /// Of one address that is not shared by many.
    pub connections_per_address: usize,
    /// Who may say for whom it asks.
    pub trusted_proxies: Arc<AddressRules>,
    /// How often those are answered who show no valid key; nothing where no key is asked for.
    pub unauthenticated: Option<UnauthenticatedLimit>,
    pub client_within: Duration,
}

impl HttpLimits {
    /// For a listener that has nothing but places.
    pub fn new(connections_max: usize) -> Self {
        Self {
            connections_max,
            connections_per_address: connections_max,
            trusted_proxies: Arc::default(),
            unauthenticated: None,
            client_within: CLIENT_WITHIN,
        }
    }
}

/// Who is at the far end of a connection, and what holds for them.
struct ConnectedClient {
    peer: IpAddr,
    place: Arc<Place>,
    limits: HttpLimits,
    /// What it says is encrypted on its way to us.
    is_tls: bool,
}

pub async fn serve(
    listener: TcpListener,
    router: Router,
    tls: Option<Arc<ReloadingTls>>,
    limits: HttpLimits,
    mut stopped: watch::Receiver<bool>,
) {
    let places = Arc::new(Places::new(limits.connections_max, limits.connections_per_address));
    let watched = tokio::spawn(places.clone().close_the_slow(limits.client_within));
    let mut connections = JoinSet::new();
    loop {
        let (socket, peer) = tokio::select! {
            () = told_to_stop(&mut stopped) => break,
            accepted = listener.accept() => match accepted {
                Ok((socket, peer)) => (socket, peer.ip()),
                Err(error) => {
                    // Out of file descriptors, most likely: give others time to close.
                    tracing::warn!(%error, "connection not accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
        };
        // Where nobody waits for a client, a newcomer waits for a place, unless its own address has taken too many.
        let Some(place) = places.take(clients::counted_as(peer, &limits.trusted_proxies)).await else {
            tracing::debug!(%peer, "connection refused: its address has too many");
            if let Some(unauthenticated) = &limits.unauthenticated {
                unauthenticated.connection_refused();
            }
            continue;
        };
        let _ = socket.set_nodelay(true);
        let (router, stopped, tls) = (router.clone(), stopped.clone(), tls.as_ref().map(|tls| tls.current()));
        let client = ConnectedClient { peer, place, limits: limits.clone(), is_tls: tls.is_some() };
        connections.spawn(async move {
            match tls {
                None => speak(socket, router, client, stopped).await,
                Some(tls) => {
                    if let Some(socket) = begin_tls(&tls, socket, &client.place).await {
                        speak(socket, router, client, stopped).await;
                    }
                }
            }
        });
        while connections.try_join_next().is_some() {}
    }
    let all = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(FINISH_WITHIN, all).await;
    watched.abort();
}

/// A client that does not finish its handshake keeps us waiting like any other.
async fn begin_tls(
    tls: &DoorTls,
    socket: TcpStream,
    place: &Place,
) -> Option<impl AsyncRead + AsyncWrite + Unpin + Send + use<>> {
    let begun = tokio::select! {
        begun = tls.handshake(socket) => begun,
        () = place.closed() => return None,
    };
    begun.inspect_err(|error| tracing::debug!(%error, "TLS handshake failed")).ok()
}

async fn speak(
    socket: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    client: ConnectedClient,
    mut stopped: watch::Receiver<bool>,
) {
    let mut http = http1::Builder::new();
    // Answers to pipelined requests are not gathered: one who never reads would have us gather all of them.
    http.timer(TokioTimer::new()).header_read_timeout(CLIENT_WITHIN).max_buf_size(BUFFER_LEN_MAX);
    let (place, router) = (client.place.clone(), TowerToHyperService::new(router));
    let client = Arc::new(client);
    let answer = service_fn(move |request| answer(request, router.clone(), client.clone()));
    // A WebSocket begins as a request.
    let connection = http.serve_connection(TokioIo::new(socket), answer).with_upgrades();
    tokio::pin!(connection);
    let done = tokio::select! {
        done = connection.as_mut() => done,
        () = place.closed() => {
            tracing::debug!("connection closed: its client kept us waiting");
            return;
        }
        () = told_to_stop(&mut stopped) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = done {
        tracing::debug!(%error, "connection broken");
    }
}

/// Answers a request, and keeps track of who waits for whom.
async fn answer(
    request: Request<Incoming>,
    router: TowerToHyperService<Router>,
    client: Arc<ConnectedClient>,
) -> Result<Response<SentBody>, Infallible> {
    let (place, limits) = (&client.place, &client.limits);
    place.waits_for_client();
    let address = clients::client_address(client.peer, request.headers(), &limits.trusted_proxies);
    let reader = AnswerReader::of(request.uri().path());
    let mut request = request.map(|body| Body::new(TakenBody::new(body, place.clone())));
    if client.is_tls {
        // As a proxy in front of us says it. Cookies depend on it.
        request.headers_mut().insert("x-forwarded-proto", HeaderValue::from_static("https"));
    }
    let response = hyper::service::Service::call(&router, request).await?;
    let response = match &limits.unauthenticated {
        Some(unauthenticated) => unauthenticated.count(address, reader, response),
        None => response,
    };
    place.waits_for_client();
    Ok(response.map(|body| SentBody::new(body, place.clone())))
}

/// Returns when the word is given, or when whoever could give it is gone.
async fn told_to_stop(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stop| *stop).await;
}

#[cfg(test)]
mod tests;
