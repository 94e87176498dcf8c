//! Commands: what the words of a frame mean.
//!
//! Every word is validated here, once; past this file keys are blob keys and times are numbers.

use super::frame::RespFrame;
use super::reply::{Protocol, RespReply};
use bytes::Bytes;
use reveille_store::{BlobKey, PutMode};

/// How much of an unknown command's name is repeated to the client.
const ECHOED_LEN_MAX: usize = 64;

/// The longest name that a client may give itself.
const NAME_LEN_MAX: usize = 256;

const KNOWN: &str =
    "AUTH, CLIENT, DEL, ECHO, EXISTS, GET, HELLO, PING, PSETEX, PTTL, QUIT, SELECT, SET, SETEX, TTL";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RespCommand {
    /// About the connection itself.
    Session(SessionCommand),
    Blob(BlobCommand),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SessionCommand {
    Hello {
        protocol: Option<Protocol>,
        secret: Option<String>,
        name: Option<Bytes>,
    },
    Auth {
        secret: String,
    },
    SetName(Bytes),
    GetName,
    Id,
    /// A request of the client library that changes nothing here.
    Noted,
    Ping(Option<Bytes>),
    Echo(Bytes),
    Quit,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BlobCommand {
    Get(BlobKey),
    Set { key: BlobKey, value: Bytes, ttl_ms: Option<i64>, mode: PutMode },
    Delete(Vec<BlobKey>),
    Exists(Vec<BlobKey>),
    TtlSeconds(BlobKey),
    TtlMillis(BlobKey),
}

impl BlobCommand {
    pub fn keys(&self) -> &[BlobKey] {
        match self {
            Self::Get(key) | Self::Set { key, .. } | Self::TtlSeconds(key) | Self::TtlMillis(key) => {
                std::slice::from_ref(key)
            }
            Self::Delete(keys) | Self::Exists(keys) => keys,
        }
    }
}

impl RespCommand {
    /// The error is the client's answer.
    pub fn parse(frame: &RespFrame) -> Result<Self, RespReply> {
        use BlobCommand as Blob;
        use SessionCommand as RespSession;
        let name =
            frame.first().map(|name| String::from_utf8_lossy(name).to_ascii_uppercase()).unwrap_or_default();
        let arguments = frame.get(1..).unwrap_or_default();
        let command = match (name.as_str(), arguments) {
            ("GET", [key]) => Self::Blob(Blob::Get(readable_key(key)?)),
            ("SET", [key, value, options @ ..]) => Self::Blob(set(key, value, options)?),
            ("SETEX", [key, seconds, value]) => Self::Blob(set_for(key, duration_ms(seconds, 1000)?, value)?),
            ("PSETEX", [key, millis, value]) => Self::Blob(set_for(key, duration_ms(millis, 1)?, value)?),
            ("DEL", [_, ..]) => Self::Blob(Blob::Delete(blob_keys(arguments)?)),
            ("EXISTS", [_, ..]) => {
                Self::Blob(Blob::Exists(arguments.iter().map(readable_key).collect::<Result<_, _>>()?))
            }
            ("TTL", [key]) => Self::Blob(Blob::TtlSeconds(readable_key(key)?)),
            ("PTTL", [key]) => Self::Blob(Blob::TtlMillis(readable_key(key)?)),
            ("HELLO", options) => Self::Session(hello(options)?),
            // The user name is ignored: the secret alone identifies a client.
            ("AUTH", [secret] | [_, secret]) => Self::Session(RespSession::Auth { secret: text(secret) }),
            ("CLIENT", [what, rest @ ..]) => Self::Session(client(what, rest)?),
            ("SELECT", [index]) => Self::Session(select(index)?),
            ("PING", []) => Self::Session(RespSession::Ping(None)),
            ("PING", [payload]) => Self::Session(RespSession::Ping(Some(payload.clone()))),
            ("ECHO", [payload]) => Self::Session(RespSession::Echo(payload.clone())),
            ("QUIT", _) => Self::Session(RespSession::Quit),
            (known, _) if KNOWN.split(", ").any(|name| name == known) => {
                let name = known.to_ascii_lowercase();
                return Err(RespReply::error(format!("ERR wrong number of arguments for '{name}' command")));
            }
            _ => return Err(unknown(&frame[0])),
        };
        Ok(command)
    }
}

fn unknown(name: &Bytes) -> RespReply {
    let name: String = text(name).chars().filter(|c| !c.is_control()).take(ECHOED_LEN_MAX).collect();
    RespReply::error(format!("ERR unknown command '{name}'; this door to the blobs of jobs knows {KNOWN}"))
}

fn text(word: &Bytes) -> String {
    String::from_utf8_lossy(word).into_owned()
}

fn blob_key(word: &Bytes) -> Result<BlobKey, RespReply> {
    let key = std::str::from_utf8(word).ok().and_then(|key| BlobKey::parse(key).ok());
    key.ok_or_else(|| RespReply::error(format!("ERR {}", reveille_store::NotABlobKey)))
}

/// A key that may be read: blobs, and the worker snapshot that operators look at.
fn readable_key(word: &Bytes) -> Result<BlobKey, RespReply> {
    let key = std::str::from_utf8(word).ok().and_then(|key| BlobKey::parse_readable(key).ok());
    key.ok_or_else(|| RespReply::error(format!("ERR {}", reveille_store::NotABlobKey)))
}

fn blob_keys(words: &[Bytes]) -> Result<Vec<BlobKey>, RespReply> {
    words.iter().map(blob_key).collect()
}

/// `SET key value [EX seconds | PX milliseconds] [NX]`
fn set(key: &Bytes, value: &Bytes, options: &[Bytes]) -> Result<BlobCommand, RespReply> {
    let (mut ttl_ms, mut mode) = (None, PutMode::Always);
    let mut options = options.iter();
    while let Some(option) = options.next() {
        match text(option).to_ascii_uppercase().as_str() {
            unit @ ("EX" | "PX") if ttl_ms.is_none() => {
                let number = options.next().ok_or_else(|| RespReply::error("ERR syntax error"))?;
                ttl_ms = Some(duration_ms(number, if unit == "EX" { 1000 } else { 1 })?);
            }
            "NX" => mode = PutMode::IfAbsent,
            other @ ("XX" | "KEEPTTL" | "GET" | "EXAT" | "PXAT") => {
                return Err(RespReply::error(format!(
                    "ERR {other} is not supported here, only EX, PX and NX are"
                )));
            }
            _ => return Err(RespReply::error("ERR syntax error")),
        }
    }
    Ok(BlobCommand::Set { key: blob_key(key)?, value: value.clone(), ttl_ms, mode })
}

/// The older spelling of `SET key value EX seconds`, which client libraries still send.
fn set_for(key: &Bytes, ttl_ms: i64, value: &Bytes) -> Result<BlobCommand, RespReply> {
    Ok(BlobCommand::Set {
        key: blob_key(key)?,
        value: value.clone(),
        ttl_ms: Some(ttl_ms),
        mode: PutMode::Always,
    })
}

fn duration_ms(word: &Bytes, unit_ms: i64) -> Result<i64, RespReply> {
    let number: i64 =
        text(word).parse().map_err(|_| RespReply::error("ERR value is not an integer or out of range"))?;
    let ms = number.checked_mul(unit_ms).filter(|ms| *ms > 0);
    ms.ok_or_else(|| RespReply::error("ERR invalid expire time in 'set' command"))
}

/// `HELLO [2 | 3 [AUTH user secret] [SETNAME name]]`
fn hello(options: &[Bytes]) -> Result<SessionCommand, RespReply> {
    let (protocol, mut rest) = match options {
        [] => (None, options),
        [version, rest @ ..] if version.as_ref() == b"2" => (Some(Protocol::Resp2), rest),
        [version, rest @ ..] if version.as_ref() == b"3" => (Some(Protocol::Resp3), rest),
        _ => return Err(RespReply::error("NOPROTO unsupported protocol version")),
    };
    let (mut secret, mut name) = (None, None);
    loop {
        rest = match rest {
            [] => return Ok(SessionCommand::Hello { protocol, secret, name }),
            [option, _user, word, rest @ ..] if option.eq_ignore_ascii_case(b"AUTH") => {
                secret = Some(text(word));
                rest
            }
            [option, word, rest @ ..] if option.eq_ignore_ascii_case(b"SETNAME") => {
                name = Some(client_name(word)?);
                rest
            }
            _ => return Err(RespReply::error("ERR syntax error in HELLO")),
        };
    }
}

fn client(what: &Bytes, rest: &[Bytes]) -> Result<SessionCommand, RespReply> {
    match (text(what).to_ascii_uppercase().as_str(), rest) {
        ("SETNAME", [name]) => Ok(SessionCommand::SetName(client_name(name)?)),
        ("GETNAME", []) => Ok(SessionCommand::GetName),
        ("ID", []) => Ok(SessionCommand::Id),
        ("SETINFO", [_, _]) | ("NO-EVICT" | "NO-TOUCH", [_]) => Ok(SessionCommand::Noted),
        _ => Err(RespReply::error(
            "ERR unknown subcommand; CLIENT knows GETNAME, ID, NO-EVICT, NO-TOUCH, SETINFO and SETNAME",
        )),
    }
}

fn client_name(word: &Bytes) -> Result<Bytes, RespReply> {
    if word.len() > NAME_LEN_MAX || !word.iter().all(u8::is_ascii_graphic) {
        return Err(RespReply::error(
            "ERR Client names cannot contain spaces, newlines or special characters.",
        ));
    }
    Ok(word.clone())
}

fn select(index: &Bytes) -> Result<SessionCommand, RespReply> {
    if index.as_ref() == b"0" {
        return Ok(SessionCommand::Noted);
    }
    Err(RespReply::error("ERR DB index is out of range, there is only database 0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<RespCommand, String> {
        let frame: RespFrame = line.split(' ').map(|word| Bytes::copy_from_slice(word.as_bytes())).collect();
        RespCommand::parse(&frame).map_err(|reply| match reply {
            RespReply::Error(text) => text,
            other => panic!("{other:?} is not an error"),
        })
    }

    fn key(key: &str) -> BlobKey {
        BlobKey::parse(key).unwrap()
    }

    #[test]
    fn blob_commands_are_understood_in_either_case() {
        let set = |ttl_ms, mode| BlobCommand::Set { key: key("res:1"), value: "v".into(), ttl_ms, mode };
        for (line, command) in [
            ("get ctx:1", BlobCommand::Get(key("ctx:1"))),
            ("GET sys:workers:snapshot", BlobCommand::Get(BlobKey::workers_snapshot())),
            ("SET res:1 v", set(None, PutMode::Always)),
            ("SET res:1 v EX 60", set(Some(60_000), PutMode::Always)),
            ("SETEX res:1 60 v", set(Some(60_000), PutMode::Always)),
            ("PSETEX res:1 60 v", set(Some(60), PutMode::Always)),
            ("set res:1 v nx px 60", set(Some(60), PutMode::IfAbsent)),
            ("DEL art:1 art:2", BlobCommand::Delete(vec![key("art:1"), key("art:2")])),
            ("EXISTS art:1", BlobCommand::Exists(vec![key("art:1")])),
            ("TTL art:1", BlobCommand::TtlSeconds(key("art:1"))),
            ("PTTL art:1", BlobCommand::TtlMillis(key("art:1"))),
        ] {
            assert_eq!(parse(line), Ok(RespCommand::Blob(command)), "{line}");
        }
    }

    #[test]
    fn session_commands_are_understood() {
        let hello = |protocol, secret: Option<&str>, name: Option<&'static str>| SessionCommand::Hello {
            protocol,
            secret: secret.map(Into::into),
            name: name.map(Into::into),
        };
        for (line, command) in [
            ("HELLO", hello(None, None, None)),
            ("HELLO 3", hello(Some(Protocol::Resp3), None, None)),
            ("HELLO 2 SETNAME me AUTH default s", hello(Some(Protocol::Resp2), Some("s"), Some("me"))),
            ("AUTH s", SessionCommand::Auth { secret: "s".into() }),
            ("AUTH user s", SessionCommand::Auth { secret: "s".into() }),
            ("CLIENT SETINFO LIB-NAME redis-py", SessionCommand::Noted),
            ("CLIENT ID", SessionCommand::Id),
            ("SELECT 0", SessionCommand::Noted),
            ("PING", SessionCommand::Ping(None)),
            ("ECHO x", SessionCommand::Echo("x".into())),
            ("QUIT", SessionCommand::Quit),
        ] {
            assert_eq!(parse(line), Ok(RespCommand::Session(command)), "{line}");
        }
    }

    #[test]
    fn what_is_refused_says_what_would_do() {
        for (line, part) in [
            ("FLUSHALL", "unknown command 'FLUSHALL'"),
            ("LPUSH a b", "knows AUTH, CLIENT, DEL"),
            ("GET", "wrong number of arguments for 'get' command"),
            ("GET job:meta:1", "start with ctx:, res: or art:"),
            ("GET ctx:", "start with ctx:, res: or art:"),
            ("SET sys:workers:snapshot v", "start with ctx:, res: or art:"),
            ("DEL sys:workers:snapshot", "start with ctx:, res: or art:"),
            ("SET other v", "start with ctx:, res: or art:"),
            ("DEL ctx:1 other", "start with ctx:, res: or art:"),
            ("SET res:1 v EX", "syntax error"),
            ("SET res:1 v EX 0", "invalid expire time"),
            ("SET res:1 v EX 9223372036854775807", "invalid expire time"),
            ("SET res:1 v PX -5", "invalid expire time"),
            ("SETEX res:1 0 v", "invalid expire time"),
            ("SET res:1 v EX soon", "not an integer"),
            ("SET res:1 v EX 1 PX 1", "syntax error"),
            ("SET res:1 v XX", "XX is not supported"),
            ("SET res:1 v KEEPTTL", "KEEPTTL is not supported"),
            ("SELECT 1", "only database 0"),
            ("HELLO 4", "NOPROTO"),
            ("HELLO 3 AUTH only", "syntax error"),
            ("CLIENT KILL 1", "unknown subcommand"),
            ("CLIENT SETNAME a\tb", "Client names cannot contain"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}
