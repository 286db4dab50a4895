//! The texts that are sent in place of blocks. Takes a block, what a step does with it and why; gives the shorter text
//! and what it counts, or nothing where it is not smaller. Never decides whether a block is shortened.

use std::{
    cell::Cell,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use super::{
    super::{
        arguments_part,
        candidates::leaves_to_hide,
        edits::replace_content,
        may_shorten,
        series::{EXTENTS, LEAST_TELLER, LEAST_TELLING_BYTES},
        visible_names::{VisibleNames, distinct_names},
    },
    NAMES_LEAVE_AT_MOST, NAMES_SAVE_AT_LEAST, Work, to_whole_number,
};
use crate::{
    digest::{
        self, DigestText, InputShortening, LeafRule, LeafSet, Piece, TextContext, query_terms, task_words,
    },
    facts::{Fact, Outcome, ResultSort, Subject},
    files::reason_of_change,
    history::{BlockId, BlockKind, History, PartKind},
    notes::{holds_note, tells_series},
    policy::{NoteStyle, StepAction},
    render::{self, NoteContext, ShownCopy, ShownFile},
    units::Tokens,
    verdict::{Reason, Verdict},
};

impl Work<'_> {
    /// Returns a block's text shortened as a step says, and what it counts; nothing where that is not smaller.
    pub(super) fn shorten_block(
        &mut self,
        id: BlockId,
        act: &StepAction,
        reason: &Reason,
    ) -> Option<(Arc<str>, Tokens)> {
        let open = if *act == StepAction::Names { self.may_be_names(id) } else { self.is_open(id) };
        if !open || !may_shorten(self.request.history, id) {
            return None;
        }
        // What is written in fewer tokens already must get smaller still.
        let now = self.tokens_now(id);
        self.text_for(id, act, reason).filter(|(_, tokens)| *tokens < now)
    }

    pub(in crate::plan) fn text_for(
        &mut self,
        id: BlockId,
        act: &StepAction,
        reason: &Reason,
    ) -> Option<(Arc<str>, Tokens)> {
        // Which names stand nowhere else depends on what else is hidden, and which arguments may go on what came since:
        // that is made again; so is what lists a series, which is made of later blocks too.
        let tells = matches!(reason, Reason::EditedOften { told: None, .. });
        if tells || matches!(act, StepAction::Names | StepAction::Inputs(_)) {
            return self.make_text(id, act, reason, self.context.policy.style);
        }
        let key = self.text_key(id, act, reason);
        if let Some(made) = self.made.get(id, key) {
            return made.clone();
        }
        let mut made = self.make_text(id, act, reason, self.context.policy.style);
        // What is too short for a sentence about it may still be longer than its size and handle.
        if made.is_none() && *act == StepAction::Clear {
            made = self.make_text(id, act, reason, NoteStyle::Plain);
        }
        self.made.put(id, key, &made);
        made
    }

    /// Stands for everything but the block itself that a shortened text is made with.
    fn text_key(&mut self, id: BlockId, act: &StepAction, reason: &Reason) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.terms_for(id, act).hash(&mut hasher);
        act.hash(&mut hasher);
        if let StepAction::Cap { share } = act {
            self.context.budget.map(|budget| budget.scale(*share)).hash(&mut hasher);
        }
        reason.hash(&mut hasher);
        self.context.policy.style.hash(&mut hasher);
        self.context.recall.hash(&mut hasher);
        self.request.counter.tokenizer().hash(&mut hasher);
        self.request.index.is_changed(id).hash(&mut hasher);
        self.request.index.file(id).and_then(|file| self.request.index.last_access(file)).hash(&mut hasher);
        self.compare_copy(id, reason).hash(&mut hasher);
        hasher.finish()
    }

    /// Returns the words that a digest ranks a block's passages by; none for what ranks nothing.
    fn terms_for(&mut self, id: BlockId, act: &StepAction) -> Vec<String> {
        if !matches!(act, StepAction::Digest(Some(name)) if name == digest::RELEVANT) {
            return Vec::new();
        }
        let (history, facts) = (self.request.history, self.request.facts);
        let mut terms = self.task_words.get_or_insert_with(|| task_words(history, facts)).clone();
        let query: &str = match facts[id].subject() {
            Subject::Query { pattern, .. } => pattern,
            Subject::Command(command) => command,
            Subject::File { path, .. } | Subject::Directory { path, .. } => path,
            Subject::Url(url) => url,
            Subject::Nothing => "",
        };
        let own: Vec<String> = query_terms(query).into_iter().filter(|word| !terms.contains(word)).collect();
        terms.extend(own);
        terms
    }

    fn make_text(
        &mut self,
        id: BlockId,
        act: &StepAction,
        reason: &Reason,
        style: NoteStyle,
    ) -> Option<(Arc<str>, Tokens)> {
        let history = self.request.history;
        let (block, fact) = (&history[id], &self.request.facts[id]);
        match (block.kind, act) {
            (BlockKind::Call, StepAction::Inputs(inputs)) => return self.make_arguments(id, *inputs, reason),
            // The arguments of a call are no text to be cut, and no other text has arguments.
            (BlockKind::Call, _) | (_, StepAction::Inputs(_)) => return None,
            (_, StepAction::Clear) if matches!(reason, Reason::EditedOften { .. }) => {
                return self.make_series(id, reason, style);
            }
            _ => {}
        }
        let text = history.readable_text(block);
        let tool = history.tool_name(block);
        let terms = self.terms_for(id, act);
        let about = TextContext { terms: &terms, ..TextContext::new(fact, tool.as_deref()) };
        let names = if *act == StepAction::Names { self.names_only_in(id, &text) } else { Vec::new() };
        let shows = self.request.index.row(id).shows;
        let text = DigestText::new(&text, about);
        let mut least = Tokens::ZERO;
        let mut pieces = match act {
            StepAction::Cap { share } => {
                let most = self.context.budget?.scale(*share);
                // What leaves less than a note would is not worth reading.
                let note = self.make_text(id, &StepAction::Clear, reason, style).map(|(_, tokens)| tokens);
                least = note.unwrap_or_default();
                if let Some(made) = self.digest_within(id, &text, most, reason) {
                    return Some(made).filter(|(_, tokens)| *tokens >= least);
                }
                digest::middle_out(&text, bytes_within(text.whole().len(), self.tokens(id), most))?
            }
            StepAction::Pin
            | StepAction::Hold
            | StepAction::Digest(_)
            | StepAction::HeadTail { .. }
            | StepAction::MiddleOut { .. }
            | StepAction::HeadTailLines { .. }
            | StepAction::Matching(_)
            | StepAction::Names
            | StepAction::Seen
            | StepAction::Rewrite(_)
            | StepAction::Clear
            | StepAction::Drop
            | StepAction::Inputs(_)
            | StepAction::Fold
            | StepAction::MakeRoom { .. } => pieces_for(history, id, &text, (act, names, shows))?,
        };
        if let Reason::EditedOften { .. } = reason {
            let intent = fact.partner.and_then(|call| reason_of_change(history, call));
            pieces.extend(intent.map(|intent| Piece::Note(digest::Note::Intent(intent))));
        }
        let (shorter, tokens) = self.write_pieces(id, &pieces, reason, style)?;
        let most = if *act == StepAction::Names {
            let now = self.tokens_now(id);
            now.scale(NAMES_LEAVE_AT_MOST).min(now - NAMES_SAVE_AT_LEAST)
        } else {
            self.tokens(id) - Tokens(1)
        };
        (tokens <= most && tokens >= least).then_some((shorter, tokens))
    }

    /// Returns the digest of a block's kind where that has at most so many tokens. Of a file the digest shows too little: it is read to
    /// be worked on.
    fn digest_within(
        &mut self,
        id: BlockId,
        text: &DigestText<'_>,
        most: Tokens,
        reason: &Reason,
    ) -> Option<(Arc<str>, Tokens)> {
        let is_file = digest::may_be_file(text);
        let pieces = (!is_file).then(|| (digest::choose_digest(text).shorten)(text)).flatten()?;
        self.write_pieces(id, &pieces, reason, self.context.policy.style)
            .filter(|(_, tokens)| *tokens <= most)
    }

    /// Writes a result of a long series of edits: the one that tells the series as much of it as is smaller, the others where.
    fn make_series(&mut self, id: BlockId, reason: &Reason, style: NoteStyle) -> Option<(Arc<str>, Tokens)> {
        let most = self.tokens(id);
        let is_smaller = |made: &(Arc<str>, Tokens)| made.1 < most;
        let (Reason::EditedOften { first, last, told: None, .. }, NoteStyle::Normal) = (reason, style) else {
            return self.write_pieces(id, &[], reason, style).filter(is_smaller);
        };
        let series = self.describe_series(id, (*first, *last))?;
        if most < LEAST_TELLER + self.request.counter.count_text(&series.path) {
            return None;
        }
        EXTENTS.into_iter().find_map(|extent| {
            let told = Piece::Note(digest::Note::Series(Box::new(series.with_limits(extent))));
            self.write_pieces(id, &[told], reason, style).filter(is_smaller)
        })
    }

    /// Writes a block as its pieces and counts it; nothing where its bytes do not shrink.
    pub(super) fn write_pieces(
        &mut self,
        id: BlockId,
        pieces: &[Piece],
        reason: &Reason,
        style: NoteStyle,
    ) -> Option<(Arc<str>, Tokens)> {
        let history = self.request.history;
        let (block, fact) = (&history[id], &self.request.facts[id]);
        let text = history.block_text(block);
        let tool = history.tool_name(block);
        let handle = self.handle_of_block(id);
        let context = NoteContext {
            tool: tool.as_deref(),
            subject: fact.subject(),
            kind: fact.tool(),
            file: self.shown_file(id, fact, reason),
            step: fact.step,
            tokens: Some(self.tokens(id).0),
            reason,
            handle: &handle,
            style,
            recall: self.context.recall,
        };
        let shorter = if text.is_empty() {
            render::render(&text, pieces, &context)
        } else {
            render::shorten(&text, pieces, &context, &|text| self.request.counter.count_text(text).0)?
        };
        let tokens = self.count_as(id, &shorter);
        // A content of several parts is replaced as a whole, so its JSON is what must shrink.
        let edit = replace_content(history, block, &shorter)?;
        (edit.with.len() < edit.span.len()).then(|| (shorter.into(), tokens))
    }

    /// Returns what is known now of the file that a block shows.
    fn shown_file(&self, id: BlockId, fact: &Fact, reason: &Reason) -> ShownFile {
        let last = self.request.index.file(id).and_then(|file| self.request.index.last_access(file));
        let last_access = last.unwrap_or(fact.step).max(fact.step);
        ShownFile {
            last_access,
            modified: self.request.index.is_changed(id),
            copy: self.compare_copy(id, reason),
        }
    }

    /// Compares a view of a file with the copy that its note points at.
    pub(super) fn compare_copy(&self, id: BlockId, reason: &Reason) -> ShownCopy {
        let Some(file) = self.request.index.file(id) else { return ShownCopy::default() };
        if let Reason::ReadOften { first, last } = reason {
            let is_same = |other: BlockId| self.request.facts[other].digest == self.request.facts[id].digest;
            let shows_same = |step: &u32| self.request.index.accesses_at(file, *step).any(is_same);
            let same_at = [*last, *first].into_iter().find(shows_same);
            return ShownCopy { same_at, changed_at: self.request.index.first_change_after(file, id) };
        }
        let source = match reason {
            Reason::Identical { to } => self.copy_at(id, *to),
            Reason::Shown { handle, .. } => self.named_before(id, handle),
            _ => None,
        };
        let changed_at = source.and_then(|source| self.request.index.first_change_after(file, source));
        ShownCopy { same_at: None, changed_at }
    }

    /// Returns a call's arguments with notes in the place of long ones, and what the call then counts.
    fn make_arguments(
        &mut self,
        id: BlockId,
        inputs: InputShortening,
        reason: &Reason,
    ) -> Option<(Arc<str>, Tokens)> {
        let history = self.request.history;
        let block = &history[id];
        let part = arguments_part(history, block)?;
        let text = history.part_text(part);
        let (leaves, _) = leaves_to_hide(self, id, inputs)?;
        if self.request.index.row(id).leaves.bytes_of(leaves) == 0 || holds_note(&text) {
            return None;
        }
        let handle = self.handle_of_block(id);
        let recall = self.context.recall;
        let written = |note: &dyn Fn(&str, LeafSet) -> String| {
            let rule = LeafRule { leaves, longest: digest::LONGEST, note };
            match part.kind {
                PartKind::Text => digest::shorten_plain(&text, &rule),
                _ => String::from_utf8(digest::shorten_arguments(text.as_bytes(), &rule)?).ok(),
            }
        };
        let telling = match reason {
            Reason::EditedOften { first, last, told: None, .. } => self.describe_series(id, (*first, *last)),
            _ => None,
        };
        // Where no result could tell a series, the first argument that can does.
        let told = telling.and_then(|series| {
            EXTENTS.into_iter().find_map(|extent| {
                let (series, is_told) = (series.with_limits(extent), Cell::new(false));
                let note = |leaf: &str, class: LeafSet| {
                    let told = render::argument_of_series(leaf, &series, &handle, recall);
                    let is_long = leaf.len() >= LEAST_TELLING_BYTES + series.path.len();
                    if is_told.get() || !is_long || told.len() >= leaf.len() {
                        return render::argument_note(leaf, class, reason, &handle, recall);
                    }
                    is_told.set(true);
                    told
                };
                written(&note).filter(|text| tells_series(text))
            })
        });
        let plain = |leaf: &str, class: LeafSet| render::argument_note(leaf, class, reason, &handle, recall);
        let shorter = match told {
            Some(told) => told,
            None => written(&plain)?,
        };
        let tokens = self.count_as(id, &shorter);
        let edit = replace_content(history, block, &shorter)?;
        (edit.with.len() < edit.span.len() && tokens < self.tokens(id)).then(|| (shorter.into(), tokens))
    }

    /// Returns the names of a block's text that stand in nothing else that is sent, in order, each once, as far as there is room.
    fn names_only_in(&mut self, id: BlockId, text: &str) -> Vec<String> {
        if self.draft.visible.is_none() {
            let mut visible = VisibleNames::default();
            let history = self.request.history;
            for decision in self.draft.decisions.iter() {
                let id = decision.block;
                let read = || distinct_names(&history.block_text(&history[id]));
                match (&decision.verdict, decision.verdict.text()) {
                    (Verdict::Keep | Verdict::Rewrite { .. }, _) => {
                        visible.add_names(self.made.names(id, read));
                    }
                    (_, Some(text)) => visible.add_text(text),
                    (_, None) => {}
                }
            }
            self.draft.visible = Some(visible);
        }
        let sent = self.text_now(id).unwrap_or_default();
        let names =
            self.draft.visible.as_ref().map(|visible| visible.only_in(text, &sent)).unwrap_or_default();
        let mut room = self.most_name_bytes(id);
        let fits = |name: &String| {
            let fits = name.len() < room;
            room = room.saturating_sub(if fits { name.len() + 1 } else { 0 });
            fits
        };
        names.into_iter().filter(fits).collect()
    }

    pub(super) fn count_as(&mut self, id: BlockId, text: &str) -> Tokens {
        self.request.counter.block_as_text(self.request.history, &self.request.history[id], text, self.memo)
    }
}

fn pieces_for(
    history: &History,
    id: BlockId,
    text: &DigestText<'_>,
    (act, names, shows): (&StepAction, Vec<String>, Option<ResultSort>),
) -> Option<Vec<Piece>> {
    let media = history
        .parts_of(&history[id])
        .iter()
        .find(|part| matches!(part.kind, PartKind::Image | PartKind::Document | PartKind::Audio));
    if let Some(part) = media
        && text.whole().is_empty()
    {
        let kind = if part.kind == PartKind::Image { "image" } else { "document" };
        return Some(digest::media_pieces(kind, u64::try_from(part.span.len()).unwrap_or(u64::MAX)));
    }
    match act {
        StepAction::Clear => (digest::find_digest("clear")?.shorten)(text),
        // Of a file the ends say nothing, and what looks like an error is source; not so where reading it failed.
        StepAction::Names
            if matches!(shows, Some(ResultSort::File | ResultSort::ShellFile))
                && text.context().outcome != Outcome::Failed =>
        {
            digest::names_only(text, names)
        }
        StepAction::Names => digest::named_ends(text, names),
        StepAction::Digest(None) => (digest::choose_digest(text).shorten)(text),
        StepAction::Digest(Some(name)) => (digest::find_digest(name)?.shorten)(text),
        StepAction::HeadTail { above, keep } => {
            digest::head_tail(text, to_whole_number(*above), to_whole_number(*keep))
        }
        StepAction::MiddleOut { bytes } => digest::middle_out(text, to_whole_number(*bytes)),
        StepAction::HeadTailLines { head, tail } => {
            digest::head_tail_lines(text, to_whole_number(*head), to_whole_number(*tail))
        }
        StepAction::Matching(patterns) => {
            let patterns: Vec<regex::Regex> =
                patterns.iter().filter_map(|pattern| regex::Regex::new(pattern).ok()).collect();
            digest::lines_matching(text, &patterns)
        }
        StepAction::Cap { .. }
        | StepAction::Seen
        | StepAction::Rewrite(_)
        | StepAction::Pin
        | StepAction::Hold
        | StepAction::Inputs(_)
        | StepAction::Drop
        | StepAction::Fold
        | StepAction::MakeRoom { .. } => None,
    }
}

/// Returns how many of a text's bytes count so many of its tokens.
fn bytes_within(bytes: usize, tokens: Tokens, most: Tokens) -> usize {
    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    to_whole_number(f64::from(bytes) * (most.to_float() / tokens.to_float().max(1.0)).min(1.0))
}
