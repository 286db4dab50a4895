//! Rows in the making. Takes the blocks of a history in order; gives their rows, and the indexes by which later blocks find
//! earlier ones. Never looks back over the history: what a block needs of the past is in an index.

use std::{borrow::Cow, sync::Arc};

use super::{
    Action, ContentKind, Coverage, DirectoryReach, Fact, Facts, Outcome, Subject, SubjectLines,
    SupersedeRule, ToolKind, Voice, VoiceSection,
    call::{self, CallArguments},
    content, instructions,
    outcome::{self, FailureFlag},
    protocol, split_by_voice,
    supersede::{ShownSubject, run_key},
    text_head, text_tail,
};
use crate::{
    history::{Block, BlockId, BlockKind, History, PartKind, ReadableResult, Role},
    json::{narrow, scan, widen},
    notes::holds_note,
};

impl Facts {
    /// Forgets the rows from `kept` on and all that was learned from them.
    pub(super) fn truncate_to(&mut self, kept: usize) {
        let first = BlockId(narrow(kept));
        if self.places.names_known_at().is_some_and(|known_at| known_at >= first) {
            *self = Facts::default();
            return;
        }
        for row in self.rows.split_off(kept.min(self.rows.len())) {
            for action in row.actions.iter() {
                if let Some(key) = self.key_of(action) {
                    self.known.forget_from(action.kind, &key, first);
                }
            }
            if let Some((key, _)) = self.run_of(&row.actions) {
                self.known.forget_run(&key, first);
            }
            for (older, _) in &row.supersedes {
                if let Some(older) = self.row_mut(*older) {
                    older.superseded_by = None;
                }
            }
            if let Some(call) = row.partner.and_then(|partner| self.row_mut(partner)) {
                call.forget_answer();
            }
        }
        self.contents.retain(|_, block| *block < first);
        self.persons.retain(|(_, block)| *block < first);
        self.summaries.retain(|block| *block < first);
        self.sessions.retain(|(_, block)| *block < first);
        self.places.forget_from(first);
    }

    pub(super) fn add_from(&mut self, history: &History, from: usize) {
        for (index, block) in history.blocks().iter().enumerate().skip(from) {
            let id = BlockId(narrow(index));
            let row = self.new_row(history, block);
            self.rows.push(row);
            let text = readable_text(history, block);
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
        let whole = if text.is_empty() { block.span.bytes_in(history.bytes()) } else { text.as_bytes() };
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
                let sections = split_by_voice(text);
                let is_instructions = |section: &VoiceSection| section.voice == Voice::Instructions;
                if let Some(row) = self.row_mut(id) {
                    row.instructions = sections.iter().any(is_instructions) || instructions::names_file(text);
                    row.voice =
                        instructions::main_voice(&sections).filter(|voice| *voice == Voice::Instructions);
                }
            }
            Role::Tools | Role::Assistant | Role::Tool | Role::Other => {}
        }
    }

    fn add_user_text(&mut self, history: &History, id: BlockId, block: &Block, text: &str) {
        let heads = protocol::is_heading(text) && self.goes_on(history, id, block);
        let observes = protocol::is_observation(text) || holds_note(text);
        if (observes || self.continues_output(history, id, block, text))
            && let Some((asked, call)) = self.written_call(history, block)
        {
            self.link_written(asked, id, call);
            if !heads {
                self.record_result(history, id, asked, text, FailureFlag::Absent);
            }
            return;
        }
        let sections = split_by_voice(text);
        let voice = instructions::main_voice(&sections);
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
    fn written_call(&self, history: &History, block: &Block) -> Option<(BlockId, call::CallFacts)> {
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
        let mut calls =
            protocol::find_actions(&history.block_text(blocks.get(said)?)).into_iter().map(|written| {
                call::read(&written.name, &CallArguments::Named(&written.arguments), self.places.cwd())
            });
        let mut call = calls.next()?;
        // Of several, one message answers all.
        for other in calls {
            call.actions.extend(other.actions);
            call.cwd = other.cwd.or(call.cwd);
        }
        Some((asked, call))
    }

    /// Tells whether the text after a heading in the same message is what the tool printed.
    fn goes_on(&self, history: &History, id: BlockId, block: &Block) -> bool {
        let next = history.blocks().get(widen(id.0) + 1).filter(|next| next.entry == block.entry);
        next.is_some_and(|next| {
            next.kind == BlockKind::Text && protocol::is_continuation(&history.block_text(next))
        })
    }

    /// Tells whether a text is what the tool printed that the text before it names.
    fn continues_output(&self, history: &History, id: BlockId, block: &Block, text: &str) -> bool {
        let Some(before) = widen(id.0).checked_sub(1) else { return false };
        let names_tool = |before: &Block| {
            before.entry == block.entry
                && before.kind == BlockKind::Text
                && protocol::is_heading(&history.block_text(before))
        };
        self.rows.get(before).is_some_and(|row| row.acts_as == BlockKind::Result)
            && history.blocks().get(before).is_some_and(names_tool)
            && protocol::is_continuation(text)
    }

    fn link_written(&mut self, asked: BlockId, answer: BlockId, call: call::CallFacts) {
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
        self.places.record_directory(answer, call.cwd, call.own_cwd.as_deref(), &mut self.known);
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
        self.places.record_directory(id, call.cwd, call.own_cwd.as_deref(), &mut self.known);
    }

    fn add_result(&mut self, history: &History, id: BlockId, block: &Block, text: &str) {
        let flag = match history.format() {
            _ if block.failed => FailureFlag::Failed,
            format if format.layout().flags_failures => FailureFlag::Unset,
            _ => FailureFlag::Absent,
        };
        let call = block.partner.filter(|call| *call < id);
        let actions = match call.and_then(|call| self.row(call)) {
            Some(row) => Arc::clone(&row.actions),
            None => {
                let name = history.tool_name(block).unwrap_or_default();
                call::read(&name, &CallArguments::Nothing, None).actions.into()
            }
        };
        if let Some(row) = self.row_mut(id) {
            row.actions = actions;
        }
        self.record_result(history, id, call.unwrap_or(id), text, flag);
    }

    /// Notes how a call ended, and what its result makes redundant.
    fn record_result(
        &mut self,
        history: &History,
        id: BlockId,
        call: BlockId,
        text: &str,
        flag: FailureFlag,
    ) {
        // What a client wrapped in JSON is read without it.
        let result = ReadableResult::read_result(text);
        let text = &*result.text;
        self.places.told_by_result(text, id);
        if let Some(session) = session_in(text) {
            self.sessions.push((session, call));
        }
        let Some(row) = self.row_mut(id) else { return };
        if let Some(actions) = with_path_from_result(&row.actions, text) {
            row.actions = actions;
        }
        let kind = row.tool().unwrap_or(ToolKind::Other);
        let ending = outcome::result_ending(kind, &result, flag);
        row.outcome = ending.outcome;
        row.content = match text.is_empty() && has_image(history, id) {
            true => ContentKind::Image,
            false => content::of_result(kind, row.subject(), text),
        };
        row.instructions = carries_instructions(row, text);
        if row.instructions && row.subject().lines() == Some(SubjectLines::All) {
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
        let end = EndedCall { id, call, ending, is_cut: is_cut(text) };
        if let Some((key, coverage)) = self.run_of(&actions) {
            self.note_run(&key, coverage, &actions, end);
            return;
        }
        for action in actions.iter() {
            self.note_action(action, actions.len() == 1, end);
        }
    }

    /// Notes what an action shows or changes.
    fn note_action(&mut self, action: &Action, alone: bool, end: EndedCall) {
        if end.ending.outcome == Outcome::Failed || !end.ending.ran {
            return;
        }
        if let Some(path) = action.subject.path() {
            self.places.learn_root(path, end.id, &mut self.known);
        }
        let Some(key) = self.key_of(action) else { return };
        let shown = |block, lines, rule| ShownSubject {
            block,
            known_at: end.id,
            lines,
            coverage: Coverage::default(),
            rule,
            alone,
        };
        let listed = |lines| {
            let mut coverage = action.coverage.clone();
            if end.is_cut {
                coverage.add_filter("cut");
            }
            ShownSubject { coverage, ..shown(end.id, lines, SupersedeRule::ListedAgain) }
        };
        let superseded = match (action.kind, &action.subject) {
            (ToolKind::Read, Subject::File { lines, .. }) => {
                let lines = if end.is_cut { SubjectLines::Part } else { *lines };
                let rule = if lines == SubjectLines::All {
                    SupersedeRule::ReadAgain
                } else {
                    SupersedeRule::LinesReadAgain
                };
                self.known.record_file(&key, shown(end.id, lines, rule))
            }
            (ToolKind::Write, Subject::File { .. }) => {
                self.known.record_change(&key, end.id);
                self.known.record_file(&key, shown(end.call, SubjectLines::All, SupersedeRule::WrittenAnew))
            }
            (ToolKind::Edit | ToolKind::Delete, Subject::File { .. }) => {
                self.known.record_change(&key, end.id);
                Vec::new()
            }
            (ToolKind::List, Subject::Directory { reach, .. }) => {
                let lines = match reach {
                    DirectoryReach::Everything => SubjectLines::All,
                    DirectoryReach::Children => {
                        SubjectLines::from_bounds(1, Some(action.coverage.depth.unwrap_or(1).into()))
                    }
                };
                self.known.record_listing(&key, listed(lines))
            }
            (ToolKind::List, Subject::Query { .. }) => {
                let levels = action.coverage.depth.map(u64::from);
                self.known.record_listing(&key, listed(SubjectLines::from_bounds(1, levels)))
            }
            _ => Vec::new(),
        };
        self.mark_superseded(superseded, end.id);
    }

    /// Notes a run of tests, builds or status commands.
    fn note_run(&mut self, key: &str, coverage: Coverage, actions: &[Action], end: EndedCall) {
        let is_test = |action: &Action| matches!(action.kind, ToolKind::Test | ToolKind::Build);
        let failed = end.ending.outcome == Outcome::Failed && !actions.iter().any(is_test);
        if failed || !end.ending.ran {
            return;
        }
        let shown = ShownSubject {
            block: end.id,
            known_at: end.id,
            lines: SubjectLines::All,
            coverage,
            rule: SupersedeRule::RunAgain,
            alone: true,
        };
        let superseded = self.known.record_run(key, shown);
        self.mark_superseded(superseded, end.id);
    }

    fn mark_superseded(&mut self, superseded: Vec<(BlockId, SupersedeRule)>, by: BlockId) {
        for (older, rule) in superseded {
            let Some(row) = self.row_mut(older).filter(|row| row.superseded_by.is_none()) else { continue };
            row.superseded_by = Some((by, rule));
            if let Some(row) = self.row_mut(by) {
                row.supersedes.push((older, rule));
            }
        }
    }

    /// Returns the name under which what an action shows of files is kept.
    fn key_of(&self, action: &Action) -> Option<String> {
        match &action.subject {
            Subject::File { path, .. } | Subject::Directory { path, .. } => {
                Some(self.places.path_key(path).into_owned())
            }
            // What names no place looks where it is done.
            Subject::Query { place, .. } => {
                let place = place.as_deref().or(action.directory.as_deref()).unwrap_or(".");
                Some(self.places.path_key(place).into_owned())
            }
            Subject::Command(_) | Subject::Url(_) | Subject::Nothing => None,
        }
    }

    /// Returns the key of a call that only runs tests, builds or status commands, and how much of its output it shows.
    fn run_of(&self, actions: &[Action]) -> Option<(String, Coverage)> {
        let says = |action: &&Action| {
            let Subject::Command(command) = &action.subject else { return false };
            action.kind == ToolKind::Run && matches!(command.split(' ').next(), Some("echo" | "printf"))
        };
        let mut runs = Vec::new();
        for action in actions.iter().filter(|action| !says(action)) {
            let Subject::Command(command) = &action.subject else { return None };
            let is_run = match action.kind {
                ToolKind::Test | ToolKind::Build => true,
                ToolKind::Git => shows_status(command),
                _ => false,
            };
            if !is_run {
                return None;
            }
            runs.push((self.places.path_key(action.directory.as_deref().unwrap_or(".")), &**command, action));
        }
        let coverage = match runs.as_slice() {
            [] => return None,
            [(.., action)] => action.coverage.clone(),
            several => {
                let mut coverage = Coverage::default();
                if several.iter().any(|(.., action)| !action.coverage.is_whole()) {
                    let each = several.iter().map(|(.., action)| format!("{:?}", action.coverage));
                    coverage.add_filter(&each.collect::<Vec<_>>().join(" "));
                }
                coverage
            }
        };
        Some((run_key(runs.iter().map(|(place, command, _)| (&**place, *command))), coverage))
    }
}

/// How a call ended, for noting what its result shows.
#[derive(Clone, Copy)]
struct EndedCall {
    id: BlockId,
    call: BlockId,
    ending: outcome::ResultEnding,
    is_cut: bool,
}

/// Tells whether a command of version control shows how things stand, so that a newer answer stands for an older one.
fn shows_status(command: &str) -> bool {
    let mut words = command.split(' ');
    let is_git = words.next() == Some("git");
    let verb = words.next();
    let verb = if verb == Some("-C") { words.nth(1) } else { verb };
    let shows = match verb {
        Some("status" | "diff") => true,
        Some("branch") => {
            words.all(|word| matches!(word, "-a" | "-v" | "-vv" | "-r" | "--all" | "--show-current"))
        }
        Some("stash" | "worktree") => words.next() == Some("list"),
        Some("remote") => words.all(|word| word == "-v"),
        _ => false,
    };
    is_git && shows
}

impl Fact {
    /// Takes back what an answer said about a call.
    fn forget_answer(&mut self) {
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
    read: impl FnOnce(&str, &CallArguments<'_>) -> T,
) -> Option<T> {
    if block.kind == BlockKind::Text {
        let written = protocol::find_actions(&history.block_text(block));
        // The arguments of several are nobody's.
        let [written] = written.as_slice() else { return None };
        return Some(read(&written.name, &CallArguments::Named(&written.arguments)));
    }
    let name = history.tool_name(block).unwrap_or_default();
    let part = history.parts_of(block).iter().find(|part| part.kind != PartKind::Sealed);
    let Some(part) = part else { return Some(read(&name, &CallArguments::Nothing)) };
    let text = history.part_text(part);
    let is_json = matches!(part.kind, PartKind::Json | PartKind::JsonText);
    let tape = if is_json { scan(text.as_bytes()).ok() } else { None };
    Some(match tape.as_ref().and_then(|tape| tape.root(text.as_bytes())) {
        Some(value) => read(&name, &CallArguments::Json(value)),
        None => read(&name, &CallArguments::Text(&text)),
    })
}

/// Returns the texts in the arguments of a call, in order and decoded; keys are left out.
pub fn argument_texts(history: &History, call: &Block) -> Vec<String> {
    let texts = with_arguments(history, call, |_, given| match given {
        CallArguments::Json(value) => value.strings(),
        CallArguments::Named(pairs) => pairs.iter().map(|(_, text)| text.clone()).collect(),
        CallArguments::Text(text) => vec![(*text).to_owned()],
        CallArguments::Nothing => Vec::new(),
    });
    texts.unwrap_or_default()
}

/// Returns what can be read in a block; nothing for blocks whose text tells nothing.
fn readable_text<'a>(history: &'a History, block: &Block) -> Cow<'a, str> {
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
    let lines = if first.kind == ToolKind::Write { SubjectLines::All } else { SubjectLines::Part };
    let subject = Subject::lines_of(&call::path_in_result(text)?, lines);
    let named = Action::new(first.kind, subject);
    Some(std::iter::once(named).chain(actions.iter().skip(1).cloned()).collect())
}

/// Tells whether a result is an instruction file, or a harness put one into it.
fn carries_instructions(row: &Fact, text: &str) -> bool {
    let is_file = row.tool() == Some(ToolKind::Read)
        && row.outcome != Outcome::Failed
        && row.subject().path().is_some_and(instructions::is_instruction_file);
    let is_reminded = || {
        memchr::memmem::find(text.as_bytes(), b"<system-reminder>").is_some()
            && split_by_voice(text).iter().any(|section| section.voice == Voice::Instructions)
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
