//! Obtains a summary. Takes what a plan asks for, the model that is to write it and a way to send requests; gives its answer and
//! what that used. A range that is too long for the model is asked about part by part, each answer updating the notes on the
//! parts before. Never goes on from an answer that cannot be trusted.

use anyhow::{Context, Result, bail};
use trimtab_core::{
    Format, Tokens, Usage,
    summary::{SummaryAnswer, SummaryTask, read_answer, summary_request},
};

use crate::prices;

/// The window of a summarizer that is not in the table of models: what small local models are run with.
const UNKNOWN_WINDOW: Tokens = Tokens(32_000);

/// What came of asking.
pub(crate) struct SummaryAttempt {
    /// The answer to the last part, not yet checked.
    pub(crate) answer: Result<SummaryAnswer>,
    /// What each answer used, where its provider tells.
    pub(crate) used: Vec<Usage>,
}

/// Returns what a model can read besides what it is to write, where nothing says so for a model that is not in the table.
pub(crate) fn summary_window(asking: &SummaryTask, model: Option<&str>, said: Option<Tokens>) -> Tokens {
    let known = model.and_then(|model| prices::find_model(model).ok());
    let known = known.map(|model| model.request_budget(asking.request().target.scale(2.0)));
    said.or(known).unwrap_or(UNKNOWN_WINDOW)
}

/// Asks for a summary, part by part.
pub(crate) fn ask_for_summary(
    asking: &SummaryTask,
    model: &str,
    format: Format,
    window: Tokens,
    mut ask: impl FnMut(&[u8]) -> Result<Vec<u8>>,
) -> SummaryAttempt {
    let mut used = Vec::new();
    let answer = in_turn(asking, model, format, window, &mut ask, &mut used);
    SummaryAttempt { answer, used }
}

fn in_turn(
    asking: &SummaryTask,
    model: &str,
    format: Format,
    window: Tokens,
    ask: &mut impl FnMut(&[u8]) -> Result<Vec<u8>>,
    used: &mut Vec<Usage>,
) -> Result<SummaryAnswer> {
    let most = asking.request().target.scale(2.0);
    let mut notes = asking.notes().map(str::to_owned);
    let mut last = None;
    for part in asking.parts(window) {
        let prompt = asking.prompt(&part, notes.as_deref(), window);
        let answer = read_answer(&ask(&summary_request(format, model, &prompt, most))?)?;
        used.extend(answer.usage);
        // A part that cannot be trusted would spoil the notes on all that follow.
        if let Err(reason) = asking.check_part(&answer) {
            bail!("{reason}");
        }
        notes = Some(answer.text.clone());
        last = Some(answer);
    }
    last.context("there is nothing to summarize")
}

/// Returns what a summary cost, in dollars; nothing for a model without a price.
pub(crate) fn summary_dollars(model: &str, used: &[Usage]) -> Option<f64> {
    let model = prices::find_model(model).ok()?;
    Some(used.iter().map(|usage| model.cost(*usage)).sum())
}
