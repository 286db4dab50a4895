//! Ground truth at rest. Takes every request unchanged, with what became of its blocks; gives back originals, requests and
//! verdicts, byte for byte, in any process. Never edits what was appended, and never keeps a key or a header: only the names of
//! a session and of its project are taken from them.
//!
//! ```
//! use trimtab_core::{Millis, Policy, Settings, fit, parse};
//! use trimtab_store::{Append, Appended, SessionLabel, Sqlite, Store};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("trimtab.db");
//! let store = Sqlite::open(&path)?;
//! let request = br#"{"model":"gpt-5","messages":[{"role":"user","content":"Hi"}]}"#.to_vec();
//! let history = parse(request.clone())?;
//! let known = store.recognize(&history, SessionLabel::default())?;
//! let settings = Settings::new(Policy::find_shipped("steady")?);
//! let fitted = fit(request.clone(), &known.memory, &settings, Millis(0))?;
//! let done = store.append_request(&Append::new(&fitted.history, &fitted.plan, &known, Millis(0)))?;
//! let Appended::Stored { request: id, .. } = done else { panic!("nobody else writes") };
//! assert_eq!(store.request(id)?.bytes, request);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod codec;
mod error;
mod name;
mod parts;
mod place;
mod project;
mod secrets;
mod spelling;
mod sqlite;
mod types;

pub use error::StoreError;
pub use name::{name_from_headers, name_from_request, name_in_history};
pub use place::default_path;
pub use project::{PROJECT_VARIABLE, current_project, project_in_header, project_named, project_of};
pub use secrets::{COVERED, Secrets};
pub use sqlite::Sqlite;
pub use types::{
    Append, Appended, CheckedCounts, DiskUsage, ForgetOutcome, ForgetSelection, HoldingSession, NewWish,
    Recognized, RequestId, RequestInfo, RequestVerdicts, Retention, RunMode, SearchHit, SearchQuery,
    SearchWithin, SessionId, SessionInfo, SessionLabel, SessionPage, SessionPageQuery, StoredPing,
    StoredRequest, StoredSummary, TidyOutcome, VerdictHistory, Wish, WishKind,
};

use trimtab_core::{ChainHash, History, Millis, Usage, memory::Wishes};

/// A store of conversations. Every call is one transaction: done as a whole, or not at all.
pub trait Store: Send + Sync {
    /// Finds the session that a request goes on with, and what was sent of it before.
    ///
    /// # Errors
    /// Says what is wrong with the store.
    fn recognize(&self, history: &History, label: SessionLabel<'_>) -> Result<Recognized, StoreError>;

    /// Finds the session that a request goes on with, for a request that is fitted already: the memory stays empty. `chain` is the
    /// identity of every block.
    ///
    /// # Errors
    /// Says what is wrong with the store.
    fn find_place(
        &self,
        history: &History,
        chain: Vec<ChainHash>,
        label: SessionLabel<'_>,
    ) -> Result<Recognized, StoreError>;

    /// Keeps a request and what became of its blocks. When this returns, all of it survives a crash.
    ///
    /// # Errors
    /// Says what is wrong with the store; nothing of the request was then kept.
    fn append_request(&self, request: &Append<'_>) -> Result<Appended, StoreError>;

    /// Keeps what the provider reported for a request.
    ///
    /// # Errors
    /// Says what is wrong with the store, or that there is no such request.
    fn record_usage(&self, request: RequestId, usage: &Usage) -> Result<(), StoreError>;

    /// Keeps what a ping after a request used, which kept the provider's cache alive. Nothing of its content is kept.
    ///
    /// # Errors
    /// Says what is wrong with the store, or that there is no such request.
    fn record_ping(&self, request: RequestId, at: Millis, usage: &Usage) -> Result<(), StoreError>;

    /// Notes that the provider refused a request: its verdicts are taken back, and what was new in it counts as never sent.
    ///
    /// # Errors
    /// Says what is wrong with the store, or that there is no such request.
    fn record_refusal(&self, request: RequestId) -> Result<(), StoreError>;

    /// Keeps a summary.
    ///
    /// # Errors
    /// Says what is wrong with the store, or that there is no such session.
    fn add_summary(&self, session: SessionId, summary: &StoredSummary) -> Result<(), StoreError>;

    /// Returns the summaries of a session, oldest first.
    ///
    /// # Errors
    /// Says what is wrong with the store, or which summary is damaged.
    fn summaries(&self, session: SessionId) -> Result<Vec<StoredSummary>, StoreError>;

    /// Keeps what is asked for about a block: every process that goes on with its session obeys from its next request on.
    ///
    /// # Errors
    /// Says what is wrong with the store, that no session holds the block, or that there is nothing to take back.
    fn add_wish(&self, wish: &NewWish) -> Result<Wish, StoreError>;

    /// Returns the pins that hold, oldest first: of a session, or of all.
    ///
    /// # Errors
    /// Says what is wrong with the store, or that there is no such session.
    fn pins(&self, session: Option<SessionId>) -> Result<Vec<Wish>, StoreError>;

    /// Returns a number that grows with every wish: where it is what it was, nothing new is asked for. Cheap enough for every
    /// request.
    ///
    /// # Errors
    /// Says what is wrong with the store.
    fn newest_wish(&self) -> Result<u64, StoreError>;

    /// Returns what is asked for about the blocks of a request. `chain` is the identity of every block.
    ///
    /// # Errors
    /// Says what is wrong with the store.
    fn wishes(
        &self,
        history: &History,
        chain: &[ChainHash],
        label: SessionLabel<'_>,
    ) -> Result<Wishes, StoreError>;

    /// Returns the original that a handle names.
    ///
    /// # Errors
    /// Says that there is none, or that what is stored is damaged.
    fn recall(&self, handle: &str) -> Result<Vec<u8>, StoreError>;

    /// Returns the sessions that hold the block that a handle names, the one used last first.
    ///
    /// # Errors
    /// Says that there is no such block, or what is wrong with the store.
    fn holders(&self, handle: &str) -> Result<Vec<HoldingSession>, StoreError>;

    /// Returns the sessions, the newest first.
    ///
    /// # Errors
    /// Says what is wrong with the store.
    fn sessions(&self) -> Result<Vec<SessionInfo>, StoreError>;

    /// Returns one session.
    ///
    /// # Errors
    /// Says what is wrong with the store, or that there is no such session.
    fn session(&self, session: SessionId) -> Result<SessionInfo, StoreError>;

    /// Returns some sessions of a list, the newest first. Costs what it returns, however many there are.
    ///
    /// # Errors
    /// Says what is wrong with the store.
    fn session_page(&self, asked: &SessionPageQuery<'_>) -> Result<SessionPage, StoreError>;

    /// Returns what became of the blocks of every request of a session, without reading the requests.
    ///
    /// # Errors
    /// Says what is wrong with the store, or that there is no such session.
    fn verdict_history(&self, session: SessionId) -> Result<VerdictHistory, StoreError>;

    /// Returns the requests of a session in the order in which they were made.
    ///
    /// # Errors
    /// Says what is wrong with the store, or that there is no such session.
    fn requests(&self, session: SessionId) -> Result<Vec<RequestInfo>, StoreError>;

    /// Returns the first and the last request of a session.
    ///
    /// # Errors
    /// Says what is wrong with the store, or that there is no such session.
    fn first_and_last(&self, session: SessionId) -> Result<(RequestInfo, RequestInfo), StoreError>;

    /// Returns the client's request, with what became of its blocks.
    ///
    /// # Errors
    /// Says that there is none, or what of it is damaged.
    fn request(&self, request: RequestId) -> Result<StoredRequest, StoreError>;

    /// Finds blocks that hold all words of a query, the best first. Words in secrets do not count.
    ///
    /// # Errors
    /// Says what is wrong with the store.
    fn search(&self, query: &SearchQuery<'_>) -> Result<Vec<SearchHit>, StoreError>;

    /// Forgets sessions, with everything that no other session holds.
    ///
    /// # Errors
    /// Says what is wrong with the store, or that there is no such session.
    fn forget(&self, which: &ForgetSelection, mode: RunMode) -> Result<ForgetOutcome, StoreError>;

    /// Puts what was appended in small pieces together, so that it takes less space. Safe at any time.
    ///
    /// # Errors
    /// Says what is wrong with the store.
    fn tidy(&self) -> Result<TidyOutcome, StoreError>;

    /// Tells how much is kept.
    ///
    /// # Errors
    /// Says what is wrong with the store.
    fn disk_usage(&self) -> Result<DiskUsage, StoreError>;

    /// Reads everything and compares it with its hashes.
    ///
    /// # Errors
    /// Names the first thing that is damaged.
    fn check_contents(&self) -> Result<CheckedCounts, StoreError>;
}
