//! The report as one page. Takes what was replayed; gives HTML that needs nothing else: its style, its script and its data
//! stand in it. Never writes a word of a recording as markup: words travel as JSON, and the script sets them as text.

use anyhow::Result;
use serde::Serialize;
use trimtab_core::prices::prices_date;
use trimtab_replay::{MissReport, ScoreRow, SessionScores};

use super::{Entrant, ReplayResults, rewrite_cost_in_reads};

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Sessions of a distribution that are drawn, at even ranks, the best and the worst among them.
const DRAWN_SESSIONS: usize = 120;

/// Misses that are listed for each contender.
const TOLD_MISSES: usize = 40;

/// Sessions whose curves are in the page.
const CURVES: usize = 24;

#[derive(Serialize)]
struct PageData<'a> {
    version: &'static str,
    prices_date: &'static str,
    unusable: usize,
    models: Vec<ModelPrices<'a>>,
    entrants: &'a [Entrant],
    rows: &'a [ScoreRow],
    /// For each row: cost against raw of sessions at even ranks, cheapest first.
    spread: Vec<Vec<f64>>,
    curves: Vec<SizeCurves<'a>>,
    misses: Vec<MissRow<'a>>,
    left_out: Vec<String>,
}

#[derive(Serialize)]
struct ModelPrices<'a> {
    name: &'a str,
    rewriting: f64,
    input: f64,
    cache_read: f64,
    cache_write: f64,
}

/// How large the requests of a session were, with each contender.
#[derive(Serialize)]
struct SizeCurves<'a> {
    session: &'a str,
    requests: u64,
    raw: &'a [u64],
    /// In the order of entrants; empty where it is the same as untrimmed.
    by: Vec<&'a [u64]>,
}

#[derive(Serialize)]
struct MissRow<'a> {
    entrant: usize,
    session: &'a str,
    #[serde(flatten)]
    miss: &'a MissReport,
}

/// Writes the page.
pub(super) fn write_page(replayed: &ReplayResults) -> Result<Vec<u8>> {
    let (misses, untold) = select_misses(replayed);
    let curves = size_curves(replayed);
    let data = PageData {
        version: env!("CARGO_PKG_VERSION"),
        prices_date: prices_date(),
        unusable: replayed.unusable,
        models: replayed.models.iter().map(model_prices).collect(),
        entrants: &replayed.entrants,
        rows: &replayed.rows,
        spread: (0..replayed.rows.len()).map(|row| cost_ratios(&replayed.sessions, row)).collect(),
        left_out: left_out(replayed, curves.len(), untold),
        curves,
        misses,
    };
    let data = in_script(&serde_json::to_string(&data)?);
    // In one pass: what is put in is not searched for marks.
    let mut page = String::with_capacity(data.len() + SCRIPT.len() + 2 * STYLE.len());
    let mut rest = PAGE;
    for (mark, content) in [("/*style*/", STYLE), ("/*data*/", data.as_str()), ("/*script*/", SCRIPT)] {
        let Some((before, after)) = rest.split_once(mark) else { continue };
        page.push_str(before);
        page.push_str(content);
        rest = after;
    }
    page.push_str(rest);
    Ok(page.into_bytes())
}

/// Makes JSON that cannot end the script element it stands in: in strings, letters that mean something to HTML are escaped.
fn in_script(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for letter in json.chars() {
        match letter {
            '<' => safe.push_str("\\u003c"),
            '>' => safe.push_str("\\u003e"),
            '&' => safe.push_str("\\u0026"),
            '\u{2028}' => safe.push_str("\\u2028"),
            '\u{2029}' => safe.push_str("\\u2029"),
            letter => safe.push(letter),
        }
    }
    safe
}

fn model_prices(model: &trimtab_core::Model) -> ModelPrices<'_> {
    let prices = &model.prices;
    ModelPrices {
        name: &model.name,
        rewriting: rewrite_cost_in_reads(model),
        input: prices.input,
        cache_read: prices.cache_read,
        cache_write: prices.cache_write,
    }
}

fn cost_ratios(sessions: &[SessionScores], row: usize) -> Vec<f64> {
    let mut ratios: Vec<f64> =
        sessions.iter().filter_map(|session| Some(session.scores.get(row)?.cost_vs_raw())).collect();
    ratios.sort_by(f64::total_cmp);
    let last = ratios.len().saturating_sub(1);
    let drawn = ratios.len().min(DRAWN_SESSIONS);
    let rank = |index: usize| index * last / drawn.saturating_sub(1).max(1);
    let rounded = |ratio: &f64| (ratio * 1e4).round() / 1e4;
    (0..drawn).filter_map(|index| ratios.get(rank(index))).map(rounded).collect()
}

fn size_curves(replayed: &ReplayResults) -> Vec<SizeCurves<'_>> {
    let models = replayed.models.len().max(1);
    let with_curve = replayed
        .sessions
        .iter()
        .filter(|session| session.scores.first().is_some_and(|score| !score.raw_sizes.is_empty()));
    let all: Vec<&SessionScores> = with_curve.collect();
    let every = all.len().div_ceil(CURVES).max(1);
    let curves = all.into_iter().step_by(every).filter_map(|session| {
        let first = session.scores.first()?;
        let by = session.scores.iter().step_by(models);
        let by = by.map(|score| if score.sizes == first.raw_sizes { &[] } else { &*score.sizes });
        Some(SizeCurves {
            session: &session.name,
            requests: first.requests,
            raw: &first.raw_sizes,
            by: by.collect(),
        })
    });
    curves.collect()
}

/// Returns misses of every contender, taking one of each session in turn, and how many are not listed.
fn select_misses(replayed: &ReplayResults) -> (Vec<MissRow<'_>>, u64) {
    let models = replayed.models.len().max(1);
    let (mut told, mut all) = (Vec::new(), 0);
    for entrant in 0..replayed.entrants.len() {
        let scores = || {
            replayed
                .sessions
                .iter()
                .filter_map(|session| Some((session, session.scores.get(entrant * models)?)))
        };
        all += scores().map(|(_, score)| score.missed).sum::<u64>();
        let deepest = scores().map(|(_, score)| score.misses.len()).max().unwrap_or_default();
        let in_turn = (0..deepest).flat_map(|depth| {
            scores().filter_map(move |(session, score)| {
                Some(MissRow { entrant, session: &session.name, miss: score.misses.get(depth)? })
            })
        });
        told.extend(in_turn.take(TOLD_MISSES));
    }
    let untold = all.saturating_sub(u64::try_from(told.len()).unwrap_or(u64::MAX));
    (told, untold)
}

fn left_out(replayed: &ReplayResults, curves: usize, untold: u64) -> Vec<String> {
    let mut left_out = Vec::new();
    let sessions = replayed.sessions.len();
    if curves < sessions {
        left_out
            .push(format!("Context sizes are of {curves} of {sessions} sessions, taken at even distances."));
    }
    left_out.push(
        "Context sizes and misses are those at the first model's prices; of a recording with several segments, sizes are of the \
         longest, and long curves are thinned."
            .to_owned(),
    );
    if sessions > DRAWN_SESSIONS {
        left_out.push(format!(
            "Distributions draw {DRAWN_SESSIONS} of {sessions} sessions at even ranks, the best and the worst among them."
        ));
    }
    if untold > 0 {
        left_out.push(format!("{untold} further misses are counted and not listed."));
    }
    if replayed.unusable > 0 {
        left_out.push(format!(
            "{} files could not be replayed; the command named them with the reasons.",
            replayed.unusable
        ));
    }
    left_out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::replay::invented;

    fn check(sessions: u32) -> String {
        let page = String::from_utf8(write_page(&invented::make_up_results(sessions)).expect("a page"))
            .expect("UTF-8");
        if let Some(file) = std::env::var_os("TRIMTAB_PAGE") {
            std::fs::write(file, &page).expect("the page");
        }
        page
    }

    #[test]
    fn a_page_needs_nothing_else() {
        let page = check(60);
        for mark in ["/*style*/", "/*data*/", "/*script*/"] {
            assert!(!page.contains(mark), "{mark} is left");
        }
        for outside in ["src=", "href=\"http", "url(", "@import", "fetch(", "import("] {
            let own = page.replace("src=x onerror", "").replace("\\u003cimg ", "");
            assert!(!own.contains(outside), "the page asks for something: {outside}");
        }
        assert!(page.contains("default-src 'none'"));
    }

    #[test]
    fn words_of_a_recording_are_never_markup() {
        let page = check(20);
        assert!(!page.contains("<img") && !page.contains("</script><"), "markup of a recording got through");
        assert!(page.contains("\\u003cimg src=x onerror="), "the words are there, as text");
        assert_eq!(page.matches("</script>").count(), 2, "one element of data, one of code");
        assert!(!SCRIPT.contains("innerHTML") && !SCRIPT.contains("insertAdjacentHTML"));
        assert_eq!(in_script("\"a</script>&\u{2028}\""), "\"a\\u003c/script\\u003e\\u0026\\u2028\"");
    }

    #[test]
    fn a_page_of_many_sessions_stays_small_and_says_what_it_leaves_out() {
        let page = check(400);
        assert!(page.len() < 3_000_000, "{} bytes", page.len());
        for words in
            ["24 of 400 sessions", "120 of 400 sessions", "further misses", "2 files could not be replayed"]
        {
            assert!(page.contains(words), "{words}");
        }
    }

    #[test]
    fn the_best_and_the_worst_session_are_drawn() {
        let made = invented::make_up_results(400);
        let spread = cost_ratios(&made.sessions, 33);
        let worst = made.rows[33].worst_session_vs_raw;
        assert_eq!(spread.len(), DRAWN_SESSIONS);
        assert!((spread[DRAWN_SESSIONS - 1] - worst).abs() < 1e-4);
    }
}
