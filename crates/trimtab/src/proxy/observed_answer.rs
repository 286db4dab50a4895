//! An answer on its way to the client. Takes the provider's body; gives every frame on as it is and shows a copy to the reader
//! of usage. Never waits for more: what came together is written together, and that at once. A client that takes nothing stops
//! the provider, and one that leaves ends the request upstream. A provider that stops in the middle of its answer is given up.

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::{Instant, Sleep, sleep};

use super::{
    intents::IntentStripper,
    usage::{UsageReader, UsageReading},
};

/// How long the end of an answer that broke off is delayed. A server that learns of it closes the connection at once, and what
/// it has not yet written goes with that: the client would get less than the provider said.
const WRITTEN_IN: Duration = Duration::from_millis(100);

/// How often in succession nothing must have come until what came is written. The server looks twice before it lets the provider's
/// connection bring more, so that it is the third look that finds it.
const LOOKS: u8 = 3;

/// How many frames and bytes are written together at most.
const FRAMES: usize = 64;
const BYTES: usize = 64 * 1024;

/// How an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerEnd {
    /// The provider said all.
    Whole,
    /// The client left, or the provider broke off.
    Broken,
}

/// Why an answer broke off.
type BreakCause = Box<dyn std::error::Error + Send + Sync>;

/// What is done when an answer has ended.
type OnAnswerEnd = Box<dyn FnOnce(AnswerEnd, Option<UsageReading>) + Send>;

/// Who looks at an answer on its way.
#[derive(Default)]
pub(crate) struct AnswerReaders {
    /// Who reads what it cost.
    pub(crate) reader: Option<UsageReader>,
    /// Who takes out of it what is not the client's.
    pub(crate) stripper: Option<IntentStripper>,
}

/// An answer that is read along.
pub(crate) struct ObservedAnswer {
    inner: Option<Incoming>,
    /// What has come and is not yet given on: also what was already read to look at it.
    ready: VecDeque<Frame<Bytes>>,
    stage: FrameStage,
    reader: Option<UsageReader>,
    /// What takes something out of the answer; gone when it gave its last.
    stripper: Option<IntentStripper>,
    done: Option<OnAnswerEnd>,
    /// Why the provider broke off, and when the client is to learn of it.
    broken: Option<(BreakCause, Pin<Box<Sleep>>)>,
    silence: Silence,
}

/// How long the provider has said nothing in the middle of an answer. Whether the client still listens is not known: one that
/// closed its connection looks like one that only has nothing more to say. So a silence must end, or the request never would.
struct Silence {
    limit: Duration,
    /// When a look first found nothing since something came.
    since: Option<Instant>,
    /// Wakes up at the end of the limit. Made at the first look that finds nothing, and used again: most answers have many pauses.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Silence {
    fn end(&mut self) {
        self.since = None;
    }

    /// Tells whether it has lasted too long; if it has not, the task is woken when it will have.
    fn is_too_long(&mut self, context: &mut Context<'_>) -> bool {
        let since = *self.since.get_or_insert_with(Instant::now);
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(self.limit)));
        // A timer that was set before the last words came is set again when it goes off, not at every word.
        while timer.as_mut().poll(context).is_ready() {
            if since.elapsed() >= self.limit {
                return true;
            }
            timer.as_mut().reset(since + self.limit);
        }
        false
    }
}

/// What is done with frames.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FrameStage {
    /// They are collected; so many looks found nothing.
    Collecting(u8),
    /// They are given on.
    Giving,
}

impl ObservedAnswer {
    pub(crate) fn new(
        first: Bytes,
        inner: Option<Incoming>,
        looked_at: AnswerReaders,
        silence: Duration,
        done: OnAnswerEnd,
    ) -> ObservedAnswer {
        let AnswerReaders { reader, stripper } = looked_at;
        let mut body = ObservedAnswer {
            inner,
            ready: VecDeque::new(),
            stage: FrameStage::Collecting(0),
            reader,
            stripper,
            done: Some(done),
            broken: None,
            silence: Silence { limit: silence, since: None, timer: None },
        };
        if !first.is_empty() {
            body.read_frame(Frame::data(first));
            body.stage = FrameStage::Giving;
        }
        body
    }

    fn read_frame(&mut self, frame: Frame<Bytes>) {
        if let (Some(reader), Some(data)) = (&mut self.reader, frame.data_ref()) {
            reader.feed(data);
        }
        let frame = match (&mut self.stripper, frame.into_data()) {
            (Some(stripper), Ok(data)) => Frame::data(Bytes::from(stripper.feed(&data))),
            (None, Ok(data)) => Frame::data(data),
            (_, Err(frame)) => frame,
        };
        if frame.data_ref().is_none_or(|data| !data.is_empty()) {
            self.ready.push_back(frame);
        }
    }

    /// Ends an answer that broke off.
    fn break_off(&mut self, cause: BreakCause) {
        self.finish(AnswerEnd::Broken);
        self.broken = Some((cause, Box::pin(sleep(WRITTEN_IN))));
    }

    fn finish(&mut self, end: AnswerEnd) {
        let Some(done) = self.done.take() else { return };
        done(end, self.reader.as_mut().map(UsageReader::finish));
    }

    /// Collects what has come. The provider's connection hands frames over one by one, and whoever writes to the client writes
    /// as soon as there is none: without a second look every event of a burst would be written by itself.
    fn collect_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while self.ready.len() < FRAMES && self.ready_bytes() < BYTES && self.broken.is_none() {
            let Some(inner) = self.inner.as_mut().filter(|inner| !inner.is_end_stream()) else { break };
            match Pin::new(inner).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    self.silence.end();
                    self.read_frame(frame);
                    self.stage = FrameStage::Collecting(0);
                }
                Poll::Ready(Some(Err(fault))) => self.break_off(fault.into()),
                Poll::Ready(None) => self.inner = None,
                Poll::Pending if self.ready.is_empty() => {
                    if !self.silence.is_too_long(context) {
                        return Poll::Pending;
                    }
                    self.break_off("the provider stopped in the middle of its answer".into());
                }
                Poll::Pending => match self.stage {
                    FrameStage::Collecting(looks) if looks + 1 < LOOKS => {
                        self.stage = FrameStage::Collecting(looks + 1);
                        context.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    FrameStage::Collecting(_) | FrameStage::Giving => break,
                },
            }
        }
        self.stage = FrameStage::Giving;
        Poll::Ready(())
    }

    fn ready_bytes(&self) -> usize {
        self.ready.iter().filter_map(Frame::data_ref).map(Bytes::len).sum()
    }
}

impl Body for ObservedAnswer {
    type Data = Bytes;
    type Error = BreakCause;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BreakCause>>> {
        if self.ready.is_empty() || self.stage != FrameStage::Giving {
            ready!(self.collect_ready(context));
        }
        if let Some(frame) = self.ready.pop_front() {
            return Poll::Ready(Some(Ok(frame)));
        }
        let rest = self.stripper.take().map(|mut stripper| stripper.finish()).unwrap_or_default();
        if !rest.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(Bytes::from(rest)))));
        }
        let Some((_, written)) = &mut self.broken else {
            self.finish(AnswerEnd::Whole);
            return Poll::Ready(None);
        };
        ready!(written.as_mut().poll(context));
        Poll::Ready(self.broken.take().map(|(fault, _)| Err(fault)))
    }

    fn is_end_stream(&self) -> bool {
        self.ready.is_empty()
            && self.broken.is_none()
            && self.stripper.is_none()
            && self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        if self.stripper.is_some() {
            return SizeHint::default();
        }
        let ready = u64::try_from(self.ready_bytes()).unwrap_or(u64::MAX);
        let rest = self.inner.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint);
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(ready));
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(ready));
        }
        hint
    }
}

impl Drop for ObservedAnswer {
    fn drop(&mut self) {
        // The server need not ask for a frame after the last.
        let end = if self.is_end_stream() { AnswerEnd::Whole } else { AnswerEnd::Broken };
        self.finish(end);
    }
}
