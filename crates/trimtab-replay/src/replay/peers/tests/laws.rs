//! What holds for every rival.

#![expect(clippy::single_range_in_vec_init, reason = "a need names ranges of lines, often only one")]

use trimtab_core::{BlockId, json::widen};

use super::{joined, reads, segment, track, views};
use crate::replay::{
    NeedKind, ResultNeed, Track, Views, VisibleRequest,
    peers::{find_rival, rivals},
};

/// A session in which every rival has something to do.
fn session() -> Vec<String> {
    let some = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    [
        some(&["s be brief", "u go", "c Read a.rs + Read b.rs", "r #90000 + #170000", "c Edit a.rs", "r ok"]),
        reads(12, 4_000),
        some(&["a done", "u more", "c Read a.rs", "r lines 400", "c skill x", "r #400", "a so", "u again"]),
        some(&[
            "a Look:\n```bash\nls\n```", "u OBSERVATION:\na.rs", "wait 400", "c Read a.rs", "fail #50000",
        ]),
        reads(3, 200_000),
        some(&["a done", "u bye", "a bye", "u really"]),
    ]
    .concat()
}

fn needs() -> Vec<ResultNeed> {
    let need = |provider, request, lines: &[std::ops::Range<usize>]| ResultNeed {
        kind: NeedKind::Anchor,
        provider: BlockId(provider),
        only_there: true,
        request,
        lines: lines.to_vec(),
    };
    vec![need(4, 3, &[0..1]), need(7, 9, &[]), need(4, 12, &[0..1]), need(9, 2, &[0..1])]
}

/// All rivals with all the parameters that they name.
fn asked() -> Vec<String> {
    let with_knobs = rivals().iter().flat_map(|rival| {
        let knobs = rival.knob.1.iter().map(move |knob| format!("{}({knob})", rival.name));
        knobs.chain([rival.name.to_owned()])
    });
    with_knobs.collect()
}

fn check_law(law: impl Fn(&str, &Track<'_>, &Views)) {
    let lines = session();
    let segment = segment(&joined(&[&lines], &[]));
    let track = track(&segment);
    for asked in asked() {
        law(&asked, &track, &views(&track, &asked, &needs()));
    }
}

#[test]
fn there_is_one_list_of_changes_per_request_and_each_names_what_is_there_once_and_in_order() {
    check_law(|asked, track, views| {
        assert_eq!(views.changes.len(), track.requests.len(), "{asked}");
        for (request, changes) in track.requests.iter().zip(&views.changes) {
            let blocks: Vec<usize> = changes.iter().map(|change| widen(change.block.0)).collect();
            assert!(blocks.is_sorted_by(|one, next| one < next), "{asked}: {blocks:?}");
            assert!(blocks.iter().all(|block| *block < request.blocks), "{asked}: {blocks:?}");
        }
    });
}

#[test]
fn no_change_repeats_what_is_shown_already() {
    check_law(|asked, track, views| {
        let mut showing = VisibleRequest::default();
        for (request, changes) in track.requests.iter().zip(&views.changes) {
            showing.advance_to(request.blocks, &[]);
            for change in changes {
                assert_ne!(*showing.shown_block(change.block), change.shown, "{asked}");
            }
            showing.advance_to(request.blocks, changes);
        }
    });
}

#[test]
fn the_same_case_gives_the_same_views_and_every_rival_does_something() {
    check_law(|asked, track, found| {
        assert_eq!(*found, views(track, asked, &needs()), "{asked}");
    });
    let lines = session();
    let segment = segment(&joined(&[&lines], &[]));
    let track = track(&segment);
    for rival in rivals() {
        let idle = |asked: &String| views(&track, asked, &needs()).changes.iter().all(Vec::is_empty);
        let mut all = asked().into_iter().filter(|asked| asked.split('(').next() == Some(rival.name));
        assert!(!all.all(|asked| idle(&asked)), "{} never hides anything", rival.name);
    }
}

#[test]
fn no_peer_knows_the_future() {
    let lines = session();
    let whole = segment(&joined(&[&lines], &[]));
    let whole = track(&whole);
    for cut in [12, 24, 35, 40, 44] {
        let part = segment(&joined(&[&lines[..cut]], &[]));
        let part = track(&part);
        // A share of the peak is known only at the end; the last request of a part may be one that the whole never made.
        let known = |asked: &String| asked.starts_with("peer:") && !asked.contains("(0.");
        let shares = ["peer:trim-messages", "peer:sliding-window"];
        for asked in asked().iter().filter(|asked| known(asked)) {
            if shares.iter().any(|share| asked.starts_with(share)) && !asked.contains('(') {
                continue;
            }
            let (all, early) = (views(&whole, asked, &[]), views(&part, asked, &[]));
            let same = early.changes.len() - 1;
            assert_eq!(all.changes[..same], early.changes[..same], "{asked} of the first {cut} lines");
        }
    }
}

#[test]
fn a_rival_is_found_by_its_name_and_knob() {
    let found = |asked| find_rival(asked).map(|(rival, knob)| (rival.name, knob));
    assert_eq!(found("peer:mask"), Some(("peer:mask", 10.0)));
    assert_eq!(found("peer:mask(5)"), Some(("peer:mask", 5.0)));
    assert_eq!(found("peer:sliding-window(0.35)"), Some(("peer:sliding-window", 0.35)));
    assert_eq!(found("oracle:block"), Some(("oracle:block", 0.0)));
    for wrong in ["mask", "peer:mask()", "peer:mask(-1)", "peer:mask(NaN)", "peer:mask(5", "oracle:block(3)"]
    {
        assert_eq!(found(wrong), None, "{wrong}");
    }
}

#[test]
fn names_are_told_apart_and_every_knob_says_what_it_is() {
    let mut names: Vec<&str> = rivals().iter().map(|rival| rival.name).collect();
    names.sort_unstable();
    assert!(names.is_sorted_by(|one, next| one < next), "{names:?}");
    for rival in rivals() {
        assert_eq!(rival.knob.0.is_empty(), rival.knob.1.is_empty(), "{}", rival.name);
        assert!(rival.about.ends_with('.'));
    }
}

#[test]
fn the_page_of_peers_has_a_paragraph_for_each() {
    let page = include_str!("../../../../../../docs/peers.md");
    for rival in rivals() {
        assert!(page.contains(&format!("`{}`", rival.name)), "docs/peers.md does not tell of {}", rival.name);
    }
}
