//! One Redis client, from its first command to its last.

use super::RespLimits;
use super::batch::RespBatch;
use super::blob::BlobExecutor;
use super::command::{RespCommand, SessionCommand};
use super::frame::{FRAME_LEN_MAX, FRAME_LEN_MAX_UNKNOWN, RespParser};
use super::reply::{Protocol, RespReply};
use crate::accept::closed;
use crate::gate::{Gate, Role};
use crate::linger::linger;
use bytes::{Bytes, BytesMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// How much is read at once.
const READ_LEN: usize = 16 * 1024;

/// Buffers that grew beyond this for a large blob are given back.
const BUFFER_KEPT_LEN_MAX: usize = 64 * 1024;

/// Answers are written when there is nothing left to do, or when this much has gathered.
const UNWRITTEN_LEN_MAX: usize = 64 * 1024;

/// The Redis release whose answers this door follows.
const VERSION: &str = "7.2.0";

/// What all connections of the door share.
pub(super) struct RespDoor {
    desk: BlobExecutor,
    gate: Arc<dyn Gate>,
    limits: RespLimits,
    clients_seen: AtomicU64,
}

impl RespDoor {
    pub fn new(desk: BlobExecutor, gate: Arc<dyn Gate>, limits: RespLimits) -> Self {
        Self { desk, gate, limits, clients_seen: AtomicU64::new(0) }
    }
}

/// Serves one client until either side ends it.
pub(super) async fn run(
    mut reader: impl AsyncRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
    door: Arc<RespDoor>,
    mut shutdown: watch::Receiver<bool>,
) {
    let mut session = RespSession::begin(&door).await;
    let mut auth_deadline = std::pin::pin!(sleep(door.limits.auth_within));
    let mut buffer = BytesMut::new();
    while session.open {
        make_room(&mut buffer);
        tokio::select! {
            biased;
            () = closed(&mut shutdown) => break,
            () = &mut auth_deadline, if !session.admitted => break,
            read = reader.read_buf(&mut buffer) => {
                // A broken socket and one that the client closed end alike.
                if read.unwrap_or(0) == 0 {
                    break;
                }
            }
        }
        if session.perform_all(&mut buffer, &mut writer).await.is_err() {
            // Whoever does not read answers does not read a goodbye either.
            return;
        }
    }
    let _ = timeout(door.limits.read_within, writer.shutdown()).await;
    if !session.open {
        linger(reader).await;
    }
}

/// The client does not read, or is gone.
struct Unwritable;

struct RespSession<'door> {
    door: &'door RespDoor,
    id: u64,
    parser: RespParser,
    protocol: Protocol,
    /// Whether the client was let in. As whom makes no difference yet: blobs are one space.
    admitted: bool,
    name: Option<Bytes>,
    batch: RespBatch,
    unwritten: Vec<u8>,
    open: bool,
}

impl<'door> RespSession<'door> {
    async fn begin(door: &'door RespDoor) -> Self {
        let mut session = Self {
            door,
            id: door.clients_seen.fetch_add(1, Relaxed) + 1,
            parser: RespParser::new(FRAME_LEN_MAX_UNKNOWN),
            protocol: Protocol::Resp2,
            admitted: false,
            name: None,
            batch: RespBatch::default(),
            unwritten: Vec::new(),
            open: true,
        };
        if door.gate.admit(None).await.is_ok() {
            session.welcome();
        }
        session
    }

    /// Performs every complete command in the buffer and writes the answers.
    async fn perform_all(
        &mut self,
        buffer: &mut BytesMut,
        writer: &mut (impl AsyncWrite + Unpin),
    ) -> Result<(), Unwritable> {
        while self.open {
            match self.parser.next(buffer) {
                Ok(Some(frame)) => self.perform(RespCommand::parse(&frame)).await,
                Ok(None) => break,
                Err(error) => {
                    self.run_batch().await;
                    self.answer(&RespReply::error(error.to_string()));
                    self.open = false;
                }
            }
            if self.unwritten.len() > UNWRITTEN_LEN_MAX {
                self.write_out(writer).await?;
            }
        }
        self.run_batch().await;
        self.write_out(writer).await
    }

    async fn perform(&mut self, command: Result<RespCommand, RespReply>) {
        match command {
            Ok(RespCommand::Session(command)) => {
                self.run_batch().await;
                let reply = self.perform_session(command).await;
                self.answer(&reply);
            }
            // Who is not let in does not learn what would have been wrong.
            _ if !self.admitted => self.answer(&no_auth()),
            Ok(RespCommand::Blob(command)) => {
                if !self.batch.has_room_for(&command) {
                    self.run_batch().await;
                }
                self.batch.push(command);
            }
            Err(reply) => {
                self.run_batch().await;
                self.answer(&reply);
            }
        }
    }

    async fn perform_session(&mut self, command: SessionCommand) -> RespReply {
        match command {
            SessionCommand::Auth { secret } => self.authenticate(&secret).await.unwrap_or(RespReply::OK),
            SessionCommand::Hello { protocol, secret, name } => self.hello(protocol, secret, name).await,
            SessionCommand::Quit => {
                self.open = false;
                RespReply::OK
            }
            _ if !self.admitted => no_auth(),
            SessionCommand::SetName(name) => {
                self.name = Some(name).filter(|name| !name.is_empty());
                RespReply::OK
            }
            SessionCommand::GetName => self.name.clone().map_or(RespReply::Null, RespReply::Bulk),
            SessionCommand::Id => RespReply::Integer(self.id as i64),
            SessionCommand::Noted => RespReply::OK,
            SessionCommand::Ping(None) => RespReply::Simple("PONG"),
            SessionCommand::Ping(Some(payload)) | SessionCommand::Echo(payload) => RespReply::Bulk(payload),
        }
    }

    /// Lets the client in, or returns the refusal.
    async fn authenticate(&mut self, secret: &str) -> Option<RespReply> {
        match self.door.gate.admit(Some(secret)).await {
            Err(_) => Some(RespReply::error("WRONGPASS invalid username-password pair or user is disabled.")),
            // Blobs are of every tenant; whoever only submits reads its results over HTTP.
            Ok(guest) if guest.role != Role::Worker => {
                Some(RespReply::error("NOPERM this key is not a worker's"))
            }
            Ok(_) => {
                self.welcome();
                None
            }
        }
    }

    fn welcome(&mut self) {
        self.admitted = true;
        self.parser.set_frame_len_max(FRAME_LEN_MAX);
    }

    async fn hello(
        &mut self,
        protocol: Option<Protocol>,
        secret: Option<String>,
        name: Option<Bytes>,
    ) -> RespReply {
        if let Some(secret) = secret
            && let Some(refusal) = self.authenticate(&secret).await
        {
            return refusal;
        }
        if !self.admitted {
            return RespReply::error(
                "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> \
                 AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol \
                 version at the same time",
            );
        }
        self.protocol = protocol.unwrap_or(self.protocol);
        self.name = name.or(self.name.take());
        RespReply::Map(vec![
            ("server", RespReply::bulk("redis")),
            ("version", RespReply::bulk(VERSION)),
            ("proto", RespReply::Integer(if self.protocol == Protocol::Resp3 { 3 } else { 2 })),
            ("id", RespReply::Integer(self.id as i64)),
            ("mode", RespReply::bulk("standalone")),
            ("role", RespReply::bulk("master")),
            ("modules", RespReply::Array(Vec::new())),
        ])
    }

    async fn run_batch(&mut self) {
        for reply in self.batch.run(&self.door.desk).await {
            self.answer(&reply);
        }
    }

    fn answer(&mut self, reply: &RespReply) {
        reply.encode(self.protocol, &mut self.unwritten);
    }

    async fn write_out(&mut self, writer: &mut (impl AsyncWrite + Unpin)) -> Result<(), Unwritable> {
        let writing = async {
            writer.write_all(&self.unwritten).await?;
            // TLS may hold back what the socket did not take yet.
            writer.flush().await
        };
        let written = timeout(self.door.limits.read_within, writing).await;
        self.unwritten.clear();
        self.unwritten.shrink_to(BUFFER_KEPT_LEN_MAX);
        if matches!(written, Ok(Ok(()))) { Ok(()) } else { Err(Unwritable) }
    }
}

fn no_auth() -> RespReply {
    RespReply::error("NOAUTH Authentication required.")
}

/// Makes room to read into. What is left in the buffer is at most the beginning of one argument,
/// which the parser's limits bound, so the buffer is bounded too.
fn make_room(buffer: &mut BytesMut) {
    if buffer.is_empty() && buffer.capacity() > BUFFER_KEPT_LEN_MAX {
        *buffer = BytesMut::new();
    }
    buffer.reserve(READ_LEN);
}

#[cfg(test)]
mod tests;
