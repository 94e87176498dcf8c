//! Bodies that say whose turn it is: what a client sends, and what it reads.

use super::places::Place;
use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// What a client sends. Its time began with the head of the request and ends with the last byte: a byte now and
/// then buys none.
pub struct TakenBody {
    body: Incoming,
    place: Arc<Place>,
}

impl TakenBody {
    pub fn new(body: Incoming, place: Arc<Place>) -> Self {
        if body.is_end_stream() {
            place.works();
        }
        Self { body, place }
    }
}

impl HttpBody for TakenBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) || self.body.is_end_stream() {
            self.place.works();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// What a client reads. A piece that is handed over is waited for until the next one is asked for; while there is
/// none, as in a stream of events, nobody waits.
pub struct SentBody {
    body: Body,
    place: Arc<Place>,
}

impl SentBody {
    pub fn new(body: Body, place: Arc<Place>) -> Self {
        Self { body, place }
    }
}

impl HttpBody for SentBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        match polled {
            Poll::Ready(_) => self.place.waits_for_client(),
            Poll::Pending => self.place.works(),
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
