//! Keeps what is sent in the store, on a separate thread. Takes requests with their plans, and later what the provider
//! reported for them; whoever hides something for the first time waits until it is on disk, all others go on at once.
//! Never holds more than some requests back: what does not fit into its queue is not kept, and counted. A store file that is
//! deleted or replaced is opened again, and made where there is none.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    },
    thread::JoinHandle,
    time::Duration,
};

use anyhow::{Result, anyhow, bail};
use trimtab_core::{
    ChainHash, Handle, History, Memory, Millis, Plan, Usage, markers::AddedFields, memory::Wishes,
};
use trimtab_store::{
    Append, Appended, NewWish, RequestId, Retention, Sqlite, Store, StoreError, StoredSummary, WishKind,
};

use crate::store::tidy_now_and_then;

use super::{
    headers::ClientHeaders,
    planning::current_time,
    sessions::{CommitRequest, KeepWhen, KeptRequestId},
    store_health::{StoreHealth, UnkeptReason},
};

/// How many requests wait at most, and how many bytes they may have together.
const WAITING: usize = 1024;
const WAITING_BYTES: usize = 64 * 1024 * 1024;

/// After how long without a request the store gives its memory back.
const IDLE: Duration = Duration::from_secs(20);

/// How many requests may be waiting for what their provider reports.
const UNREPORTED: usize = 4096;

/// The store and its queue.
pub(crate) struct StoreWriter {
    place: Arc<OpenStore>,
    queue: Option<SyncSender<WriterMessage>>,
    thread: Option<JoinHandle<()>>,
    next: AtomicU64,
}

/// The store that is open now.
struct OpenStore {
    path: PathBuf,
    retention: Retention,
    store: RwLock<Arc<Sqlite>>,
    /// How often it was opened again: what was kept before is not in it.
    opened_again: AtomicU64,
    health: StoreHealth,
}

impl OpenStore {
    fn current_store(&self) -> Arc<Sqlite> {
        Arc::clone(&self.store.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Opens the store again; makes it where there is none.
    fn open_again(&self) -> Result<Arc<Sqlite>> {
        let store = Arc::new(Sqlite::open(&self.path)?);
        *self.store.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&store);
        self.opened_again.fetch_add(1, Ordering::Release);
        self.health.add_news(format!(
            "{}: the store's file was deleted or replaced and is opened again; conversations are kept in it as they go on, \
             originals of ended ones are not in it",
            self.path.display()
        ));
        tidy_now_and_then(&store, self.retention);
        Ok(store)
    }
}

enum WriterMessage {
    Keep(Box<RequestToKeep>),
    Answered(KeptRequestId, Usage),
    Pinged(KeptRequestId, Millis, Usage),
    Refused(KeptRequestId),
    IsKept(KeptRequestId, SyncSender<bool>),
    Summarized(Box<SummaryToKeep>),
    Pin(Box<PinRequest>),
}

/// Blocks that a client asked to keep visible, with the request that it asked in.
struct PinRequest {
    history: Arc<History>,
    pins: Vec<Handle>,
    client: Arc<ClientHeaders>,
    waiting: SyncSender<()>,
}

struct SummaryToKeep {
    history: Arc<History>,
    covers: ChainHash,
    text: String,
    client: Arc<ClientHeaders>,
    waiting: SyncSender<Result<()>>,
}

struct RequestToKeep {
    name: KeptRequestId,
    history: Arc<History>,
    plan: Arc<Plan>,
    added: Arc<AddedFields>,
    client: Arc<ClientHeaders>,
    now: Millis,
    /// Who waits for it to be on disk.
    waiting: Option<SyncSender<Result<()>>>,
}

impl StoreWriter {
    /// Starts keeping.
    ///
    /// # Errors
    /// Says that no thread can be started.
    pub(crate) fn start(store: Sqlite, retention: Retention) -> Result<StoreWriter> {
        let (path, store) = (store.path().to_owned(), Arc::new(store));
        tidy_now_and_then(&store, retention);
        let place = Arc::new(OpenStore {
            path,
            retention,
            store: RwLock::new(store),
            opened_again: AtomicU64::default(),
            health: StoreHealth::default(),
        });
        let (queue, words) = sync_channel(WAITING);
        let thread = std::thread::Builder::new().name("keep".to_owned()).spawn({
            let place = Arc::clone(&place);
            move || write_queue(&place, &words)
        })?;
        Ok(StoreWriter { place, queue: Some(queue), thread: Some(thread), next: AtomicU64::new(1) })
    }

    /// Keeps a request: at once where something must not be lost, else as soon as it can be.
    ///
    /// # Errors
    /// Says why it is not on disk, where it must be.
    pub(crate) fn keep_request(&self, commit: &CommitRequest<'_>) -> Result<Option<KeptRequestId>> {
        let name = KeptRequestId(self.next.fetch_add(1, Ordering::Relaxed));
        let (history, plan) = (Arc::clone(commit.history), Arc::clone(commit.plan));
        let bytes = history.bytes().len();
        let (added, client) = (Arc::clone(commit.added), Arc::clone(commit.client));
        let kept = RequestToKeep { name, history, plan, added, client, now: commit.now, waiting: None };
        let queue = self.queue.as_ref().ok_or_else(stopped_error)?;
        match commit.when {
            KeepWhen::BeforeSending => {
                let (waiting, done) = sync_channel(1);
                let kept = RequestToKeep { waiting: Some(waiting), ..kept };
                self.place.health.begin_waiting(bytes, usize::MAX);
                queue.send(WriterMessage::Keep(Box::new(kept))).map_err(|_| stopped_error())?;
                done.recv().map_err(|_| stopped_error())??;
                Ok(Some(name))
            }
            KeepWhen::Later if !self.place.health.begin_waiting(bytes, WAITING_BYTES) => {
                self.count_unkept(UnkeptReason::QueueFull);
                Ok(None)
            }
            KeepWhen::Later => match queue.try_send(WriterMessage::Keep(Box::new(kept))) {
                Ok(()) => Ok(Some(name)),
                Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                    self.place.health.end_waiting(bytes);
                    self.count_unkept(UnkeptReason::QueueFull);
                    Ok(None)
                }
            },
        }
    }

    /// Tells whether a request is on disk, as soon as all that came before it was worked on.
    pub(crate) fn is_kept(&self, name: KeptRequestId) -> bool {
        let (waiting, done) = sync_channel(1);
        let is_asked =
            self.queue.as_ref().is_some_and(|queue| queue.send(WriterMessage::IsKept(name, waiting)).is_ok());
        is_asked && done.recv().unwrap_or(false)
    }

    /// Notes what a provider reported for a request.
    pub(crate) fn record_usage(&self, name: KeptRequestId, usage: Usage) {
        self.send_report(WriterMessage::Answered(name, usage));
    }

    /// Notes what a ping after a request used.
    pub(crate) fn record_ping(&self, name: KeptRequestId, at: Millis, usage: Usage) {
        self.send_report(WriterMessage::Pinged(name, at, usage));
    }

    /// Notes that a provider refused a request.
    pub(crate) fn record_refusal(&self, name: KeptRequestId) {
        self.send_report(WriterMessage::Refused(name));
    }

    fn send_report(&self, word: WriterMessage) {
        let queued = self.queue.as_ref().map(|queue| queue.try_send(word));
        if !matches!(queued, Some(Ok(()))) {
            self.count_unkept(UnkeptReason::Report);
        }
    }

    /// Returns what was sent of a conversation before this process began.
    ///
    /// # Errors
    /// Says why it cannot be read.
    pub(crate) fn find_memory(&self, history: &History, client: &ClientHeaders) -> Result<Memory> {
        let store = self.place.current_store();
        let known = client.with_label(history, |label| store.recognize(history, label))?;
        let mut memory = known.memory;
        if let Some(session) = known.session {
            for summary in store.summaries(session)? {
                memory.remember_summary(summary.through, &summary.text);
            }
        }
        Ok(memory)
    }

    /// Returns a number that is another one when something new is asked for about single blocks.
    ///
    /// # Errors
    /// Says why it cannot be read.
    pub(crate) fn newest_wish(&self) -> Result<u64> {
        Ok(self.place.current_store().newest_wish()?)
    }

    /// Returns what is asked for about the blocks of a request.
    ///
    /// # Errors
    /// Says why it cannot be read.
    pub(crate) fn find_wishes(
        &self,
        history: &History,
        chain: &[ChainHash],
        client: &ClientHeaders,
    ) -> Result<Wishes> {
        let store = self.place.current_store();
        Ok(client.with_label(history, |label| store.wishes(history, chain, label))?)
    }

    /// Keeps the pins that came with a request, after the request itself, and waits until that is done.
    pub(crate) fn keep_pins(&self, history: &Arc<History>, pins: Vec<Handle>, client: &Arc<ClientHeaders>) {
        let (waiting, done) = sync_channel(1);
        let (history, client) = (Arc::clone(history), Arc::clone(client));
        let word = WriterMessage::Pin(Box::new(PinRequest { history, pins, client, waiting }));
        let is_queued = self.queue.as_ref().is_some_and(|queue| queue.send(word).is_ok());
        if is_queued {
            // Without an answer they are not kept; they are counted where that happens.
            let _ = done.recv();
        }
    }

    /// Keeps a summary of everything up to a block, and waits until it is on disk.
    ///
    /// # Errors
    /// Says why it is not.
    pub(crate) fn keep_summary(
        &self,
        history: &Arc<History>,
        covers: ChainHash,
        text: &str,
        client: &Arc<ClientHeaders>,
    ) -> Result<()> {
        let queue = self.queue.as_ref().ok_or_else(stopped_error)?;
        let (waiting, done) = sync_channel(1);
        let (history, client, text) = (Arc::clone(history), Arc::clone(client), text.to_owned());
        let word =
            WriterMessage::Summarized(Box::new(SummaryToKeep { history, covers, text, client, waiting }));
        queue.send(word).map_err(|_| stopped_error())?;
        done.recv().map_err(|_| stopped_error())?
    }

    /// Counts something that was not kept.
    pub(crate) fn count_unkept(&self, why: UnkeptReason) {
        self.place.health.count_unkept(why);
    }

    /// Returns how keeping goes.
    pub(crate) fn health(&self) -> &StoreHealth {
        &self.place.health
    }

    /// Returns how often the store was opened again because its file was deleted or replaced.
    pub(crate) fn times_opened_again(&self) -> u64 {
        self.place.opened_again.load(Ordering::Acquire)
    }
}

impl Drop for StoreWriter {
    fn drop(&mut self) {
        // Without a sender the thread ends when it has kept what waits.
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn stopped_error() -> anyhow::Error {
    anyhow!("keeping has ended")
}

fn write_queue(place: &OpenStore, words: &Receiver<WriterMessage>) {
    let requests: Mutex<BTreeMap<KeptRequestId, RequestId>> = Mutex::default();
    let mut is_idle = false;
    loop {
        let word = match words.recv_timeout(IDLE) {
            Ok(word) => word,
            Err(RecvTimeoutError::Timeout) => {
                // Once is enough until there is something to do again.
                if !std::mem::replace(&mut is_idle, true) {
                    place.current_store().release_memory();
                }
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        };
        is_idle = false;
        // A fault in one request must not end the keeping of all others.
        let bytes = match &word {
            WriterMessage::Keep(kept) => kept.history.bytes().len(),
            WriterMessage::Answered(..)
            | WriterMessage::Pinged(..)
            | WriterMessage::Refused(_)
            | WriterMessage::IsKept(..)
            | WriterMessage::Summarized(_)
            | WriterMessage::Pin(_) => 0,
        };
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut requests = requests.lock().unwrap_or_else(PoisonError::into_inner);
            write_message(place, word, &mut requests)
        }));
        place.health.end_waiting(bytes);
        if let Some(why) = done.unwrap_or(Some(UnkeptReason::StoreFailed)) {
            place.health.count_unkept(why);
        }
    }
}

/// Does one thing; tells what of it is not kept.
fn write_message(
    place: &OpenStore,
    word: WriterMessage,
    requests: &mut BTreeMap<KeptRequestId, RequestId>,
) -> Option<UnkeptReason> {
    let mut store = place.current_store();
    match word {
        WriterMessage::Keep(kept) => {
            let mut done = append_request(&store, &kept);
            if done.is_err() && !store.is_in_place() {
                // Numbers of the old file mean nothing in another.
                requests.clear();
                done = place.open_again().and_then(|opened| {
                    store = opened;
                    append_request(&store, &kept)
                });
            }
            match &done {
                Ok(_) => place.health.note_success(),
                Err(fault) if fault.is::<StoreError>() => place.health.note_failure(&format!("{fault:#}")),
                // The store works: another process was faster.
                Err(_) => {}
            }
            let stored = done.as_ref().ok().copied();
            if let Some(request) = stored {
                requests.insert(kept.name, request);
                if requests.len() > UNREPORTED {
                    requests.pop_first();
                }
            }
            let Some(waiting) = &kept.waiting else {
                return stored.is_none().then_some(UnkeptReason::StoreFailed);
            };
            // Whoever waits may try again before the request counts as not kept, and may have left.
            let _ = waiting.send(done.map(drop));
            None
        }
        WriterMessage::Summarized(summary) => {
            let _ = summary.waiting.send(write_summary(&store, &summary));
            None
        }
        WriterMessage::Pin(asked) => {
            let is_kept = write_pins(&store, &asked).is_ok();
            // Whoever waits goes on either way.
            let _ = asked.waiting.send(());
            (!is_kept).then_some(UnkeptReason::StoreFailed)
        }
        WriterMessage::IsKept(name, waiting) => {
            // Whoever asked may have left.
            let _ = waiting.send(requests.contains_key(&name) && store.is_in_place());
            None
        }
        WriterMessage::Refused(name) => {
            // It may be sent once more unchanged, and answered.
            let is_kept = requests.get(&name).is_some_and(|request| store.record_refusal(*request).is_ok());
            (!is_kept).then_some(UnkeptReason::Report)
        }
        WriterMessage::Answered(name, usage) => {
            // It stays known by its name: pings may follow.
            let is_kept =
                requests.get(&name).is_some_and(|request| store.record_usage(*request, &usage).is_ok());
            (!is_kept).then_some(UnkeptReason::Report)
        }
        WriterMessage::Pinged(name, at, usage) => {
            let is_kept =
                requests.get(&name).is_some_and(|request| store.record_ping(*request, at, &usage).is_ok());
            (!is_kept).then_some(UnkeptReason::Report)
        }
    }
}

fn write_summary(store: &Sqlite, summarized: &SummaryToKeep) -> Result<()> {
    let SummaryToKeep { history, covers, text, client, .. } = summarized;
    let known = client.with_label(history, |label| store.find_place(history, history.chain(), label))?;
    // A conversation of which nothing is kept has nothing to go on with either.
    let Some(session) = known.session else { return Ok(()) };
    Ok(store
        .add_summary(session, &StoredSummary { at: current_time(), through: *covers, text: text.clone() })?)
}

fn write_pins(store: &Sqlite, asked: &PinRequest) -> Result<()> {
    let history = &asked.history;
    let place =
        asked.client.with_label(history, |label| store.find_place(history, history.chain(), label))?;
    // A conversation of which nothing is kept has nothing to go on with either.
    let Some(session) = place.session else { return Ok(()) };
    for handle in &asked.pins {
        let wish =
            NewWish { session: Some(session), handle: *handle, kind: WishKind::Pin, at: current_time() };
        match store.add_wish(&wish) {
            // A handle that no block has pins nothing.
            Ok(_) | Err(StoreError::NotInSession { .. }) => {}
            Err(fault) => return Err(fault.into()),
        }
    }
    Ok(())
}

fn append_request(store: &Sqlite, kept: &RequestToKeep) -> Result<RequestId> {
    let RequestToKeep { history, plan, added, client, now, .. } = kept;
    let known =
        client.with_label(history, |label| store.find_place(history, plan.chain().to_vec(), label))?;
    let append = Append::new(history, plan, &known, *now).with_added(added.insertions());
    match store.append_request(&append)? {
        Appended::Stored { request, .. } => Ok(request),
        Appended::SaidBefore { .. } => bail!("another process just hid other parts of this conversation"),
    }
}
