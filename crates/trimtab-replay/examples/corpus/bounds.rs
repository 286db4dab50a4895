//! Whether bounds are bounds over a corpus: for each agent and contender, its bill beside the bounds that hold for it, over the
//! segments where it misses nothing. Fails where a contender is cheaper than its bound.

use std::collections::BTreeMap;

use trimtab_core::find_model;
use trimtab_replay::{BoundCheck, Contender, KnobRange, ReplayTerms, check_bounds, contenders};

use crate::files::File;

/// Whose prices are paid: rewriting costs 11.5, 9 and 49 reads.
const MODELS: [&str; 3] = ["claude-opus-5", "gpt-5", "deepseek-v4-flash"];

/// Broken bounds that are listed by name.
const LISTED: usize = 12;

#[derive(Default)]
struct BoundSums {
    segments: usize,
    dollars: f64,
    raw: f64,
    floor: f64,
    blocks: usize,
    block_dollars: f64,
    block: f64,
}

/// Prints the table.
pub(crate) fn table(files: &[File]) -> bool {
    let models: Vec<_> = MODELS.iter().filter_map(|name| find_model(name).ok()).collect();
    let all = contenders(KnobRange::Default);
    let names: Vec<String> = all.iter().map(|contender: &Contender| contender.name().to_owned()).collect();
    let mut rows: BTreeMap<(&str, usize), BoundSums> = BTreeMap::new();
    let mut broken: Vec<(f64, BoundCheck, String)> = Vec::new();
    for file in files {
        let Ok(recording) = &file.recording else { continue };
        for segment in &recording.segments {
            for check in check_bounds(segment, &all, &models, &ReplayTerms::default()) {
                if let Some(bound) = check.broken_bound() {
                    broken.push((
                        1.0 - check.dollars / bound,
                        check.clone(),
                        file.path.display().to_string(),
                    ));
                }
                let place = names.iter().position(|name| *name == check.policy).unwrap_or_default();
                let sums = rows.entry((recording.agent, place)).or_default();
                if let Some(floor) = check.floor {
                    sums.segments += 1;
                    sums.dollars += check.dollars;
                    sums.raw += check.raw;
                    sums.floor += floor;
                }
                if let Some(block) = check.block {
                    sums.blocks += 1;
                    sums.block_dollars += check.dollars;
                    sums.block += block;
                }
            }
        }
    }
    println!(
        "\nBounds: bills beside the bounds named for them, segments without a miss, all prices together\n"
    );
    println!(
        "{:15} {:32} | {:>8} {:>9} {:>9} | {:>8} {:>9}",
        "agent", "contender", "segments", "$ of raw", "of floor", "segments", "of block"
    );
    let ratio = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { f64::NAN };
    for ((agent, place), sums) in &rows {
        let name = names.get(*place).map_or("", String::as_str);
        println!(
            "{agent:15} {name:32} | {:>8} {:>9.3} {:>9.3} | {:>8} {:>9.3}",
            sums.segments,
            ratio(sums.dollars, sums.raw),
            ratio(sums.dollars, sums.floor),
            sums.blocks,
            ratio(sums.block_dollars, sums.block)
        );
    }
    broken.sort_by(|one, other| other.0.total_cmp(&one.0));
    println!("\n{} bills are below their bound", broken.len());
    for (share, check, path) in broken.iter().take(LISTED) {
        println!("{:6.2} % {} at {}: {path}", share * 100.0, check.policy, check.model);
    }
    broken.is_empty()
}
