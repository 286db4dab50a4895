//! What edges tell other programs, the same from each: [`FitReport`], [`FileReport`] and [`FileTracker`], values that are
//! written as JSON, and [`TightWindow`], a warning. The program, the proxy's tools and the Python package write them. Never prints, and never decides anything.

mod file;
mod fit;
mod tight;
mod tracker;

pub use file::{FileError, FileReport, file_at, file_report};
pub use fit::{FitReport, SettingRow, fit_report};
pub use tight::TightWindow;
pub use tracker::{FilePart, FileQuestion, FileTracker};
