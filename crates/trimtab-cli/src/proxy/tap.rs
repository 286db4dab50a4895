//! An answer on its way to the client. Takes the provider's body; gives every frame on as it is and shows a copy to the reader
//! of usage. Never buffers: the next frame is asked for when the client has taken the last, and a client that leaves ends
//! the request upstream.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use super::usage::{Reader, Reading};

/// How an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The provider said all.
    Whole,
    /// The client left, or the provider broke off.
    Broken,
}

/// What is done when an answer has ended.
type Done = Box<dyn FnOnce(End, Option<Reading>) + Send>;

/// An answer that is read along.
pub(crate) struct Tap {
    /// What was already read to look at it.
    first: Option<Bytes>,
    inner: Option<Incoming>,
    reader: Option<Reader>,
    done: Option<Done>,
}

impl Tap {
    pub(crate) fn new(first: Bytes, inner: Option<Incoming>, reader: Option<Reader>, done: Done) -> Tap {
        let first = Some(first).filter(|first| !first.is_empty());
        Tap { first, inner, reader, done: Some(done) }
    }

    fn see(&mut self, frame: &Frame<Bytes>) {
        if let (Some(reader), Some(data)) = (&mut self.reader, frame.data_ref()) {
            reader.feed(data);
        }
    }

    fn end(&mut self, end: End) {
        let Some(done) = self.done.take() else { return };
        done(end, self.reader.as_mut().map(Reader::finish));
    }
}

impl Body for Tap {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if let Some(first) = self.first.take() {
            let frame = Frame::data(first);
            self.see(&frame);
            return Poll::Ready(Some(Ok(frame)));
        }
        let Some(inner) = &mut self.inner else {
            self.end(End::Whole);
            return Poll::Ready(None);
        };
        let polled = Pin::new(inner).poll_frame(context);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => self.see(frame),
            Poll::Ready(Some(Err(_))) => self.end(End::Broken),
            Poll::Ready(None) => self.end(End::Whole),
            Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let first = self.first.as_ref().map_or(0, |first| u64::try_from(first.len()).unwrap_or(u64::MAX));
        let rest = self.inner.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint);
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(first));
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(first));
        }
        hint
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        // The server need not ask for a frame behind the last.
        let end = if self.is_end_stream() { End::Whole } else { End::Broken };
        self.end(end);
    }
}
