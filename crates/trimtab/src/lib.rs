//! Keeps an LLM agent's conversation inside its context window.
//!
//! One straight line of pure functions: wire, history, count, digest, render. No I/O, no clock, no globals.

mod count;
mod digest;
mod history;
mod json;
mod memory;
mod plan;
mod policy;
mod prices;
mod recording;
mod render;
mod wire;

pub use count::{
    Calibration, ClaudeGeneration, ContentHash, Counter, Counts, Exactness, Memo, Tokenizer, Tokens,
    Vocabulary,
};
pub use digest::{
    About, Container, Content, DIGESTS, Digest, Ended, Note, Piece, Text, Totals, choose, find_digest,
    head_tail, head_tail_lines, is_error_line, lines_matching, media, middle_out,
};
pub use history::{Block, BlockId, BlockKind, Entry, EntryId, History, Part, PartKind, Role};
pub use json::{JsonError, MAX_JSON_BYTES, Span};
pub use memory::{ChainHash, Memory};
pub use plan::{Decision, Floor, Plan, PlanError, Reason, Verdict};
pub use policy::{Policy, PolicyError, policies};
pub use prices::{Cliff, Model, Prices, UnknownModel, find_model, models, prices_date};
pub use recording::{Millis, Point, Problem, ReadError, Recording, Segment, Start, Usage, agents, read};
pub use render::{
    NoteContext, Reason, Style, Subject, handle, handle_of, holds_note, is_foreign_placeholder, is_note,
    render, shorten,
};
pub use wire::{Edit, Format, WireError, parse, parse_after, parse_as, request_of, write};

/// Holds the README's example to the compiler.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;
