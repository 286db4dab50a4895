//! Whether cache markers are set for clients that set none. Takes what the command line and the files say; gives what is in force, with
//! where that comes from.

use trimtab_core::{policy::Markers, report::SettingRow as Row};

use super::SettingsFiles;
use crate::args::MarkerChoice;

/// Resolves whether requests may carry cache markers that their client did not set.
pub(crate) fn resolve_markers(asked: Option<MarkerChoice>, files: &SettingsFiles) -> (Markers, Row) {
    let from_file = files.existing_files().filter_map(|config| Some((config.markers?, &config.file))).last();
    let (markers, from) = match (asked, from_file) {
        (Some(choice), _) => (choice.to_markers(), "the command line or TRIMTAB_MARKERS".to_owned()),
        (None, Some(((markers, line), file))) => (markers, format!("{file}, line {line}")),
        (None, None) => (Markers::OneMore, "default".to_owned()),
    };
    (markers, Row { name: "markers".to_owned(), value: markers.name().to_owned(), from })
}
