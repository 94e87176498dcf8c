//! One Redis client, from its first command to its last.

use super::RespLimits;
use super::batch::RespBatch;
use super::blob::BlobExecutor;
use super::command::{RespCommand, SessionCommand};
use super::frame::{FRAME_LEN_MAX, FrameError, RespParser};
use super::reply::{Protocol, RespReply};
use crate::accept::closed;
use crate::gate::{Gate, Guest, Role};
use crate::input::{Input, read_more};
use crate::linger::linger;
use crate::session::{KeyEnd, KeySession};
use crate::unauthenticated::{STRANGER_COMMANDS_MAX, STRANGER_INPUT_LEN_MAX, UnauthenticatedClient};
use bytes::{Bytes, BytesMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// A buffer of answers that grew beyond this for a large blob is released.
const BUFFER_KEPT_LEN_MAX: usize = 64 * 1024;

/// Answers are written when there is nothing left to do, or when this much has accumulated.
const UNWRITTEN_LEN_MAX: usize = 64 * 1024;

/// How long a client whose key has ended gets to read that.
const GOODBYE_MAX: Duration = Duration::from_secs(1);

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
    stranger: UnauthenticatedClient,
    mut reader: impl AsyncRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
    door: Arc<RespDoor>,
    shutdown: watch::Receiver<bool>,
) {
    let peer = stranger.peer;
    let key = KeySession::new(Arc::clone(&door.gate));
    let mut session = RespSession::begin(&door, stranger, &key).await;
    // Around all of it: a client that takes its time to read an answer must be cut off too.
    let served = tokio::select! {
        biased;
        end = key.ended() => Err(Cut::KeyEnded(end)),
        served = session.serve(&mut reader, &mut writer, shutdown) => served,
    };
    let goodbye_max = match served {
        Ok(()) => door.limits.read_within,
        Err(Cut::KeyEnded(end)) if !session.writing => {
            session.refuse(end);
            GOODBYE_MAX
        }
        // In the midst of an answer, an error would be taken for a part of it; and a client that does not read
        // answers does not read a goodbye either.
        Err(Cut::KeyEnded(_) | Cut::Unwritable) => return,
        Err(Cut::Http) => {
            tracing::warn!(%peer, "a client of the RESP door was cut off, it speaks HTTP; a web page may have sent it");
            return;
        }
    };
    let goodbye = async {
        let _ = session.write_out(&mut writer).await;
        let _ = writer.shutdown().await;
    };
    let _ = timeout(goodbye_max, goodbye).await;
    if !session.open {
        linger(reader).await;
    }
}

/// Why a client is disconnected although neither side has asked for it.
enum Cut {
    /// The client does not read, or is gone.
    Unwritable,
    /// Its key does not count any more.
    KeyEnded(KeyEnd),
    /// It speaks HTTP. Nothing of what it has sent and was not answered yet is performed.
    Http,
}

struct RespSession<'door> {
    door: &'door RespDoor,
    key: &'door KeySession,
    id: u64,
    parser: RespParser,
    protocol: Protocol,
    /// What the client may touch once it was admitted.
    desk: BlobExecutor,
    /// Until the client was admitted.
    stranger: Option<UnauthenticatedClient>,
    /// How many commands it has sent as one.
    stranger_commands: u32,
    name: Option<Bytes>,
    batch: RespBatch,
    unwritten: Vec<u8>,
    /// Whether an answer may have been written in part.
    writing: bool,
    open: bool,
}

impl<'door> RespSession<'door> {
    async fn begin(door: &'door RespDoor, stranger: UnauthenticatedClient, key: &'door KeySession) -> Self {
        let mut session = Self {
            door,
            key,
            id: door.clients_seen.fetch_add(1, Relaxed) + 1,
            parser: RespParser::new(STRANGER_INPUT_LEN_MAX),
            protocol: Protocol::Resp2,
            desk: door.desk.clone(),
            stranger: Some(stranger),
            stranger_commands: 0,
            name: None,
            batch: RespBatch::default(),
            unwritten: Vec::new(),
            writing: false,
            open: true,
        };
        if let Ok(nobody) = door.gate.admit(None).await {
            session.welcome(nobody);
        }
        session
    }

    /// Reads commands and answers them until either side ends it.
    async fn serve(
        &mut self,
        reader: &mut (impl AsyncRead + Unpin),
        writer: &mut (impl AsyncWrite + Unpin),
        mut shutdown: watch::Receiver<bool>,
    ) -> Result<(), Cut> {
        let mut auth_deadline = std::pin::pin!(sleep(self.door.limits.auth_within));
        let mut buffer = BytesMut::new();
        while self.open {
            let input_len_max = if self.is_stranger() { STRANGER_INPUT_LEN_MAX } else { usize::MAX };
            tokio::select! {
                biased;
                () = closed(&mut shutdown) => break,
                () = &mut auth_deadline, if self.is_stranger() => break,
                input = read_more(reader, &mut buffer, input_len_max) => match input {
                    Input::More => {}
                    Input::End => break,
                    Input::TooMuch => self.end_with(&FrameError::TooLarge.to_string()),
                }
            }
            self.perform_all(&mut buffer, writer).await?;
        }
        Ok(())
    }

    /// Runs every complete command in the buffer and writes the answers.
    async fn perform_all(
        &mut self,
        buffer: &mut BytesMut,
        writer: &mut (impl AsyncWrite + Unpin),
    ) -> Result<(), Cut> {
        while self.open {
            match self.parser.next(buffer) {
                Ok(Some(frame)) => {
                    self.key.check().map_err(Cut::KeyEnded)?;
                    if self.has_said_too_much() {
                        self.end_with("ERR too many commands before authentication");
                        break;
                    }
                    self.perform(RespCommand::parse(&frame)).await;
                }
                Ok(None) => break,
                Err(FrameError::Http) => return Err(Cut::Http),
                Err(error) => {
                    self.run_batch().await;
                    self.end_with(&error.to_string());
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
            // A client that is not admitted does not learn what would have been wrong.
            _ if self.is_stranger() => self.answer(&no_auth()),
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
            _ if self.is_stranger() => no_auth(),
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

    /// Admits the client, or returns the refusal.
    async fn authenticate(&mut self, secret: &str) -> Option<RespReply> {
        match self.door.gate.admit(Some(secret)).await {
            Err(_) => Some(RespReply::error("WRONGPASS invalid username-password pair or user is disabled.")),
            Ok(guest) => {
                let desk = match &guest.role {
                    Role::Worker => Some(self.door.desk.clone()),
                    Role::LimitedWorker { .. } => {
                        let blobs = self.door.gate.blobs(&guest);
                        blobs.map(|blobs| BlobExecutor { blobs, ..self.door.desk.clone() })
                    }
                    // A client that only submits reads its results over HTTP.
                    Role::Submitter => None,
                };
                let Some(desk) = desk else {
                    return Some(RespReply::error("NOPERM this key is not a worker's"));
                };
                self.desk = desk;
                self.welcome(guest);
                None
            }
        }
    }

    fn welcome(&mut self, guest: Guest) {
        self.key.begin(guest);
        self.stranger = None;
        self.parser.set_frame_len_max(FRAME_LEN_MAX);
    }

    fn is_stranger(&self) -> bool {
        self.stranger.is_some()
    }

    /// Counts a command of a stranger.
    fn has_said_too_much(&mut self) -> bool {
        self.stranger_commands += u32::from(self.is_stranger());
        self.stranger_commands > STRANGER_COMMANDS_MAX
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
        if self.is_stranger() {
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
        for reply in self.batch.run(&self.desk).await {
            self.answer(&reply);
        }
    }

    fn refuse(&mut self, end: KeyEnd) {
        self.end_with(match end {
            KeyEnd::Expired => "NOAUTH the key of this connection has expired",
            KeyEnd::Revoked => "NOAUTH the key of this connection was revoked",
        });
    }

    /// The last answer.
    fn end_with(&mut self, error: &str) {
        self.answer(&RespReply::error(error));
        self.open = false;
    }

    fn answer(&mut self, reply: &RespReply) {
        reply.encode(self.protocol, &mut self.unwritten);
    }

    async fn write_out(&mut self, writer: &mut (impl AsyncWrite + Unpin)) -> Result<(), Cut> {
        self.writing = true;
        let writing = async {
            writer.write_all(&self.unwritten).await?;
            // TLS may buffer what the socket has not accepted yet.
            writer.flush().await
        };
        let written = timeout(self.door.limits.read_within, writing).await;
        self.writing = false;
        self.unwritten.clear();
        self.unwritten.shrink_to(BUFFER_KEPT_LEN_MAX);
        if matches!(written, Ok(Ok(()))) { Ok(()) } else { Err(Cut::Unwritable) }
    }
}

fn no_auth() -> RespReply {
    RespReply::error("NOAUTH Authentication required.")
}

#[cfg(test)]
mod tests;
