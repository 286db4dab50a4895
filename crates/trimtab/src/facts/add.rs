//! Rows in the making. Takes the blocks of a history in order; gives their rows, and the indexes by which later blocks find
//! earlier ones. Never looks back over the history: what a block needs of the past is in an index.

use std::{borrow::Cow, sync::Arc};

use super::{
    Action, ContentKind, Fact, Facts, Lines, Outcome, Reach, Rule, Section, Subject, ToolKind, Voice,
    call::{self, Given},
    content, instructions,
    outcome::{self, Flag},
    protocol, sections,
    supersede::Shown,
    text_head, text_tail,
};
use crate::{
    history::{Block, BlockId, BlockKind, History, PartKind, Role},
    json::{narrow, scan, widen},
    render,
    wire::Format,
};

impl Facts {
    /// Forgets the rows from `kept` on and all that was told from them.
    pub(super) fn keep(&mut self, kept: usize) {
        let first = BlockId(narrow(kept));
        if self.places.root_known_at().is_some_and(|known_at| known_at >= first) {
            *self = Facts::default();
            return;
        }
        for row in self.rows.split_off(kept.min(self.rows.len())) {
            for action in row.actions.iter() {
                self.known.forget(action.kind, &self.key_of(action), first);
            }
            for (older, _) in &row.supersedes {
                if let Some(older) = self.row_mut(*older) {
                    older.superseded_by = None;
                }
            }
            if let Some(call) = row.partner.and_then(|partner| self.row_mut(partner)) {
                call.unanswer();
            }
        }
        self.contents.retain(|_, block| *block < first);
        self.persons.retain(|(_, block)| *block < first);
        self.summaries.retain(|block| *block < first);
        self.sessions.retain(|(_, block)| *block < first);
        self.places.forget(first);
    }

    pub(super) fn add_from(&mut self, history: &History, from: usize) {
        for (index, block) in history.blocks().iter().enumerate().skip(from) {
            let id = BlockId(narrow(index));
            let row = self.new_row(history, block);
            self.rows.push(row);
            let text = readable(history, block);
            self.note_content(history, id, block, &text);
            match block.kind {
                BlockKind::Text => self.add_text(history, id, block, &text),
                BlockKind::Call => self.add_call(history, id, block),
                BlockKind::Result => self.add_result(history, id, block, &text),
                BlockKind::Definition | BlockKind::Reasoning | BlockKind::Media | BlockKind::Unknown => {}
            }
        }
    }

    fn new_row(&self, history: &History, block: &Block) -> Fact {
        let entry = history.entry_of(block);
        let content = match block.kind {
            BlockKind::Media => ContentKind::Image,
            BlockKind::Definition | BlockKind::Call => ContentKind::Json,
            BlockKind::Text | BlockKind::Reasoning | BlockKind::Result | BlockKind::Unknown => {
                ContentKind::Prose
            }
        };
        Fact {
            acts_as: block.kind,
            partner: block.partner,
            role: entry.map_or(Role::Other, |entry| entry.role),
            entry: block.entry,
            actions: Arc::default(),
            outcome: Outcome::Unknown,
            content,
            voice: None,
            instructions: false,
            step: entry.map_or(0, |entry| entry.step),
            turn: self.rows.last().map_or(0, |row| row.turn),
            digest: [0; 16],
            identical_to: None,
            supersedes: Vec::new(),
            superseded_by: None,
        }
    }

    /// Compares a block's content with all before it.
    fn note_content(&mut self, history: &History, id: BlockId, block: &Block, text: &str) {
        let whole = if text.is_empty() { block.span.of(history.bytes()) } else { text.as_bytes() };
        let mut digest = [0; 16];
        let hash = blake3::hash(whole);
        digest.iter_mut().zip(hash.as_bytes()).for_each(|(byte, from)| *byte = *from);
        let same = *self.contents.entry((block.kind, digest)).or_insert(id);
        let Some(row) = self.row_mut(id) else { return };
        row.digest = digest;
        row.identical_to = (same != id).then_some(same);
    }

    fn add_text(&mut self, history: &History, id: BlockId, block: &Block, text: &str) {
        let Some(row) = self.row_mut(id) else { return };
        row.content = content::of_text(text);
        let (role, step) = (row.role, row.step);
        if step == 0 {
            self.places.told_by(text, id, &mut self.known);
        }
        match role {
            Role::User => self.add_user_text(history, id, block, text),
            Role::System => {
                let sections = sections(text);
                let is_instructions = |section: &Section| section.voice == Voice::Instructions;
                if let Some(row) = self.row_mut(id) {
                    row.instructions = sections.iter().any(is_instructions) || instructions::names_file(text);
                    row.voice = instructions::voice(&sections).filter(|voice| *voice == Voice::Instructions);
                }
            }
            Role::Tools | Role::Assistant | Role::Tool | Role::Other => {}
        }
    }

    fn add_user_text(&mut self, history: &History, id: BlockId, block: &Block, text: &str) {
        if (protocol::is_observation(text) || render::holds_note(text))
            && let Some((asked, call)) = self.written_call(history, block)
        {
            self.link_written(asked, id, call);
            self.finish(history, id, asked, text, Flag::Absent);
            return;
        }
        let sections = sections(text);
        let voice = instructions::voice(&sections);
        match voice {
            Some(Voice::Person) if self.current_task() != Some(block.entry) => {
                self.persons.push((block.entry, id));
            }
            Some(Voice::Summary) => self.summaries.push(id),
            _ => {}
        }
        let turn = narrow(self.persons.len());
        if let Some(row) = self.row_mut(id) {
            row.voice = voice;
            row.turn = turn;
            row.instructions = sections.iter().any(|section| section.voice == Voice::Instructions);
        }
    }

    /// Finds the action written in the assistant's text before a block.
    fn written_call(&self, history: &History, block: &Block) -> Option<(BlockId, call::Call)> {
        let before = history
            .entries()
            .get(..widen(block.entry.0))?
            .last()
            .filter(|entry| entry.role == Role::Assistant)?;
        let blocks = history.blocks_of(before);
        if blocks.iter().any(|block| block.kind == BlockKind::Call) {
            return None;
        }
        let said = blocks.iter().rposition(|block| block.kind == BlockKind::Text)?;
        let asked = BlockId(before.first_block + narrow(said));
        let read = |name: &str, given: &Given<'_>| call::read(name, given, self.places.cwd());
        Some((asked, with_arguments(history, blocks.get(said)?, read)?))
    }

    fn link_written(&mut self, asked: BlockId, answer: BlockId, call: call::Call) {
        let actions: Arc<[Action]> = call.actions.into();
        if let Some(row) = self.row_mut(asked) {
            row.acts_as = BlockKind::Call;
            row.partner = Some(answer);
            row.actions = Arc::clone(&actions);
        }
        if let Some(row) = self.row_mut(answer) {
            row.acts_as = BlockKind::Result;
            row.partner = Some(asked);
            row.actions = actions;
        }
        self.places.moved(answer, call.cwd, call.own_cwd.as_deref(), &mut self.known);
    }

    fn add_call(&mut self, history: &History, id: BlockId, block: &Block) {
        let cwd = self.places.cwd();
        let Some(call) = with_arguments(history, block, |name, given| call::read(name, given, cwd)) else {
            return;
        };
        let begun = call.session.as_ref().and_then(|session| {
            let known = self.sessions.iter().rev().find(|(name, _)| name == session)?;
            self.row(known.1).map(|row| Arc::clone(&row.actions))
        });
        if let Some(row) = self.row_mut(id) {
            row.actions = begun.unwrap_or_else(|| call.actions.into());
        }
        self.places.moved(id, call.cwd, call.own_cwd.as_deref(), &mut self.known);
    }

    fn add_result(&mut self, history: &History, id: BlockId, block: &Block, text: &str) {
        let flag = match history.format() {
            _ if block.failed => Flag::Failed,
            Format::Anthropic => Flag::Unset,
            Format::Chat | Format::Responses | Format::Gemini => Flag::Absent,
        };
        let call = block.partner.filter(|call| *call < id);
        let actions = match call.and_then(|call| self.row(call)) {
            Some(row) => Arc::clone(&row.actions),
            None => {
                let name = history.tool_name(block).unwrap_or_default();
                call::read(&name, &Given::Nothing, None).actions.into()
            }
        };
        if let Some(row) = self.row_mut(id) {
            row.actions = actions;
        }
        self.finish(history, id, call.unwrap_or(id), text, flag);
    }

    /// Notes how a call ended, and what its result makes redundant.
    fn finish(&mut self, history: &History, id: BlockId, call: BlockId, text: &str, flag: Flag) {
        self.places.told_by_result(text, id);
        if let Some(session) = session_in(text) {
            self.sessions.push((session, call));
        }
        let Some(row) = self.row_mut(id) else { return };
        if let Some(actions) = with_path_from_result(&row.actions, text) {
            row.actions = actions;
        }
        let kind = row.tool().unwrap_or(ToolKind::Other);
        let ending = outcome::ending(kind, text, flag);
        row.outcome = ending.outcome;
        row.content = match text.is_empty() && has_image(history, id) {
            true => ContentKind::Image,
            false => content::of_result(kind, row.subject(), text),
        };
        row.instructions = carries_instructions(row, text);
        if row.instructions && row.subject().lines() == Some(Lines::All) {
            row.voice = row
                .subject()
                .path()
                .filter(|path| instructions::is_instruction_file(path))
                .map(|_| Voice::Instructions);
        }
        let actions = Arc::clone(&row.actions);
        if let Some(row) = self.row_mut(call) {
            row.outcome = ending.outcome;
            row.partner = Some(id).filter(|_| call != id).or(row.partner);
        }
        let is_cut = is_cut(text);
        for action in actions.iter() {
            self.note_action(action, id, call, ending, actions.len() == 1, is_cut);
        }
    }

    fn note_action(
        &mut self,
        action: &Action,
        id: BlockId,
        call: BlockId,
        ending: outcome::Ending,
        alone: bool,
        is_cut: bool,
    ) {
        let failed = ending.outcome == Outcome::Failed;
        let is_run = matches!(action.kind, ToolKind::Test | ToolKind::Build);
        if (failed && !is_run) || !ending.ran || (is_run && !alone) {
            return;
        }
        if let Some(path) = action.subject.path() {
            self.places.seen(path, id, &mut self.known);
        }
        let key = self.key_of(action);
        let shown = |block, lines, rule| Shown { block, known_at: id, lines, rule, alone };
        let superseded = match (action.kind, &action.subject) {
            (ToolKind::Read, Subject::File { lines, .. }) => {
                let lines = if is_cut { Lines::Part } else { *lines };
                let rule = if lines == Lines::All { Rule::ReadAgain } else { Rule::LinesReadAgain };
                self.known.file(&key, shown(id, lines, rule))
            }
            (ToolKind::Write, Subject::File { .. }) => {
                self.known.change(&key, id);
                self.known.file(&key, shown(call, Lines::All, Rule::WrittenAnew))
            }
            (ToolKind::Edit | ToolKind::Delete, Subject::File { .. }) => {
                self.known.change(&key, id);
                Vec::new()
            }
            (ToolKind::List, Subject::Directory { reach, .. }) => {
                let lines = if *reach == Reach::Everything { Lines::All } else { Lines::between(1, Some(1)) };
                self.known.listing(&key, shown(id, lines, Rule::ListedAgain))
            }
            (ToolKind::List, Subject::Query { .. }) => {
                self.known.listing(&key, shown(id, Lines::All, Rule::ListedAgain))
            }
            (ToolKind::Test | ToolKind::Build, Subject::Command(_)) => {
                self.known.run(&key, shown(id, Lines::All, Rule::RunAgain))
            }
            _ => Vec::new(),
        };
        for (older, rule) in superseded {
            let Some(row) = self.row_mut(older).filter(|row| row.superseded_by.is_none()) else { continue };
            row.superseded_by = Some((id, rule));
            if let Some(row) = self.row_mut(id) {
                row.supersedes.push((older, rule));
            }
        }
    }

    /// Returns the name under which an action's subject is kept.
    fn key_of(&self, action: &Action) -> String {
        match &action.subject {
            Subject::File { path, .. } | Subject::Directory { path, .. } => {
                self.places.key(path).into_owned()
            }
            Subject::Query { pattern, place } => {
                let place = place.as_deref().map(|place| self.places.key(place)).unwrap_or_default();
                format!("{place}\n{pattern}")
            }
            Subject::Command(command) => command.to_string(),
            Subject::Url(url) => url.to_string(),
            Subject::Nothing => String::new(),
        }
    }
}

impl Fact {
    /// Takes back what an answer told about a call.
    fn unanswer(&mut self) {
        self.outcome = Outcome::Unknown;
        self.partner = None;
        if self.content != ContentKind::Json {
            // A call that was written in text was only known to be one by its answer.
            self.acts_as = BlockKind::Text;
            self.actions = Arc::default();
        }
    }
}

/// Gives the name and the arguments of a call to a function, also where the call is written in an assistant's text.
pub(crate) fn with_arguments<T>(
    history: &History,
    block: &Block,
    read: impl FnOnce(&str, &Given<'_>) -> T,
) -> Option<T> {
    if block.kind == BlockKind::Text {
        let written = protocol::action(&history.block_text(block))?;
        return Some(read(&written.name, &Given::Named(&written.arguments)));
    }
    let name = history.tool_name(block).unwrap_or_default();
    let part = history.parts_of(block).iter().find(|part| part.kind != PartKind::Sealed);
    let Some(part) = part else { return Some(read(&name, &Given::Nothing)) };
    let text = history.part_text(part);
    let is_json = matches!(part.kind, PartKind::Json | PartKind::JsonText);
    let tape = if is_json { scan(text.as_bytes()).ok() } else { None };
    Some(match tape.as_ref().and_then(|tape| tape.root(text.as_bytes())) {
        Some(value) => read(&name, &Given::Json(value)),
        None => read(&name, &Given::Text(&text)),
    })
}

/// Returns what can be read in a block; nothing for blocks whose text tells nothing.
fn readable<'a>(history: &'a History, block: &Block) -> Cow<'a, str> {
    match block.kind {
        BlockKind::Text | BlockKind::Result | BlockKind::Call | BlockKind::Reasoning => {
            history.block_text(block)
        }
        BlockKind::Definition | BlockKind::Media | BlockKind::Unknown => Cow::Borrowed(""),
    }
}

fn has_image(history: &History, id: BlockId) -> bool {
    let Some(block) = history.block(id) else { return false };
    history.parts_of(block).iter().any(|part| part.kind == PartKind::Image)
}

/// Gives a file action without a path the path that the result names.
fn with_path_from_result(actions: &Arc<[Action]>, text: &str) -> Option<Arc<[Action]>> {
    let first = actions.first()?;
    let lacks_path =
        first.subject == Subject::Nothing && (first.kind == ToolKind::Read || first.kind.changes_files());
    if !lacks_path {
        return None;
    }
    let lines = if first.kind == ToolKind::Write { Lines::All } else { Lines::Part };
    let subject = Subject::lines_of(&call::path_in_result(text)?, lines);
    let named = Action { kind: first.kind, subject };
    Some(std::iter::once(named).chain(actions.iter().skip(1).cloned()).collect())
}

/// Tells whether a result is an instruction file, or a harness put one into it.
fn carries_instructions(row: &Fact, text: &str) -> bool {
    let is_file = row.tool() == Some(ToolKind::Read)
        && row.outcome != Outcome::Failed
        && row.subject().path().is_some_and(instructions::is_instruction_file);
    let is_reminded = || {
        memchr::memmem::find(text.as_bytes(), b"<system-reminder>").is_some()
            && sections(text).iter().any(|section| section.voice == Voice::Instructions)
    };
    is_file || is_reminded()
}

/// Finds the name of a command that goes on running.
fn session_in(text: &str) -> Option<String> {
    let head = text_head(text, 400);
    let (_, rest) = head
        .split_once("running with session ID ")
        .or_else(|| head.split_once("<command started in background with shellId: "))?;
    let name: String = rest
        .chars()
        .take_while(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-'))
        .collect();
    (!name.is_empty()).then_some(name)
}

/// Tells whether a harness cut a result: both ends say so where they do.
pub(crate) fn is_cut(text: &str) -> bool {
    let says = |place: &str| {
        place.contains("truncated")
            || place.contains("Output too large")
            || place.contains("tool_output_masked")
    };
    says(text_head(text, 400)) || says(text_tail(text, 300))
}
