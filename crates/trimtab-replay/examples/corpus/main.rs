//! Tables over a folder of recorded sessions: what was read, whether it is written back byte for byte, how well it
//! is counted, what its calls are about, how they ended, how well the files they touched are known, what they used later
//! and what they cost. Run it with `./scripts/corpus PATH`; name tables after the path to get only those.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::as_conversions,
    reason = "a table maker prints, and its figures are far from where a float loses whole numbers"
)]

mod bill;
mod bounds;
#[path = "../../../trimtab-core/tests/checker/mod.rs"]
#[allow(clippy::indexing_slicing, reason = "indexing a JSON value gives null where there is nothing")]
mod checker;
mod compact;
mod estimate;
mod exact;
mod facts;
mod fidelity;
mod file_state;
mod files;
mod fit;
mod needs;
mod outcome;
mod outputs;
mod pauses;
mod reading;
mod recorded;

use std::process::ExitCode;

/// A table's name and what prints it; it tells whether all is well.
type Table = (&'static str, fn(&[files::File]) -> bool);

/// The tables that other programs read: only where they are named.
const OUTPUTS: &str = "outputs";
const NEEDS: &str = "needs";
const PAUSES: &str = "pauses";

/// Takes minutes, because every policy is played: only where it is named.
const BOUNDS: &str = "bounds";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(folder) = arguments.next() else {
        eprintln!("corpus: name a folder or a file");
        return ExitCode::from(2);
    };
    let asked: Vec<String> = arguments.collect();
    let tables: [Table; 14] = [
        ("reading", reading::table),
        ("exact", exact::table),
        ("estimate", estimate::table),
        ("facts", facts::table),
        ("outcome", outcome::table),
        ("files", file_state::table),
        ("fit", fit::table),
        ("bill", bill::table),
        ("fidelity", fidelity::table),
        ("compact", compact::table),
        (OUTPUTS, outputs::table),
        (NEEDS, needs::table),
        (PAUSES, pauses::table),
        (BOUNDS, bounds::table),
    ];
    let files = files::below(folder.as_ref());
    let wanted = tables.iter().filter(|(name, _)| {
        (asked.is_empty() && ![OUTPUTS, NEEDS, PAUSES, BOUNDS].contains(name))
            || asked.iter().any(|asked| asked == name)
    });
    let mut good = !files.is_empty();
    for (_, table) in wanted {
        good &= table(&files);
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
