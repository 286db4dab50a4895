//! Reading and splicing a 4 MB request against a plain copy and against one `serde_json::Value` round trip.
//! Prints ratios of the best of many interleaved tries; run with `cargo bench -p trimtab-core --bench wire`.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark is a program that prints, and stops at the first thing that is wrong"
)]

mod measure;

use std::hint::black_box;

use measure::Contest;
use trimtab_core::{
    Format, History, parse_as,
    wire::{Edit, parse_after, request_of},
    write,
};

fn main() {
    for format in [Format::Chat, Format::Anthropic] {
        let request = measure::request(format, 4_000_000);
        let history = parse_as(request.clone(), format).expect("a request");
        println!(
            "\n{} request: {} bytes, {} messages, {} blocks",
            format.title(),
            request.len(),
            history.messages().len(),
            history.blocks().len()
        );
        compete(&request, &history);
    }
}

fn compete(request: &[u8], history: &History) {
    let format = history.format();
    let edit = one_edit(history);
    let messages = history.messages().len();
    let earlier = parse_as(request_of(history, messages - 2), format).expect("a request");
    let mut contest = Contest::new("a plain copy");
    contest.enter("a plain copy", || black_box(request.to_vec()).len());
    contest.enter("read and write, cold", || {
        let history = parse_as(black_box(request.to_vec()), format).expect("a request");
        write(&history, std::slice::from_ref(&edit)).len()
    });
    contest.enter("read and write, warm", || {
        let history = parse_after(&earlier, black_box(request.to_vec())).expect("a request");
        write(&history, std::slice::from_ref(&edit)).len()
    });
    contest.enter("serde_json::Value round trip", || {
        let value: serde_json::Value = serde_json::from_slice(black_box(request)).expect("JSON");
        serde_json::to_vec(&value).expect("JSON").len()
    });
    contest.run(60);
}

/// Shortens one result in the second half.
fn one_edit(history: &History) -> Edit {
    let blocks = &history.blocks()[history.blocks().len() / 2..];
    let block = blocks.iter().find(|block| block.kind == trimtab_core::BlockKind::Result).expect("a result");
    Edit { span: history.parts_of(block)[0].span, with: b"\"[shortened]\"".to_vec() }
}
