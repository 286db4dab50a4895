//! One segment under every contender and every model's prices. Takes the segment; gives scores: what it cost, what the
//! agent would have missed. The only place that calls views, bills and fidelity together. Never adds up segments.

use std::{sync::Arc, time::Duration};

use serde::Serialize;
use trimtab_core::{
    Tokens,
    count::Counter,
    json::widen,
    prices::{CostUnit, Model},
    session::CacheLifetime,
};

use super::{
    Fidelity, HiddenMiss, NeededShare, PeerCase, ResultNeed, SegmentBill, SegmentUses, Track, Views,
    bill::{bill_freely, cache_lifetime, refetch_dollars},
    bill_segment,
    contender::{Contender, ContenderKind},
    measure_fidelity,
    policy_views::{PolicyViews, play_policy, room_for},
    terms::{CacheRetention, ReplayBudget, ReplayTerms},
    valid::invalid_requests,
};
use crate::recording::Segment;

/// Misses of one segment that a score describes; all are counted.
const MISSES_DESCRIBED: usize = 40;

/// What one contender made of one segment at one model's prices, or of several segments added up.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Score {
    /// The contender's name.
    pub policy: Arc<str>,
    /// The model whose prices are paid.
    pub model: Arc<str>,
    /// The budget that was asked for.
    pub budget: Option<ReplayBudget>,
    /// What all costs are counted in; where they are seconds, read "seconds" for "dollars".
    pub unit: CostUnit,
    /// How many requests were made.
    pub requests: u64,
    /// How many of them had their prefix cached for an hour.
    pub hour_requests: u64,
    /// Input tokens of all requests, and what they were untrimmed.
    pub tokens: Tokens,
    /// Input tokens of all requests, untrimmed.
    pub raw_tokens: Tokens,
    /// Input dollars.
    pub dollars: f64,
    /// Input dollars, untrimmed.
    pub raw_dollars: f64,
    /// Requests that only kept the cache alive; their dollars are among the input dollars, their tokens are not counted.
    pub pings: u64,
    /// What they cost.
    pub ping_dollars: f64,
    /// What it would have cost to bring back what was missed.
    pub refetch_dollars: f64,
    /// Requests that read less of a live cache than was left there.
    pub cache_breaks: u64,
    /// Requests that show something otherwise than the request before did.
    pub cuts: u64,
    /// Tokens that were cached again because of a cut.
    pub rewritten: Tokens,
    /// Tokens that were in no cache: the model had to read them.
    pub prefilled: Tokens,
    /// These of the untrimmed requests.
    pub raw_prefilled: Tokens,
    /// Hidden blocks that had to be fetched again.
    pub refetches: u64,
    /// Tokens of visible lines that are no longer true and do not say so, summed over requests.
    pub unmarked_stale: Tokens,
    /// Texts to be replaced that the agent still saw whole.
    pub edit_anchors: NeededShare,
    /// The same, whatever had shown them: also the agent's own earlier calls and the user.
    pub all_anchors: NeededShare,
    /// Lines of these texts.
    pub anchor_lines: NeededShare,
    /// Names first used after they stood in a tool's result alone.
    pub references: NeededShare,
    /// Of these, such as nobody guesses.
    pub strict_references: NeededShare,
    /// Lines copied from what was seen.
    pub copied_lines: NeededShare,
    /// Failures that still matter.
    pub errors: NeededShare,
    /// Instructions.
    pub instructions: NeededShare,
    /// Requests that break a rule of the protocol which the recorded ones kept.
    pub invalid_requests: u64,
    /// Requests above the budget.
    pub over_budget_requests: u64,
    /// How long each plan took, in microseconds; empty where nothing was planned.
    pub plan_us: Vec<u32>,
    /// Tokens of each request.
    pub sizes: Arc<[u64]>,
    /// Tokens of each request, untrimmed.
    pub raw_sizes: Arc<[u64]>,
    /// How often something was missed.
    pub missed: u64,
    /// Some of what was missed.
    pub misses: Arc<[MissReport]>,
}

/// Something that was hidden and later needed, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MissReport {
    /// The metric that missed it.
    pub metric: &'static str,
    /// The block that was hidden, as `show` numbers it.
    pub block: u32,
    /// The step it belongs to.
    pub step: u32,
    /// What the block is about: a file, a command.
    pub about: String,
    /// The block that needed it.
    pub used_in: u32,
    /// The step that needed it.
    pub used_at_step: u32,
    /// What was needed, the beginning of it.
    pub what: String,
    /// Whether a note named the handle by which it could have been recalled.
    pub recoverable: bool,
}

/// Replays a segment. Gives a score for each contender, budget and model, in this order; nothing where the segment holds no
/// request. Models with slots and without are not replayed together: what the log tells of a provider's cache says nothing
/// about a local server.
pub fn replay(
    segment: &Segment,
    contenders: &[Contender],
    models: &[Model],
    terms: &ReplayTerms,
) -> Vec<Score> {
    if segment.points.is_empty() {
        return Vec::new();
    }
    let recorded = segment.points.iter().find_map(|point| point.model.as_deref());
    let mut track = Track::new(segment, Counter::for_model(recorded.unwrap_or_default()));
    match terms.kept {
        CacheRetention::Usually => track.keep_as_usual(),
        CacheRetention::ForAnHour => track.keep_for_an_hour(),
        CacheRetention::AsRecorded => {}
    }
    if let Some(slots) = models.first().and_then(|model| model.cache.slots) {
        track.serve_locally(slots, &terms.others);
    }
    let untouched = Views::with_client_markers(vec![Vec::new(); track.requests.len()]);
    let asked: Vec<Option<ReplayBudget>> = match terms.budgets.as_slice() {
        [] => vec![None],
        budgets => budgets.iter().copied().map(Some).collect(),
    };
    let raw = |budget| models.iter().map(move |model| (budget, model));
    let raws: Vec<RawCost> = asked
        .into_iter()
        .flat_map(raw)
        .map(|(budget, model)| RawCost::for_model(&track, &untouched, model, budget))
        .collect();
    let uses = SegmentUses::find_in(&track);
    let needs = uses.result_needs(&track);
    let known = KnownSegment { track: &track, uses: &uses, needs: &needs };
    contenders.iter().flat_map(|contender| score_contender(known, contender, &raws, terms)).collect()
}

/// A segment and what it used, the same for every contender.
#[derive(Clone, Copy)]
struct KnownSegment<'a> {
    track: &'a Track<'a>,
    uses: &'a SegmentUses,
    needs: &'a [ResultNeed],
}

/// A model, what the untrimmed segment costs with it, and what a request may count.
pub(super) struct RawCost {
    name: Arc<str>,
    asked: Option<ReplayBudget>,
    /// With a budget, it takes no more than that.
    pub(super) model: Model,
    pub(super) budget: Tokens,
    pub(super) bill: SegmentBill,
    sizes: Arc<[u64]>,
}

impl RawCost {
    pub(super) fn for_model(
        track: &Track<'_>,
        untouched: &Views,
        model: &Model,
        budget: Option<ReplayBudget>,
    ) -> RawCost {
        let bill = bill_segment(track, untouched, model);
        let sizes = request_sizes(&bill);
        let mut model = model.clone();
        let peak = Tokens(sizes.iter().copied().max().unwrap_or_default());
        let asked = budget;
        let most = asked.map(|budget| match budget {
            ReplayBudget::Tokens(tokens) => tokens,
            // What the recording leaves out of the head is no part of what can be hidden.
            ReplayBudget::OfPeak(share) => track.unseen_head + (peak - track.unseen_head).scale(share),
        });
        model.max_input = most.unwrap_or(model.max_input).min(model.max_input);
        let budget = model.request_budget(track.history.requested_output());
        let name = model.name.as_str().into();
        RawCost { name, asked, model, budget, bill, sizes }
    }

    /// Returns the input dollars of the untrimmed segment.
    pub(super) fn total_dollars(&self) -> f64 {
        self.bill.total_dollars()
    }
}

/// What a contender showed, and what that missed.
struct ContenderViews {
    views: Views,
    fidelity: Fidelity,
    invalid: usize,
    /// Whether hiding costs nothing: a bound.
    free_edits: bool,
    plan_us: Vec<u32>,
    misses: Arc<[MissReport]>,
}

/// Scores a contender with every model. The parts that do not depend on the model are looked at once.
fn score_contender(
    known: KnownSegment<'_>,
    contender: &Contender,
    raws: &[RawCost],
    terms: &ReplayTerms,
) -> Vec<Score> {
    let name: Arc<str> = contender.name().into();
    let mut last: Option<(&RawCost, ContenderViews)> = None;
    let mut scores = Vec::new();
    for raw in raws {
        let same = |other: &RawCost| {
            (other.budget == raw.budget || !contender.minds_budget())
                && match contender.plays {
                    ContenderKind::Rival(..) => !contender.minds_prices(),
                    ContenderKind::Policy(_) => {
                        other.model.provider == raw.model.provider && !contender.minds_prices()
                    }
                }
        };
        let seen = match last.take() {
            Some((other, seen)) if same(other) => seen,
            _ => view_contender(known, contender, raw, terms),
        };
        scores.push(score_views(known.track, &name, raw, &seen));
        last = Some((raw, seen));
    }
    scores
}

/// Returns what a contender shows of a segment, without its bill.
pub(super) fn views_of(
    track: &Track<'_>,
    needs: &[ResultNeed],
    contender: &Contender,
    raw: &RawCost,
    terms: &ReplayTerms,
) -> PolicyViews {
    match &contender.plays {
        ContenderKind::Policy(policy) => play_policy(track, policy, contender.keep_alive, raw, terms),
        ContenderKind::Rival(rival, knob) => {
            let room = room_for(track, raw.budget);
            let case = PeerCase { track, knob: *knob, needs, room, model: &raw.model };
            PolicyViews { views: (rival.views)(&case), times: Vec::new() }
        }
    }
}

fn view_contender(
    known: KnownSegment<'_>,
    contender: &Contender,
    raw: &RawCost,
    terms: &ReplayTerms,
) -> ContenderViews {
    let KnownSegment { track, uses, needs } = known;
    let PolicyViews { views, times } = views_of(track, needs, contender, raw, terms);
    let micros = |time: &Duration| u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
    let fidelity = measure_fidelity(track, uses, &views);
    let misses = fidelity.misses.iter().take(MISSES_DESCRIBED).map(|miss| describe_miss(track, miss));
    ContenderViews {
        invalid: invalid_requests(track, &views),
        plan_us: times.iter().map(micros).collect(),
        free_edits: matches!(contender.plays, ContenderKind::Rival(rival, _) if rival.role.has_free_edits()),
        misses: misses.collect(),
        fidelity,
        views,
    }
}

fn score_views(track: &Track<'_>, policy: &Arc<str>, raw: &RawCost, seen: &ContenderViews) -> Score {
    let charge = if seen.free_edits { bill_freely } else { bill_segment };
    let bill = charge(track, &seen.views, &raw.model);
    let found = &seen.fidelity;
    let again = found.refetches.iter().map(|(block, request)| {
        let at = bill.charges.get(*request).map_or(Tokens::ZERO, |charge| charge.tokens);
        refetch_dollars(&raw.model, at, track.tokens(*block))
    });
    let count = |count: usize| Tokens::from_len(count).0;
    Score {
        policy: policy.clone(),
        model: raw.name.clone(),
        budget: raw.asked,
        unit: raw.model.cost_unit(),
        requests: count(track.requests.len()),
        hour_requests: match cache_lifetime(track, &raw.model) {
            CacheLifetime::Hour => count(track.requests.len()),
            CacheLifetime::Usual => 0,
        },
        tokens: bill.tokens(),
        raw_tokens: raw.bill.tokens(),
        dollars: bill.total_dollars(),
        raw_dollars: raw.bill.total_dollars(),
        pings: count(bill.pings.len()),
        ping_dollars: bill.ping_dollars(),
        refetch_dollars: again.sum(),
        cache_breaks: count(bill.charges.iter().filter(|charge| charge.broke).count()),
        cuts: count(cut_requests(track, &seen.views)),
        rewritten: bill.charges.iter().map(|charge| charge.rewritten).sum(),
        prefilled: prefilled_tokens(&bill),
        raw_prefilled: prefilled_tokens(&raw.bill),
        refetches: count(found.refetches.len()),
        unmarked_stale: found.unmarked_stale,
        edit_anchors: found.edit_anchors,
        all_anchors: found.all_anchors,
        anchor_lines: found.anchor_lines,
        references: found.references,
        strict_references: found.strict_references,
        copied_lines: found.copied_lines,
        errors: found.errors,
        instructions: found.instructions,
        invalid_requests: count(seen.invalid),
        over_budget_requests: count(bill.charges.iter().filter(|charge| charge.tokens > raw.budget).count()),
        plan_us: seen.plan_us.clone(),
        sizes: request_sizes(&bill),
        raw_sizes: raw.sizes.clone(),
        missed: count(found.misses.len()),
        misses: seen.misses.clone(),
    }
}

/// Returns the tokens that were not read from a cache.
fn prefilled_tokens(bill: &SegmentBill) -> Tokens {
    bill.charges.iter().map(|charge| charge.tokens - charge.read).sum()
}

/// Counts the requests that show something otherwise than the request before did.
fn cut_requests(track: &Track<'_>, views: &Views) -> usize {
    let carried = track.requests.iter().map(|request| request.blocks);
    let earlier = views.changes.iter().skip(1).zip(carried);
    earlier.filter(|(changes, carried)| changes.iter().any(|change| widen(change.block.0) < *carried)).count()
}

fn request_sizes(bill: &SegmentBill) -> Arc<[u64]> {
    bill.charges.iter().map(|charge| charge.tokens.0).collect()
}

fn describe_miss(track: &Track<'_>, miss: &HiddenMiss) -> MissReport {
    let step = |block| track.facts.row(block).map_or(0, |fact| fact.step);
    let hidden = track.facts.row(miss.hidden);
    let tool = track.history.block(miss.hidden).and_then(|block| track.history.tool_name(block));
    let subject = hidden.map(|fact| fact.subject().to_string()).filter(|subject| subject != "-");
    MissReport {
        metric: miss.metric,
        block: miss.hidden.0,
        step: step(miss.hidden),
        about: subject.or_else(|| tool.map(Into::into)).unwrap_or_default(),
        used_in: miss.used_in.0,
        used_at_step: step(miss.used_in),
        what: miss.what.clone(),
        recoverable: miss.recoverable,
    }
}

/// Returns a count as a number to reckon with.
#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "no sum of tokens comes near 2^52")]
pub(super) fn to_float(count: u64) -> f64 {
    count as f64
}

impl Score {
    /// Adds what another segment of the same session scored with the same contender and model. Of curves and times only
    /// the longer curve stays.
    pub fn add_score(&mut self, other: Score) {
        self.requests += other.requests;
        self.hour_requests += other.hour_requests;
        self.tokens += other.tokens;
        self.raw_tokens += other.raw_tokens;
        self.dollars += other.dollars;
        self.raw_dollars += other.raw_dollars;
        self.pings += other.pings;
        self.ping_dollars += other.ping_dollars;
        self.refetch_dollars += other.refetch_dollars;
        self.cache_breaks += other.cache_breaks;
        self.cuts += other.cuts;
        self.rewritten += other.rewritten;
        self.prefilled += other.prefilled;
        self.raw_prefilled += other.raw_prefilled;
        self.refetches += other.refetches;
        self.unmarked_stale += other.unmarked_stale;
        self.edit_anchors = self.edit_anchors.plus_share(other.edit_anchors);
        self.all_anchors = self.all_anchors.plus_share(other.all_anchors);
        self.anchor_lines = self.anchor_lines.plus_share(other.anchor_lines);
        self.references = self.references.plus_share(other.references);
        self.strict_references = self.strict_references.plus_share(other.strict_references);
        self.copied_lines = self.copied_lines.plus_share(other.copied_lines);
        self.errors = self.errors.plus_share(other.errors);
        self.instructions = self.instructions.plus_share(other.instructions);
        self.invalid_requests += other.invalid_requests;
        self.over_budget_requests += other.over_budget_requests;
        self.plan_us.extend(other.plan_us);
        if other.raw_sizes.len() > self.raw_sizes.len() {
            self.sizes = other.sizes;
            self.raw_sizes = other.raw_sizes;
        }
        self.missed += other.missed;
        let room = MISSES_DESCRIBED.saturating_sub(self.misses.len());
        if room > 0 && !other.misses.is_empty() {
            self.misses = self.misses.iter().chain(other.misses.iter().take(room)).cloned().collect();
        }
    }

    /// Returns the input dollars in relation to the untrimmed session.
    pub fn cost_vs_raw(&self) -> f64 {
        ratio(self.dollars, self.raw_dollars)
    }
}

/// Returns a part in relation to a whole; 1 where there is nothing.
pub(super) fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 1.0 }
}

impl NeededShare {
    fn plus_share(self, other: NeededShare) -> NeededShare {
        NeededShare { held: self.held + other.held, of: self.of + other.of }
    }

    /// Returns the share; 1 where nothing was needed.
    pub fn value(self) -> f64 {
        ratio(to_float(self.held), to_float(self.of))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        recording::read,
        replay::{KnobRange, contenders},
    };
    use trimtab_core::{policy::Policy, prices::find_model};

    fn check(budgets: &[ReplayBudget], models: &[&str]) -> Vec<Score> {
        let recording = read(include_bytes!("../../../../fixtures/recordings/claude-code.jsonl")).unwrap();
        let segment = &recording.segments[recording.longest_number() - 1];
        let models: Vec<Model> = models.iter().map(|name| find_model(name).unwrap()).collect();
        let terms = ReplayTerms { budgets: budgets.to_vec(), ..ReplayTerms::default() };
        replay(segment, &contenders(KnobRange::Default), &models, &terms)
    }

    #[test]
    fn every_contender_is_scored_with_every_model_in_order() {
        let scores = check(&[], &["claude-opus-5", "claude-fable-5-1"]);
        let names: Vec<(&str, &str)> = scores.iter().map(|score| (&*score.policy, &*score.model)).collect();
        assert_eq!(
            &names[..3],
            [("none", "claude-opus-5"), ("none", "claude-fable-5-1"), ("recent", "claude-opus-5")]
        );
        assert_eq!(names.len(), 2 * contenders(KnobRange::Default).len());
        assert_eq!(scores, check(&[], &["claude-opus-5", "claude-fable-5-1"]), "the same twice");
    }

    #[test]
    fn a_policy_that_hides_nothing_costs_what_the_session_cost() {
        let scores = check(&[], &["claude-opus-5"]);
        let none = &scores[0];
        assert_eq!((none.tokens, none.dollars, none.missed), (none.raw_tokens, none.raw_dollars, 0));
        assert_eq!(none.sizes, none.raw_sizes);
        assert_eq!((none.cost_vs_raw(), none.edit_anchors.value()), (1.0, 1.0));
    }

    #[test]
    fn bringing_something_back_is_charged_as_a_request_more() {
        let model = find_model("claude-opus-5").unwrap();
        // 0.5 x (100,000 + 10 x 2,000) + 6.25 x 2,000 + 25 x 150 millionths of a dollar.
        let dollars = refetch_dollars(&model, Tokens(100_000), Tokens(2000));
        assert!((dollars - 0.07625).abs() < 1e-9, "{dollars}");
    }

    #[test]
    fn segments_of_a_session_add_up_and_the_longest_gives_the_curve() {
        let share = |held, of| NeededShare { held, of };
        let mut one = Score { requests: 2, edit_anchors: share(1, 2), ..Score::default() };
        one.raw_sizes = [10, 20].into();
        let other =
            Score { requests: 3, edit_anchors: share(3, 3), raw_sizes: [1, 2, 3].into(), ..Score::default() };
        one.add_score(other);
        assert_eq!((one.requests, one.edit_anchors, one.raw_sizes.len()), (5, share(4, 5), 3));
    }

    #[test]
    fn only_policies_that_mind_prices_are_played_for_every_model() {
        let minds = |toml: &str| {
            let policy = Policy::from_toml("own", toml, &[]).unwrap();
            assert_eq!(policy.name, "own");
            Contender::from_toml("own", toml).unwrap().minds_prices()
        };
        assert!(minds("about = ''\n[[step]]\nwhen = 'pays'\nselect = { keep_last = 3 }\ndo = 'clear'"));
        assert!(!minds("about = ''\n[[step]]\nwhen = 'always'\nselect = { keep_last = 3 }\ndo = 'clear'"));
    }
}
