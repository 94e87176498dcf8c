//! Headers and messages between our shape and the client's.
//!
//! Our own messages name the replica that sent them. Receivers take a message with that header for one of ours; who
//! may publish on our subjects at all is up to the NATS server.

use crate::headers::LINES_MAX;
use crate::{Message, MessageOrigin};
use async_nats::{HeaderMap, HeaderName, HeaderValue, header};
use bytes::Bytes;
use std::fmt::Write as _;
use std::str::FromStr;

/// Which replica sent a message.
const REPLICA: &str = "Reveille-Replica";

/// Where the server reports missing subscribers. No reply is wanted there.
pub(super) const HEARD_PREFIX: &str = "_INBOX.heard.";

/// The headers sent with a message. A line that is not a header is left out.
pub(super) fn outgoing(message: &Message, replica: &str) -> HeaderMap {
    let mut map = HeaderMap::new();
    let block = message.headers.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
    for line in block.split('\n').take(LINES_MAX).skip(1) {
        let Some((name, value)) = line.split_once(':') else { continue };
        put(&mut map, name, value.trim());
    }
    if let Some(id) = &message.id {
        put(&mut map, header::NATS_MESSAGE_ID, id);
    }
    put(&mut map, REPLICA, replica);
    map
}

fn put(map: &mut HeaderMap, name: impl AsRef<str>, value: &str) {
    if let (Ok(name), Ok(value)) = (HeaderName::from_str(name.as_ref()), HeaderValue::from_str(value)) {
        map.append(name, value);
    }
}

/// A message as it arrived. A stored one has no reply subject of its sender: the server has answered it.
pub(super) fn incoming(message: async_nats::Message, others: &MessageOrigin) -> Message {
    let is_ours = message.headers.as_ref().is_some_and(|map| map.get(REPLICA).is_some());
    let id = message.headers.as_ref().and_then(|map| map.get(header::NATS_MESSAGE_ID));
    let reply = message.reply.as_ref().filter(|reply| !reply.starts_with(HEARD_PREFIX));
    Message {
        id: id.map(ToString::to_string),
        reply: reply.map(ToString::to_string),
        headers: block(&message),
        subject: message.subject.into_string(),
        payload: message.payload,
        origin: if is_ours { MessageOrigin::Ourselves } else { others.clone() },
        tenant: None,
    }
}

/// The block as the protocol has it, status line included.
fn block(message: &async_nats::Message) -> Option<Bytes> {
    if message.headers.is_none() && message.status.is_none() {
        return None;
    }
    let mut text = "NATS/1.0".to_owned();
    if let Some(status) = message.status {
        let _ = write!(text, " {}", status.as_u16());
    }
    if let Some(description) = &message.description {
        let _ = write!(text, " {description}");
    }
    text.push_str("\r\n");
    for (name, values) in message.headers.iter().flat_map(HeaderMap::iter) {
        for value in values {
            let _ = write!(text, "{name}: {value}\r\n");
        }
    }
    text.push_str("\r\n");
    Some(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_nats::StatusCode;

    fn received(headers: Option<HeaderMap>) -> async_nats::Message {
        async_nats::Message {
            subject: "job.echo".into(),
            reply: Some("_INBOX.heard.x.1".into()),
            payload: "hello".into(),
            headers,
            status: None,
            description: None,
            length: 0,
        }
    }

    #[test]
    fn headers_go_out_and_come_in_as_they_are() {
        let sent = Message { id: Some("dlq:1".into()), ..Message::new("job.echo", "hello") }
            .with_headers([("traceparent", "00-a"), ("X-Some", "a: b")]);
        let got = incoming(received(Some(outgoing(&sent, "r1"))), &MessageOrigin::default());
        for (name, value) in [("traceparent", "00-a"), ("X-Some", "a: b"), (REPLICA, "r1")] {
            assert_eq!(got.header(name).collect::<Vec<_>>(), [value.as_bytes()], "{name}");
        }
        assert_eq!(got.id.as_deref(), Some("dlq:1"));
        assert_eq!((got.subject.as_str(), got.reply), ("job.echo", None), "it wants no answer");
    }

    #[test]
    fn only_what_names_a_replica_is_ours() {
        let foreign_client = MessageOrigin::Worker(crate::MessageSender {
            tenant: reveille_core::id::TenantId::known("acme"),
            key: None,
        });
        let ours = outgoing(&Message::new("a", ""), "r1");
        assert_eq!(incoming(received(Some(ours)), &foreign_client).origin, MessageOrigin::Ourselves);
        assert_eq!(incoming(received(None), &foreign_client).origin, foreign_client);
    }

    #[test]
    fn a_block_of_anybodys_making_cannot_break_the_line() {
        let block = "NATS/1.0\r\ngood: 1\r\nbad name: 2\r\n: 3\r\nno colon\r\nwörd: 4\r\n\r\n";
        let message = Message { headers: Some(block.into()), ..Message::new("a", "") };
        let map = outgoing(&message, "r\r\n1");
        let names: Vec<_> = map.iter().map(|(name, _)| name.to_string()).collect();
        assert!(names.contains(&"good".to_owned()) && !names.contains(&"wörd".to_owned()), "{names:?}");
        assert!(!names.contains(&REPLICA.to_owned()), "a name with a line break in it is left out");
    }

    #[test]
    fn a_status_stays_readable() {
        let message = async_nats::Message { status: Some(StatusCode::NO_RESPONDERS), ..received(None) };
        assert_eq!(incoming(message, &MessageOrigin::default()).headers.unwrap(), "NATS/1.0 503\r\n\r\n");
    }
}
