//! `trimtab compact`: a conversation with its old part folded into one message. Takes a request or a recording, and a summary from
//! a file or an endpoint where one is wanted; gives the request in the format it came in. A summary that cannot be had or used
//! is done without: what is folded is then told by the user's words and the ledger alone.

use std::{borrow::Cow, time::Duration};

use anyhow::{Context, Result, bail};
use trimtab::{
    Answer, Checked, Counter, Counts, Facts, FoldRange, FoldSizes, History, Ledger, Memo, Tokens, Usage,
    check_summary, compacted, facts, files, fold_range, fold_sizes, folded_text, ledger, parse_as,
    read_answer, split_range, summary_prompt, summary_request,
};

use crate::{
    args::Compact,
    endpoint::Endpoint,
    input,
    output::{Output, grouped, note},
};

/// What share of the folded message's room a summary is asked to fill; the rest is for the user's words and the ledger.
const SUMMARY_SHARE: f64 = 0.4;
/// The window of a summarizer that is not in the table of models: what small local models are run with.
const UNKNOWN_WINDOW: Tokens = Tokens(32_000);

/// What is folded.
struct Fold<'a> {
    history: &'a History,
    facts: &'a Facts,
    range: &'a FoldRange,
    ledger: Ledger,
    /// What the range counts.
    tokens: Tokens,
    /// How long a summary should be.
    target: Tokens,
    counter: Counter,
}

pub(crate) fn run(asked: &Compact, out: &mut Output) -> Result<()> {
    let conversation = input::conversation(&asked.input)?;
    let name = conversation.name.clone();
    let request = input::request(&asked.input, &conversation);
    let history = parse_as(request, conversation.history.format()).with_context(|| name.clone())?;
    let model = history.model().map(Cow::into_owned).or_else(|| input::recorded_model(&conversation));
    let counter = Counter::for_model(&model.unwrap_or_default());
    let facts = facts(&history);
    let counts = counter.request(&history, &mut Memo::default());
    // Where the count is an estimate, the budget is kept with room for its error.
    let budget =
        asked.budget.map(|budget| Tokens(budget).scaled(1.0 / counter.tokenizer().exactness().guard()));
    let FoldSizes { room, tail } = fold_sizes(&history, &facts, &counts, budget);
    let Some(range) = fold_range(&history, &facts, &counts, tail) else {
        return unchanged(asked, &history, &counts, &name, out);
    };
    let files = files(&history, &facts);
    let fold = Fold {
        ledger: ledger(&history, &facts, &files, &range),
        tokens: range.tokens(&counts),
        target: room.scaled(SUMMARY_SHARE),
        history: &history,
        facts: &facts,
        range: &range,
        counter,
    };
    if asked.print_prompt {
        return print_prompt(asked, &fold, out);
    }
    let summary = summary(asked, &fold)?;
    let folded = folded_text(&history, &facts, &files, &range, summary.as_deref(), room, counter);
    let request = compacted(&history, &range, &folded.text);
    let after = counter.request(&parse_as(request.clone(), history.format())?, &mut Memo::default()).total();
    if after >= counts.total() {
        return unchanged(asked, &history, &counts, &name, out);
    }
    if let Some(budget) = budget.filter(|budget| after > *budget) {
        bail!(
            "{name}: does not fit into {} tokens: {} are left when all that may be is folded; raise the budget, or use \
             `trimtab fit` on what is left",
            grouped(budget.0),
            grouped(after.0)
        );
    }
    let told = if folded.has_summary { "a summary and the ledger" } else { "the ledger alone" };
    note(format_args!(
        "{name}: {} tokens instead of {}: {} messages folded from {} tokens to {} by {told}",
        grouped(after.0),
        grouped(counts.total().0),
        range.messages(),
        grouped(fold.tokens.0),
        grouped(folded.tokens.0)
    ));
    out.bytes(&request)
}

/// Gives the request as it came, and says why.
fn unchanged(
    asked: &Compact,
    history: &History,
    counts: &Counts,
    name: &str,
    out: &mut Output,
) -> Result<()> {
    let total = counts.total();
    if let Some(budget) = asked.budget.filter(|budget| total.0 > *budget) {
        bail!(
            "{name}: does not fit into {} tokens: of {} nothing can be folded that would make it smaller",
            grouped(budget),
            grouped(total.0)
        );
    }
    note(format_args!(
        "{name}: nothing to fold in {} tokens; a smaller --budget folds more",
        grouped(total.0)
    ));
    if asked.print_prompt { Ok(()) } else { out.bytes(history.bytes()) }
}

/// Returns what the model that writes the summary can read.
fn window(asked: &Compact, fold: &Fold<'_>) -> Tokens {
    let known = asked.model.as_deref().and_then(|model| crate::prices::find_model(model).ok());
    known.map_or(UNKNOWN_WINDOW, |model| model.budget(fold.target.scaled(2.0)))
}

fn print_prompt(asked: &Compact, fold: &Fold<'_>, out: &mut Output) -> Result<()> {
    let window = window(asked, fold);
    let Fold { history, facts, range, target, counter, .. } = *fold;
    let parts = split_range(history, facts, range, target, window, counter);
    let earlier = fold.ledger.earlier_summary.as_deref();
    if parts.len() > 1 {
        note(format_args!(
            "the prompt is the first of {}: what is folded is too long for one; --endpoint asks for them in turn",
            parts.len()
        ));
    }
    let Some(first) = parts.first() else { return Ok(()) };
    out.bytes(summary_prompt(history, facts, first, earlier, target, window, counter).as_bytes())
}

/// Returns the summary to use; nothing where none is wanted, or none could be had.
fn summary(asked: &Compact, fold: &Fold<'_>) -> Result<Option<String>> {
    let answer = match (&asked.summary, &asked.endpoint) {
        (Some(file), _) => {
            let bytes = input::bytes(file).with_context(|| format!("--summary {}", file.display()))?;
            Answer::of_text(&String::from_utf8_lossy(&bytes))
        }
        (None, Some(url)) => match obtained(asked, fold, url) {
            Ok(answer) => answer,
            Err(error) => {
                note(format_args!("no summary: {error:#}; folding by the ledger alone"));
                return Ok(None);
            }
        },
        (None, None) => return Ok(None),
    };
    match check_summary(&answer, &fold.ledger, fold.tokens, fold.target, fold.counter) {
        Checked::Accepted(text) => Ok(Some(text)),
        Checked::Rejected(reason) => {
            note(format_args!("{reason}: it is not used; folding by the ledger alone"));
            Ok(None)
        }
    }
}

/// Asks an endpoint, part by part; every part updates the notes on the parts before.
fn obtained(asked: &Compact, fold: &Fold<'_>, url: &str) -> Result<Answer> {
    let model = asked.model.as_deref().context("--endpoint needs --model NAME")?;
    let key = asked.api_key_env.as_ref().map(|name| {
        std::env::var(name)
            .with_context(|| format!("--api-key-env {name}: the environment has no such variable"))
    });
    let endpoint = Endpoint::new(url, key.transpose()?, Duration::from_secs(asked.timeout));
    let window = window(asked, fold);
    let Fold { history, facts, range, target, counter, .. } = *fold;
    let mut notes = fold.ledger.earlier_summary.clone();
    let mut used = Usage::default();
    let mut last = None;
    for part in split_range(history, facts, range, target, window, counter) {
        let prompt = summary_prompt(history, facts, &part, notes.as_deref(), target, window, counter);
        let request = summary_request(endpoint.format, model, &prompt, target.scaled(2.0));
        let answer = read_answer(&endpoint.ask(&request)?)?;
        if let Some(usage) = answer.usage {
            used.input += usage.total_input();
            used.output += usage.output;
        }
        // A part that cannot be trusted would spoil the notes on all that follow.
        if let Checked::Rejected(reason) =
            check_summary(&answer, &Ledger::default(), fold.tokens, target, counter)
        {
            note(cost(model, used));
            bail!("{reason}");
        }
        notes = Some(answer.text.clone());
        last = Some(answer);
    }
    note(cost(model, used));
    last.context("there is nothing to summarize")
}

/// Says what a summary cost.
fn cost(model: &str, used: Usage) -> String {
    let words =
        format!("summary by {model}: {} tokens read, {} written", grouped(used.input), grouped(used.output));
    let Ok(known) = crate::prices::find_model(model) else { return words };
    #[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "a price for people")]
    let dollars =
        (used.input as f64 * known.prices.input + used.output as f64 * known.prices.output) / 1_000_000.0;
    format!("{words}, ${dollars:.4}")
}
