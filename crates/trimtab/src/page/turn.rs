//! The page of one request: the conversation as the model saw it, block by block. A hidden block is folded in its place, with the note
//! that the model saw, the reason, the moment and what it saves; the original opens beside it. And the page of one block, whole.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::{Context as _, Result};
use maud::{Markup, html};
use trimtab_core::{
    BlockId, BlockKind, CountMemo, Counter, Handle, History, SentVerdict, Verdict, block_handle,
    block_original, facts,
    facts::{Fact, Outcome},
    parse_as,
};
use trimtab_store::{RequestId, SessionId, Store, StoredRequest};

use super::{
    PageServer,
    conversation::{HiddenSince, hidden_since},
    route::PageQuery,
    shell::{self, BarPlace, cut_text, number, page_count, page_links, request_path, session_head, time_of},
};
use crate::{
    accounts::{has_dollars, price_requests},
    look::{FigureTile, dollars, tiles, tokens_short},
    output::{count_with_noun, group_thousands},
    store,
    terminal::escape_name,
};

/// Blocks of one part of the page.
const EACH: u32 = 100;

/// Letters of a block that the page shows; the rest is on the block's own page.
const LETTERS: usize = 1_500;

/// Letters of a block's line in the list.
const LINE_LETTERS: usize = 160;

/// Letters of one part of a block's own page.
const PART_LETTERS: usize = 40_000;

/// What is looked at to make the row of a block.
struct BlockContext<'a> {
    session: SessionId,
    request: RequestId,
    history: &'a History,
    counter: Counter,
    hidden: HashMap<u32, &'a SentVerdict>,
    since: BTreeMap<u32, HiddenSince>,
    pins: BTreeSet<Handle>,
    numbers: HashMap<RequestId, usize>,
}

impl PageServer {
    pub(super) fn request_page(
        &self,
        session: SessionId,
        id: RequestId,
        query: &PageQuery,
    ) -> Result<Markup> {
        let scope = self.scope()?;
        let stored = scope.own_request(session, id)?;
        let info = scope.own_session(session)?;
        let requests = scope.store().requests(session)?;
        let told = scope.store().verdict_history(session)?;
        let history = parse_as(stored.bytes.clone(), stored.info.format)?;
        let facts = facts(&history);
        let numbers: HashMap<RequestId, usize> = requests.iter().map(|request| request.id).zip(1..).collect();
        let view = BlockContext {
            session,
            request: id,
            history: &history,
            counter: Counter::for_model(stored.info.model.as_deref().unwrap_or_default()),
            hidden: stored.hidden.iter().map(|(block, verdict)| (*block, verdict)).collect(),
            since: hidden_since(&requests, &told, id),
            pins: scope.store().pins(Some(session))?.into_iter().map(|pin| pin.handle).collect(),
            numbers,
        };
        let misses = self.explain_misses(&scope, session, &requests)?;
        let title = self.session_title(&scope, &info);
        let number_here = view.numbers.get(&id).copied().unwrap_or_default();
        let only_hidden = query.get("show") == "hidden";
        let all: Vec<(u32, &Fact)> = (0..).zip(facts.rows()).collect();
        let listed: Vec<&(u32, &Fact)> =
            all.iter().filter(|(block, _)| !only_hidden || view.hidden.contains_key(block)).collect();
        let pages = page_count(u64::try_from(listed.len()).unwrap_or(u64::MAX), EACH);
        let current = query.page().min(pages);
        let skip = usize::try_from((current - 1) * EACH).unwrap_or_default();
        let path = request_path(session, id);
        let show = if only_hidden { "hidden" } else { "" };
        let mut memo = CountMemo::default();
        let shown: Vec<Markup> = listed
            .iter()
            .skip(skip)
            .take(usize::try_from(EACH).unwrap_or_default())
            .filter_map(|(block, fact)| self.block_row(&view, *block, fact, &mut memo))
            .collect();
        let main = html! {
            (session_head(session, &title, None))
            h2 { "Request " (number_here) " of " (requests.len()) }
            p.soft.small { (time_of(stored.info.at)) " UTC" }
            (request_tiles(&stored, &requests, number_here))
            @if let Some(miss) = number_here.checked_sub(1).and_then(|at| misses.by_place().get(&at).copied()) {
                p { "From the cache it " (self.miss_words(miss)) "." }
            }
            (neighbours(&requests, session, number_here))
            p {
                (count_with_noun(all.len(), "block", "blocks")) ", " (view.hidden.len()) " of them not sent whole. "
                @if only_hidden { a href=(path) { "Show all blocks" } }
                @else if !view.hidden.is_empty() { a href={ (path) "?show=hidden" } { "Show only those" } }
            }
            ol.blocks { @for row in shown { (row) } }
            (page_links(&path, &[("show", show)], current, pages))
            p.soft.small {
                "The same at the command line: " code { "trimtab restore " (session) " --request " (number_here) }
                " prints what the agent sent, with " code { "--sent" } " what was sent instead."
            }
        };
        Ok(shell::whole_page(&format!("Request {number_here}"), BarPlace::Sessions, &main))
    }

    /// Returns the row of one block.
    fn block_row(
        &self,
        view: &BlockContext<'_>,
        id: u32,
        fact: &Fact,
        memo: &mut CountMemo,
    ) -> Option<Markup> {
        let history = view.history;
        let block = history.block(BlockId(id))?;
        let verdict = view.hidden.get(&id).map(|verdict| verdict.verdict());
        let hidden = verdict.filter(|verdict| **verdict != Verdict::Keep);
        let handle = block_handle(history, block);
        let text = self.shown_text(&beginning_of(&history.block_text(block), LETTERS * 4));
        let (start, is_cut) = cut_text(text.trim_start_matches(['\n', '\r']), LETTERS);
        let (line, _) =
            cut_text(start.lines().find(|line| !line.trim().is_empty()).unwrap_or_default(), LINE_LETTERS);
        let tool = history.tool_name(block);
        let failed = fact.acts_as == BlockKind::Result && fact.outcome == Outcome::Failed;
        let is_pinned = Handle::parse(&handle).is_some_and(|handle| view.pins.contains(&handle));
        let whole = format!("{}/blocks/{id}", request_path(view.session, view.request));
        let tokens = view.counter.block_as_text(history, block, &history.block_text(block), memo);
        Some(html! {
            li #{ "b" (id) } .hidden-block[hidden.is_some()] data-block=(id) data-handle=(handle) data-hidden=[hidden.map(Verdict::word)] {
                div.head {
                    b { (block_name(fact)) }
                    @if let Some(tool) = &tool { code.title dir="auto" { (escape_name(tool)) } }
                    @if failed { span.tag.bad { "failed" } }
                    @if is_pinned { span.tag { "pinned" } }
                    @if let Some(hidden) = hidden { span.tag { (verdict_words(hidden)) } }
                    span.soft.small { "step " (fact.step) }
                    span.number { (group_thousands(tokens.0)) " tokens" }
                }
                @match hidden {
                    None => {
                        details {
                            summary.title dir="auto" { (if line.is_empty() { "without text" } else { line.as_str() }) }
                            pre.text dir="auto" tabindex="0" { (start) @if is_cut { "…" } }
                            p.small { a href=(whole) { "the whole block" } " · " code { (handle) } }
                        }
                        (self.pin_forms(view, &handle, is_pinned))
                    }
                    Some(verdict) => {
                        (self.hidden_part(view, (id, tokens.0), verdict, block, memo))
                        details {
                            summary { "The original, beside what was sent" }
                            div.columns {
                                div { h3 { "Original" } pre.text dir="auto" tabindex="0" { (start) @if is_cut { "…" } } }
                                div { h3 { "Sent" } (self.sent_text(verdict)) }
                            }
                            p.small { a href=(whole) { "the whole block" } " · " code { "trimtab recall " (handle) } }
                        }
                        (self.pin_forms(view, &handle, is_pinned))
                        @if !is_pinned && !verdict.is_fold() {
                            " " (self.wish_form(view.session, view.request.0, &handle, "undo", "Undo when free"))
                            " " (self.wish_form(view.session, view.request.0, &handle, "undo-now", "Undo now"))
                        }
                    }
                }
            }
        })
    }

    /// Says why a block was hidden, at which moment, and what that saves.
    fn hidden_part(
        &self,
        view: &BlockContext<'_>,
        (id, tokens): (u32, u64),
        verdict: &Verdict,
        block: &trimtab_core::Block,
        memo: &mut CountMemo,
    ) -> Markup {
        let rest =
            verdict.text().map_or(0, |text| view.counter.block_as_text(view.history, block, text, memo).0);
        let saved = tokens.saturating_sub(rest);
        let reason = verdict.reason().map(|reason| reason.to_string()).unwrap_or_default();
        html! {
            p.small {
                b { "Hidden: " } (escape_name(&reason)) ". "
                @if let Some(since) = view.since.get(&id) {
                    "Since request "
                    a href=(request_path(view.session, since.request)) { (view.numbers.get(&since.request).copied().unwrap_or_default()) }
                    ", " (since.moment.words()) ". "
                    "Saves " (group_thousands(saved)) " tokens in every request: "
                    (group_thousands(saved.saturating_mul(u64::try_from(since.requests).unwrap_or(u64::MAX))))
                    " in " (count_with_noun(since.requests, "request", "requests")) " so far."
                }
            }
            @if verdict.text().is_some() {
                p.small.soft { "The model saw instead:" }
                (self.sent_text(verdict))
            }
        }
    }

    fn sent_text(&self, verdict: &Verdict) -> Markup {
        html! {
            @match verdict.text() {
                Some(text) => {
                    @let (start, is_cut) = cut_text(&self.shown_text(text), LETTERS);
                    pre.text data-sent="" dir="auto" tabindex="0" { (start) @if is_cut { "…" } }
                }
                None => p.soft { "nothing" },
            }
        }
    }

    fn pin_forms(&self, view: &BlockContext<'_>, handle: &str, is_pinned: bool) -> Markup {
        let (kind, words) = if is_pinned { ("unpin", "Unpin") } else { ("pin", "Pin") };
        html! { @if !handle.is_empty() { (self.wish_form(view.session, view.request.0, handle, kind, words)) } }
    }

    /// Shows a block whole, in parts where it is long.
    pub(super) fn block_page(
        &self,
        session: SessionId,
        id: RequestId,
        number_of: u32,
        query: &PageQuery,
    ) -> Result<Markup> {
        let scope = self.scope()?;
        let stored = scope.own_request(session, id)?;
        let info = scope.own_session(session)?;
        let history = parse_as(stored.bytes.clone(), stored.info.format)?;
        let block = history.block(BlockId(number_of)).context("this request has no such block")?;
        let original = block_original(&history, block);
        let text = self.shown_text(&String::from_utf8_lossy(&original));
        let letters = text.chars().count();
        let pages = page_count(
            u64::try_from(letters).unwrap_or(u64::MAX),
            u32::try_from(PART_LETTERS).unwrap_or(u32::MAX),
        );
        let current = query.page().min(pages);
        let skip = usize::try_from(current - 1).unwrap_or_default().saturating_mul(PART_LETTERS);
        let part: String = text.chars().skip(skip).take(PART_LETTERS).collect();
        let verdict =
            stored.hidden.iter().find(|(block, _)| *block == number_of).map(|(_, verdict)| verdict.verdict());
        let path = request_path(session, id);
        let main = html! {
            (session_head(session, &self.session_title(&scope, &info), None))
            h2 { "Block " (number_of) }
            p { a href={ (path) "#b" (number_of) } { "Back to the request" } " · " (number(u64::try_from(letters).unwrap_or(u64::MAX))) " letters · "
                code { "trimtab recall " (block_handle(&history, block)) } }
            (page_links(&format!("{path}/blocks/{number_of}"), &[], current, pages))
            @if let Some(verdict) = verdict.filter(|verdict| **verdict != Verdict::Keep) {
                div.columns {
                    div { h3 { "Original" } pre.text dir="auto" tabindex="0" { (part) } }
                    div { h3 { "Sent" } (self.sent_text(verdict)) }
                }
            } @else {
                pre.text dir="auto" tabindex="0" { (part) }
            }
            (page_links(&format!("{path}/blocks/{number_of}"), &[], current, pages))
        };
        Ok(shell::whole_page(&format!("Block {number_of}"), BarPlace::Sessions, &main))
    }
}

/// Returns the beginning of a text without making a copy of all of it: a line may have megabytes.
fn beginning_of(text: &str, letters: usize) -> String {
    text.chars().take(letters).collect()
}

/// Returns what a block is. Who wrote a call or its result need not be said.
fn block_name(fact: &Fact) -> String {
    match fact.acts_as {
        BlockKind::Text => format!("{} text", fact.role.name()),
        kind => kind.name().to_owned(),
    }
}

fn verdict_words(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Keep => "sent whole",
        Verdict::Shorten { .. } => "shortened",
        Verdict::Point { .. } => "replaced by a pointer",
        Verdict::Trim { .. } => "without repeated lines",
        Verdict::Rewrite { .. } => "written in fewer tokens",
        Verdict::Fold { .. } => "in a summary",
        Verdict::Drop { .. } => "left out",
    }
}

fn request_tiles(
    stored: &StoredRequest,
    requests: &[trimtab_store::RequestInfo],
    number_here: usize,
) -> Markup {
    let info = &stored.info;
    let priced = price_requests(requests);
    let account =
        number_here.checked_sub(1).and_then(|at| priced.get(at)).filter(|account| has_dollars(account));
    let mut all =
        vec![FigureTile::new(tokens_short(info.tokens_after), "tokens were sent").with_note(format!(
            "{} before, {} % less",
            tokens_short(info.tokens_before),
            store::percent_saved(info.tokens_before, info.tokens_after)
        ))];
    if let Some(usage) = info.usage {
        all.push(FigureTile::new(tokens_short(usage.cache_read), "tokens read from the cache").with_note(
            format!("{} written, {} uncached", tokens_short(usage.cache_write), tokens_short(usage.input)),
        ));
    }
    if let Some(account) = account {
        all.push(
            FigureTile::new(dollars(account.paid_dollars), "spent")
                .with_note(format!("{} saved, by estimate", dollars(account.balance()))),
        );
    }
    tiles(&all)
}

fn neighbours(requests: &[trimtab_store::RequestInfo], session: SessionId, number_here: usize) -> Markup {
    let at = |number: usize| number.checked_sub(1).and_then(|index| requests.get(index));
    html! {
        nav.pages aria-label="Other requests" {
            @if let Some(before) = number_here.checked_sub(1).and_then(at) { a.button rel="prev" href=(request_path(session, before.id)) { "previous request" } }
            @if let Some(after) = at(number_here + 1) { a.button rel="next" href=(request_path(session, after.id)) { "next request" } }
        }
    }
}
