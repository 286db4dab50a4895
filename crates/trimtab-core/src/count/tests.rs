//! Exact counts against a second implementation, and the properties of estimates.

use std::env;

use proptest::prelude::*;

use super::{ClaudeGeneration, Counter, Exactness, Tokenizer, Vocabulary, exact};
use crate::units::Tokens;

const O200K: Counter = Counter::new(Tokenizer::Exact(Vocabulary::O200k));
const CL100K: Counter = Counter::new(Tokenizer::Exact(Vocabulary::Cl100k));
const ESTIMATES: [Counter; 3] = [
    Counter::new(Tokenizer::Claude(ClaudeGeneration::UpToOpus46)),
    Counter::new(Tokenizer::Claude(ClaudeGeneration::FromOpus47)),
    Counter::new(Tokenizer::Gemini),
];

/// Each property runs this many cases; the test script asks for more.
fn cases() -> ProptestConfig {
    let cases = env::var("TRIMTAB_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(256);
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) }
}

#[track_caller]
fn check_exact(text: &str) {
    assert_eq!(O200K.count_text(text), Tokens::from_len(bpe_openai::o200k_base().count(text)), "o200k");
    assert_eq!(CL100K.count_text(text), Tokens::from_len(bpe_openai::cl100k_base().count(text)), "cl100k");
}

/// Text of the kinds that tokenizers disagree on.
fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "\\PC{0,40}",
        any::<String>(),
        "[a-z]{1,12}( [A-Za-z]{1,10}){0,10}",
        "[A-Z][a-z]+'(s|S|t|re|VE|ll|d)",
        "[0-9]{1,20}",
        "[ \t\r\n\u{a0}\u{3000}]{1,30}",
        "[!-/:-@]{1,30}[\r\n/]{0,4}",
        "[一-龥ぁ-んァ-ン가-힣]{1,40}",
        "[😀-🙏🇦-🇿👨👩\u{200d}\u{fe0f}🏽]{1,10}",
        "[a-z\u{300}-\u{36f}ا-يก-๙א-ת]{1,30}",
        "[A-Za-z0-9+/]{1,200}={0,2}",
        prop::sample::select(vec![
            "<|endoftext|>", "<|im_start|>", "<|fim_prefix|>", "<|endofprompt|>", "\0", "\r\n"
        ])
        .prop_map(str::to_owned),
        (any::<char>(), 1..400usize).prop_map(|(character, times)| character.to_string().repeat(times)),
        "(    |\t){0,6}(let|if|for) [a-z_]{1,12}\\(\\) \\{\n",
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// A text around a run of one character, of about the length from which runs are counted by arithmetic.
fn long_run() -> impl Strategy<Value = String> {
    let character = prop_oneof![
        any::<char>(),
        prop::sample::select(" \n\t\r=-_*#./aA1x0\u{a0}一あ한😀é\u{301}\0".chars().collect::<Vec<_>>()),
    ];
    (any_text(), character, 15_000..40_000usize, any_text()).prop_map(|(before, character, bytes, after)| {
        format!("{before}{}{after}", character.to_string().repeat(bytes / character.len_utf8()))
    })
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn exact_counts_equal_the_second_implementation(text in any_text()) {
        check_exact(&text);
    }

    #[test]
    fn runs_counted_by_arithmetic_equal_the_second_implementation(text in long_run()) {
        check_exact(&text);
    }

    #[test]
    fn an_appended_text_never_lowers_an_estimate(text in any_text(), more in any_text()) {
        let longer = format!("{text}{more}");
        // Byte-pair encoding itself may count a text a little lower once its last word goes on.
        let merged = O200K.count_text(&text) - O200K.count_text(&longer);
        for counter in ESTIMATES {
            let (before, after) = (counter.count_text(&text), counter.count_text(&longer));
            prop_assert!(after + merged + Tokens(1) >= before, "{:?}: {before} -> {after}", counter.tokenizer());
        }
    }

    #[test]
    fn an_estimate_is_near_the_sum_of_its_parts(text in any_text(), more in any_text()) {
        let longer = format!("{text}{more}");
        let exact_gap = (O200K.count_text(&text) + O200K.count_text(&more)).0.abs_diff(O200K.count_text(&longer).0);
        for counter in ESTIMATES {
            let gap = (counter.count_text(&text) + counter.count_text(&more)).0.abs_diff(counter.count_text(&longer).0);
            prop_assert!(gap <= exact_gap + 2, "{:?}: {gap}", counter.tokenizer());
        }
    }
}

#[test]
fn several_long_runs_in_one_text_are_exact() {
    let text = format!("{}\n# heading\n{}x{}", "=".repeat(50_001), " ".repeat(33_333), "é".repeat(20_007));
    check_exact(&text);
}

#[test]
fn the_worst_texts_are_exact_at_full_length() {
    for unit in ["a", " ", "\n", "=", "ab", "字", "0", "-=", "aA"] {
        check_exact(&unit.repeat(300_000 / unit.len()));
    }
}

#[test]
fn every_public_vocabulary_loads_and_counts_runs_as_it_counts_text() {
    for vocabulary in Vocabulary::ALL {
        let bpe = tiktoken::get_encoding(vocabulary.name()).expect("switched on in Cargo.toml");
        for character in [" ", "\n", "a", "=", "1", "字", "A", ".", "\t"] {
            let text = format!("fn main() {{ {} }}", character.repeat(20_011));
            assert_eq!(
                exact::count(vocabulary, &text),
                Tokens::from_len(bpe.count(&text)),
                "{vocabulary:?} {character:?}"
            );
        }
    }
}

#[test]
fn special_token_text_is_ordinary_text() {
    assert_eq!(O200K.count_text("<|endoftext|>"), Tokens(7));
}

#[test]
fn a_quarter_of_the_characters_and_one_is_a_choice() {
    let counter = Counter::new(Tokenizer::CharsPerFour);
    for (text, tokens) in [("", 0), ("a", 1), ("abcd", 2), ("字字字字字字字字", 3)] {
        assert_eq!(counter.count_text(text), Tokens(tokens), "{text:?}");
    }
}

#[test]
fn an_empty_text_is_nothing_to_anyone() {
    for counter in [O200K, CL100K].into_iter().chain(ESTIMATES) {
        assert_eq!(counter.count_text(""), Tokens::ZERO);
    }
}

#[test]
fn estimates_say_that_they_are_estimates() {
    for counter in ESTIMATES {
        assert!(matches!(counter.tokenizer().exactness(), Exactness::Estimate { guard } if guard > 1.0));
    }
    assert_eq!(O200K.tokenizer().exactness(), Exactness::Exact);
}
