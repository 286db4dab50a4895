//! Keeps an LLM agent's conversation inside its context window.
//!
//! One straight line of pure functions: wire, history, count, facts, plan, render, wire. No I/O, no clock, no globals.

mod count;
mod digest;
mod facts;
mod files;
mod fit;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
mod history;
mod intent;
mod json;
mod memory;
mod plan;
mod policy;
mod prices;
mod recall;
mod recording;
mod render;
mod replay;
mod report;
mod resend;
mod summary;
mod warm;
mod wire;

pub use count::{
    Calibration, ClaudeGeneration, ContentHash, Counter, Counts, Exactness, Memo, Tokenizer, Tokens,
    Vocabulary,
};
pub use digest::digests;
pub use facts::{
    Action, ContentKind, Coverage, Fact, Facts, Lines, Outcome, OutputPart, Priority, Reach, Rule, Section,
    Subject, ToolKind, Voice, constraints, facts, sections,
};
pub use files::{
    Access, AccessKind, Changes, Existence, FileChanges, FileState, Files, KnownLine, LineNow, Run,
    changelog, files,
};
pub use fit::{
    CacheHint, FitError, Fitted, Folding, Keeping, Markers, Planned, Settings, fit, fit_warm, plan_latest,
};
pub use history::{Block, BlockId, BlockKind, Entry, EntryId, History, Part, PartKind, Role};
pub use intent::{INTENT, Intended, call_key, offer_intent, take_intent};
pub use json::{JsonError, MAX_JSON_BYTES, Span};
pub use memory::{BlockHash, ChainHash, Handle, Memory, StoredVerdict, Undo, UndoWhen, Wishes, chain};
pub use plan::{Broken, Cost, Decision, Floor, Moment, Plan, PlanError, Reason, Sum, Verdict};
pub use policy::{
    Circumstances, Config, ConfigSetting, ConfigUpstream, Knob, Policy, PolicyError, Unit, find_knob, knobs,
    nearest_knob, policies, shared_steps,
};
pub use prices::{
    CacheRules, Cliff, Landing, Model, Prices, PricesError, UnknownModel, find_model, find_model_in, models,
    models_with, prices_date,
};
pub use recall::{block_handle, block_original, recall};
pub use recording::{Millis, Point, Problem, ReadError, Recording, Segment, Start, Usage, agents, read};
pub use render::RecallHint;
pub use replay::{
    Budget, Contender, ContenderError, Family, Kept, Knobs, Missed, Row, Score, Session, Share, Terms,
    contenders, pool, replay,
};
pub use replay::{CacheSimulation, Prediction, predicted_usage};
#[doc(hidden)]
pub use replay::{Figure, Probe, probe};
pub use report::{
    Big, ConversationCost, FileError, FilePart, FileQuestion, FileReport, FileTracker, FitReport,
    InspectError, InspectedPart, Inspection, RECENT_STEPS, ROLES, Reads, SettingRow, ToolPart, UsageSum,
    file_at, file_report, fit_report, inspect, ratio,
};
pub use resend::{Resent, as_sent, resend};
pub use summary::{
    Answer, AnswerError, Asking, Checked, CommandLine, Ending, Extent, FileLine, FoldRange, FoldRequest,
    FoldSizes, Folded, Instructions, LastFold, Ledger, MayFold, OpenItem, Pace, PromptFormat, Rejection,
    Said, Unresolved, check as check_summary, compacted, fold_range, fold_sizes, folded_text, ledger,
    legal_cuts, may_fold, prompt as summary_prompt, prompt_request as summary_request, query_terms,
    ranked_lines, read_answer, split as split_range,
};
pub use warm::Warm;
pub use wire::{Edit, Format, Mended, WireError, parse, parse_after, parse_as, repair, request_of, write};

/// Holds the README's example to the compiler.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;
