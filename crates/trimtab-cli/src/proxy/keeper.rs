//! Keeps what is sent in the store, on a thread of its own. Takes requests with their plans, and later what the provider
//! reported for them; whoever hides something for the first time waits until it is on disk, all others go on at once.
//! Never holds more than a few requests back: what does not fit into its queue is not kept, and counted.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    thread::JoinHandle,
};

use anyhow::{Result, anyhow, bail};
use trimtab::{ChainHash, Handle, History, Memory, Millis, Plan, Usage, Wishes};
use trimtab_store::{
    Append, Appended, AskedWish, RequestId, Sqlite, Store, StoreError, Summary, WishKind, name_in_history,
};

use crate::store::tidy_now_and_then;

use super::planning::now;
use super::sessions::{Commit, KeptAs, When};

/// How many requests wait at most: each holds its bytes.
const WAITING: usize = 32;

/// How many requests may be waiting for what their provider reports.
const UNREPORTED: usize = 4096;

/// The store behind its queue.
pub(crate) struct Keeper {
    store: Arc<Sqlite>,
    queue: Option<SyncSender<Word>>,
    thread: Option<JoinHandle<()>>,
    next: AtomicU64,
    lost: Arc<AtomicU64>,
}

enum Word {
    Keep(Box<Kept>),
    Answered(KeptAs, Usage),
    Summarized(Box<Summarized>),
    Pin(Box<PinRequest>),
}

/// Blocks that a client asked to keep in sight, with the request that it asked in.
struct PinRequest {
    history: Arc<History>,
    pins: Vec<Handle>,
    waiting: SyncSender<()>,
}

struct Summarized {
    history: Arc<History>,
    covers: ChainHash,
    text: String,
    waiting: SyncSender<Result<()>>,
}

struct Kept {
    name: KeptAs,
    history: Arc<History>,
    plan: Arc<Plan>,
    now: Millis,
    /// Who waits for it to be on disk.
    waiting: Option<SyncSender<Result<()>>>,
}

impl Keeper {
    /// Starts keeping.
    ///
    /// # Errors
    /// Says that no thread can be started.
    pub(crate) fn start(store: Sqlite) -> Result<Keeper> {
        let (store, lost) = (Arc::new(store), Arc::new(AtomicU64::new(0)));
        tidy_now_and_then(&store);
        let (queue, words) = sync_channel(WAITING);
        let thread = std::thread::Builder::new().name("keep".to_owned()).spawn({
            let (store, lost) = (Arc::clone(&store), Arc::clone(&lost));
            move || work(&store, &words, &lost)
        })?;
        Ok(Keeper { store, queue: Some(queue), thread: Some(thread), next: AtomicU64::new(1), lost })
    }

    /// Keeps a request: at once where something must not be lost, else as soon as it can be.
    ///
    /// # Errors
    /// Says why it is not on disk, where it must be.
    pub(crate) fn keep(&self, commit: &Commit<'_>) -> Result<Option<KeptAs>> {
        let name = KeptAs(self.next.fetch_add(1, Ordering::Relaxed));
        let (history, plan) = (Arc::clone(commit.history), Arc::clone(commit.plan));
        let kept = Kept { name, history, plan, now: commit.now, waiting: None };
        let queue = self.queue.as_ref().ok_or_else(stopped)?;
        match commit.when {
            When::BeforeSending => {
                let (waiting, done) = sync_channel(1);
                let kept = Kept { waiting: Some(waiting), ..kept };
                queue.send(Word::Keep(Box::new(kept))).map_err(|_| stopped())?;
                done.recv().map_err(|_| stopped())??;
                Ok(Some(name))
            }
            When::Later => match queue.try_send(Word::Keep(Box::new(kept))) {
                Ok(()) => Ok(Some(name)),
                Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                    self.lost.fetch_add(1, Ordering::Relaxed);
                    Ok(None)
                }
            },
        }
    }

    /// Notes what a provider reported for a request.
    pub(crate) fn answered(&self, name: KeptAs, usage: Usage) {
        let sent = self.queue.as_ref().map(|queue| queue.try_send(Word::Answered(name, usage)));
        if !matches!(sent, Some(Ok(()))) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns what was sent of a conversation before this process began.
    ///
    /// # Errors
    /// Says why it cannot be read.
    pub(crate) fn known(&self, history: &History) -> Result<Memory> {
        let known = self.store.recognize(history, name_in_history(history).as_deref())?;
        let mut memory = known.memory;
        if let Some(session) = known.session {
            for summary in self.store.summaries(session)? {
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
        Ok(self.store.newest_wish()?)
    }

    /// Returns what is asked for about the blocks of a request.
    ///
    /// # Errors
    /// Says why it cannot be read.
    pub(crate) fn wishes(&self, history: &History, chain: &[ChainHash]) -> Result<Wishes> {
        Ok(self.store.wishes(history, chain, name_in_history(history).as_deref())?)
    }

    /// Keeps the pins that came with a request, behind the request itself, and waits until that is done.
    pub(crate) fn pin(&self, history: &Arc<History>, pins: Vec<Handle>) {
        let (waiting, done) = sync_channel(1);
        let word = Word::Pin(Box::new(PinRequest { history: Arc::clone(history), pins, waiting }));
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
    pub(crate) fn summarized(&self, history: &Arc<History>, covers: ChainHash, text: &str) -> Result<()> {
        let queue = self.queue.as_ref().ok_or_else(stopped)?;
        let (waiting, done) = sync_channel(1);
        let (history, text) = (Arc::clone(history), text.to_owned());
        let word = Word::Summarized(Box::new(Summarized { history, covers, text, waiting }));
        queue.send(word).map_err(|_| stopped())?;
        done.recv().map_err(|_| stopped())?
    }

    /// Returns how many requests and reports were not kept.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // Without a sender the thread ends when it has kept what waits.
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn stopped() -> anyhow::Error {
    anyhow!("keeping has ended")
}

fn work(store: &Sqlite, words: &Receiver<Word>, lost: &AtomicU64) {
    let requests: Mutex<BTreeMap<KeptAs, RequestId>> = Mutex::default();
    for word in words {
        // A fault in one request must not end the keeping of all others.
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut requests = requests.lock().unwrap_or_else(PoisonError::into_inner);
            one(store, word, &mut requests)
        }));
        if !matches!(done, Ok(true)) {
            lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Does one thing; tells whether it is kept.
fn one(store: &Sqlite, word: Word, requests: &mut BTreeMap<KeptAs, RequestId>) -> bool {
    match word {
        Word::Keep(kept) => {
            let done = append(store, &kept);
            let stored = done.as_ref().ok().copied();
            if let Some(request) = stored {
                requests.insert(kept.name, request);
                if requests.len() > UNREPORTED {
                    requests.pop_first();
                }
            }
            match &kept.waiting {
                // Whoever waits says what went wrong.
                Some(waiting) => waiting.send(done.map(drop)).is_ok(),
                None => stored.is_some(),
            }
        }
        Word::Summarized(summary) => summary.waiting.send(put(store, &summary)).is_ok(),
        Word::Pin(asked) => {
            let is_kept = pin(store, &asked).is_ok();
            // Whoever waits goes on either way.
            let _ = asked.waiting.send(());
            is_kept
        }
        Word::Answered(name, usage) => {
            requests.remove(&name).is_some_and(|request| store.answered(request, &usage).is_ok())
        }
    }
}

fn put(store: &Sqlite, summarized: &Summarized) -> Result<()> {
    let Summarized { history, covers, text, .. } = summarized;
    let known = store.recognize(history, name_in_history(history).as_deref())?;
    // A conversation of which nothing is kept has nothing to go on with either.
    let Some(session) = known.session else { return Ok(()) };
    Ok(store.summarized(session, &Summary { at: now(), through: *covers, text: text.clone() })?)
}

fn pin(store: &Sqlite, asked: &PinRequest) -> Result<()> {
    let history = &asked.history;
    let place = store.place(history, history.chain(), name_in_history(history).as_deref())?;
    // A conversation of which nothing is kept has nothing to go on with either.
    let Some(session) = place.session else { return Ok(()) };
    for handle in &asked.pins {
        let wish = AskedWish { session: Some(session), handle: *handle, kind: WishKind::Pin, at: now() };
        match store.wish(&wish) {
            // A handle that no block has pins nothing.
            Ok(_) | Err(StoreError::NotInSession { .. }) => {}
            Err(fault) => return Err(fault.into()),
        }
    }
    Ok(())
}

fn append(store: &Sqlite, kept: &Kept) -> Result<RequestId> {
    let Kept { history, plan, now, .. } = kept;
    let known = store.place(history, plan.chain().to_vec(), name_in_history(history).as_deref())?;
    match store.append(&Append::new(history, plan, &known, *now))? {
        Appended::Stored { request, .. } => Ok(request),
        Appended::SaidBefore { .. } => bail!("another process just hid other parts of this conversation"),
    }
}
