//! Parses requests: arrays of bulk strings, or words on a line, incrementally.
//!
//! The parser takes each argument off the front of the buffer once it is complete, so that large values are scanned
//! once however slowly they arrive. A frame is bounded as a whole, not only in its parts: 64 arguments of the largest
//! size would be 640 MiB. Public for those who feed it with nonsense (`fuzz/`).

use super::http::{is_http_command, is_request_line};
use bytes::{Buf, Bytes, BytesMut};
use reveille_store::BLOB_LEN_MAX;

/// The most arguments that a command may have, its name included.
pub const ARGUMENTS_MAX: usize = 64;

/// The most bytes of all arguments together: the largest blob, and room for the rest of its SET.
pub(super) const FRAME_LEN_MAX: usize = BLOB_LEN_MAX + 64 * 1024;

/// The longest command that is not an array.
const INLINE_LEN_MAX: usize = 4 * 1024;

/// The longest line that says how much follows.
const COUNT_LINE_LEN_MAX: usize = 32;

/// Below this, a value is copied out of the read buffer instead of keeping all of it alive.
const COPIED_LEN_MAX: usize = 64 * 1024;

/// The arguments of one command; the first is its name, so there is at least one.
pub type RespFrame = Vec<Bytes>;

/// Why a client's bytes cannot be parsed any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    #[error("ERR Protocol error: invalid multibulk length, at most {ARGUMENTS_MAX} are allowed")]
    ArgumentCount,
    #[error("ERR Protocol error: expected '$'")]
    ExpectedBulk,
    #[error("ERR Protocol error: invalid bulk length, at most {BLOB_LEN_MAX} bytes are allowed")]
    BulkLength,
    #[error("ERR Protocol error: the command is too large")]
    TooLarge,
    #[error("ERR Protocol error: a bulk string must end in a line end")]
    ExpectedLineEnd,
    #[error("ERR Protocol error: too big inline request")]
    LineTooLong,
    /// The client is not told: it is a web page, and nobody reads it.
    #[error("ERR this is not an HTTP server")]
    Http,
}

#[derive(Debug)]
pub struct RespParser {
    frame_len_max: usize,
    /// How much of the buffer is known to contain no line end.
    searched: usize,
    /// An array that has begun.
    partial: Option<Partial>,
}

#[derive(Debug)]
struct Partial {
    arguments: Vec<Bytes>,
    count: usize,
    /// The length of the argument that is being received.
    bulk_len: Option<usize>,
    /// The size of the arguments so far.
    len: usize,
}

impl RespParser {
    pub fn new(frame_len_max: usize) -> Self {
        Self { frame_len_max, searched: 0, partial: None }
    }

    pub fn set_frame_len_max(&mut self, frame_len_max: usize) {
        self.frame_len_max = frame_len_max;
    }

    /// The next command, or nothing until more bytes arrive.
    pub fn next(&mut self, buffer: &mut BytesMut) -> Result<Option<RespFrame>, FrameError> {
        loop {
            if let Some(mut partial) = self.partial.take() {
                if !self.fill(&mut partial, buffer)? {
                    self.partial = Some(partial);
                    return Ok(None);
                }
                let frame = partial.arguments;
                return if is_http_command(&frame) { Err(FrameError::Http) } else { Ok(Some(frame)) };
            }
            match buffer.first() {
                None => return Ok(None),
                Some(b'*') => {
                    let Some(count) = self.count(buffer, FrameError::ArgumentCount)? else { return Ok(None) };
                    self.partial = begin(count)?;
                }
                Some(_) => {
                    let Some(end) = self.line_end(buffer, INLINE_LEN_MAX, FrameError::LineTooLong)? else {
                        return Ok(None);
                    };
                    let words = inline_words(&buffer[..end])?;
                    buffer.advance(end + 1);
                    if is_http_command(&words) || is_request_line(&words) {
                        return Err(FrameError::Http);
                    }
                    if !words.is_empty() {
                        return Ok(Some(words));
                    }
                }
            }
        }
    }

    /// Takes arguments until the frame is complete or the buffer is used up; returns which.
    fn fill(&mut self, partial: &mut Partial, buffer: &mut BytesMut) -> Result<bool, FrameError> {
        while partial.arguments.len() < partial.count {
            let bulk_len = match partial.bulk_len {
                Some(bulk_len) => bulk_len,
                None => match self.bulk_len(buffer)? {
                    Some(bulk_len) => bulk_len,
                    None => return Ok(false),
                },
            };
            if partial.len + bulk_len > self.frame_len_max {
                return Err(FrameError::TooLarge);
            }
            partial.bulk_len = Some(bulk_len);
            let Some(argument) = take_bulk(buffer, bulk_len)? else { return Ok(false) };
            partial.arguments.push(argument);
            partial.len += bulk_len;
            partial.bulk_len = None;
        }
        Ok(true)
    }

    fn bulk_len(&mut self, buffer: &mut BytesMut) -> Result<Option<usize>, FrameError> {
        match buffer.first() {
            None => return Ok(None),
            Some(b'$') => {}
            Some(_) => return Err(FrameError::ExpectedBulk),
        }
        let Some(len) = self.count(buffer, FrameError::BulkLength)? else { return Ok(None) };
        let len = usize::try_from(len).ok().filter(|len| *len <= BLOB_LEN_MAX);
        len.map(Some).ok_or(FrameError::BulkLength)
    }

    /// Takes a line of one marker and a number.
    fn count(&mut self, buffer: &mut BytesMut, error: FrameError) -> Result<Option<i64>, FrameError> {
        let Some(end) = self.line_end(buffer, COUNT_LINE_LEN_MAX, error)? else { return Ok(None) };
        let digits = std::str::from_utf8(&buffer[1..end]).map_err(|_| error)?;
        let count = digits.strip_suffix('\r').unwrap_or(digits).parse().map_err(|_| error)?;
        buffer.advance(end + 1);
        Ok(Some(count))
    }

    /// Where the first line of the buffer ends, if it does.
    fn line_end(
        &mut self,
        buffer: &[u8],
        len_max: usize,
        error: FrameError,
    ) -> Result<Option<usize>, FrameError> {
        let end = buffer[self.searched..].iter().position(|byte| *byte == b'\n');
        let len = end.map_or(buffer.len(), |end| self.searched + end);
        if len > len_max {
            return Err(error);
        }
        self.searched = if end.is_some() { 0 } else { len };
        Ok(end.map(|_| len))
    }
}

/// An empty array is neither a command nor an error.
fn begin(count: i64) -> Result<Option<Partial>, FrameError> {
    if count <= 0 {
        return Ok(None);
    }
    let count = usize::try_from(count).ok().filter(|count| *count <= ARGUMENTS_MAX);
    let count = count.ok_or(FrameError::ArgumentCount)?;
    Ok(Some(Partial { arguments: Vec::with_capacity(count), count, bulk_len: None, len: 0 }))
}

fn take_bulk(buffer: &mut BytesMut, len: usize) -> Result<Option<Bytes>, FrameError> {
    let Some(line_end) = buffer.get(len..len + 2) else { return Ok(None) };
    if line_end != b"\r\n" {
        return Err(FrameError::ExpectedLineEnd);
    }
    let bulk = if len <= COPIED_LEN_MAX {
        let bulk = Bytes::copy_from_slice(&buffer[..len]);
        buffer.advance(len);
        bulk
    } else {
        buffer.split_to(len).freeze()
    };
    buffer.advance(2);
    Ok(Some(bulk))
}

fn inline_words(line: &[u8]) -> Result<RespFrame, FrameError> {
    let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let words: RespFrame = words.map(Bytes::copy_from_slice).collect();
    if words.len() > ARGUMENTS_MAX { Err(FrameError::ArgumentCount) } else { Ok(words) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FRAME_LEN_MAX_IN_TESTS: usize = 100;

    fn feed<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Vec<String>>, Option<FrameError>) {
        let (mut parser, mut buffer, mut frames) =
            (RespParser::new(FRAME_LEN_MAX_IN_TESTS), BytesMut::new(), Vec::new());
        for piece in pieces {
            buffer.extend_from_slice(piece);
            loop {
                match parser.next(&mut buffer) {
                    Ok(Some(frame)) => {
                        assert!(!frame.is_empty());
                        frames.push(
                            frame.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect(),
                        );
                    }
                    Ok(None) => break,
                    Err(error) => return (frames, Some(error)),
                }
            }
        }
        (frames, None)
    }

    const EVERYTHING: &[u8] = b"*2\r\n$3\r\nGET\r\n$5\r\nctx:1\r\nPING\r\n\r\n*0\r\n*-1\r\n  SET  res:1 x \n\
        *3\r\n$3\r\nSET\r\n$5\r\nres:2\r\n$0\r\n\r\n*1\r\n$6\r\na\r\n\r\nb\r\n";

    fn everything() -> Vec<Vec<String>> {
        let frames: [&[&str]; 5] =
            [&["GET", "ctx:1"], &["PING"], &["SET", "res:1", "x"], &["SET", "res:2", ""], &["a\r\n\r\nb"]];
        frames.iter().map(|frame| frame.iter().map(ToString::to_string).collect()).collect()
    }

    #[test]
    fn every_form_is_understood_however_it_arrives() {
        assert_eq!(feed([EVERYTHING]), (everything(), None));
        assert_eq!(feed(EVERYTHING.chunks(1)), (everything(), None));
        for at in 0..EVERYTHING.len() {
            let (head, tail) = EVERYTHING.split_at(at);
            assert_eq!(feed([head, tail]), (everything(), None), "split at {at}");
        }
    }

    #[test]
    fn what_is_malformed_or_too_large_is_refused() {
        let long_line = [b'x'; INLINE_LEN_MAX + 1];
        let many_words = format!("{}\r\n", "x ".repeat(ARGUMENTS_MAX + 1));
        let too_long = format!("*1\r\n${}\r\n", BLOB_LEN_MAX + 1);
        let table: &[(&[u8], FrameError)] = &[
            (b"*65\r\n", FrameError::ArgumentCount),
            (b"*x\r\n", FrameError::ArgumentCount),
            (b"*\r\n", FrameError::ArgumentCount),
            (b"*11111111111111111111111111111111111", FrameError::ArgumentCount),
            (b"*1\r\n+OK\r\n", FrameError::ExpectedBulk),
            (b"*1\r\n$-1\r\n", FrameError::BulkLength),
            (b"*1\r\n$9223372036854775807\r\n", FrameError::BulkLength),
            (b"*1\r\n$1x\r\n", FrameError::BulkLength),
            (too_long.as_bytes(), FrameError::BulkLength),
            (b"*1\r\n$2\r\nabcd", FrameError::ExpectedLineEnd),
            (b"*1\r\n$101\r\n", FrameError::TooLarge),
            (b"*2\r\n$1\r\na\r\n$100\r\n", FrameError::TooLarge),
            (&long_line, FrameError::LineTooLong),
            (many_words.as_bytes(), FrameError::ArgumentCount),
            (b"GET / HTTP/1.1\r\n", FrameError::Http),
            (b"*2\r\n$4\r\npost\r\n$1\r\n/\r\n", FrameError::Http),
            (b"Host: localhost\n", FrameError::Http),
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
        fn likely_bytes_never_panic_in_any_pieces(
            words in prop::collection::vec("(\\*|\\$|-|\r\n|\n| |[a-z]{1,3}|[0-9]{1,2})", 0..64),
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
