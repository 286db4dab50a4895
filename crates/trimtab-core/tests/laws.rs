//! The laws, over conversations made up by the thousand, in every wire format.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test stops at what must not happen and says how many cases it saw"
)]

mod checker;
mod conversations;
mod fitting;
mod folding;
mod marking;
mod repairing;

use std::borrow::Cow;

use conversations::{Conversation, Expected, Style, conversation, style};
use proptest::{prelude::ProptestConfig, test_runner::TestRunner};
use trimtab_core::{
    Format, History, parse, parse_as,
    wire::{Edit, parse_after, request_of},
    write,
};

/// Runs a law over made-up conversations in every format and prints how many passed.
fn for_each_conversation(law: &str, check: impl Fn(&Conversation, Format, Style)) {
    let cases = std::env::var("TRIMTAB_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(256);
    for format in Format::ALL {
        let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
        let mut runner = TestRunner::new(config);
        runner
            .run(&(conversation(), style()), |(conversation, style)| {
                check(&conversation, format, style);
                Ok(())
            })
            .unwrap_or_else(|failure| panic!("{law}, {format}: {failure}"));
        println!("{law}: {format}: {cases} cases");
    }
}

fn read(request: &str, format: Format) -> History {
    parse_as(request.as_bytes().to_vec(), format).expect(request)
}

#[test]
fn identity_parsing_then_writing_gives_the_same_bytes() {
    for_each_conversation("identity", |conversation, format, style| {
        let (request, _) = conversation.write(format, style);
        let history = read(&request, format);
        assert_eq!(String::from_utf8_lossy(&write(&history, &[])), request);
        // Every part taken out and put back where it was.
        let same: Vec<Edit> = parts(&history)
            .map(|part| Edit { span: part.span, with: part.span.bytes_in(history.bytes()).to_vec() })
            .collect();
        assert_eq!(String::from_utf8_lossy(&write(&history, &same)), request);
    });
}

#[test]
fn reading_finds_every_block_that_was_written() {
    for_each_conversation("reading", |conversation, format, style| {
        let (request, expected) = conversation.write(format, style);
        let history = parse(request.as_bytes().to_vec()).expect(&request);
        assert_eq!(history.format(), format, "{request}");
        assert_eq!(found(&history, &expected), expected, "{request}");
    });
}

#[test]
fn verbatim_an_edit_changes_its_own_bytes_only() {
    for_each_conversation("verbatim", |conversation, format, style| {
        let (request, _) = conversation.write(format, style);
        let history = read(&request, format);
        let Some(part) =
            parts(&history).filter(|part| part.span.bytes_in(request.as_bytes()).starts_with(b"\"")).last()
        else {
            return;
        };
        let edited = write(&history, &[Edit { span: part.span, with: b"\"[short]\"".to_vec() }]);
        let expected = [&request[..part.span.start()], "\"[short]\"", &request[part.span.end()..]].concat();
        assert_eq!(String::from_utf8_lossy(&edited), expected);
        let again = read(&expected, format);
        assert_eq!(again.blocks().len(), history.blocks().len(), "{expected}");
    });
}

#[test]
fn warm_reading_after_an_earlier_request_gives_what_cold_reading_gives() {
    for_each_conversation("warm", |conversation, format, style| {
        let (request, _) = conversation.write(format, style);
        let whole = read(&request, format);
        for messages in [0, 1, whole.messages().len() / 2, whole.messages().len().saturating_sub(1)] {
            let earlier = read(&String::from_utf8(request_of(&whole, messages)).expect("UTF-8"), format);
            assert_eq!(earlier.messages().len(), messages.min(whole.messages().len()));
            let warm = parse_after(&earlier, request.clone().into_bytes()).expect(&request);
            same(&warm, &whole);
            assert!(warm.reused_blocks() <= warm.blocks().len());
            // Going back to the shorter one is reading after the longer one.
            let back = parse_after(&whole, earlier.bytes().to_vec()).expect("the earlier request");
            same(&back, &earlier);
        }
    });
}

#[test]
fn broken_requests_are_refused_or_read_but_never_panic() {
    for_each_conversation("broken", |conversation, format, style| {
        let (request, _) = conversation.write(format, style);
        let bytes = request.as_bytes();
        for cut in [1, bytes.len() / 3, bytes.len() / 2, bytes.len() - 1] {
            assert!(parse(bytes[..cut].to_vec()).is_err());
        }
        for at in [bytes.len() / 4, bytes.len() / 2] {
            for byte in [b'"', b'}', b'0', 0xff] {
                let mut broken = bytes.to_vec();
                broken[at] = byte;
                if let Ok(history) = parse(broken.clone()) {
                    assert_eq!(write(&history, &[]), broken);
                }
            }
        }
    });
}

fn parts(history: &History) -> impl Iterator<Item = &trimtab_core::Part> {
    history.blocks().iter().flat_map(|block| history.parts_of(block))
}

/// Describes what was found in the words of what was expected; texts only where one was expected.
fn found(history: &History, expected: &[Expected]) -> Vec<Expected> {
    let blocks = history.blocks().iter().enumerate();
    blocks
        .map(|(index, block)| {
            let told = expected.get(index).is_some_and(|expected| expected.text.is_some());
            Expected {
                kind: block.kind,
                tool: history.tool_name(block).map(Cow::into_owned),
                text: told.then(|| history.block_text(block).into_owned()),
            }
        })
        .collect()
}

fn same(one: &History, other: &History) {
    assert_eq!(one.bytes(), other.bytes());
    assert_eq!(one.entries(), other.entries());
    assert_eq!(one.blocks(), other.blocks());
    assert!(parts(one).eq(parts(other)));
}
