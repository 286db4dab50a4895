//! What edges tell other programs, the same from each. Takes what the stages made; gives values that are written as JSON. Never
//! prints, and never decides anything.

mod file;
mod fit;
mod inspect;
mod tracker;

pub use file::{FileError, FileReport, file_at, file_report};
pub use fit::{FitReport, SettingRow, fit_report};
pub use inspect::{
    Big, Cost as ConversationCost, InspectError, Inspection, Part as InspectedPart, RECENT_STEPS, ROLES,
    Reads, Sum as UsageSum, Tool as ToolPart, inspect, ratio,
};
pub use tracker::{FilePart, FileQuestion, FileTracker};
