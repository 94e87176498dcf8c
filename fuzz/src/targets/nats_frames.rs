//! The NATS door's parser. Operations do not depend on how the bytes arrive, an operation that is written again reads
//! the same, and what waits for more bytes is bounded.

use super::{FuzzTarget, pieces};
use crate::signal::FuzzSignal;
use bytes::BytesMut;
use reveille_doors::nats::NatsLimits;
use reveille_doors::nats::parse::{NatsParser, Operation, ParseError, Publish};

const PAYLOAD_LEN_MAX: usize = 1024;
const CONTROL_LINE_LEN_MAX: usize = 256;

pub const TARGET: FuzzTarget = FuzzTarget {
    name: "nats_frames",
    dictionary: &[
        "CONNECT ",
        "PUB ",
        "HPUB ",
        "SUB ",
        "UNSUB ",
        "PING",
        "PONG",
        "\r\n",
        "\n",
        " ",
        "\t",
        "job.echo",
        ">",
        "*",
        "_INBOX.1",
        "NATS/1.0\r\n\r\n",
        "{\"verbose\":true}",
        "0",
        "1024",
        "1025",
        "+1",
    ],
    run,
};

fn run(input: &[u8], signal: &mut FuzzSignal) {
    let whole = read([input]);
    assert_eq!(whole, read(pieces(input)), "it depends on how the bytes arrive");
    assert_eq!(whole, read(input.chunks(1)), "it depends on how the bytes arrive, one by one");
    for operation in &whole.0 {
        let written = write(operation);
        assert_eq!(read([written.as_slice()]), (vec![operation.clone()], None), "written again");
        signal.see(std::mem::discriminant(operation));
    }
    signal.see(whole.1.map(|error| error.to_string()));
}

fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Operation>, Option<ParseError>) {
    let limits = NatsLimits {
        payload_len_max: PAYLOAD_LEN_MAX,
        control_line_len_max: CONTROL_LINE_LEN_MAX,
        ..NatsLimits::default()
    };
    let (mut parser, mut buffer, mut operations) = (NatsParser::new(&limits), BytesMut::new(), Vec::new());
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            match parser.next(&mut buffer) {
                Ok(Some(operation)) => operations.push(operation),
                Ok(None) => break,
                Err(error) => return (operations, Some(error)),
            }
        }
        assert!(buffer.len() <= PAYLOAD_LEN_MAX + 2, "{} bytes wait for more", buffer.len());
    }
    (operations, None)
}

/// Control lines end in a bare line feed, so that no line is longer than it was.
fn write(operation: &Operation) -> Vec<u8> {
    let optional = |word: &Option<String>| word.as_ref().map(|word| format!("{word} ")).unwrap_or_default();
    match operation {
        Operation::Connect(json) => [b"CONNECT ", &json[..], b"\n"].concat(),
        Operation::Ping => b"PING\n".to_vec(),
        Operation::Pong => b"PONG\n".to_vec(),
        Operation::Subscribe { subject, queue, sid } => {
            format!("SUB {subject} {}{sid}\n", optional(queue)).into_bytes()
        }
        Operation::Unsubscribe { sid, after } => {
            let after = after.map(|after| format!(" {after}")).unwrap_or_default();
            format!("UNSUB {sid}{after}\n").into_bytes()
        }
        Operation::Publish(Publish { subject, reply, headers, payload }) => {
            let headers_len = headers.as_ref().map(bytes::Bytes::len);
            let total = headers_len.unwrap_or(0) + payload.len();
            let head = match headers_len {
                None => format!("PUB {subject} {}{total}\n", optional(reply)),
                Some(headers) => format!("HPUB {subject} {}{headers} {total}\n", optional(reply)),
            };
            [head.as_bytes(), headers.as_deref().unwrap_or_default(), payload, b"\r\n"].concat()
        }
    }
}
