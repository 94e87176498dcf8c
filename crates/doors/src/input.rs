//! Reading from a client into a buffer that is bounded, for both doors.

use bytes::{BufMut, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

/// How much room there is for one read.
const READ_LEN: usize = 16 * 1024;

/// A buffer that grew beyond this for something large is released.
const BUFFER_KEPT_LEN_MAX: usize = 64 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Input {
    More,
    /// A broken socket and one that the client closed end the same way.
    End,
    /// There are `len_max` bytes in the buffer that no command was made of.
    TooMuch,
}

/// Reads what there is. The buffer never holds more than `len_max`. Where that is no limit, what is left in it is at
/// most the beginning of one operation, which the parser's limits bound, so the buffer is bounded too.
pub(crate) async fn read_more(
    reader: &mut (impl AsyncRead + Unpin),
    buffer: &mut BytesMut,
    len_max: usize,
) -> Input {
    if buffer.is_empty() && buffer.capacity() > BUFFER_KEPT_LEN_MAX {
        *buffer = BytesMut::new();
    }
    let room = len_max.saturating_sub(buffer.len());
    if room == 0 {
        return Input::TooMuch;
    }
    buffer.reserve(room.min(READ_LEN));
    match reader.read_buf(&mut buffer.limit(room)).await {
        Ok(0) | Err(_) => Input::End,
        Ok(_) => Input::More,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_buffer_holds_no_more_than_its_limit() {
        let sent = vec![b'x'; 100_000];
        let (mut reader, mut buffer) = (sent.as_slice(), BytesMut::new());
        assert_eq!(read_more(&mut reader, &mut buffer, 20_000).await, Input::More);
        while read_more(&mut reader, &mut buffer, 20_000).await == Input::More {}
        assert_eq!(buffer.len(), 20_000);
        assert_eq!(read_more(&mut reader, &mut buffer, 20_000).await, Input::TooMuch);
        while read_more(&mut reader, &mut buffer, usize::MAX).await == Input::More {}
        assert_eq!(buffer.len(), 100_000);
    }
}
