//! Keeps an LLM agent's conversation inside its context window: cheaply, safely and predictably.
//!
//! An agent sends its whole conversation with every request. Sooner or later it is longer than the model's window; long
//! before that, most of what is paid for is results of tools that nobody needs any more. Removing them carelessly costs more than
//! it saves, because a provider's prompt cache holds only what is unchanged from the first byte on. This library takes the bytes of
//! a request, in the format of Anthropic, OpenAI (both) or Gemini, and gives the bytes to send:
//!
//! - **cheaply**: it knows what each model's cache costs, and changes what was sent before only where that pays;
//! - **safely**: what it sends is valid, everything outside its edits is copied byte for byte, error lines survive, and every
//!   original comes back by the handle in its note;
//! - **predictably**: the same input gives the same bytes. No I/O, no clock, no randomness, no globals.
//!
//! A [`Session`] is all that an agent's loop needs:
//!
//! ```
//! use trimtab_core::{Millis, Policy, Session, Settings, Tokens, Usage};
//!
//! let settings = Settings::new(Policy::find_shipped("steady")?).with_model("gpt-5").with_budget(Tokens(150_000));
//! let mut session = Session::new(settings);
//! let request = br#"{"model":"gpt-5","messages":[{"role":"user","content":"Hi"}]}"#;
//!
//! let fitted = session.fit(request.to_vec(), Millis(0))?; // or SystemTime::now()
//! assert_eq!(fitted.request, request); // send these bytes
//! session.sent(&fitted);
//! let reply = br#"{"usage":{"prompt_tokens":8,"completion_tokens":2}}"#;
//! if let Some(usage) = Usage::of_answer(fitted.history.format(), reply) {
//!     session.answered(usage); // learns how the provider counts and what its cache contained
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What every program needs is at the root; the rest is in modules:
//!
//! | to | look into |
//! |---|---|
//! | read and write requests, repair what a provider would refuse | [`wire`] |
//! | count tokens | [`count`] |
//! | know what calls did, to what, and how they ended; what files looked like at any step | [`facts`](mod@facts), [`files`](mod@files) |
//! | choose and write policies, read a user's configuration | [`policy`] |
//! | look up windows, prices and rules of caches; read reported usage | [`prices`], [`usage`] |
//! | know what a session has cost, and what it would have cost untouched | [`account`] |
//! | keep the cache of an idle conversation alive where that pays | [`keep_alive`] |
//! | know why a request read less from the cache than it could have | [`misses`] |
//! | let a provider's cache find a conversation whose client sets no marker | [`markers`] |
//! | let a summary stand for the beginning of a conversation | [`summary`] |
//! | keep what was sent, and wishes, across programs | [`memory`], [`session`] |
//! | tell people and other programs what was done | [`plan`], [`report`], [`digest`] |
//! | write another tool of this kind | [`json`], [`notes`], [`terminal`], [`intent`] |

pub mod account;
pub mod count;
pub mod digest;
pub mod facts;
pub mod files;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
mod history;
mod identity;
pub mod intent;
pub mod json;
pub mod keep_alive;
mod ledger;
pub mod markers;
pub mod memory;
pub mod misses;
pub mod notes;
pub mod plan;
pub mod policy;
pub mod prices;
mod recall;
mod render;
pub mod report;
mod rewrite;
pub mod session;
pub mod summary;
pub mod terminal;
mod units;
pub mod usage;
mod verdict;
pub mod wire;

pub use account::SessionAccount;
pub use count::{CountMemo, Counter};
pub use facts::{Facts, facts};
pub use files::{FileTimeline, files};
pub use history::{Block, BlockId, BlockKind, Entry, EntryId, Format, History, Part, PartKind, Role};
pub use identity::{BlockHash, ChainHash, chain};
pub use memory::{Handle, Memory};
pub use plan::Plan;
pub use policy::Policy;
pub use prices::{Model, find_model};
pub use recall::{block_handle, block_original, recall};
pub use render::RecallHint;
pub use rewrite::RewriteForm;
pub use session::{
    CacheHint, FitError, FittedRequest, ResentRequest, Session, SessionState, Settings, WarmState, fit,
    resend,
};
pub use units::{Millis, Tokens};
pub use usage::{Point, Usage};
pub use verdict::{Decision, Reason, SentVerdict, Verdict};
pub use wire::{WireError, parse, parse_as, write};

/// Holds the README's examples to the compiler.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;
