//! The state of every file a session touched, as far as its conversation tells. Takes what each call did to a
//! file, as text, in order; gives lines that are known with the step that showed or wrote them, and lines that
//! are known to be unknown. Never touches a disk, never guesses a line.

mod changelog;
mod from_calls;
mod hunks;
#[cfg(test)]
mod laws;
mod line_maker;
mod lines;
mod net_change;
mod operation;
mod patch;
mod replacement;
mod shown_lines;
mod state;
#[cfg(test)]
mod tests;
mod timeline;

pub use changelog::{ChangeGroup, FileChanges, changelog};
pub(crate) use changelog::{changelog_before, reason_of_change};
pub(crate) use from_calls::asked_of;
pub use from_calls::{files, texts_to_replace};
pub(crate) use net_change::{lines_changed, net_change};
pub use state::{Existence, FileState, KnownLine, LineRun};
pub use timeline::{Access, AccessKind, FileTimeline, LineNow};

#[cfg(test)]
use {
    operation::{FileAction, FileEnd, FileOperation, Occurrences, Replacement, ShownLines},
    patch::{codex_patch, search_replace_blocks, unified_diff},
    shown_lines::{ReadExtent, shown_diff, shown_hits, shown_numbered, shown_plain, shown_tail},
};
