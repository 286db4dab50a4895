//! What is said to a store and what it answers: plain values, the same for every engine.

use std::collections::BTreeMap;

use trimtab_core::{
    BlockId, ChainHash, Format, Handle, History, Memory, Millis, Plan, SentVerdict, Usage,
    markers::{Insertion, write_insertions},
    memory::UndoWhen,
    parse_as,
    session::as_sent,
};

use crate::{Secrets, StoreError, error::damage_error};

/// The number of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub i64);

impl std::fmt::Display for SessionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "s{}", self.0)
    }
}

impl SessionId {
    /// Reads what [`Display`](std::fmt::Display) writes.
    pub fn parse_name(word: &str) -> Option<SessionId> {
        let digits = word.strip_prefix('s')?;
        let plain = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        if plain { digits.parse().ok().map(SessionId) } else { None }
    }
}

/// The number of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub i64);

/// What a client says about its conversation. The project decides where it is kept: a conversation never goes on in a session of
/// another project. The name only chooses between sessions that fit equally.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionLabel<'a> {
    /// The client's name for the conversation.
    pub name: Option<&'a str>,
    /// The project that the agent works in.
    pub project: Option<&'a str>,
}

impl<'a> SessionLabel<'a> {
    /// Labels a conversation whose project is not known.
    pub fn with_name(name: Option<&'a str>) -> SessionLabel<'a> {
        SessionLabel { name, project: None }
    }
}

/// What is known about a conversation before its next request is fitted.
#[derive(Debug, Clone)]
pub struct Recognized {
    /// The session that the request goes on with; none where it begins one.
    pub session: Option<SessionId>,
    /// What was sent before, for the blocks of this request.
    pub memory: Memory,
    /// The identity of every block of the request.
    pub chain: Vec<ChainHash>,
    /// How many leading blocks were sent before, in this session or another.
    pub known_blocks: usize,
    /// The request that this one continues.
    pub after: Option<RequestId>,
    /// Verdicts up to here were seen.
    pub seen: i64,
    /// The name the client gave.
    pub name: Option<String>,
    /// The project that the agent works in.
    pub project: Option<String>,
}

/// A request to keep.
#[derive(Debug, Clone, Copy)]
pub struct Append<'a> {
    /// The client's request.
    pub history: &'a History,
    /// What became of its blocks.
    pub plan: &'a Plan,
    /// What [`recognize`](crate::Store::recognize) said before it was fitted.
    pub known: &'a Recognized,
    /// When it is sent.
    pub at: Millis,
    /// What is inserted after it was fitted.
    pub added: &'a [Insertion],
}

impl<'a> Append<'a> {
    /// Names a request to keep.
    pub fn new(history: &'a History, plan: &'a Plan, known: &'a Recognized, at: Millis) -> Append<'a> {
        Append { history, plan, known, at, added: &[] }
    }

    /// Says what is inserted after it was fitted.
    #[must_use]
    pub fn with_added(self, added: &'a [Insertion]) -> Append<'a> {
        Append { added, ..self }
    }
}

/// What came of appending.
#[derive(Debug, Clone)]
pub enum Appended {
    /// The request is kept, with its originals and verdicts.
    Stored {
        /// Its session.
        session: SessionId,
        /// Its number.
        request: RequestId,
    },
    /// Another process said something else about some blocks in the meantime. Nothing was kept: tell the memory, fit again.
    SaidBefore {
        /// What it said.
        verdicts: Vec<(ChainHash, SentVerdict)>,
        /// Verdicts up to here are now seen.
        seen: i64,
    },
}

/// A model's summary of the beginning of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSummary {
    /// When it was made.
    pub at: Millis,
    /// The last block that it covers.
    pub through: ChainHash,
    /// The summary.
    pub text: String,
}

/// A session as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    /// Its number.
    pub id: SessionId,
    /// The name the client gave.
    pub name: Option<String>,
    /// The project that the agent worked in.
    pub project: Option<String>,
    /// The wire format of its last request.
    pub format: Format,
    /// The model of its last request.
    pub model: Option<String>,
    /// When its first request was sent.
    pub first: Millis,
    /// When its last request was sent.
    pub last: Millis,
    /// How many requests were made.
    pub requests: u32,
    /// The bytes of its last request, before it was fitted.
    pub bytes: u64,
    /// Tokens of all requests, before they were fitted.
    pub tokens_before: u64,
    /// Tokens of all requests as they were sent.
    pub tokens_after: u64,
    /// What the provider reported for all requests.
    pub usage: Usage,
}

impl SessionInfo {
    /// Returns to whom the session belongs: its project, else what its client calls it; nobody else sees it where neither is known.
    pub fn scope(&self) -> Option<&str> {
        self.project.as_deref().or(self.name.as_deref())
    }
}

/// A session that holds a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldingSession {
    /// Its number.
    pub session: SessionId,
    /// The name the client gave.
    pub name: Option<String>,
    /// The project that the agent worked in.
    pub project: Option<String>,
}

/// Which sessions of a long list are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionPageQuery<'a> {
    /// Those that belong to it, as [`SessionInfo::scope`] says; all where nothing is said.
    pub scope: Option<&'a str>,
    /// Of these, those of one project.
    pub project: Option<&'a str>,
    /// How many of the newest are left out.
    pub skip: u32,
    /// The most to return.
    pub most: u32,
}

/// Some sessions of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionPage {
    /// The sessions, the newest first.
    pub sessions: Vec<SessionInfo>,
    /// How many the whole list has.
    pub count: u64,
    /// How many sessions belong to others.
    pub others: u64,
}

/// What became of the blocks of one request, as its difference from an earlier one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestVerdicts {
    /// The request.
    pub request: RequestId,
    /// The request that it differs from; none where the row lists all of them.
    pub base: Option<RequestId>,
    /// How many leading blocks it shares with that request. Its verdicts about later blocks do not count.
    pub same_blocks: u32,
    /// Blocks with the number of their verdict; nothing for those that are sent whole again.
    pub changes: Vec<(u32, Option<i64>)>,
}

/// What became of the blocks of all requests of a session.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct VerdictHistory {
    /// The requests, oldest first.
    pub requests: Vec<RequestVerdicts>,
    /// The verdicts by their numbers.
    pub verdicts: BTreeMap<i64, SentVerdict>,
}

/// A request as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestInfo {
    /// Its number.
    pub id: RequestId,
    /// Its session.
    pub session: SessionId,
    /// When it was sent.
    pub at: Millis,
    /// Its wire format.
    pub format: Format,
    /// Its model.
    pub model: Option<String>,
    /// Tokens before it was fitted.
    pub tokens_before: u64,
    /// Tokens as it was sent.
    pub tokens_after: u64,
    /// What the provider reported.
    pub usage: Option<Usage>,
    /// The pings after it, which kept the provider's cache alive, in order.
    pub pings: Vec<StoredPing>,
    /// The identity of its last block: a request that holds it begins with this one.
    pub tip: ChainHash,
    /// The request that it goes on from.
    pub base: Option<RequestId>,
    /// How many leading blocks both have in common.
    pub same_blocks: u32,
    /// The first of these that is sent otherwise than in that request.
    pub edited: Option<u32>,
    /// Whether cache markers were set that its client did not set.
    pub marked: bool,
}

/// A request of ours that kept the provider's cache alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredPing {
    /// When it was sent.
    pub at: Millis,
    /// What the provider reported.
    pub usage: Usage,
}

/// A client's request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRequest {
    /// What a list shows.
    pub info: RequestInfo,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// What became of its blocks: number and verdict of those that were not sent whole.
    pub hidden: Vec<(u32, SentVerdict)>,
    /// The block after which a cache marker was added.
    pub marker: Option<BlockId>,
    /// What was inserted after it was fitted.
    pub added: Vec<Insertion>,
}

impl StoredRequest {
    /// Returns the bytes that were sent instead.
    ///
    /// # Errors
    /// Says that what is stored cannot be read as a request.
    pub fn sent_bytes(&self) -> Result<Vec<u8>, StoreError> {
        let what = || format!("request {}", self.info.id.0);
        let history =
            parse_as(self.bytes.clone(), self.info.format).map_err(|fault| damage_error(what(), fault))?;
        let hidden: Vec<(BlockId, SentVerdict)> =
            self.hidden.iter().map(|(block, verdict)| (BlockId(*block), verdict.clone())).collect();
        Ok(write_insertions(&as_sent(&history, &hidden, self.marker), &self.added))
    }
}

/// What to search for.
#[derive(Debug, Clone, Copy)]
pub struct SearchQuery<'a> {
    /// Words that must all occur.
    pub words: &'a str,
    /// The most blocks to find.
    pub most: usize,
    /// Whose blocks are searched.
    pub within: SearchWithin<'a>,
    /// What is covered in what is found, and not searched.
    pub secrets: &'a Secrets,
}

/// Whose blocks are searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchWithin<'a> {
    /// Those of all sessions.
    Everything,
    /// Those of sessions that belong to this project or, where their project is not known, have this name.
    Scope(&'a str),
    /// Those of one session.
    Session(SessionId),
}

/// A block that a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchHit {
    /// The name by which it is recalled.
    pub handle: String,
    /// The session that had it first.
    pub session: SessionId,
    /// The line that says most of the query, counted from 1.
    pub line: usize,
    /// That line.
    pub text: String,
    /// How well it fits: more is better.
    pub score: f64,
}

/// What to forget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForgetSelection {
    /// These sessions.
    Sessions(Vec<SessionId>),
    /// Sessions whose last request is older.
    OlderThan(Millis),
    /// The oldest sessions, until the store is no larger.
    LargerThan(u64),
    /// What is beyond a retention, at this time.
    Beyond(Retention, Millis),
}

/// How much is kept without anybody asking. Sessions used within [`Retention::LIVE_MS`] are always kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Sessions stay this long after their last request, in milliseconds; for ever where nothing is said.
    pub keep_for: Option<i64>,
    /// The oldest sessions go while the store takes more bytes than this.
    pub keep_at_most: Option<u64>,
}

impl Retention {
    /// How long a session counts as live after its last request: one day, in milliseconds. An agent recalls only right after a
    /// request, but a person may let it wait over night before it may run the command.
    pub const LIVE_MS: i64 = 24 * 60 * 60 * 1000;

    /// Tells whether everything stays.
    pub fn keeps_all(&self) -> bool {
        *self == Retention::default()
    }
}

/// Whether it is done or only listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunMode {
    /// Do it.
    Do,
    /// Tell what would be done.
    DryRun,
}

/// What was forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgetOutcome {
    /// The sessions.
    pub sessions: Vec<SessionInfo>,
    /// Bytes of the store before.
    pub before: u64,
    /// Bytes of the store after; of a dry run an estimate.
    pub after: u64,
}

/// What was put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TidyOutcome {
    /// How many small pieces.
    pub pieces: u64,
    /// Their bytes before.
    pub before: u64,
    /// Their bytes after.
    pub after: u64,
}

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiskUsage {
    /// Bytes of the file and of what belongs to it.
    pub bytes: u64,
    /// Bytes of the index for searching, which can be made again.
    pub index_bytes: u64,
    /// Sessions.
    pub sessions: u64,
    /// Requests.
    pub requests: u64,
    /// Blocks, identical ones once.
    pub blocks: u64,
    /// Bytes of the blocks before compression.
    pub block_bytes: u64,
    /// Bytes of all requests, before they were fitted.
    pub request_bytes: u64,
}

/// What was found to be whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CheckedCounts {
    /// Requests.
    pub requests: u64,
    /// Stored contents.
    pub contents: u64,
}

/// What is asked for about a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WishKind {
    /// It is never hidden from now on, and sent whole again if it is.
    Pin,
    /// A pin is taken back.
    Unpin,
    /// Its hiding is taken back.
    Undo(UndoWhen),
}

/// A wish to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewWish {
    /// The session that is meant; without it, the one used last that holds the block.
    pub session: Option<SessionId>,
    /// The block.
    pub handle: Handle,
    /// What is asked for.
    pub kind: WishKind,
    /// When.
    pub at: Millis,
}

/// A wish that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wish {
    /// Its session.
    pub session: SessionId,
    /// The block.
    pub handle: Handle,
    /// What is asked for.
    pub kind: WishKind,
    /// The step that the session had reached.
    pub step: u32,
    /// When.
    pub at: Millis,
}
