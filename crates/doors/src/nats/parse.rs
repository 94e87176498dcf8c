//! The protocol parser: bytes in, operations out, incrementally.
//!
//! The parser takes complete operations off the front of a buffer and remembers where it stopped, so that input
//! arriving in small pieces is not searched again from the start. Everything it returns is a copy: messages on the
//! bus are small, and a slice would keep the whole read buffer alive for as long as the message waits somewhere.
//!
//! Public for those who feed it with nonsense (`fuzz/`). Verbs are taken in either case and a line may end in a bare `\n`, as on a NATS server.

use super::NatsLimits;
use bytes::{Buf, Bytes, BytesMut};

const LINE_END: &[u8; 2] = b"\r\n";

/// No operation has more words than this after its verb.
const ARGUMENTS_MAX: usize = 4;

/// One request of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// The JSON is not parsed yet.
    Connect(Bytes),
    Publish(Publish),
    Subscribe {
        subject: String,
        queue: Option<String>,
        sid: u64,
    },
    Unsubscribe {
        sid: u64,
        after: Option<u64>,
    },
    Ping,
    Pong,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publish {
    pub subject: String,
    pub reply: Option<String>,
    pub headers: Option<Bytes>,
    pub payload: Bytes,
}

/// Why a client's bytes cannot be parsed any further. The messages are those of a NATS server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    #[error("Unknown Protocol Operation")]
    UnknownOperation,
    #[error("Maximum Control Line Exceeded")]
    ControlLineTooLong,
    #[error("Maximum Payload Violation")]
    PayloadTooLong,
}

#[derive(Debug)]
pub struct NatsParser {
    control_line_len_max: usize,
    payload_len_max: usize,
    /// How much of the buffer is known to contain no line end.
    searched: usize,
    /// A message whose line was read and whose bytes have not all arrived.
    awaited: Option<Awaited>,
}

#[derive(Debug)]
struct Awaited {
    subject: String,
    reply: Option<String>,
    headers_len: Option<usize>,
    /// Headers and payload together.
    total_len: usize,
}

/// What a control line was: a complete operation, or the beginning of a message.
enum ControlLine {
    Whole(Operation),
    Head(Awaited),
}

impl NatsParser {
    pub fn new(limits: &NatsLimits) -> Self {
        Self {
            control_line_len_max: limits.control_line_len_max,
            payload_len_max: limits.payload_len_max,
            searched: 0,
            awaited: None,
        }
    }

    /// The next operation, or nothing until more bytes arrive.
    pub fn next(&mut self, buffer: &mut BytesMut) -> Result<Option<Operation>, ParseError> {
        loop {
            if let Some(awaited) = self.awaited.take() {
                return self.message(awaited, buffer);
            }
            let Some(line_len) = self.find_line_end(buffer)? else { return Ok(None) };
            let line = &buffer[..line_len];
            let line = self.line(line.strip_suffix(b"\r").unwrap_or(line))?;
            buffer.advance(line_len + 1);
            match line {
                ControlLine::Whole(operation) => return Ok(Some(operation)),
                ControlLine::Head(awaited) => self.awaited = Some(awaited),
            }
        }
    }

    fn find_line_end(&mut self, buffer: &[u8]) -> Result<Option<usize>, ParseError> {
        let end = buffer[self.searched..].iter().position(|byte| *byte == b'\n');
        let len = end.map_or(buffer.len(), |end| self.searched + end);
        if len > self.control_line_len_max {
            return Err(ParseError::ControlLineTooLong);
        }
        self.searched = if end.is_some() { 0 } else { len };
        Ok(end.map(|_| len))
    }

    fn line(&self, line: &[u8]) -> Result<ControlLine, ParseError> {
        let line = std::str::from_utf8(line).map_err(|_| ParseError::UnknownOperation)?;
        let (verb, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
        let is = |name: &str| verb.eq_ignore_ascii_case(name);
        if is("PUB") {
            return self.publish_head(rest).map(ControlLine::Head);
        }
        if is("HPUB") {
            return self.publish_with_headers_head(rest).map(ControlLine::Head);
        }
        let operation = match () {
            () if is("PING") => Operation::Ping,
            () if is("PONG") => Operation::Pong,
            () if is("SUB") => subscribe(rest)?,
            () if is("UNSUB") => unsubscribe(rest)?,
            () if is("CONNECT") => Operation::Connect(Bytes::copy_from_slice(rest.trim().as_bytes())),
            () => return Err(ParseError::UnknownOperation),
        };
        Ok(ControlLine::Whole(operation))
    }

    /// `PUB <subject> [reply] <length>`
    fn publish_head(&self, rest: &str) -> Result<Awaited, ParseError> {
        match *arguments(rest)?.as_slice() {
            [subject, total] => self.head(subject, None, None, total),
            [subject, reply, total] => self.head(subject, Some(reply), None, total),
            _ => Err(ParseError::UnknownOperation),
        }
    }

    /// `HPUB <subject> [reply] <length of the headers> <length of headers and payload>`
    fn publish_with_headers_head(&self, rest: &str) -> Result<Awaited, ParseError> {
        match *arguments(rest)?.as_slice() {
            [subject, headers, total] => self.head(subject, None, Some(headers), total),
            [subject, reply, headers, total] => self.head(subject, Some(reply), Some(headers), total),
            _ => Err(ParseError::UnknownOperation),
        }
    }

    fn head(
        &self,
        subject: &str,
        reply: Option<&str>,
        headers: Option<&str>,
        total: &str,
    ) -> Result<Awaited, ParseError> {
        let total_len = number(total)? as usize;
        let headers_len = headers.map(number).transpose()?.map(|len| len as usize);
        if headers_len.is_some_and(|headers_len| headers_len > total_len) {
            return Err(ParseError::UnknownOperation);
        }
        if total_len > self.payload_len_max {
            return Err(ParseError::PayloadTooLong);
        }
        Ok(Awaited { subject: subject.to_owned(), reply: reply.map(str::to_owned), headers_len, total_len })
    }

    /// Takes the bytes of a message and the line end after them, once all have arrived.
    fn message(&mut self, awaited: Awaited, buffer: &mut BytesMut) -> Result<Option<Operation>, ParseError> {
        let Awaited { total_len, .. } = awaited;
        if buffer.len() < total_len + LINE_END.len() {
            self.awaited = Some(awaited);
            return Ok(None);
        }
        if buffer[total_len..total_len + LINE_END.len()] != *LINE_END {
            return Err(ParseError::UnknownOperation);
        }
        let mut payload = Bytes::copy_from_slice(&buffer[..total_len]);
        buffer.advance(total_len + LINE_END.len());
        let headers = awaited.headers_len.map(|headers_len| payload.split_to(headers_len));
        let Awaited { subject, reply, .. } = awaited;
        Ok(Some(Operation::Publish(Publish { subject, reply, headers, payload })))
    }
}

/// `SUB <subject> [queue] <sid>`
fn subscribe(rest: &str) -> Result<Operation, ParseError> {
    let (subject, queue, sid) = match *arguments(rest)?.as_slice() {
        [subject, sid] => (subject, None, sid),
        [subject, queue, sid] => (subject, Some(queue), sid),
        _ => return Err(ParseError::UnknownOperation),
    };
    Ok(Operation::Subscribe {
        subject: subject.to_owned(),
        queue: queue.map(str::to_owned),
        sid: number(sid)?,
    })
}

/// `UNSUB <sid> [after]`, where 0 messages means immediately.
fn unsubscribe(rest: &str) -> Result<Operation, ParseError> {
    match *arguments(rest)?.as_slice() {
        [sid] => Ok(Operation::Unsubscribe { sid: number(sid)?, after: None }),
        [sid, after] => {
            let after = Some(number(after)?).filter(|after| *after > 0);
            Ok(Operation::Unsubscribe { sid: number(sid)?, after })
        }
        _ => Err(ParseError::UnknownOperation),
    }
}

/// The words of a line, without an allocation.
struct Arguments<'a> {
    words: [&'a str; ARGUMENTS_MAX],
    count: usize,
}

impl<'a> Arguments<'a> {
    fn as_slice(&self) -> &[&'a str] {
        &self.words[..self.count]
    }
}

fn arguments(rest: &str) -> Result<Arguments<'_>, ParseError> {
    let mut arguments = Arguments { words: [""; ARGUMENTS_MAX], count: 0 };
    for word in rest.split([' ', '\t']).filter(|word| !word.is_empty()) {
        *arguments.words.get_mut(arguments.count).ok_or(ParseError::UnknownOperation)? = word;
        arguments.count += 1;
    }
    Ok(arguments)
}

/// Digits only: `str::parse` alone would accept a plus sign.
fn number(text: &str) -> Result<u64, ParseError> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ParseError::UnknownOperation);
    }
    text.parse().map_err(|_| ParseError::UnknownOperation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parser() -> NatsParser {
        NatsParser::new(&NatsLimits {
            payload_len_max: 64,
            control_line_len_max: 128,
            ..NatsLimits::default()
        })
    }

    /// Feeds the input in pieces; returns the operations and the parser's final answer.
    fn feed<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Operation>, Option<ParseError>) {
        let (mut parser, mut buffer, mut operations) = (parser(), BytesMut::new(), Vec::new());
        for piece in pieces {
            buffer.extend_from_slice(piece);
            loop {
                match parser.next(&mut buffer) {
                    Ok(Some(operation)) => operations.push(operation),
                    Ok(None) => break,
                    Err(error) => return (operations, Some(error)),
                }
            }
        }
        (operations, None)
    }

    fn publish(
        subject: &str,
        reply: Option<&str>,
        headers: Option<&'static str>,
        payload: &'static str,
    ) -> Operation {
        Operation::Publish(Publish {
            subject: subject.into(),
            reply: reply.map(Into::into),
            headers: headers.map(Into::into),
            payload: payload.into(),
        })
    }

    const EVERYTHING: &[u8] = b"CONNECT {\"verbose\":false}\r\nPING\r\npong\r\nSUB job.echo 1\r\n\
        sub  job.*\tworkers 2\r\nUNSUB 1\r\nUNSUB 2 5\r\nUNSUB 3 0\nPUB a 5\r\nhello\r\nPUB a _INBOX.1 0\r\n\r\n\
        HPUB a 12 14\r\nNATS/1.0\r\n\r\nhi\r\nHPUB a b 12 12\r\nNATS/1.0\r\n\r\n\r\n";

    fn everything() -> Vec<Operation> {
        let subscribe = |subject: &str, queue: Option<&str>, sid| Operation::Subscribe {
            subject: subject.into(),
            queue: queue.map(Into::into),
            sid,
        };
        vec![
            Operation::Connect("{\"verbose\":false}".into()),
            Operation::Ping,
            Operation::Pong,
            subscribe("job.echo", None, 1),
            subscribe("job.*", Some("workers"), 2),
            Operation::Unsubscribe { sid: 1, after: None },
            Operation::Unsubscribe { sid: 2, after: Some(5) },
            Operation::Unsubscribe { sid: 3, after: None },
            publish("a", None, None, "hello"),
            publish("a", Some("_INBOX.1"), None, ""),
            publish("a", None, Some("NATS/1.0\r\n\r\n"), "hi"),
            publish("a", Some("b"), Some("NATS/1.0\r\n\r\n"), ""),
        ]
    }

    #[test]
    fn every_operation_is_understood_however_it_arrives() {
        assert_eq!(feed([EVERYTHING]), (everything(), None));
        assert_eq!(feed(EVERYTHING.chunks(1)), (everything(), None));
        for at in 0..EVERYTHING.len() {
            let (head, tail) = EVERYTHING.split_at(at);
            assert_eq!(feed([head, tail]), (everything(), None), "split at {at}");
        }
    }

    #[test]
    fn what_is_malformed_is_refused_in_the_words_of_nats() {
        let long_line = [b"SUB ".as_slice(), &[b'a'; 128]].concat();
        let table: &[(&[u8], ParseError)] = &[
            (b"\r\n", ParseError::UnknownOperation),
            (b"GET / HTTP/1.1\r\n", ParseError::UnknownOperation),
            (b"PUB\r\n", ParseError::UnknownOperation),
            (b"PUB a\r\n", ParseError::UnknownOperation),
            (b"PUB a b c 4\r\n", ParseError::UnknownOperation),
            (b"PUB a -1\r\n", ParseError::UnknownOperation),
            (b"PUB a +1\r\n", ParseError::UnknownOperation),
            (b"PUB a 99999999999999999999999\r\n", ParseError::UnknownOperation),
            (b"PUB a 65\r\n", ParseError::PayloadTooLong),
            (b"PUB a 18446744073709551615\r\n", ParseError::PayloadTooLong),
            (b"PUB a 2\r\nhello\r\n", ParseError::UnknownOperation),
            (b"HPUB a 5 4\r\n", ParseError::UnknownOperation),
            (b"HPUB a b c d 4\r\n", ParseError::UnknownOperation),
            (b"SUB a\r\n", ParseError::UnknownOperation),
            (b"SUB a b c d\r\n", ParseError::UnknownOperation),
            (b"SUB a sid\r\n", ParseError::UnknownOperation),
            (b"UNSUB\r\n", ParseError::UnknownOperation),
            (b"PUB \xff\xfe 1\r\n", ParseError::UnknownOperation),
            (&long_line, ParseError::ControlLineTooLong),
        ];
        for (input, error) in table {
            let shown = String::from_utf8_lossy(input);
            assert_eq!(feed([*input]), (vec![], Some(*error)), "{shown:?}");
            assert_eq!(feed(input.chunks(1)), (vec![], Some(*error)), "{shown:?} byte by byte");
        }
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(input in prop::collection::vec(any::<u8>(), 0..512), piece in 1_usize..64) {
            feed(input.chunks(piece));
        }

        #[test]
        fn likely_bytes_never_panic(
            words in prop::collection::vec("(PUB|HPUB|SUB|UNSUB|PING| |\r\n|\n|[a-z]{1,3}|[0-9]{1,3})", 0..64),
        ) {
            let input = words.concat();
            prop_assert_eq!(feed([input.as_bytes()]), feed(input.as_bytes().chunks(1)));
        }

        #[test]
        fn pieces_do_not_matter(cuts in prop::collection::vec(0..EVERYTHING.len(), 0..8)) {
            let mut cuts = cuts;
            cuts.extend([0, EVERYTHING.len()]);
            cuts.sort_unstable();
            let pieces = cuts.windows(2).map(|cut| &EVERYTHING[cut[0]..cut[1]]);
            prop_assert_eq!(feed(pieces), (everything(), None));
        }
    }
}
