//! `trimtab compact`: a conversation with its old part folded into one message. Takes a request or a recording, and a summary from
//! a file or an endpoint where one is wanted; gives the request in the format it came in. A summary that cannot be had or used
//! is done without: what is folded is then told by the user's words and the ledger alone.

use std::{borrow::Cow, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use trimtab_core::{
    Counter, History, Memo, Tokens, Usage,
    count::Counts,
    facts, files, parse_as,
    summary::{
        Answer, Asking, FoldRange, FoldRequest, FoldSizes, Folded, compacted, fold_range, fold_sizes,
        folded_text,
    },
};

use crate::{
    args::Compact,
    endpoint::Endpoint,
    input,
    output::{Output, grouped, note},
    summarize::{dollars, summarized, window},
};

pub(crate) fn run(asked: &Compact, out: &mut Output) -> Result<()> {
    let conversation = input::conversation(&asked.input)?;
    let name = conversation.name.clone();
    let request = input::request(&asked.input, &conversation);
    let history = Arc::new(parse_as(request, conversation.history.format()).with_context(|| name.clone())?);
    let model = history.model().map(Cow::into_owned).or_else(|| input::recorded_model(&conversation));
    let counter = Counter::for_model(&model.unwrap_or_default());
    let facts = facts(&history);
    let counts = counter.request(&history, &mut Memo::default());
    // Where the count is an estimate, the budget is kept with room for its error.
    let budget = asked.budget.map(|budget| budget.scaled(1.0 / counter.tokenizer().exactness().guard()));
    let FoldSizes { room, tail } = fold_sizes(&history, &facts, &counts, budget);
    let Some(range) = fold_range(&history, &facts, &counts, tail) else {
        return unchanged(asked, &history, &counts, &name, out);
    };
    let tokens = range.tokens(&counts);
    let asking = Asking::new(Arc::clone(&history), FoldRequest::new(range.clone(), tokens, room), counter);
    if asked.print_prompt {
        return print_prompt(asked, &asking, out);
    }
    let summary = summary(asked, &asking)?;
    let files = files(&history, &facts);
    let compact = |range: &FoldRange| -> Result<(Folded, Vec<u8>, Tokens)> {
        let folded = folded_text(&history, &facts, &files, range, summary.as_deref(), room, counter);
        let request = compacted(&history, range, &folded.text);
        let read = parse_as(request.clone(), history.format())?;
        Ok((folded, request, counter.request(&read, &mut Memo::default()).total()))
    };
    // The user's messages that are too long to be quoted stay where they are, if there is room for them.
    let whole = range.clone().keeping_long_words(&facts, counts.blocks(), room);
    let stays = range.tokens(&counts) - whole.tokens(&counts);
    let (mut folded, mut request, mut after) = compact(&whole)?;
    if budget.map_or(stays > tail, |budget| after > budget) && whole != range {
        (folded, request, after) = compact(&range)?;
    }
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
        grouped(tokens.0),
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
    if let Some(budget) = asked.budget.filter(|budget| total > *budget) {
        bail!(
            "{name}: does not fit into {} tokens: of {} nothing can be folded that would make it smaller",
            grouped(budget.0),
            grouped(total.0)
        );
    }
    note(format_args!(
        "{name}: nothing to fold in {} tokens; a smaller --budget folds more",
        grouped(total.0)
    ));
    if asked.print_prompt { Ok(()) } else { out.bytes(history.bytes()) }
}

fn print_prompt(asked: &Compact, asking: &Asking, out: &mut Output) -> Result<()> {
    let window = window(asking, asked.model.as_deref(), asked.window);
    let parts = asking.parts(window);
    if parts.len() > 1 {
        note(format_args!(
            "the prompt is the first of {}: what is folded is too long for one; --endpoint asks for them in turn",
            parts.len()
        ));
    }
    let Some(first) = parts.first() else { return Ok(()) };
    out.bytes(asking.prompt(first, asking.notes(), window).as_bytes())
}

/// Returns the summary to use; nothing where none is wanted, or none could be had.
fn summary(asked: &Compact, asking: &Asking) -> Result<Option<String>> {
    let answer = match (&asked.summary, &asked.endpoint) {
        (Some(file), _) => {
            let bytes = input::bytes(file).with_context(|| format!("--summary {}", file.display()))?;
            Answer::of_text(&String::from_utf8_lossy(&bytes))
        }
        (None, Some(url)) => match obtained(asked, asking, url) {
            Ok(answer) => answer,
            Err(error) => {
                note(format_args!("no summary: {error:#}; folding by the ledger alone"));
                return Ok(None);
            }
        },
        (None, None) => return Ok(None),
    };
    match asking.check(&answer) {
        Ok(text) => Ok(Some(text)),
        Err(reason) => {
            note(format_args!("{reason}: it is not used; folding by the ledger alone"));
            Ok(None)
        }
    }
}

/// Asks an endpoint, and says what that cost.
fn obtained(asked: &Compact, asking: &Asking, url: &str) -> Result<Answer> {
    let model = asked.model.as_deref().context("--endpoint needs --model NAME")?;
    let key = asked.api_key_env.as_ref().map(|name| {
        std::env::var(name)
            .with_context(|| format!("--api-key-env {name}: the environment has no such variable"))
    });
    let endpoint = Endpoint::new(url, key.transpose()?, Duration::from_secs(asked.timeout));
    let window = window(asking, Some(model), asked.window);
    let got = summarized(asking, model, endpoint.format, window, |request| endpoint.ask(request));
    if !got.used.is_empty() {
        note(cost(model, &got.used));
    }
    got.answer
}

/// Says what a summary cost.
fn cost(model: &str, used: &[Usage]) -> String {
    let read = used.iter().map(|usage| usage.total_input()).sum();
    let written = used.iter().map(|usage| usage.output).sum();
    let words = format!("summary by {model}: {} tokens read, {} written", grouped(read), grouped(written));
    match dollars(model, used) {
        Some(dollars) => format!("{words}, ${dollars:.4}"),
        None => words,
    }
}
