//! The instrument: what a policy would have cost, saved and lost in conversations that were recorded.
//!
//! [`read`] takes a transcript file of any known agent and gives a [`Recording`]. [`replay`] takes one of its segments and
//! plays it under a policy, a peer or an oracle; [`pool`] puts many [`Score`]s together, with intervals. [`inspect`] tells
//! where a recording's tokens and dollars went. Nothing here calls a model or looks at the clock.

mod inspect;
mod recording;
mod replay;

pub use inspect::{
    Big, Cost as ConversationCost, InspectError, Inspection, Part as InspectedPart, RECENT_STEPS, ROLES,
    Reads, Sum as UsageSum, Tool as ToolPart, inspect, ratio,
};
pub use recording::{Problem, ReadError, Recording, Segment, Start, agents, read};
pub use replay::{
    Budget, CacheSimulation, Contender, ContenderError, Family, Figure, Kept, Knobs, Missed, NeedSums,
    Prediction, Probe, Row, Score, SessionScores, Share, Terms, contenders, pool, predicted_usage, probe,
    replay,
};
