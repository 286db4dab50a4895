//! How long conversations paused, and which never went on. Prints lines that `scripts/fit-pauses` reads: the seconds from a request to
//! the next one; `-` where none came.

use trimtab_core::Millis;

use crate::files::File;

/// Shorter pauses are none that any cache would not outlive, in milliseconds.
const SHORTEST_MS: i64 = 60_000;

/// Prints the table; there is nothing in it that could be wrong.
pub(crate) fn table(files: &[File]) -> bool {
    for recording in files.iter().filter_map(|file| file.recording.as_ref().ok()) {
        for segment in &recording.segments {
            let times: Option<Vec<Millis>> = segment.points.iter().map(|point| point.at).collect();
            // Without times nothing is known of pauses.
            let Some(times) = times.filter(|times| !times.is_empty()) else { continue };
            for (before, next) in times.iter().zip(times.iter().skip(1)) {
                let pause = next.0.saturating_sub(before.0);
                if pause >= SHORTEST_MS {
                    println!("{}", pause / 1000);
                }
            }
            println!("-");
        }
    }
    true
}
