//! The instrument: what a policy would have cost, saved and lost in conversations that were recorded.
//!
//! [`read`] takes a transcript file of any known agent and gives a [`Recording`]. [`replay`] takes one of its segments and
//! plays it under a policy, a peer or an oracle; [`pool_sessions`] puts many [`Score`]s together, with intervals. [`inspect`] tells
//! where a recording's tokens and dollars went, [`explain_recording`] why the provider's cache was missed. Nothing here calls a model or looks at the clock.

mod head;
mod inspect;
mod misses;
mod recording;
mod replay;

pub use head::{HeadCost, HeadServer, HeadTool, ToolCalls};
pub use inspect::{
    ConversationCost, FileReads, InspectError, InspectedPart, Inspection, LargeBlock, RECENT_STEPS, ROLES,
    ToolPart, UsageSum, inspect, ratio,
};
pub use misses::{ExplainedRecording, ExplainedRequest, explain_recording};
pub use recording::{Problem, ReadError, Recording, Segment, SegmentStart, agents, read, repository_name};
pub use replay::{
    BoundCheck, CacheRetention, CacheSimulation, Contender, ContenderError, ContenderFamily, KnobRange,
    MissReport, NeedSums, NeededShare, Prediction, ProbeFigure, ReplayBudget, ReplayTerms, Score, ScoreRow,
    SessionScores, UseProbe, check_bounds, contenders, policy_words, pool_sessions, predicted_usage,
    probe_segment, replay,
};
