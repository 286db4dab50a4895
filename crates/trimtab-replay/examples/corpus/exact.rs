//! Exact counts against a second implementation: every readable part of every block, in both public vocabularies.

use std::collections::{BTreeMap, HashSet};

use trimtab_core::{
    Counter, PartKind, Tokens,
    count::{ContentHash, Tokenizer, Vocabulary},
};

use crate::files::File;

/// Prints the table; tells whether both implementations agree everywhere.
pub(crate) fn table(files: &[File]) -> bool {
    println!("\nCounting: exact counts against `bpe-openai`, every distinct text once\n");
    let ours = [
        ("o200k", Counter::new(Tokenizer::Exact(Vocabulary::O200k)), bpe_openai::o200k_base()),
        ("cl100k", Counter::new(Tokenizer::Exact(Vocabulary::Cl100k)), bpe_openai::cl100k_base()),
    ];
    let mut seen = HashSet::new();
    let mut rows: BTreeMap<(&str, &str), (usize, u64, usize)> = BTreeMap::new();
    for recording in files.iter().filter_map(|file| file.recording.as_ref().ok()) {
        for segment in &recording.segments {
            let history = &segment.history;
            let parts = history.blocks().iter().flat_map(|block| history.parts_of(block));
            let readable = |kind| matches!(kind, PartKind::Text | PartKind::JsonText | PartKind::Json);
            for part in parts.filter(|part| readable(part.kind)) {
                let text = history.part_text(part);
                if !seen.insert(ContentHash::hash_text(&text)) {
                    continue;
                }
                for (name, counter, oracle) in &ours {
                    let Tokens(counted) = counter.count_text(&text);
                    let expected = u64::try_from(oracle.count(text.as_ref())).unwrap_or(u64::MAX);
                    let row = rows.entry((recording.agent, name)).or_default();
                    row.0 += 1;
                    row.1 += counted;
                    row.2 += usize::from(counted != expected);
                }
            }
        }
    }
    println!("{:16} {:8} {:>8} {:>12} {:>10}", "agent", "tokens", "texts", "tokens", "different");
    let mut different = 0;
    for ((agent, name), (texts, tokens, wrong)) in rows {
        println!("{agent:16} {name:8} {texts:>8} {tokens:>12} {wrong:>10}");
        different += wrong;
    }
    different == 0
}
