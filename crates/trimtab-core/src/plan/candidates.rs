//! Which blocks a step is about, in which order, and why. Takes the conditions; gives blocks that may still be hidden.
//! The order depends on the conversation alone, never on the budget, so that a smaller budget never shows more.

use std::collections::HashMap;

use super::{
    pressure::BlockMoment,
    work::{Work, to_whole_number},
};
use crate::{
    digest::{InputShortening, LeafSet},
    facts::{Fact, Outcome, ResultSort, Subject, SubjectLines, ToolKind, with_slashes},
    history::{BlockId, BlockKind},
    json::narrow,
    notes::holds_note,
    policy::{
        BlockSelection, EditedWhen, PolicyStep, Redundancy, SelectedKind, SelectionOrder, StepAction,
        StepMoment,
    },
    verdict::Reason,
};

/// Returns the blocks that a step selects, in order, each with the reason to hide it.
pub(super) fn find_candidates(work: &Work<'_>, step: &PolicyStep) -> Vec<(BlockId, Reason)> {
    let select = &step.select;
    // Where nothing is counted among all that is meant, what this step does not hide need not be looked at.
    let looks_at = |id: &BlockId| select.counts_all_meant() || is_news(work, step, *id);
    let ids = work.request.history.ids().filter(looks_at);
    let mut meant: Vec<BlockId> = ids.filter(|id| is_meant(work, select, *id)).collect();
    let often = find_rereads(work, select, &meant);
    let series = select.edits_beyond.map(|most| work.find_series(&meant, to_whole_number(most)));
    let first_spared = spare_latest(work, select, &mut meant);
    let fits = |id: &BlockId| {
        if is_spared(work, step, *id) {
            return false;
        }
        // What was taken back is as old as that, and not hidden again for a reason that it had before.
        let is_spared = || work.stand_in(*id) >= first_spared && first_spared.is_some();
        if work.is_left_alone(step, *id) || is_spared() {
            return false;
        }
        let often = often.as_ref().is_none_or(|often| often.contains_key(id));
        let kept = || {
            select
                .but_not
                .iter()
                .any(|other| is_meant(work, other, *id) && meets_conditions(work, other, *id))
        };
        let between = series.as_ref().is_none_or(|series| series.contains_key(id));
        may_hide(work, step, *id)
            && often
            && between
            && meets_conditions(work, select, *id)
            && !kept()
            && !answers_a_note(work, step, *id)
    };
    let mut chosen: Vec<(BlockId, Reason)> = meant
        .iter()
        .copied()
        .filter(fits)
        .filter_map(|id| Some((id, hiding_reason(work, step, id, often.as_ref(), series.as_ref())?)))
        .collect();
    let held: u64 = chosen.iter().map(|(id, _)| work.tokens(*id).0).sum();
    if select
        .minimum
        .is_some_and(|minimum| held < u64::try_from(to_whole_number(minimum)).unwrap_or(u64::MAX))
    {
        return Vec::new();
    }
    match select.order {
        SelectionOrder::Oldest => {}
        SelectionOrder::Priority => {
            chosen.sort_by_cached_key(|(id, _)| (work.priority(*id), *id));
        }
        SelectionOrder::Overdue => return most_overdue_first(work, chosen),
    }
    chosen
}

/// Tells whether a step may still hide a block: what is shortened already can go; everything else is decided once.
fn may_hide(work: &Work<'_>, step: &PolicyStep, id: BlockId) -> bool {
    match step.act {
        StepAction::Drop => work.may_drop(id),
        StepAction::Names if step.when == StepMoment::Pays => work.may_be_names(id),
        _ => work.is_open(id),
    }
}

/// Tells whether a step could do something with a block at this request: what was sent before was born before.
fn is_news(work: &Work<'_>, step: &PolicyStep, id: BlockId) -> bool {
    let keeps = matches!(step.act, StepAction::Pin | StepAction::Hold);
    let was_born_before = step.when == StepMoment::Birth && !keeps && work.context.was_sent(id);
    !was_born_before && may_hide(work, step, id)
}

/// Orders blocks by what hiding them costs least: how far each is beyond the age at which a step would let it go where that pays
/// (a fourfold age weighs twice), times what it counts, because one large text is hardly needed more often than one small one.
/// Leaves out what no such step is about and the latest result.
fn most_overdue_first(work: &Work<'_>, chosen: Vec<(BlockId, Reason)>) -> Vec<(BlockId, Reason)> {
    let waits =
        |step: &&PolicyStep| step.when == StepMoment::Pays && step.select.what == SelectedKind::Results;
    let steps: Vec<&PolicyStep> = work.context.policy.steps.iter().filter(waits).collect();
    let overdue = |id: BlockId| {
        let due = |step: &&PolicyStep| {
            let late = lateness_share(work, &step.select, id).filter(|_| is_meant(work, &step.select, id))?;
            hiding_reason(work, step, id, None, None).map(|_| late.min(LATEST))
        };
        let late = steps.iter().filter_map(due).max_by(f64::total_cmp).filter(|late| *late > 0.0)?;
        Some(late.sqrt() * work.tokens(id).to_float())
    };
    let mut weighed: Vec<(f64, (BlockId, Reason))> =
        chosen.into_iter().filter_map(|(id, reason)| Some((overdue(id)?, (id, reason)))).collect();
    weighed.sort_by(|(one, (first, _)), (other, (second, _))| other.total_cmp(one).then(first.cmp(second)));
    stale_before_newer(work, weighed.into_iter().map(|(_, block)| block).collect())
}

/// What is late by more is not later.
const LATEST: f64 = 1e6;

/// Moves the older views of a file that was changed since before the newer one that goes: alone they would pass for the newest.
fn stale_before_newer(work: &Work<'_>, ordered: Vec<(BlockId, Reason)>) -> Vec<(BlockId, Reason)> {
    let mut views: HashMap<u32, Vec<BlockId>> = HashMap::new();
    for (id, _) in &ordered {
        let is_view =
            matches!(work.request.index.row(*id).shows, Some(ResultSort::File | ResultSort::ShellFile));
        for file in work.request.index.files(*id).iter().filter(|_| is_view) {
            views.entry(*file).or_default().push(*id);
        }
    }
    let mut waiting: HashMap<BlockId, Reason> = ordered.iter().cloned().collect();
    let mut moved = Vec::with_capacity(ordered.len());
    for (id, _) in ordered {
        let is_stale =
            |file: u32, older: &BlockId| *older < id && work.request.index.changed_between(file, *older, id);
        let files = work.request.index.files(id).iter();
        let mut going: Vec<BlockId> = files
            .flat_map(|file| views.get(file).into_iter().flatten().filter(|older| is_stale(*file, older)))
            .copied()
            .collect();
        going.sort_unstable();
        going.push(id);
        moved.extend(going.into_iter().filter_map(|id| Some((id, waiting.remove(&id)?))));
    }
    moved
}

/// Tells whether a step leaves a block alone whatever it selects. A recalled block is shown while the recall is
/// recent. Unseen content is at most shortened for its size before it is sent: only the closing step hides it, after all else.
fn is_spared(work: &Work<'_>, step: &PolicyStep, id: BlockId) -> bool {
    if matches!(step.act, StepAction::Pin | StepAction::Hold) {
        return false;
    }
    let by_size = step.select.chars_over.is_some() || step.select.bytes_over.is_some();
    let makes_room = matches!(step.when, StepMoment::Over { .. });
    let only_shortens = by_size
        && !makes_room
        && !matches!(step.act, StepAction::Clear | StepAction::Drop | StepAction::Names);
    // A pointer at a copy that is shown hides nothing.
    let is_copy = step.select.redundant == [Redundancy::Identical];
    let may_be_unseen = step.when == StepMoment::Birth || step.rule.is_some() || only_shortens || is_copy;
    work.is_fresh_recall(id) || (!may_be_unseen && work.shows_unseen(id))
}

/// Tells whether a step asks what a block shows that answers a call whose arguments came with a note of ours: they no longer say that,
/// and who hid them looked at the result too.
fn answers_a_note(work: &Work<'_>, step: &PolicyStep, id: BlockId) -> bool {
    let fact = &work.request.facts[id];
    let asks = step.select.needed_under.is_some() || matches!(step.act, StepAction::Rewrite(_));
    let call = fact.partner.filter(|_| fact.acts_as == BlockKind::Result && asks);
    call.is_some_and(|call| holds_note(&work.request.history.block_text(&work.request.history[call])))
}

/// Tells whether a block is of the kind, tool and path that the step is about, hidden or not.
fn is_meant(work: &Work<'_>, select: &BlockSelection, id: BlockId) -> bool {
    let (fact, row) = (&work.request.facts[id], work.request.index.row(id));
    let right = match select.what {
        SelectedKind::Results => row.shows.is_some(),
        SelectedKind::Media => row.is_media,
        SelectedKind::Answers => {
            work.unit_of_block(id).is_some_and(|unit| unit.kind == super::UnitKind::Answer)
                && fact.acts_as == BlockKind::Text
        }
        SelectedKind::Calls => work.request.history[id].kind == BlockKind::Call,
    };
    let shown = select.shows.is_empty() || row.shows.is_some_and(|shows| select.shows.contains(&shows));
    right && shown && is_tool(work, select, fact, id) && is_path(select, fact)
}

fn is_tool(work: &Work<'_>, select: &BlockSelection, fact: &Fact, id: BlockId) -> bool {
    if select.tools.is_empty() {
        return true;
    }
    let kind = fact.tool().map(ToolKind::name).unwrap_or_default();
    if select.tools.iter().any(|tool| tool == kind) {
        return true;
    }
    let name = work.request.history.tool_name(&work.request.history[id]).unwrap_or_default();
    select.tools.iter().any(|tool| matches_pattern(tool, &name))
}

fn is_path(select: &BlockSelection, fact: &Fact) -> bool {
    let Some(pattern) = &select.path else { return true };
    match fact.subject() {
        Subject::File { path, .. } | Subject::Directory { path, .. } => {
            matches_pattern(pattern, &with_slashes(path))
        }
        Subject::Command(_) | Subject::Query { .. } | Subject::Url(_) | Subject::Nothing => false,
    }
}

/// Matches a name against a pattern in which `*` stands for anything; a path also by its end.
pub(super) fn matches_pattern(pattern: &str, name: &str) -> bool {
    fn from(pattern: &[u8], name: &[u8]) -> bool {
        // The last star seen and where the name was then: all that going back needs.
        let (mut p, mut n, mut star) = (0, 0, None);
        while n < name.len() {
            match pattern.get(p) {
                Some(b'*') => {
                    star = Some((p, n));
                    p += 1;
                }
                Some(byte) if name.get(n) == Some(byte) => {
                    p += 1;
                    n += 1;
                }
                _ => match star {
                    Some((at, tried)) => {
                        star = Some((at, tried + 1));
                        p = at + 1;
                        n = tried + 1;
                    }
                    None => return false,
                },
            }
        }
        pattern.get(p..).unwrap_or_default().iter().all(|byte| *byte == b'*')
    }
    if !pattern.contains('*') {
        let before = name.strip_suffix(pattern);
        return before.is_some_and(|before| before.is_empty() || before.ends_with('/'));
    }
    let ends = || name.match_indices('/').filter_map(|(at, _)| name.get(at + 1..));
    from(pattern.as_bytes(), name.as_bytes()) || ends().any(|end| from(pattern.as_bytes(), end.as_bytes()))
}

/// Leaves out the latest of the blocks meant, which a step leaves alone; gives the first of them.
fn spare_latest(work: &Work<'_>, select: &BlockSelection, meant: &mut Vec<BlockId>) -> Option<BlockId> {
    let unspared = unspared_count(work, select, meant);
    let first_spared = meant.get(unspared).copied();
    meant.truncate(unspared);
    first_spared
}

/// Returns how many of the blocks meant are not among the latest, which a step leaves alone.
fn unspared_count(work: &Work<'_>, select: &BlockSelection, meant: &[BlockId]) -> usize {
    let by_number = select.keep_last.map_or(0, to_whole_number);
    let by_tokens = select.protect.map_or(0, |protect| {
        let protect = u64::try_from(to_whole_number(protect)).unwrap_or(u64::MAX);
        let mut held = 0;
        meant
            .iter()
            .rev()
            .take_while(|id| {
                let more = held < protect;
                held += work.tokens(**id).0;
                more
            })
            .count()
    });
    meant.len().saturating_sub(by_number.max(by_tokens))
}

/// Returns the reads of a file that stand between those kept, with the steps of the first and the last.
fn find_rereads(
    work: &Work<'_>,
    select: &BlockSelection,
    meant: &[BlockId],
) -> Option<HashMap<BlockId, (u32, u32)>> {
    let most = to_whole_number(select.rereads_beyond?);
    let mut reads: HashMap<(u32, SubjectLines), Vec<BlockId>> = HashMap::new();
    for id in meant {
        if let (Subject::File { lines, .. }, Some(file)) =
            (work.request.facts[*id].subject(), work.request.index.file(*id))
        {
            reads.entry((file, *lines)).or_default().push(*id);
        }
    }
    let mut between = HashMap::new();
    for ids in reads.values() {
        let kept = kept_reads(ids.len(), most);
        let step = |index: usize| ids.get(index).map_or(0, |id| work.request.facts[*id].step);
        let ends = (step(0), step(ids.len() - 1));
        let gone = ids.iter().enumerate().filter(|(index, _)| !kept.contains(index));
        between.extend(gone.map(|(_, id)| (*id, ends)));
    }
    Some(between)
}

/// Says which of `reads` reads of one file are kept: all of one or two, the first and last of three to five, and evenly
/// sampled ones between them, `most` in all, of more.
pub(super) fn kept_reads(reads: usize, most: usize) -> Vec<usize> {
    match reads {
        0..=2 => (0..reads).collect(),
        3..=5 => vec![0, reads - 1],
        _ => {
            let between = most.saturating_sub(2).min(3);
            let sampled = (1..=between).map(|sample| sample * (reads - 1) / (between + 1));
            std::iter::once(0).chain(sampled).chain([reads - 1]).collect()
        }
    }
}

/// Says which leaves of a call a setting removes, and why where a later step shows what they hold.
pub(super) fn leaves_to_hide(
    work: &Work<'_>,
    id: BlockId,
    inputs: InputShortening,
) -> Option<(LeafSet, Option<Reason>)> {
    let fact = &work.request.facts[id];
    let changes = fact.actions.iter().any(|action| action.kind.changes_files());
    // What failed was not written: nothing shows it again.
    let written = changes && fact.outcome != Outcome::Failed;
    let since = work.request.facts.shown_since(id).filter(|_| written);
    let shown = since.map(|since| Reason::Superseded { by: work.request.facts[since].step });
    match inputs {
        InputShortening::Off => None,
        // Without the command that moved to another folder, nobody knows where later ones ran.
        InputShortening::Commands => {
            let is_spared = changes || fact.actions.len() != 1 || work.request.facts.names_folder(id);
            (!is_spared).then_some((LeafSet::All, None))
        }
        InputShortening::All => Some((LeafSet::All, shown)),
        InputShortening::Safe if shown.is_some() => Some((LeafSet::Contents, shown)),
        InputShortening::Safe => {
            (written && fact.tool() == Some(ToolKind::Edit)).then_some((LeafSet::Replaced, None))
        }
    }
}

/// Tells whether a block has what the step asks for beside its kind.
fn meets_conditions(work: &Work<'_>, select: &BlockSelection, id: BlockId) -> bool {
    let fact = &work.request.facts[id];
    let over = |limit: Option<f64>, value: u64| {
        limit.is_none_or(|limit| value > u64::try_from(to_whole_number(limit)).unwrap_or(u64::MAX))
    };
    let long = |limit: f64| crate::json::widen(work.request.index.row(id).chars) > to_whole_number(limit);
    over(select.tokens_over, work.tokens(id).0)
        && over(select.older_than, u64::from(work.age(id).unwrap_or_default()))
        && !(select.spare_errors && fact.outcome == Outcome::Failed)
        && lateness_share(work, select, id).is_some_and(|lateness| lateness >= work.context.age_factor(id))
        && select.needed_under.is_none_or(|limit| is_needed_less(work, id, limit))
        && select.class_at_most.is_none_or(|most| {
            let class = work.priority(id).map_or(100, crate::facts::Priority::number);
            usize::from(class) <= to_whole_number(most)
        })
        && select.chars_over.is_none_or(long)
        && select.share_over.is_none_or(|share| {
            work.context.budget.is_some_and(|budget| work.tokens(id) > budget.scale(share))
        })
        && select.bytes_over.is_none_or(|limit| {
            // A text has at most as many bytes as its JSON: most need not be read.
            let block = &work.request.history[id];
            block.span.len() > to_whole_number(limit)
                && work.request.history.block_text(block).len() > to_whole_number(limit)
        })
}

/// Tells whether a block is expected to be needed less often than `limit` for every thousand of its tokens. Where no cache holds it,
/// hiding it costs nothing, so that it may be needed more often.
fn is_needed_less(work: &Work<'_>, id: BlockId, limit: f64) -> bool {
    let end = BlockId(narrow(work.draft.decisions.len()));
    let decisions = work.is_first_fit().then_some(&work.draft.decisions);
    let moment = BlockMoment { facts: work.request.facts, index: work.request.index, end, decisions };
    // What is written in fewer tokens is weighed by these.
    let tokens = if work.verdict_of(id).shows_all() { work.tokens_now(id) } else { work.tokens(id) };
    let Some(features) = moment.features(id, work.latest_view(id), tokens) else { return false };
    let needs = &work.context.policy.needs;
    let pause = needs.weight("pause", if work.context.cache.long_pause { "hour" } else { "none" });
    let need = needs.product(&features) * pause * work.context.age_factor(id);
    need * PER_TOKENS < limit * tokens.to_float()
}

/// Needs are compared for so many tokens.
const PER_TOKENS: f64 = 1000.0;

/// Returns how many results came since, counted from what the step counts from, as a share of those it waits for; nothing
/// where the step is not about such a block at all.
fn lateness_share(work: &Work<'_>, select: &BlockSelection, id: BlockId) -> Option<f64> {
    let stand_in = work.stand_in(id);
    // What was read again and only points here was read here again.
    let id = work.latest_view(id);
    let fact = &work.request.facts[stand_in.unwrap_or(id)];
    if select.turn_since && work.request.facts.rows().last().is_none_or(|last| last.turn <= fact.turn) {
        return None;
    }
    let since = match (select.edited, work.request.index.changed_since(id)) {
        (Some(EditedWhen::Since), Some((_, last))) => work.request.index.results_since(last),
        (Some(EditedWhen::Before), None) if work.request.index.changed_before(id) => {
            work.request.index.later_results(id)
        }
        (Some(EditedWhen::Since), None) | (Some(EditedWhen::Before), _) => return None,
        (None, _) => work.request.index.later_results(id),
    };
    let since = stand_in.map_or(since, |other| since.min(work.request.index.later_results(other)));
    let after = select.results_after.filter(|after| *after > 0.0);
    Some(after.map_or(f64::INFINITY, |after| f64::from(since) / after))
}

/// Says why a block is hidden; nothing where the step wants a redundancy that is not there.
fn hiding_reason(
    work: &Work<'_>,
    step: &PolicyStep,
    id: BlockId,
    often: Option<&HashMap<BlockId, (u32, u32)>>,
    series: Option<&HashMap<BlockId, Reason>>,
) -> Option<Reason> {
    let fact = &work.request.facts[id];
    if let Some(rule) = &step.rule {
        return Some(Reason::Rule(rule.clone()));
    }
    if let StepAction::Inputs(inputs) = &step.act {
        let (leaves, shown) = leaves_to_hide(work, id, *inputs)?;
        // Only what has something long to hide is worth a word.
        if work.request.index.row(id).leaves.bytes_of(leaves) == 0 {
            return None;
        }
        if shown.is_some() {
            return shown;
        }
    }
    if let Some(series) = series {
        return series.get(&id).cloned();
    }
    if let Some((first, last)) = often.and_then(|often| often.get(&id)) {
        return Some(Reason::ReadOften { first: *first, last: *last });
    }
    if !step.select.redundant.is_empty() {
        return find_redundancy(work, step, id);
    }
    if fact.tool() == Some(ToolKind::Read)
        && let Some((first, _)) = work.request.index.changed_since(id)
    {
        return Some(Reason::Stale { edit: first.step });
    }
    Some(match step.when {
        StepMoment::Birth => Reason::TooLong,
        StepMoment::Over { .. } => Reason::OverBudget,
        StepMoment::Always if step.select.chars_over.is_some() => Reason::TooLong,
        StepMoment::Cold | StepMoment::Pays | StepMoment::Always => Reason::TooOld,
    })
}

/// Says what makes a block redundant in one of the ways that a step names: another one that is sent as it is.
pub(super) fn find_redundancy(work: &Work<'_>, step: &PolicyStep, id: BlockId) -> Option<Reason> {
    let fact = &work.request.facts[id];
    let step_of = |id: BlockId| work.request.facts[id].step;
    for way in &step.select.redundant {
        let other = match way {
            Redundancy::Superseded => {
                // Of a write, the call holds the content: where that is superseded, what the tool said about it is too.
                let call = || work.request.facts[fact.partner?].superseded_by;
                let by = fact.superseded_by.or_else(call);
                by.map(|(by, _)| (by, Reason::Superseded { by: step_of(by) }))
            }
            Redundancy::Identical => {
                work.whole_copies(id).next().map(|to| (to, Reason::Identical { to: step_of(to) }))
            }
        };
        // Only a copy that can be seen makes another one redundant, and none that came with its content hidden.
        let holds =
            |other: BlockId| !holds_note(&work.request.history.block_text(&work.request.history[other]));
        if let Some((_, reason)) =
            other.filter(|(other, _)| work.verdict_of(*other).shows_all() && holds(*other))
        {
            return Some(reason);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_kept_as_the_table_of_seed_000_says() {
        let kept = |reads| kept_reads(reads, 5);
        assert_eq!([kept(1), kept(2)], [vec![0], vec![0, 1]]);
        assert_eq!([kept(3), kept(4), kept(5)], [vec![0, 2], vec![0, 3], vec![0, 4]]);
        assert_eq!(kept(6), [0, 1, 2, 3, 5]);
        assert_eq!(kept(10), [0, 2, 4, 6, 9]);
        assert_eq!(kept_reads(10, 3), [0, 4, 9]);
        assert_eq!(kept_reads(10, 2), [0, 9]);
    }

    #[test]
    fn a_star_stands_for_anything_and_paths_match_by_their_end() {
        for (pattern, name, fits) in [
            ("mcp__*", "mcp__github__search", true),
            ("Bash", "Bash", true),
            ("Bash", "BashOutput", false),
            ("*.lock", "/a/b/Cargo.lock", true),
            ("src/*.rs", "/home/dev/x/src/lib.rs", true),
            ("*", "", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
            ("lib.rs", "src/lib.rs", true),
            ("lib.rs", "src/mylib.rs", false),
        ] {
            assert_eq!(matches_pattern(pattern, name), fits, "{pattern} {name}");
        }
    }
}
