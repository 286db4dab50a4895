//! Many sessions in one row per contender and model. Takes the scores of sessions; gives sums, ratios of sums, the worst
//! session, and intervals from drawing repositories and their sessions again. Never averages ratios: a long session weighs what it costs.

use serde::Serialize;
use trimtab_core::prices::CostUnit;

use super::{
    NeededShare,
    score::{Score, ratio, to_float},
};

/// Where the drawing of sessions begins: the same for every report, so that the same input gives the same intervals.
const SEED: u64 = 0x7472_696d_7461_6221;

/// The oracle that keeps the budget: what recalls are related to.
const BOUND: &str = "oracle:budget";

/// Dollars differ from those of the untrimmed session when they do by more than the rounding of sums.
const ROUNDING: f64 = 1e-9;

/// What a recording scored: one score for each contender and model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionScores {
    /// The name by which people know it.
    pub name: String,
    /// The project, day and first words by which people know it; empty where nobody looked.
    pub title: String,
    /// The agent that recorded it; empty where that is not known.
    pub agent: String,
    /// The repository that it worked in; empty where the recording does not tell.
    pub repository: String,
    /// In the order of contenders and, within, of models.
    pub scores: Vec<Score>,
}

/// What one contender scored over all sessions at one model's prices.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScoreRow {
    /// The repository, agent or session whose row it is, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The contender's name.
    pub policy: String,
    /// The model whose prices are paid.
    pub model: String,
    /// The budget that was asked for: `64k`, or `35%` of the largest request of each segment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<String>,
    /// What costs are counted in: dollars, or seconds of waiting where the model runs on the user's own machine.
    pub unit: CostUnit,
    /// How many sessions.
    pub sessions: u64,
    /// How many requests in them.
    pub requests: u64,
    /// How many of them had their prefix cached for an hour.
    pub hour_requests: u64,
    /// Input tokens, summed over requests.
    pub tokens: u64,
    /// These in relation to the untrimmed sessions.
    pub tokens_vs_raw: f64,
    /// Input dollars, or seconds.
    pub input_cost: f64,
    /// What the untrimmed sessions cost.
    pub raw_cost: f64,
    /// `input_cost` and what it costs to fetch again what was missed.
    pub net_cost: f64,
    /// The input cost in relation to the untrimmed sessions.
    pub cost_vs_raw: f64,
    /// Requests that only kept the cache alive, per session; they are part of the cost.
    pub pings: f64,
    /// What they cost, in relation to the untrimmed sessions.
    pub pings_vs_raw: f64,
    /// The same of the session where that is largest.
    pub worst_session_vs_raw: f64,
    /// Share of sessions that cost more than untrimmed.
    pub sessions_dearer: f64,
    /// Broken prefixes of a live cache, per session.
    pub cache_breaks: f64,
    /// Requests that show something otherwise than the request before did, per session.
    pub cuts: f64,
    /// Tokens that were cached again because of a cut, per session.
    pub rewritten_tokens: f64,
    /// Tokens that were in no cache, per session: the model had to read them.
    pub prefill_tokens: f64,
    /// These in relation to the untrimmed sessions.
    pub prefill_vs_raw: f64,
    /// Seconds of reading them, per session, where the speed is known.
    pub prefill_seconds: Option<f64>,
    /// Hidden blocks that had to be fetched again, per session.
    pub forced_refetches: f64,
    /// Tokens of visible lines that are no longer true and do not say so, summed over requests, per session.
    pub unmarked_stale_tokens: f64,
    /// Share of texts to be replaced that were still visible.
    pub edit_anchor_recall: f64,
    /// Share of names first used that were still visible where they came from.
    pub reference_recall: f64,
    /// Share of live failures that were still visible.
    pub error_retention: f64,
    /// Share of instructions that were still visible.
    pub instruction_retention: f64,
    /// Share of names that nobody guesses.
    pub strict_reference_recall: f64,
    /// Share of copied lines that were still visible.
    pub copied_line_recall: f64,
    /// How many texts to be replaced there were.
    pub edit_anchors: u64,
    /// `edit_anchor_recall` in relation to that of `oracle:budget`, where that takes part.
    pub bound_recall_share: Option<f64>,
    /// Dollars with those of fetching again, in relation to the untrimmed sessions.
    pub cost_net_vs_raw: f64,
    /// Requests that break a rule of the protocol.
    pub invalid_requests: u64,
    /// Requests above the budget.
    pub over_budget_requests: u64,
    /// Microseconds that half of the plans took at most; none where nothing is planned.
    pub plan_us_p50: Option<u32>,
    /// Microseconds that 99 of 100 plans took at most.
    pub plan_us_p99: Option<u32>,

    /// The session that is worst.
    pub worst_session: String,
    /// 95 % interval of `cost_vs_raw`; none for a single session.
    pub cost_vs_raw_95: Option<[f64; 2]>,
    /// 95 % interval of `cost_net_vs_raw`.
    pub cost_net_vs_raw_95: Option<[f64; 2]>,
    /// 95 % interval of `edit_anchor_recall`.
    pub edit_anchor_recall_95: Option<[f64; 2]>,
    /// 95 % interval of `strict_reference_recall`.
    pub strict_reference_recall_95: Option<[f64; 2]>,
    /// How often sessions were drawn again for the intervals.
    pub resamples: usize,
    /// Share of texts to be replaced that were still whole, whatever had shown them: also the agent's own earlier calls.
    pub all_anchor_recall: f64,
    /// How many of these there were.
    pub all_anchors: u64,
    /// Share of lines of texts to be replaced that were still visible.
    pub anchor_line_recall: f64,
    /// How many names were first used.
    pub references: u64,
    /// How many of them nobody guesses.
    pub strict_references: u64,
    /// How many lines were copied.
    pub copied_lines: u64,
    /// How many pairs of a live failure and a request there were.
    pub errors: u64,
    /// How many instructions there were, summed over requests.
    pub instructions: u64,
    /// How often something was missed, by any metric.
    pub missed: u64,
}

impl SessionScores {
    /// Adds the segments of a recording up; nothing where none of them holds a request.
    pub fn from_segments(
        name: String,
        segments: impl IntoIterator<Item = Vec<Score>>,
    ) -> Option<SessionScores> {
        let scores = segments.into_iter().filter(|scores| !scores.is_empty()).reduce(|mut sum, scores| {
            sum.iter_mut().zip(scores).for_each(|(sum, score)| sum.add_score(score));
            sum
        })?;
        Some(SessionScores { name, scores, ..SessionScores::default() })
    }
}

/// Adds sessions up. All must have been replayed with the same contenders and models.
pub fn pool_sessions(sessions: &[SessionScores], resamples: usize) -> Vec<ScoreRow> {
    let columns = sessions.first().map_or(0, |session| session.scores.len());
    let drawn = if sessions.len() > 1 { resamples } else { 0 };
    let samples = draw_samples(sessions, columns, drawn);
    let row = |(column, samples): (usize, RatioSamples)| {
        let scores = sessions.iter().filter_map(|session| Some((session, session.scores.get(column)?)));
        score_row(&scores.collect::<Vec<_>>(), drawn, samples)
    };
    let mut rows: Vec<ScoreRow> = samples.into_iter().enumerate().filter_map(row).collect();
    relate_to_bound(&mut rows);
    rows
}

/// Relates the recall of every row to that of the bound which keeps the same budget.
fn relate_to_bound(rows: &mut [ScoreRow]) {
    let bounds: Vec<(String, Option<String>, f64)> = rows
        .iter()
        .filter(|row| row.policy == BOUND)
        .map(|row| (row.model.clone(), row.budget.clone(), row.edit_anchor_recall))
        .collect();
    for row in rows.iter_mut().filter(|row| row.edit_anchors > 0) {
        let bound = bounds.iter().find(|(model, budget, _)| *model == row.model && *budget == row.budget);
        row.bound_recall_share = bound.map(|(.., recall)| ratio(row.edit_anchor_recall, *recall));
    }
}

fn score_row(
    scores: &[(&SessionScores, &Score)],
    resamples: usize,
    samples: RatioSamples,
) -> Option<ScoreRow> {
    let mut all = scores.iter().map(|(_, score)| *score);
    let mut sum = Score { sizes: [].into(), misses: [].into(), ..all.next()?.clone() };
    all.for_each(|score| sum.add_score(Score { misses: [].into(), ..score.clone() }));
    let count = u64::try_from(scores.len()).unwrap_or(u64::MAX);
    // The first of equals is the worst: sessions come in the order of their names.
    let worst =
        scores.iter().rev().max_by(|one, other| one.1.cost_vs_raw().total_cmp(&other.1.cost_vs_raw()))?;
    let dearer =
        scores.iter().filter(|(_, score)| score.dollars > score.raw_dollars * (1.0 + ROUNDING)).count();
    let each = |number: u64| to_float(number) / to_float(count);
    let mut times = std::mem::take(&mut sum.plan_us);
    times.sort_unstable();
    Some(ScoreRow {
        group: None,
        policy: sum.policy.to_string(),
        model: sum.model.to_string(),
        budget: sum.budget.map(|budget| budget.to_string()),
        unit: sum.unit,
        sessions: count,
        requests: sum.requests,
        hour_requests: sum.hour_requests,
        tokens: sum.tokens.0,
        tokens_vs_raw: ratio(to_float(sum.tokens.0), to_float(sum.raw_tokens.0)),
        input_cost: sum.dollars,
        raw_cost: sum.raw_dollars,
        net_cost: sum.dollars + sum.refetch_dollars,
        cost_vs_raw: sum.cost_vs_raw(),
        pings: each(sum.pings),
        pings_vs_raw: sum.ping_dollars / sum.raw_dollars.max(f64::MIN_POSITIVE),
        worst_session_vs_raw: worst.1.cost_vs_raw(),
        sessions_dearer: each(u64::try_from(dearer).unwrap_or(u64::MAX)),
        cache_breaks: each(sum.cache_breaks),
        cuts: each(sum.cuts),
        rewritten_tokens: each(sum.rewritten.0),
        prefill_tokens: each(sum.prefilled.0),
        prefill_vs_raw: ratio(to_float(sum.prefilled.0), to_float(sum.raw_prefilled.0)),
        // Where waiting is what is paid, reading is all that input costs.
        prefill_seconds: (sum.unit == CostUnit::Seconds).then_some(sum.dollars / to_float(count)),
        forced_refetches: each(sum.refetches),
        unmarked_stale_tokens: each(sum.unmarked_stale.0),
        edit_anchor_recall: sum.edit_anchors.value(),
        reference_recall: sum.references.value(),
        error_retention: sum.errors.value(),
        instruction_retention: sum.instructions.value(),
        strict_reference_recall: sum.strict_references.value(),
        copied_line_recall: sum.copied_lines.value(),
        edit_anchors: sum.edit_anchors.of,
        bound_recall_share: None,
        cost_net_vs_raw: ratio(sum.dollars + sum.refetch_dollars, sum.raw_dollars),
        invalid_requests: sum.invalid_requests,
        over_budget_requests: sum.over_budget_requests,
        plan_us_p50: quantile(&times, 0.5),
        plan_us_p99: quantile(&times, 0.99),
        worst_session: worst.0.name.clone(),
        cost_vs_raw_95: interval_95(samples.cost),
        cost_net_vs_raw_95: interval_95(samples.net),
        edit_anchor_recall_95: interval_95(samples.anchors),
        strict_reference_recall_95: interval_95(samples.strict),
        resamples,
        all_anchor_recall: sum.all_anchors.value(),
        all_anchors: sum.all_anchors.of,
        anchor_line_recall: sum.anchor_lines.value(),
        references: sum.references.of,
        strict_references: sum.strict_references.of,
        copied_lines: sum.copied_lines.of,
        errors: sum.errors.of,
        instructions: sum.instructions.of,
        missed: sum.missed,
    })
}

/// What one row's ratios were in each drawing of sessions.
#[derive(Default, Clone)]
struct RatioSamples {
    cost: Vec<f64>,
    net: Vec<f64>,
    anchors: Vec<f64>,
    strict: Vec<f64>,
}

/// Returns the sessions of each repository, as numbers, in the order in which they come.
fn sessions_by_repository(sessions: &[SessionScores]) -> Vec<Vec<usize>> {
    let mut groups: Vec<(&str, Vec<usize>)> = Vec::new();
    for (number, session) in sessions.iter().enumerate() {
        match groups.iter_mut().find(|(name, _)| *name == session.repository) {
            Some((_, group)) => group.push(number),
            None => groups.push((&session.repository, vec![number])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// Draws as many repositories as there are, with repetition, and of each as many sessions as it has, again and again; every row sees
/// the same drawings. Sessions of one repository are alike, so that drawing sessions alone would promise too much.
fn draw_samples(sessions: &[SessionScores], columns: usize, resamples: usize) -> Vec<RatioSamples> {
    let mut samples = vec![RatioSamples::default(); columns];
    let mut random = SEED;
    let groups = sessions_by_repository(sessions);
    let mut times_drawn = vec![0_u64; sessions.len()];
    for _ in 0..resamples {
        times_drawn.fill(0);
        for _ in 0..groups.len() {
            let drawn = if groups.len() > 1 { number_below(splitmix(&mut random), groups.len()) } else { 0 };
            let group = groups.get(drawn).map_or(&[][..], Vec::as_slice);
            for _ in 0..group.len() {
                let session = group.get(number_below(splitmix(&mut random), group.len()));
                session
                    .and_then(|session| times_drawn.get_mut(*session))
                    .into_iter()
                    .for_each(|times| *times += 1);
            }
        }
        for (column, samples) in samples.iter_mut().enumerate() {
            let (mut dollars, mut raw, mut again) = (0.0, 0.0, 0.0);
            let (mut anchors, mut strict) = (NeededShare::default(), NeededShare::default());
            for (session, times) in sessions.iter().zip(&times_drawn).filter(|(_, times)| **times > 0) {
                let Some(score) = session.scores.get(column) else { continue };
                dollars += score.dollars * to_float(*times);
                raw += score.raw_dollars * to_float(*times);
                again += score.refetch_dollars * to_float(*times);
                let add = |sum: &mut NeededShare, share: NeededShare| {
                    sum.held += share.held * times;
                    sum.of += share.of * times;
                };
                add(&mut anchors, score.edit_anchors);
                add(&mut strict, score.strict_references);
            }
            samples.cost.push(ratio(dollars, raw));
            samples.net.push(ratio(dollars + again, raw));
            samples.anchors.push(anchors.value());
            samples.strict.push(strict.value());
        }
    }
    samples
}

/// Returns the next of a series of numbers that look random (`SplitMix64` of Steele, Lea and Flood).
fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Returns a number below `end` from one of 64 bits, by its leading digits.
fn number_below(random: u64, end: usize) -> usize {
    let end = u128::try_from(end).unwrap_or_default();
    usize::try_from((u128::from(random) * end) >> 64).unwrap_or_default()
}

/// Returns the range that holds 95 of 100 samples; none of fewer than 40, which have no such ends.
fn interval_95(mut samples: Vec<f64>) -> Option<[f64; 2]> {
    if samples.len() < 40 {
        return None;
    }
    samples.sort_unstable_by(f64::total_cmp);
    Some([quantile(&samples, 0.025)?, quantile(&samples, 0.975)?])
}

/// Returns the smallest of sorted numbers that a share of them does not exceed.
fn quantile<T: Copy>(sorted: &[T], share: f64) -> Option<T> {
    let length = u32::try_from(sorted.len()).ok()?;
    let rank = (f64::from(length) * share).ceil().max(1.0);
    sorted.iter().zip(1_u32..).find(|(_, number)| f64::from(*number) >= rank).map(|(value, _)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_core::Tokens;

    fn session(name: &str, dollars: f64, raw: f64, anchors: (u64, u64)) -> SessionScores {
        let score = Score {
            policy: "mask".into(),
            model: "m".into(),
            requests: 10,
            tokens: Tokens(50),
            raw_tokens: Tokens(100),
            dollars,
            raw_dollars: raw,
            refetch_dollars: 0.5,
            refetches: 1,
            edit_anchors: NeededShare { held: anchors.0, of: anchors.1 },
            plan_us: vec![1, 9, 3],
            ..Score::default()
        };
        SessionScores { name: name.to_owned(), scores: vec![score], ..SessionScores::default() }
    }

    fn check(sessions: &[SessionScores]) -> ScoreRow {
        pool_sessions(sessions, 400).remove(0)
    }

    #[test]
    fn ratios_are_of_sums_and_the_worst_session_is_named() {
        let row = check(&[session("long", 8.0, 10.0, (3, 4)), session("short", 3.0, 2.0, (1, 1))]);
        assert_eq!((row.sessions, row.requests, row.tokens_vs_raw), (2, 20, 0.5));
        assert!((row.cost_vs_raw - 11.0 / 12.0).abs() < 1e-12);
        assert!((row.cost_net_vs_raw - 1.0).abs() < 1e-12);
        assert_eq!((row.worst_session.as_str(), row.worst_session_vs_raw), ("short", 1.5));
        assert_eq!((row.sessions_dearer, row.forced_refetches), (0.5, 1.0));
        assert_eq!((row.edit_anchor_recall, row.edit_anchors), (0.8, 5));
        assert_eq!((row.plan_us_p50, row.plan_us_p99), (Some(3), Some(9)));
    }

    #[test]
    fn nothing_needed_is_nothing_missed() {
        let row = check(&[session("a", 1.0, 1.0, (0, 0))]);
        assert_eq!((row.edit_anchor_recall, row.edit_anchors, row.sessions_dearer), (1.0, 0, 0.0));
    }

    #[test]
    fn the_interval_holds_the_ratio_and_widens_with_the_spread() {
        let many = |spread: f64| -> Vec<SessionScores> {
            let dollars = |index: u32| 8.0 + if index.is_multiple_of(2) { spread } else { -spread };
            (0..60).map(|index| session(&index.to_string(), dollars(index), 10.0, (1, 1))).collect()
        };
        let width = |spread: f64| {
            let row = check(&many(spread));
            let [low, high] = row.cost_vs_raw_95.expect("an interval");
            assert!(low <= row.cost_vs_raw && row.cost_vs_raw <= high, "{low} {} {high}", row.cost_vs_raw);
            high - low
        };
        // The standard error of 60 sessions that are 2 dollars off 8 is 0.026 of raw: the interval is about four of these.
        assert!((width(2.0) - 0.1).abs() < 0.03, "{}", width(2.0));
        assert!(width(2.0) > 3.0 * width(0.5));
        assert!(width(0.0) < 1e-12);
    }

    #[test]
    fn drawing_is_the_same_every_time() {
        let sessions: Vec<SessionScores> =
            (1..9_u32).map(|size| session("s", f64::from(size * size), 30.0, (1, 2))).collect();
        assert_eq!(pool_sessions(&sessions, 100), pool_sessions(&sessions, 100));
        assert_eq!(pool_sessions(&sessions[..1], 100)[0].cost_vs_raw_95, None);
        let mut state = 0;
        assert_eq!(splitmix(&mut state), 0xe220_a839_7b1d_cdaf);
    }

    #[test]
    fn every_session_is_drawn_as_often_as_any_other() {
        let mut state = SEED;
        let mut drawn = [0_u32; 7];
        (0..70_000).for_each(|_| drawn[number_below(splitmix(&mut state), 7)] += 1);
        assert!(drawn.iter().all(|times| (9_600..10_400).contains(times)), "{drawn:?}");
    }

    #[test]
    fn a_recording_without_requests_is_no_session() {
        assert_eq!(SessionScores::from_segments("a".to_owned(), vec![Vec::new()]), None);
        let two = SessionScores::from_segments(
            "a".to_owned(),
            (0..2).map(|_| session("", 1.0, 1.0, (1, 1)).scores),
        )
        .unwrap();
        assert_eq!(two.scores[0].requests, 20);
    }
}
