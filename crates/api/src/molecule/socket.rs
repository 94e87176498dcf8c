//! `/ws`: what happens to workspaces, as it happens, on a socket.
//!
//! A view of the one stream of events. A reader holds a place in the stream and no queue, so a client that
//! does not read costs nothing: when it has missed something it is told (`RESYNC`) and looks again; when it
//! does not even take that, it is cut off. What clients send is thrown away, and too much of it ends it.

use super::credential::{Credential, PROTOCOL_PREFIX};
use super::discovery::caller;
use super::refusal::MoleculeRefusal;
use crate::types::molecule::event::SocketFrame;
use axum::Extension;
use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use reveille_core::presence::workspace::Workspace;
use reveille_engine::{Audience, Engine, Event, NextEvents, Reader, What};
use reveille_roster::Scope;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

const PING_EVERY: Duration = Duration::from_secs(20);
/// How often a socket looks whether it should go on.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Somebody who answers no ping for this long is gone.
const SILENCE_MAX: Duration = Duration::from_mins(1);
/// How long a client may take to accept one frame.
const SEND_WITHIN: Duration = Duration::from_secs(10);
/// The longest message that is read, in order to be thrown away.
const MESSAGE_LEN_MAX: usize = 4_096;
/// Messages that a client may send between two pings.
const MESSAGES_MAX: u32 = 256;
const WRITE_BUFFER_LEN_MAX: usize = 1024 * 1024;
/// Sockets that are open at once. The server counts connections, and a socket is none of them any more.
const SOCKETS_MAX: usize = 10_000;

/// Quota for sockets.
pub struct SocketQuota(Arc<Semaphore>);

impl Default for SocketQuota {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(SOCKETS_MAX)))
    }
}

/// Opens a socket on which everything that happens to workspaces is told.
///
/// A browser, which sets no headers on a socket, offers its secret as the protocol `bearer.SECRET`.
#[utoipa::path(get, path = "/ws", tag = "molecule", params(
    ("X-Workspace-ID" = Option<String>, Header, description = "Only what this workspace may see"),
    ("Sec-WebSocket-Protocol" = Option<String>, Header, description = "`bearer.SECRET`, instead of the other headers")), responses(
    (status = 101, description = "A socket on which each message of the server is a SocketFrame; what clients send is thrown away"),
    (status = 404, description = "No such workspace"), (status = 410, description = "It was removed"),
    (status = 426, description = "The connection cannot become a socket"), (status = 429, description = "The tenant has as many sockets and streams open as it may; `quota` names it")))]
pub async fn open(
    State(engine): State<Engine>,
    Extension(room): Extension<Arc<SocketQuota>>,
    credential: Credential,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Result<Response, MoleculeRefusal> {
    let own = credential.workspace_or_key(Scope::Read)?.cloned();
    let named = caller(&headers)?;
    let viewer = match named {
        Some(named) => Some(credential.speaks_for(&engine, &named, Scope::Read)?),
        None => own,
    };
    let audience = match &viewer {
        Some(viewer) => Audience::Tenant(viewer.tenant.clone()),
        None => credential.key(Scope::Read)?.audience(),
    };
    let place = room.0.clone().try_acquire_owned();
    let place = place.map_err(|_| MoleculeRefusal::unavailable("too many sockets are open"))?;
    // Subscribed before the answer: what happens from here on is seen. Whoever is new looks by itself.
    let mut reader = engine.subscribe(audience, None)?;
    reader.poll();
    let watch = SocketWatch { engine, credential, viewer, reader, _place: place };
    let upgrade = match spoken(&headers) {
        Some(protocol) => upgrade.protocols([protocol]),
        None => upgrade,
    };
    Ok(upgrade
        .max_message_size(MESSAGE_LEN_MAX)
        .max_frame_size(MESSAGE_LEN_MAX)
        .max_write_buffer_size(WRITE_BUFFER_LEN_MAX)
        .on_upgrade(|socket| watch.run(socket)))
}

/// A browser that offers protocols hangs up unless one is chosen: one without a secret if there is such.
fn spoken(headers: &HeaderMap) -> Option<String> {
    let lines = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
    let names = lines.filter_map(|value| value.to_str().ok()).flat_map(|line| line.split(','));
    let names: Vec<&str> = names.map(str::trim).filter(|name| !name.is_empty()).collect();
    let plain = names.iter().find(|name| !name.starts_with(PROTOCOL_PREFIX));
    plain.or(names.first()).map(|name| (*name).to_owned())
}

struct SocketWatch {
    engine: Engine,
    credential: Credential,
    /// The workspace that looks; it sees only those it may talk to.
    viewer: Option<Arc<Workspace>>,
    reader: Reader,
    _place: OwnedSemaphorePermit,
}

/// The socket is to be closed.
struct Over;

impl SocketWatch {
    async fn run(mut self, mut socket: WebSocket) {
        // However it ended, nobody is left to be told.
        let Over = self.serve(&mut socket).await;
        let _ = timeout(SEND_WITHIN, socket.send(Message::Close(None))).await;
    }

    async fn serve(&mut self, socket: &mut WebSocket) -> Over {
        let mut looks = interval_at(Instant::now() + LOOK_EVERY, LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut pinged, mut heard, mut messages) = (Instant::now(), Instant::now(), 0);
        loop {
            let done = tokio::select! {
                news = self.reader.next() => self.tell(socket, news).await,
                message = socket.recv() => {
                    heard = Instant::now();
                    messages += 1;
                    match message {
                        Some(Ok(Message::Close(_)) | Err(_)) | None => Err(Over),
                        Some(Ok(_)) if messages > MESSAGES_MAX => Err(Over),
                        Some(Ok(_)) => Ok(()),
                    }
                }
                _ = looks.tick() => {
                    if self.is_over() || heard.elapsed() > SILENCE_MAX {
                        Err(Over)
                    } else if pinged.elapsed() >= PING_EVERY {
                        (pinged, messages) = (Instant::now(), 0);
                        send(socket, Message::Ping(bytes::Bytes::new())).await
                    } else {
                        Ok(())
                    }
                }
            };
            if let Err(over) = done {
                return over;
            }
        }
    }

    fn is_over(&self) -> bool {
        self.engine.is_draining() || !self.credential.still_holds(&self.engine)
    }

    async fn tell(&self, socket: &mut WebSocket, news: NextEvents) -> Result<(), Over> {
        match news {
            NextEvents::StartAfresh(_) => {
                send(socket, Message::text(SocketFrame::resync(self.engine.now()).to_json())).await
            }
            NextEvents::Events(events) => {
                for (_, event) in &events {
                    if let Some(frame) = self.frame(event) {
                        send(socket, Message::text(frame)).await?;
                    }
                }
                Ok(())
            }
        }
    }

    /// What this client is told of an event.
    fn frame(&self, event: &Event) -> Option<String> {
        let What::Workspace { id, name, payload } = &event.what else { return None };
        if let Some(viewer) = &self.viewer {
            // As the family is now: it may have moved since the socket was opened.
            let viewer = self.engine.workspaces().workspace(&viewer.tenant, &viewer.id)?;
            let about = self.engine.workspaces().workspace(&viewer.tenant, id)?;
            // A retired one hears of its own end and of nothing after it.
            let is_past = viewer.is_removed() && about.id != viewer.id;
            if is_past || !self.engine.workspaces().may_talk(&viewer, &about) {
                return None;
            }
        }
        Some(SocketFrame::of(name, id, event.at, payload).to_json())
    }
}

async fn send(socket: &mut WebSocket, message: Message) -> Result<(), Over> {
    match timeout(SEND_WITHIN, socket.send(message)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(Over),
    }
}
