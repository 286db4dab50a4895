//! How much blocks were needed later, by what is known about them when a request is planned. Prints lines that
//! `scripts/fit-needs` reads: how often such a block was looked at, edited texts and names that were used of it later, features.

use trimtab_replay::{NeedSums, probe_segment};

use crate::files::File;

/// Segments with fewer requests are hardly ever under pressure.
const LONG: usize = 20;

/// Prints the table; there is nothing in it that could be wrong.
pub(crate) fn table(files: &[File]) -> bool {
    let mut sums = NeedSums::new();
    for recording in files.iter().filter_map(|file| file.recording.as_ref().ok()) {
        for segment in recording.segments.iter().filter(|segment| segment.points.len() >= LONG) {
            let mut probe = probe_segment(segment);
            probe.find_uses();
            for (features, (looks, anchors, names)) in probe.needs() {
                let sum = sums.entry(features).or_default();
                sum.0 += looks;
                sum.1 += anchors;
                sum.2 += names;
            }
        }
    }
    for (features, (looks, anchors, names)) in sums {
        println!("{looks}\t{anchors}\t{names}\t{features}");
    }
    true
}
