//! `trimtab compact`: a conversation with its old part folded into one message. Takes a request or a recording, and a summary from
//! a file or an endpoint where one is wanted; gives the request in the format it came in. If no summary can be obtained or used,
//! the user's words and the ledger alone say what was folded.

use std::{borrow::Cow, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use trimtab_core::{
    CountMemo, Counter, History, Tokens, Usage,
    count::Counts,
    facts, files, parse_as,
    summary::{
        FoldRange, FoldRequest, FoldSizes, FoldedText, SummaryAnswer, SummaryTask, fold_range,
        fold_request_bytes, fold_sizes, folded_text,
    },
};

use crate::{
    args::CompactArgs,
    endpoint::SummaryEndpoint,
    input,
    output::{Output, group_thousands, print_note},
    summarize::{ask_for_summary, summary_dollars, summary_window},
};

pub(crate) fn run(asked: &CompactArgs, out: &mut Output) -> Result<()> {
    let conversation = input::read_conversation(&asked.input)?;
    let name = conversation.name.clone();
    let request = input::request_bytes(&asked.input, &conversation);
    let history = Arc::new(parse_as(request, conversation.history.format()).with_context(|| name.clone())?);
    let model = history.model().map(Cow::into_owned).or_else(|| input::recorded_model(&conversation));
    let counter = Counter::for_model(&model.unwrap_or_default());
    let facts = facts(&history);
    let counts = counter.count_request(&history, &mut CountMemo::default());
    // Where the count is an estimate, the budget is kept with room for its error.
    let budget = asked.budget.map(|budget| budget.scale(1.0 / counter.tokenizer().exactness().guard()));
    let FoldSizes { room, tail } = fold_sizes(&history, &facts, &counts, budget);
    let Some(range) = fold_range(&history, &facts, &counts, tail) else {
        return print_unchanged(asked, &history, &counts, &name, out);
    };
    let tokens = range.tokens(&counts);
    let asking =
        SummaryTask::new(Arc::clone(&history), FoldRequest::new(range.clone(), tokens, room), counter);
    if asked.print_prompt {
        return print_prompt(asked, &asking, out);
    }
    let summary = get_summary(asked, &asking)?;
    let files = files(&history, &facts);
    let compact = |range: &FoldRange| -> Result<(FoldedText, Vec<u8>, Tokens)> {
        let folded = folded_text(&history, &facts, &files, range, summary.as_deref(), room, counter);
        let request = fold_request_bytes(&history, range, &folded.text);
        let read = parse_as(request.clone(), history.format())?;
        Ok((folded, request, counter.count_request(&read, &mut CountMemo::default()).total()))
    };
    // The user's messages that are too long to be quoted stay where they are, if there is room for them.
    let whole = range.clone().keeping_long_words(&facts, counts.blocks(), room);
    let stays = range.tokens(&counts) - whole.tokens(&counts);
    let (mut folded, mut request, mut after) = compact(&whole)?;
    if budget.map_or(stays > tail, |budget| after > budget) && whole != range {
        (folded, request, after) = compact(&range)?;
    }
    if after >= counts.total() {
        return print_unchanged(asked, &history, &counts, &name, out);
    }
    if let Some(budget) = budget.filter(|budget| after > *budget) {
        bail!(
            "{name}: does not fit into {} tokens: {} are left when all that may be is folded; raise the budget, or use \
             `trimtab fit` on what is left",
            group_thousands(budget.0),
            group_thousands(after.0)
        );
    }
    let told = if folded.has_summary {
        "a summary and a list of facts"
    } else {
        "a list of facts, without a summary"
    };
    print_note(format_args!(
        "{name}: {} tokens instead of {}: {} messages folded from {} tokens to {} by {told}",
        group_thousands(after.0),
        group_thousands(counts.total().0),
        range.messages(),
        group_thousands(tokens.0),
        group_thousands(folded.tokens.0)
    ));
    out.write_bytes(&request)
}

/// Writes the request unchanged, and says why.
fn print_unchanged(
    asked: &CompactArgs,
    history: &History,
    counts: &Counts,
    name: &str,
    out: &mut Output,
) -> Result<()> {
    let total = counts.total();
    if let Some(budget) = asked.budget.filter(|budget| total > *budget) {
        bail!(
            "{name}: does not fit into {} tokens: of {} nothing can be folded that would make it smaller",
            group_thousands(budget.0),
            group_thousands(total.0)
        );
    }
    print_note(format_args!(
        "{name}: nothing to fold in {} tokens; a smaller --budget folds more",
        group_thousands(total.0)
    ));
    if asked.print_prompt { Ok(()) } else { out.write_bytes(history.bytes()) }
}

fn print_prompt(asked: &CompactArgs, asking: &SummaryTask, out: &mut Output) -> Result<()> {
    let window = summary_window(asking, asked.model.as_deref(), asked.window);
    let parts = asking.parts(window);
    if parts.len() > 1 {
        print_note(format_args!(
            "the prompt is the first of {}: what is folded is too long for one; --endpoint asks for them in turn",
            parts.len()
        ));
    }
    let Some(first) = parts.first() else { return Ok(()) };
    out.write_bytes(asking.prompt(first, asking.notes(), window).as_bytes())
}

/// Returns the summary to use; nothing where none is wanted, or none could be had.
fn get_summary(asked: &CompactArgs, asking: &SummaryTask) -> Result<Option<String>> {
    let answer = match (&asked.summary, &asked.endpoint) {
        (Some(file), _) => {
            let bytes =
                input::read_file_or_stdin(file).with_context(|| format!("--summary {}", file.display()))?;
            SummaryAnswer::of_text(&String::from_utf8_lossy(&bytes))
        }
        (None, Some(url)) => match ask_endpoint(asked, asking, url) {
            Ok(answer) => answer,
            Err(error) => {
                print_note(format_args!("no summary: {error:#}; folding with a list of facts alone"));
                return Ok(None);
            }
        },
        (None, None) => return Ok(None),
    };
    match asking.check_answer(&answer) {
        Ok(text) => Ok(Some(text)),
        Err(reason) => {
            print_note(format_args!("{reason}: it is not used; folding with a list of facts alone"));
            Ok(None)
        }
    }
}

/// Asks an endpoint, and says what that cost.
fn ask_endpoint(asked: &CompactArgs, asking: &SummaryTask, url: &str) -> Result<SummaryAnswer> {
    let model = asked.model.as_deref().context("--endpoint needs --model NAME")?;
    let key = asked.api_key_env.as_ref().map(|name| {
        std::env::var(name)
            .with_context(|| format!("--api-key-env {name}: the environment has no such variable"))
    });
    let endpoint = SummaryEndpoint::new(url, key.transpose()?, Duration::from_secs(asked.timeout));
    let window = summary_window(asking, Some(model), asked.window);
    let got = ask_for_summary(asking, model, endpoint.format, window, |request| endpoint.ask(request));
    if !got.used.is_empty() {
        print_note(describe_cost(model, &got.used));
    }
    got.answer
}

/// Says what a summary cost.
fn describe_cost(model: &str, used: &[Usage]) -> String {
    let read = used.iter().map(|usage| usage.total_input()).sum();
    let written = used.iter().map(|usage| usage.output).sum();
    let words = format!(
        "summary by {model}: {} tokens read, {} written",
        group_thousands(read),
        group_thousands(written)
    );
    match summary_dollars(model, used) {
        Some(dollars) => format!("{words}, ${dollars:.4}"),
        None => words,
    }
}
