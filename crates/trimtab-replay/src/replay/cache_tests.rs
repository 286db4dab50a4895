//! The rules of every kind of cache, on rows of named pieces whose reads and writes can be worked out by hand.

use proptest::{collection::vec, prelude::*};
use trimtab_core::{
    Tokens,
    prices::{CacheLanding, CacheRules},
};

use super::cache::{CacheUse, PiecePosition, PrefixPiece, SimulatedCache};

/// One request: when it starts, in seconds, and its pieces with their tokens. A name with `*` carries a marker.
type Sent<'a> = (i64, Vec<(&'a str, u64)>);

const CLAUDE: CacheRules = CacheRules {
    landing: CacheLanding::Breakpoints { look_back: 20 },
    minimum: Tokens(1000),
    step: Tokens(1),
    lifetime_ms: 300_000,
    prefix_bound_reasoning: false,
    drops_old_reasoning: false,
    slots: None,
};
const GPT: CacheRules = CacheRules { landing: CacheLanding::RequestEnds { latest: 80 }, ..CLAUDE };
const PREFIX: CacheRules = CacheRules { landing: CacheLanding::AnyPrefix, ..CLAUDE };
const UNITS: CacheRules = CacheRules { landing: CacheLanding::UnitEnds, ..CLAUDE };
/// Any prefix, however short: the plain arithmetic of the examples.
const PLAIN: CacheRules = CacheRules { minimum: Tokens::ZERO, ..PREFIX };

fn lines(rules: CacheRules, requests: &[Sent<'_>]) -> Vec<CacheUse> {
    let mut names: Vec<&str> = Vec::new();
    let mut cache = SimulatedCache::new(rules, rules.lifetime_ms);
    let mut before: &[(&str, u64)] = &[];
    let plain = |name: &str| name.trim_end_matches('*').to_owned();
    requests
        .iter()
        .map(|(at, pieces)| {
            let same = before.iter().zip(pieces).take_while(|(a, b)| plain(a.0) == plain(b.0)).count();
            cache.keep_pieces(same);
            for (name, tokens) in pieces.iter().skip(same) {
                let number =
                    names.iter().position(|known| plain(known) == plain(name)).unwrap_or(names.len());
                if number == names.len() {
                    names.push(name);
                }
                let piece = PrefixPiece { block: u32::try_from(number).ok(), form: 0 };
                cache.push_piece(piece, Tokens(*tokens), PiecePosition::Begins);
            }
            before = pieces;
            let marked = pieces.iter().enumerate().filter(|(_, (name, _))| name.ends_with('*'));
            let markers: Vec<usize> = marked.map(|(index, _)| index + 1).collect();
            cache.send_request(at * 1000, &markers)
        })
        .collect()
}

#[track_caller]
fn check(rules: CacheRules, requests: &[Sent<'_>], read_and_written: &[(u64, u64)]) {
    let found: Vec<_> = lines(rules, requests).iter().map(|line| (line.read.0, line.written.0)).collect();
    assert_eq!(found, read_and_written);
}

/// What the requests cost in tokens of input, at a price of reads and of writes.
#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "small numbers")]
fn cost(lines: &[CacheUse], read: f64, write: f64) -> f64 {
    let one = |line: &CacheUse| {
        line.read.0 as f64 * read + line.written.0 as f64 * write + line.uncached_tokens().0 as f64
    };
    lines.iter().map(one).sum()
}

#[test]
fn a_conversation_that_grows_reads_all_that_was_said_before() {
    let grown = [(0, vec![("a*", 2000)]), (60, vec![("a", 2000), ("b*", 300)])];
    for rules in [CLAUDE, GPT, PREFIX, UNITS] {
        check(rules, &grown, &[(0, 2000), (2000, 300)]);
    }
}

#[test]
fn what_is_shorter_than_the_minimum_is_neither_written_nor_read() {
    let grown = [
        (0, vec![("a*", 999)]),
        (60, vec![("a", 999), ("b*", 1)]),
        (120, vec![("a", 999), ("b", 1), ("c*", 5)]),
    ];
    for rules in [CLAUDE, GPT, UNITS] {
        check(rules, &grown, &[(0, 0), (0, 1000), (1000, 5)]);
    }
    // Of any prefix, the first 999 tokens are there and too few.
    check(PREFIX, &grown, &[(0, 0), (0, 1000), (1000, 5)]);
}

#[test]
fn an_entry_lives_for_less_than_its_lifetime_from_start_to_start() {
    let after = |seconds| [(0, vec![("a*", 2000)]), (seconds, vec![("a", 2000), ("b*", 100)])];
    for rules in [CLAUDE, GPT, PREFIX, UNITS] {
        check(rules, &after(299), &[(0, 2000), (2000, 100)]);
        check(rules, &after(300), &[(0, 2000), (0, 2100)]);
    }
}

#[test]
fn a_read_makes_an_entry_live_on() {
    let requests = [
        (0, vec![("a*", 2000)]),
        (200, vec![("a*", 2000)]),
        (400, vec![("a*", 2000)]),
        (700, vec![("a*", 2000)]),
    ];
    for rules in [CLAUDE, GPT, PREFIX, UNITS] {
        check(rules, &requests, &[(0, 2000), (2000, 0), (2000, 0), (0, 2000)]);
    }
}

#[test]
fn behind_the_last_marker_input_is_plain() {
    let line = lines(CLAUDE, &[(0, vec![("a*", 2000), ("b", 50)])]);
    assert_eq!((line[0].written, line[0].uncached_tokens()), (Tokens(2000), Tokens(50)));
}

/// A request of `first` with a marker and `more` blocks of 10 tokens after it, the last of them marked.
fn longer(at: i64, more: usize) -> Sent<'static> {
    const NAMES: [&str; 24] = [
        "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17", "18",
        "19", "20", "21", "22", "23", "end*",
    ];
    let mut pieces = vec![("first", 2000)];
    pieces.extend(NAMES.iter().skip(NAMES.len() - more).map(|name| (*name, 10)));
    (at, pieces)
}

#[test]
fn a_marker_finds_what_is_among_twenty_positions_with_its_own() {
    let first = (0, vec![("first*", 2000)]);
    check(CLAUDE, &[first.clone(), longer(60, 19)], &[(0, 2000), (2000, 190)]);
    check(CLAUDE, &[first.clone(), longer(60, 20)], &[(0, 2000), (0, 2200)]);
    // Other caches do not count positions.
    check(GPT, &[first.clone(), longer(60, 20)], &[(0, 2000), (2000, 200)]);
    check(PREFIX, &[first, longer(60, 20)], &[(0, 2000), (2000, 200)]);
}

#[test]
fn a_second_marker_reaches_where_the_last_one_does_not() {
    let mut request = longer(60, 20);
    request.1[0].0 = "first*";
    check(CLAUDE, &[(0, vec![("first*", 2000)]), request], &[(0, 2000), (2000, 200)]);
}

#[test]
fn a_run_of_results_is_one_position() {
    let mut cache = SimulatedCache::new(CLAUDE, CLAUDE.lifetime_ms);
    let piece = |number: u32| PrefixPiece { block: Some(number), form: 0 };
    cache.push_piece(piece(0), Tokens(2000), PiecePosition::Begins);
    cache.send_request(0, &[1]);
    for number in 1..=40 {
        cache.push_piece(
            piece(number),
            Tokens(10),
            if number == 1 { PiecePosition::Begins } else { PiecePosition::GoesOn },
        );
    }
    assert_eq!(cache.send_request(1000, &[41]).read, Tokens(2000));
}

#[test]
fn after_an_edit_markers_leave_only_the_head_and_other_caches_what_is_before_the_edit() {
    let edited = [
        (0, vec![("head*", 2000), ("a*", 500)]),
        (10, vec![("head*", 2000), ("a", 500), ("b*", 500)]),
        (20, vec![("head*", 2000), ("a", 500), ("B", 20), ("c*", 500)]),
    ];
    // The end of the first request is two positions before the marker.
    check(CLAUDE, &edited, &[(0, 2500), (2500, 500), (2500, 520)]);
    check(GPT, &edited, &[(0, 2500), (2500, 500), (2500, 520)]);
    // An edit in what the first request said leaves the marker after the head; where there is none, nothing.
    let deeper = [
        (0, vec![("head*", 2000), ("a", 500), ("b*", 500)]),
        (10, vec![("head*", 2000), ("A", 20), ("b*", 500)]),
    ];
    check(CLAUDE, &deeper, &[(0, 3000), (2000, 520)]);
    check(PREFIX, &deeper, &[(0, 3000), (2000, 520)]);
    check(GPT, &deeper, &[(0, 3000), (0, 2520)]);
    check(UNITS, &deeper, &[(0, 3000), (0, 2520)]);
    let broke: Vec<bool> = lines(PREFIX, &deeper).iter().map(|line| line.broke).collect();
    assert_eq!(broke, [false, true]);
}

#[test]
fn an_edit_of_a_cold_cache_breaks_nothing() {
    let cold = [(0, vec![("a*", 2000), ("b*", 500)]), (900, vec![("a*", 2000), ("B*", 20)])];
    assert!(lines(PREFIX, &cold).iter().all(|line| !line.broke));
}

#[test]
fn only_the_latest_eighty_ends_are_considered() {
    let names: Vec<String> = (0..90).map(|number| format!("p{number}*")).collect();
    let pieces =
        |count: usize| names.iter().take(count).map(|name| (name.as_str(), 1000)).collect::<Vec<_>>();
    let requests: Vec<Sent<'_>> = (1..=90).map(|count| (0, pieces(count))).collect();
    let mut kept = SimulatedCache::new(GPT, GPT.lifetime_ms);
    let piece = |number: u32| PrefixPiece { block: Some(number), form: 0 };
    // The first request is warm; 85 more on the same path have expired since, and the first alone was used again.
    assert_eq!(lines(GPT, &requests).last().map(|line| line.read), Some(Tokens(89_000)));
    kept.push_piece(piece(0), Tokens(1000), PiecePosition::Begins);
    kept.send_request(0, &[]);
    for number in 1..=85 {
        kept.push_piece(piece(number), Tokens(1000), PiecePosition::Begins);
        kept.send_request(0, &[]);
    }
    kept.keep_pieces(1);
    kept.send_request(299_000, &[]);
    for number in 1..=85 {
        kept.push_piece(piece(number), Tokens(1000), PiecePosition::Begins);
    }
    assert_eq!(kept.send_request(400_000, &[]).read, Tokens::ZERO);
}

#[test]
fn whole_units_are_read_or_nothing() {
    // `A B` and then `A C` misses A, until a request has ended there.
    let requests = [
        (0, vec![("a", 2000), ("b", 100)]),
        (10, vec![("a", 2000), ("c", 100)]),
        (20, vec![("a", 2000)]),
        (30, vec![("a", 2000), ("d", 100)]),
    ];
    check(UNITS, &requests, &[(0, 2100), (0, 2100), (0, 2000), (2000, 100)]);
}

#[test]
fn a_reply_is_a_unit_too() {
    let mut cache = SimulatedCache::new(UNITS, UNITS.lifetime_ms);
    let piece = |number: u32| PrefixPiece { block: Some(number), form: 0 };
    cache.push_piece(piece(0), Tokens(2000), PiecePosition::Begins);
    cache.send_request(0, &[]);
    cache.push_piece(piece(1), Tokens(300), PiecePosition::Begins);
    cache.push_piece(piece(2), Tokens(50), PiecePosition::Begins);
    cache.record_reply(2);
    let line = cache.send_request(1000, &[]);
    assert_eq!((line.read, line.written), (Tokens(2300), Tokens(50)));
}

#[test]
fn reads_are_whole_steps() {
    let rules = CacheRules { step: Tokens(128), ..PREFIX };
    let grown = [(0, vec![("a", 2000)]), (60, vec![("a", 2000), ("b", 300)])];
    // 15 times 128 of 2,000.
    check(rules, &grown, &[(0, 2000), (1920, 380)]);
}

#[test]
fn an_expired_entry_does_not_come_back_when_a_later_request_passes_it() {
    let requests = [
        (0, vec![("head", 2000), ("a*", 500)]),
        (400, vec![("head", 2000), ("a", 500), ("b*", 500)]),
        (500, vec![("head", 2000), ("a*", 500)]),
    ];
    check(CLAUDE, &requests, &[(0, 2500), (0, 3000), (0, 2500)]);
}

/// Ten turns of a base, a result and other text, as they are and with every older result replaced by a note of 8 tokens:
/// the example of an architecture decision that called trimming more expensive on any numbers.
fn ten_turns(base: u64, other: u64, result: u64) -> [Vec<CacheUse>; 2] {
    const RESULTS: [&str; 10] = ["r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9"];
    const NOTES: [&str; 10] = ["n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9"];
    const OTHERS: [&str; 10] = ["o0", "o1", "o2", "o3", "o4", "o5", "o6", "o7", "o8", "o9"];
    let turn = |now: usize, shortened: bool| {
        let mut pieces = vec![("base", base)];
        for turn in 0..=now {
            let old = shortened && turn < now;
            pieces.push(if old { (NOTES[turn], 8) } else { (RESULTS[turn], result) });
            pieces.push((OTHERS[turn], other));
        }
        pieces
    };
    let all = |shortened| (0..10).map(|now| (0, turn(now, shortened))).collect::<Vec<Sent<'_>>>();
    [lines(PLAIN, &all(false)), lines(PLAIN, &all(true))]
}

#[test]
fn trimming_every_turn_is_cheaper_or_dearer_by_what_it_removes() {
    for (base, other, result, raw, trimmed, ratio) in [
        (0, 0, 100, 1450.0, 1101.0, 0.81),
        (5000, 200, 100, 13_850.0, 15_121.0, 1.11),
        (20_000, 400, 100, 45_250.0, 48_141.0, 1.07),
        (20_000, 400, 3000, 87_300.0, 77_141.0, 0.91),
    ] {
        let [before, after] = ten_turns(base, other, result);
        let (found_raw, found) = (cost(&before, 0.1, 1.0), cost(&after, 0.1, 1.0));
        assert!((found_raw - raw).abs() < 0.5 && (found - trimmed).abs() < 0.5, "{found_raw} {found}");
        let dearer_writes = cost(&after, 0.1, 1.25) / cost(&before, 0.1, 1.25);
        assert!((dearer_writes - ratio).abs() < 0.005, "{dearer_writes}");
    }
}

#[test]
fn one_large_edit_costs_its_tail_now_and_saves_its_size_each_turn() {
    // 100k cached; from 30k on, 40k are removed and 30k survive.
    let whole = || vec![("a", 30_000), ("gone", 40_000), ("b", 30_000)];
    let less = || vec![("a", 30_000), ("b", 30_000)];
    for (read, write, dearer_now, saved_later) in [
        (0.25, 1.0, 12_500.0, 10_000.0),
        (0.1, 1.25, 30_500.0, 4000.0),
        (0.05, 1.25, 34_000.0, 2000.0),
        (0.02, 1.0, 28_600.0, 800.0),
    ] {
        let price = |requests: &[Sent<'_>]| -> Vec<f64> {
            lines(PLAIN, requests).iter().map(|line| cost(&[*line], read, write)).collect()
        };
        let kept = price(&[(0, whole()), (1, whole()), (2, whole())]);
        let cut = price(&[(0, whole()), (1, less()), (2, less())]);
        assert!((cut[1] - kept[1] - dearer_now).abs() < 1e-6, "{read}");
        assert!((kept[2] - cut[2] - saved_later).abs() < 1e-6, "{read}");
    }
    let cold = lines(PLAIN, &[(0, whole()), (900, less())]);
    let kept = lines(PLAIN, &[(0, whole()), (900, whole())]);
    assert!((cost(&cold, 0.1, 1.25) - cost(&kept, 0.1, 1.25) + 50_000.0).abs() < 1e-6);
}

proptest! {
    /// A view that leaves pieces out from the start costs at most what the whole costs, and the same view the same.
    #[test]
    fn leaving_out_at_birth_never_costs_more(
        sizes in vec((1_u64..5000, any::<bool>()), 1..20),
        gaps in vec(0_i64..400, 20),
        write in 1.0_f64..2.0,
    ) {
        let names: Vec<String> = (0..sizes.len()).map(|number| format!("p{number}")).collect();
        let view = |hides: bool| -> Vec<Sent<'_>> {
            let mut at = 0;
            (1..=sizes.len()).map(|count| {
                at += gaps.get(count).copied().unwrap_or_default();
                let shown = names.iter().zip(&sizes).take(count).filter(|(_, (_, stays))| *stays || !hides);
                (at, shown.map(|(name, (tokens, _))| (name.as_str(), *tokens)).collect())
            }).collect()
        };
        let (raw, less) = (lines(PLAIN, &view(false)), lines(PLAIN, &view(true)));
        prop_assert_eq!(&raw, &lines(PLAIN, &view(false)));
        for rules in [PLAIN, GPT, UNITS] {
            let lines = lines(rules, &view(true));
            prop_assert!(lines.iter().all(|line| line.read + line.written <= line.tokens && !line.broke));
        }
        prop_assert!(cost(&less, 0.1, write) <= cost(&raw, 0.1, write) + 1e-6);
    }
}
