//! Keeps an LLM agent's conversation inside its context window.
//!
//! One straight line of pure functions: wire, history, count, facts, plan, render, wire. No I/O, no clock, no globals.

mod count;
mod digest;
mod facts;
mod files;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
mod history;
mod identity;
mod intent;
mod json;
mod ledger;
mod memory;
mod notes;
mod plan;
mod policy;
mod prices;
mod recall;
mod recording;
mod render;
mod replay;
mod report;
mod session;
mod summary;
mod terminal;
mod units;
mod usage;
mod verdict;
mod wire;

pub use count::{
    Calibration, ClaudeGeneration, ContentHash, Counter, Counts, Exactness, Memo, Tokenizer, Vocabulary,
};
pub use digest::{digests, query_terms, ranked_lines};
pub use facts::{
    Action, ContentKind, Coverage, Fact, Facts, Lines, Outcome, OutputPart, Priority, Reach, Rule, Section,
    Subject, ToolKind, Voice, constraints, facts, sections,
};
pub use files::{
    Access, AccessKind, Changes, Existence, FileChanges, FileState, Files, KnownLine, LineNow, Run,
    changelog, files,
};
pub use history::{Block, BlockId, BlockKind, Entry, EntryId, Format, History, Part, PartKind, Role};
pub use identity::{BlockHash, ChainHash, chain};
pub use intent::{INTENT, Intended, call_key, offer_intent, take_intent};
pub use json::{JsonError, MAX_JSON_BYTES, Span};
pub use ledger::{CommandLine, Extent, FileLine, Instructions, Ledger, OpenItem, Said, Unresolved};
pub use memory::{Cost, Handle, Memory, Undo, UndoWhen, Wishes};
pub use plan::{Broken, Floor, Moment, PassName, PassSum, Plan, PlanError, Sum};
pub use policy::{
    Circumstances, Config, ConfigSetting, ConfigUpstream, Folding, Knob, Markers, Policy, PolicyError, Unit,
    find_knob, knobs, nearest_knob, policies, shared_steps,
};
pub use prices::{
    CacheRules, Cliff, Landing, Model, Prices, PricesError, UnknownModel, find_model, find_model_in, models,
    models_with, prices_date,
};
pub use recall::{block_handle, block_original, recall};
pub use recording::{Point, Problem, ReadError, Recording, Segment, Start, agents, read};
pub use render::RecallHint;
pub use replay::{
    Budget, Contender, ContenderError, Family, Kept, Knobs, Missed, Row, Score, SessionScores, Share, Terms,
    contenders, pool, replay,
};
pub use replay::{CacheSimulation, Prediction, predicted_usage};
#[doc(hidden)]
pub use replay::{Figure, NeedSums, Probe, probe};
pub use report::{
    Big, ConversationCost, FileError, FilePart, FileQuestion, FileReport, FileTracker, FitReport,
    InspectError, InspectedPart, Inspection, RECENT_STEPS, ROLES, Reads, SettingRow, ToolPart, UsageSum,
    file_at, file_report, fit_report, inspect, ratio,
};
pub use session::{
    CacheHint, FitError, Fitted, Keeping, Planned, Resent, Session, SessionState, Settings, Warm, as_sent,
    fit, fit_warm, plan_latest, resend,
};
pub use summary::{
    Answer, AnswerError, Asking, Checked, Ending, FoldRange, FoldRequest, FoldSizes, Folded, LastFold,
    MayFold, Pace, PromptFormat, Rejection, check as check_summary, compacted, fold_range, fold_sizes,
    folded_text, ledger, legal_cuts, may_fold, prompt as summary_prompt, prompt_request as summary_request,
    read_answer, split as split_range,
};
pub use units::{Millis, Tokens};
pub use usage::Usage;
pub use verdict::{Decision, Reason, SentVerdict, Verdict};
pub use wire::{Edit, Mended, WireError, parse, parse_after, parse_as, repair, request_of, write};

/// Holds the README's example to the compiler.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;
