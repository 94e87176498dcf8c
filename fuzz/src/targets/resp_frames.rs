//! The RESP door's parser. Frames do not depend on how the bytes arrive, a frame that is written again reads the same,
//! what waits for more bytes is bounded, and no request of a browser ever becomes a command.

use super::{FuzzTarget, pieces};
use crate::signal::FuzzSignal;
use bytes::BytesMut;
use reveille_doors::resp::frame::{ARGUMENTS_MAX, FrameError, RespFrame, RespParser};

/// More than a command on a line may have.
const FRAME_LEN_MAX: usize = 8 * 1024;

pub const TARGET: FuzzTarget = FuzzTarget {
    name: "resp_frames",
    dictionary: &[
        "*",
        "$",
        "\r\n",
        "\n",
        "*1\r\n",
        "*2\r\n",
        "$3\r\n",
        "$-1\r\n",
        "GET",
        "SET",
        "PING",
        "res:1",
        "ctx:1",
        "POST / HTTP/1.1\r\n",
        "Host: localhost\r\n",
        "HTTP/1.1",
        " ",
        "8192",
        "8193",
        "64",
        "65",
    ],
    run,
};

fn run(input: &[u8], signal: &mut FuzzSignal) {
    let whole = read([input]);
    assert_eq!(whole, read(pieces(input)), "it depends on how the bytes arrive");
    assert_eq!(whole, read(input.chunks(1)), "it depends on how the bytes arrive, one by one");
    for frame in &whole.0 {
        assert!((1..=ARGUMENTS_MAX).contains(&frame.len()), "{} arguments", frame.len());
        let name = frame[0].to_ascii_uppercase();
        assert!(name != b"POST" && name != b"HOST:", "a line of an HTTP request is a command");
        assert_eq!(read([write(frame).as_slice()]), (vec![frame.clone()], None), "written again");
        signal.see_count(frame.len());
    }
    signal.see(whole.1.map(|error| error.to_string()));
    request_of_a_browser(input);
}

/// Whatever stands before the version in the first line of a request, what is behind it is not performed.
fn request_of_a_browser(input: &[u8]) {
    let target: Vec<u8> = input.iter().copied().filter(|byte| *byte != b'\n').collect();
    let request = [&target[..], b" HTTP/1.1\r\nHost: localhost\r\n\r\nSET res:1 x\r\n"].concat();
    let (frames, error) = read([request.as_slice()]);
    assert!(frames.is_empty() && error.is_some(), "performed {frames:?}");
}

fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<RespFrame>, Option<FrameError>) {
    let (mut parser, mut buffer, mut frames) = (RespParser::new(FRAME_LEN_MAX), BytesMut::new(), Vec::new());
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            match parser.next(&mut buffer) {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (frames, Some(error)),
            }
        }
        assert!(buffer.len() <= FRAME_LEN_MAX + 2, "{} bytes wait for more", buffer.len());
    }
    (frames, None)
}

fn write(frame: &RespFrame) -> Vec<u8> {
    let mut written = format!("*{}\r\n", frame.len()).into_bytes();
    for argument in frame {
        written.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        written.extend_from_slice(argument);
        written.extend_from_slice(b"\r\n");
    }
    written
}
