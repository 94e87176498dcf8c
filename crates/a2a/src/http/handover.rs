//! Knowing when a request has left: a body that says when it was taken, and a stream that says when
//! everything before a flush was written.
//!
//! hyper flushes its stream only when its own buffer is empty. So the first flush that succeeds
//! after the body was taken and bytes were written has the whole request behind it.

use crate::Received;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How far a request has come; shared by its body, its stream and whoever explains a failure.
#[derive(Debug, Default)]
pub(super) struct RequestProgress {
    /// hyper holds the whole body.
    taken: AtomicBool,
    /// At least one byte was written.
    begun: AtomicBool,
}

impl RequestProgress {
    pub(super) fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed)
    }
}

/// A body in one piece.
pub(super) struct WholeBody {
    piece: Option<Bytes>,
    progress: Arc<RequestProgress>,
}

impl WholeBody {
    pub(super) fn new(piece: Bytes, progress: Arc<RequestProgress>) -> Self {
        // hyper does not ask for a body of no length.
        progress.taken.store(piece.is_empty(), Ordering::Relaxed);
        Self { piece: Some(piece), progress }
    }
}

impl Body for WholeBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = self.piece.take().map(|piece| Ok(Frame::data(piece)));
        self.progress.taken.store(true, Ordering::Relaxed);
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.piece.as_ref().is_none_or(Bytes::is_empty)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.piece.as_ref().map_or(0, |piece| piece.len() as u64))
    }
}

/// A stream that calls `received` once, when the whole request was written to it.
pub(super) struct WatchedStream<Stream> {
    stream: Stream,
    progress: Arc<RequestProgress>,
    received: Option<Received>,
}

impl<Stream> WatchedStream<Stream> {
    pub(super) fn new(stream: Stream, progress: Arc<RequestProgress>, received: Received) -> Self {
        Self { stream, progress, received: Some(received) }
    }
}

impl<Stream: AsyncRead + Unpin> AsyncRead for WatchedStream<Stream> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<Stream: AsyncWrite + Unpin> AsyncWrite for WatchedStream<Stream> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, bytes))?;
        if written > 0 {
            self.progress.begun.store(true, Ordering::Relaxed);
        }
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        if self.progress.has_begun()
            && self.progress.taken.load(Ordering::Relaxed)
            && let Some(received) = self.received.take()
        {
            received();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
