//! What a fit did, for other programs. Takes the fitted request and what was in force; gives values that are written as JSON.
//! Never leaves the originals out of reach: everything hidden has its handle here.

use serde::Serialize;

use crate::{
    count::Exactness,
    facts::facts,
    history::{BlockId, History},
    plan::{Moment, MomentSum, PassSum, Plan},
    policy::Policy,
    session::FittedRequest,
    units::Tokens,
    verdict::Verdict,
    wire::Repair,
};

/// A setting in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SettingRow {
    /// Its name.
    pub name: String,
    /// Its value, with its unit.
    pub value: String,
    /// Where it comes from.
    pub from: String,
}

/// What a fit did.
#[derive(Debug, Serialize)]
pub struct FitReport<'a> {
    policy: &'a str,
    settings: &'a [SettingRow],
    budget: Option<Tokens>,
    exact: bool,
    tokens_before: Tokens,
    tokens_after: Tokens,
    fold_wanted: bool,
    /// What stands for the messages that are folded.
    folded: Option<FoldedReport>,
    /// What cannot be hidden, where that is more than the budget.
    floor: Option<FloorReport>,
    verdicts: Vec<DecisionRow>,
    /// What is saved and paid, by the moment at which blocks are hidden.
    sums: Vec<MomentSum>,
    /// What each pass of the plan hid.
    passes: Vec<PassSum>,
    supersedes: Vec<SupersedingRow>,
    mended: Vec<String>,
}

#[derive(Debug, Serialize)]
struct FloorReport {
    tokens: Tokens,
    made_of: Vec<(&'static str, Tokens)>,
}

#[derive(Debug, Serialize)]
struct FoldedReport {
    /// The last block that is folded.
    block: u32,
    tokens: Tokens,
    /// How many tokens it stands for.
    instead_of: Tokens,
    text: String,
}

#[derive(Debug, Serialize)]
struct DecisionRow {
    block: u32,
    step: u32,
    call: Option<String>,
    verdict: String,
    reason: String,
    tokens: Tokens,
    saved: Tokens,
    when: Option<Moment>,
    handle: Option<String>,
}

/// A block and the earlier ones that it makes redundant.
#[derive(Debug, Serialize)]
struct SupersedingRow {
    block: u32,
    call: Option<String>,
    supersedes: Vec<SupersededRow>,
}

#[derive(Debug, Serialize)]
struct SupersededRow {
    block: u32,
    call: Option<String>,
    rule: &'static str,
}

/// Tells what a fit did, with the settings that were in force and what was repaired before.
pub fn fit_report<'a>(
    policy: &'a Policy,
    settings: &'a [SettingRow],
    fitted: &FittedRequest,
    mended: &[Repair],
) -> FitReport<'a> {
    let plan = &fitted.plan;
    let hidden = plan.decisions().iter().filter(|decision| decision.verdict != Verdict::Keep);
    let rows = hidden.map(|decision| DecisionRow {
        block: decision.block.0,
        step: step_of(&fitted.history, decision.block),
        call: call_of(&fitted.history, decision.block),
        verdict: decision.verdict.word().to_owned(),
        reason: decision.reason().as_ref().map(ToString::to_string).unwrap_or_default(),
        tokens: plan.tokens_of(decision.block).0,
        saved: plan.tokens_saved(decision.block),
        when: plan.moment_of(decision.block),
        handle: decision.handle.clone(),
    });
    FitReport {
        policy: &policy.name,
        settings,
        budget: fitted.budget,
        exact: fitted.exactness == Exactness::Exact,
        tokens_before: plan.before(),
        tokens_after: plan.after(),
        fold_wanted: plan.fold_wanted(),
        folded: plan.fold_message().map(|(block, text)| FoldedReport {
            block: block.0,
            tokens: plan.tokens_of(block).1,
            instead_of: folded_blocks(plan).map(|block| plan.tokens_of(block).0).sum(),
            text: text.to_owned(),
        }),
        floor: plan.floor().map(|floor| FloorReport { tokens: floor.tokens, made_of: floor.made_of.clone() }),
        verdicts: rows.collect(),
        sums: plan.moment_sums().to_vec(),
        passes: plan.passes().to_vec(),
        supersedes: superseding_rows(&fitted.history),
        mended: mended.iter().map(ToString::to_string).collect(),
    }
}

fn folded_blocks(plan: &Plan) -> impl Iterator<Item = BlockId> {
    plan.decisions().iter().filter(|decision| decision.verdict.is_fold()).map(|decision| decision.block)
}

fn superseding_rows(history: &History) -> Vec<SupersedingRow> {
    let facts = facts(history);
    let rows = (0..).map(BlockId).zip(facts.rows()).filter(|(_, row)| !row.supersedes.is_empty());
    rows.map(|(id, row)| SupersedingRow {
        block: id.0,
        call: call_of(history, id),
        supersedes: row
            .supersedes
            .iter()
            .map(|(older, rule)| SupersededRow {
                block: older.0,
                call: call_of(history, *older),
                rule: rule.name(),
            })
            .collect(),
    })
    .collect()
}

fn call_of(history: &History, id: BlockId) -> Option<String> {
    history.call_id(history.block(id)?).map(std::borrow::Cow::into_owned)
}

fn step_of(history: &History, id: BlockId) -> u32 {
    history.block(id).and_then(|block| history.entry_of(block)).map_or(0, |entry| entry.step)
}
