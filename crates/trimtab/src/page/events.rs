//! News for a page that is open: [`EventBody`], a stream of server-sent events. While somebody listens, the store's files are looked
//! at once a second; nobody reads them, and without listeners nothing happens at all.

use std::{
    convert::Infallible,
    hash::{DefaultHasher, Hash, Hasher},
    path::PathBuf,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use hyper::body::{Body, Frame};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::PageServer;
use crate::proxy::metrics::Metrics;

/// How often it is looked for news.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// After so many looks without news, something is sent all the same: a browser that has gone is then noticed.
const LOOKS_PER_SIGN: u32 = 15;

/// Pages that may listen at the same time.
const LISTENERS: usize = 32;

/// A stream of events that lasts until the browser leaves or the server stops.
pub(crate) struct EventBody {
    ticks: Interval,
    source: NewsSource,
    /// The mark of what the page shows.
    shown: NewsMark,
    is_begun: bool,
    looks: u32,
    stopping: Arc<AtomicBool>,
    _place: ListenerPlace,
}

/// What changes when something is written, forwarded or worked out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NewsMark(u64);

/// Where news come from.
struct NewsSource {
    store: Option<PathBuf>,
    metrics: Option<Arc<Metrics>>,
    background_steps: Arc<AtomicUsize>,
}

/// One of the places for listeners, given back when it is dropped.
struct ListenerPlace(Arc<AtomicUsize>);

impl Drop for ListenerPlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl NewsMark {
    /// Reads a mark from an address.
    pub(super) fn parse(text: &str) -> Option<NewsMark> {
        u64::from_str_radix(text, 16).ok().map(NewsMark)
    }
}

impl PageServer {
    /// Returns the mark of what there is to show now. A page takes it before it reads anything, so that a stream which begins with the
    /// mark tells of all that the page does not show.
    pub(super) fn news_mark(&self) -> String {
        format!("{:x}", self.news_source().mark().0)
    }

    /// Makes pages that follow ask again: more was worked out, or is there to be worked out.
    pub(super) fn tell_listeners(&self) {
        self.background_steps.fetch_add(1, Ordering::Relaxed);
    }

    fn news_source(&self) -> NewsSource {
        NewsSource {
            store: self.store_path(),
            metrics: self.options.metrics.clone(),
            background_steps: Arc::clone(&self.background_steps),
        }
    }

    /// Begins a stream for a page that shows what was there at a mark; nothing where too many listen.
    pub(super) fn begin_events(&self, shown: Option<NewsMark>) -> Option<EventBody> {
        let taken = self.listeners.fetch_add(1, Ordering::Relaxed);
        let place = ListenerPlace(Arc::clone(&self.listeners));
        if taken >= LISTENERS {
            return None;
        }
        let mut ticks = interval(BETWEEN_LOOKS);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let source = self.news_source();
        Some(EventBody {
            ticks,
            shown: shown.unwrap_or_else(|| source.mark()),
            source,
            is_begun: false,
            looks: 0,
            stopping: Arc::clone(&self.stopping),
            _place: place,
        })
    }
}

impl NewsSource {
    fn mark(&self) -> NewsMark {
        let mut hasher = DefaultHasher::new();
        for end in ["", "-wal"] {
            let about = self.store.as_ref().and_then(|store| {
                let mut name = store.clone().into_os_string();
                name.push(end);
                let about = std::fs::metadata(name).ok()?;
                Some((about.len(), about.modified().ok()?))
            });
            about.hash(&mut hasher);
        }
        let requests = self.metrics.as_ref().map(|metrics| metrics.sums().conversations.to_bits());
        (requests, self.background_steps.load(Ordering::Relaxed)).hash(&mut hasher);
        NewsMark(hasher.finish())
    }
}

impl Body for EventBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        loop {
            ready!(self.ticks.poll_tick(context));
            if self.stopping.load(Ordering::Relaxed) {
                return Poll::Ready(None);
            }
            let now = self.source.mark();
            let is_news = now != self.shown;
            let words: &'static [u8] = match (self.is_begun, is_news) {
                (false, false) => b"retry: 2000\n\n",
                (false, true) => b"retry: 2000\n\nevent: news\ndata: 1\n\n",
                (true, true) => b"event: news\ndata: 1\n\n",
                (true, false) if self.looks >= LOOKS_PER_SIGN => b": still here\n\n",
                (true, false) => {
                    self.looks += 1;
                    continue;
                }
            };
            (self.looks, self.is_begun, self.shown) = (0, true, now);
            return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(words)))));
        }
    }
}
