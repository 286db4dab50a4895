//! What recordings used later of what they had been shown, per agent: how much was found, whether untrimmed requests keep
//! all of it, and what a plain mask of all but the last results keeps, as a check of the measure itself.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use trimtab_replay::{ProbeFigure, probe_segment};

use crate::files::File;

/// How many results the mask leaves at every request.
const KEPT: usize = 10;

/// Segments with fewer requests are not judged under the mask: it hides little in them.
const LONG: usize = 20;

/// Figures by their names, in the order in which they came.
#[derive(Default)]
struct Sums(Vec<ProbeFigure>);

impl Sums {
    fn add(&mut self, figures: &[ProbeFigure]) {
        for (name, held, of) in figures {
            match self.0.iter_mut().find(|(known, ..)| known == name) {
                Some((_, known_held, known_of)) => {
                    *known_held += held;
                    *known_of += of;
                }
                None => self.0.push((name, *held, *of)),
            }
        }
    }
}

#[derive(Default)]
struct Row {
    segments: usize,
    long: usize,
    used: Sums,
    raw: Sums,
    masked: Sums,
}

/// Prints the table; tells whether untrimmed requests keep everything.
pub(crate) fn table(files: &[File]) -> bool {
    println!("\nFidelity: what was used later, and what is kept of it\n");
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    let mut took = [Duration::ZERO; 4];
    for recording in files.iter().filter_map(|file| file.recording.as_ref().ok()) {
        let row = rows.entry(recording.agent).or_default();
        for segment in &recording.segments {
            let start = Instant::now();
            let mut probe = probe_segment(segment);
            let laid = Instant::now();
            row.used.add(&probe.find_uses());
            let found = Instant::now();
            row.raw.add(&probe.untrimmed_figures());
            let judged = Instant::now();
            row.segments += 1;
            if segment.points.len() >= LONG {
                row.long += 1;
                row.masked.add(&probe.figures_masked(KEPT));
            }
            let parts = [laid - start, found - laid, judged - found, judged.elapsed()];
            took.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
        }
    }
    let mut good = true;
    for (agent, row) in &rows {
        println!("{agent}: {} segments, {} of {LONG} requests or more", row.segments, row.long);
        let used = row.used.0.iter().map(|(name, shown, of)| format!("{name} {shown} of {of}"));
        println!("  used, and shown before: {}", used.collect::<Vec<_>>().join(", "));
        for (title, sums) in [("untrimmed", &row.raw), ("masked", &row.masked)] {
            let shown = sums.0.iter().map(share);
            println!("  {title}: {}", shown.collect::<Vec<_>>().join(", "));
        }
        let lost = row.raw.0.iter().any(|(name, held, of)| held != of || (*name == "refetches" && *held > 0));
        good &= !lost;
    }
    let [laid, found, raw, masked] = took.map(|time| time.as_secs_f64());
    println!(
        "\nMasked: every request shows its last {KEPT} results; only segments of {LONG} requests or more."
    );
    println!(
        "Laid out in {laid:.1} s, uses found in {found:.1} s, judged untrimmed in {raw:.2} s, masked in {masked:.2} s"
    );
    good
}

fn share((name, held, of): &ProbeFigure) -> String {
    if matches!(*name, "refetches" | "unmarked stale tokens") {
        return format!("{name} {held}");
    }
    format!("{name} {:.4} of {of}", *held as f64 / (*of).max(1) as f64)
}
