//! News for a page that is open: [`EventBody`], a stream of server-sent events. While somebody listens, the store's files are looked
//! at once a second; nobody reads them, and without listeners nothing happens at all.

use std::{
    convert::Infallible,
    path::PathBuf,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::{Duration, SystemTime},
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
    store: Option<PathBuf>,
    metrics: Option<Arc<Metrics>>,
    last: Option<StoreMark>,
    looks: u32,
    stopping: Arc<AtomicBool>,
    _place: ListenerPlace,
}

/// What changes when something is written or forwarded.
#[derive(Debug, Clone, PartialEq)]
struct StoreMark {
    files: Vec<Option<(u64, SystemTime)>>,
    requests: Option<f64>,
}

/// One of the places for listeners, given back when it is dropped.
struct ListenerPlace(Arc<AtomicUsize>);

impl Drop for ListenerPlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl PageServer {
    /// Begins a stream; nothing where too many listen.
    pub(super) fn begin_events(&self) -> Option<EventBody> {
        let taken = self.listeners.fetch_add(1, Ordering::Relaxed);
        let place = ListenerPlace(Arc::clone(&self.listeners));
        if taken >= LISTENERS {
            return None;
        }
        let mut ticks = interval(BETWEEN_LOOKS);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Some(EventBody {
            ticks,
            store: self.store_path(),
            metrics: self.options.metrics.clone(),
            last: None,
            looks: 0,
            stopping: Arc::clone(&self.stopping),
            _place: place,
        })
    }
}

impl EventBody {
    fn look(&self) -> StoreMark {
        let ends = ["", "-wal"];
        let of = |end: &str| {
            let mut name = self.store.clone()?.into_os_string();
            name.push(end);
            let about = std::fs::metadata(name).ok()?;
            Some((about.len(), about.modified().ok()?))
        };
        let requests = self.metrics.as_ref().map(|metrics| metrics.sums().conversations);
        StoreMark { files: ends.into_iter().map(of).collect(), requests }
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
            let now = self.look();
            let words: &'static [u8] = match &self.last {
                None => b"retry: 2000\n\n",
                Some(last) if *last != now => b"event: news\ndata: 1\n\n",
                Some(_) if self.looks >= LOOKS_PER_SIGN => b": still here\n\n",
                Some(_) => {
                    self.looks += 1;
                    continue;
                }
            };
            self.looks = 0;
            self.last = Some(now);
            return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(words)))));
        }
    }
}
