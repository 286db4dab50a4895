//! The sentences. Takes values; gives one bracketed line each, with a limit for every field. Names absolute steps, never ages.

use std::borrow::Cow;

use super::{
    clip::{beginning, clip_middle, count_with_name, format_number},
    series,
};
use crate::{
    digest::{Container, EditSeries, LeafSet, Note, without_number},
    facts::{Outcome, Subject, SubjectLines, ToolKind, patched_files},
    notes::{HANDLE, TO_FIT},
    policy::NoteStyle,
    verdict::Reason,
};

/// The longest path, command or address in a note, in characters.
const SUBJECT: usize = 120;
/// The longest name of a tool, rule, branch or member.
const NAME: usize = 40;
/// The longest sample.
const SAMPLE: usize = 60;
/// How much of a hidden file is quoted (seed 003).
const PREVIEW: usize = 100;
/// A text with more gaps than this names them shortly.
const FEW_GAPS: usize = 3;

/// How a note says that an original comes back.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RecallHint {
    /// By a command that is run with the handle after it.
    Command(Cow<'static, str>),
    /// Not at all: nobody keeps what is hidden.
    Nothing,
}

/// The command where nothing else is said.
pub(crate) static USUAL_RECALL: RecallHint = RecallHint::Command(Cow::Borrowed("trimtab recall"));

impl Default for RecallHint {
    fn default() -> RecallHint {
        USUAL_RECALL.clone()
    }
}

impl RecallHint {
    /// Returns the clause that names the recall of a block.
    pub(crate) fn recall_clause(&self, handle: &str) -> Option<String> {
        match self {
            RecallHint::Command(command) => Some(format!("{command} {}", clip_middle(handle, NAME))),
            RecallHint::Nothing => None,
        }
    }
}

/// What is known of the file that a block shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ShownFile {
    /// The step at which it was last read or changed.
    pub(crate) last_access: u32,
    /// Whether it was changed in this session.
    pub(crate) modified: bool,
    /// How it compares with the copy that the note points at.
    pub(crate) copy: ShownCopy,
}

/// How a file compares with a copy of it that is shown elsewhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct ShownCopy {
    /// The step that shows exactly what the note stands for.
    pub(crate) same_at: Option<u32>,
    /// The step of the first change since the copy was shown; of a read among others, since the read itself.
    pub(crate) changed_at: Option<u32>,
}

/// What a closing note says besides what a digest counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NoteContext<'a> {
    /// The tool that gave the text.
    pub(crate) tool: Option<&'a str>,
    /// What the text is about.
    pub(crate) subject: &'a Subject,
    /// What the call did that gave it.
    pub(crate) kind: Option<ToolKind>,
    /// What is known of it, where it is a file.
    pub(crate) file: ShownFile,
    /// The step at which it was said.
    pub(crate) step: u32,
    /// How many tokens the original has, where that is known, as the counter given to `shorten` counts.
    pub(crate) tokens: Option<u64>,
    /// Why it is shorter.
    pub(crate) reason: &'a Reason,
    /// The name by which it comes back.
    pub(crate) handle: &'a str,
    /// How the note is worded.
    pub(crate) style: NoteStyle,
    /// How the note says that the original comes back.
    pub(crate) recall: &'a RecallHint,
}

/// Writes a note that stands where something is missing; nothing for notes that belong into the closing one.
pub(super) fn inline_note(note: &Note, gaps: usize) -> Option<String> {
    Some(match note {
        Note::Omitted { first, last, .. } if gaps > FEW_GAPS => {
            format!("[… {} …]", line_range(*first, *last))
        }
        Note::Omitted { first, last, of } => format!("[… {} of {of} omitted …]", line_range(*first, *last)),
        Note::Passing { lines } => {
            format!("[… {} …]", count_with_name(*lines, "passing line", "passing lines"))
        }
        Note::Shown { first, last, from } => {
            format!("[… {} are lines {from}-{} there …]", line_range(*first, *last), from + last - first)
        }
        Note::Repeated { times, lines: 1 } => format!("[… the line above {times} times …]"),
        Note::Repeated { times, lines } => format!("[… the {lines} lines above {times} times …]"),
        Note::ElementsOmitted { first, last, of } => {
            format!("[… {} of {of} omitted …]", number_range("element", "elements", *first, *last))
        }
        Note::Series(told) => return series::net_diff(told),
        Note::Listing { .. }
        | Note::RepoMap { .. }
        | Note::Changes { .. }
        | Note::Diff { .. }
        | Note::Commits { .. }
        | Note::Matches { .. }
        | Note::Status(_)
        | Note::Totals(_)
        | Note::Shape { .. }
        | Note::Frames { .. }
        | Note::Definitions { .. }
        | Note::Names(_)
        | Note::Intent(_)
        | Note::Media { .. } => return None,
    })
}

/// Writes the mark inside a cut line.
pub(super) fn cut_mark(characters: usize) -> String {
    format!("[… {} cut …]", count_with_name(characters, "character", "characters"))
}

/// The longest first line that stays of a long argument, in characters.
const FIRST_LINE: usize = 120;

/// The most files that stay named of a patch.
const PATCHED_FILES: usize = 20;

/// Writes what stands in the place of a long argument of a call: a note, after what distinguishes the argument from others. Of a
/// patch that are the lines that name its files; of what is no content of a file the first line, since a command or a task is
/// known by how it begins.
pub(crate) fn argument_note(
    text: &str,
    class: LeafSet,
    why: &Reason,
    handle: &str,
    recall: &RecallHint,
) -> String {
    let lines = text.lines().count().max(1);
    let begin = text.split_once('\n').map(|(first, _)| first.trim_end());
    let mut kept: Vec<&str> = Vec::new();
    if class == LeafSet::All || is_patch(text) {
        kept.extend(begin.filter(|first| first.chars().count() <= FIRST_LINE));
    }
    if is_patch(text) {
        kept.extend(patched_files(text).into_iter().filter(|line| Some(*line) != begin).take(PATCHED_FILES));
    }
    let kept: String = kept.into_iter().flat_map(|line| [line, "\n"]).collect();
    format!(
        "{kept}[{}, {} of this argument are hidden: {}{}]",
        count_with_name(text.chars().count(), "character", "characters"),
        count_with_name(lines, "line", "lines"),
        describe_reason(why),
        recall.recall_clause(handle).map(|clause| format!("; {clause}")).unwrap_or_default()
    )
}

/// Writes what stands in the place of an argument and tells a series of edits.
pub(crate) fn argument_of_series(text: &str, told: &EditSeries, handle: &str, recall: &RecallHint) -> String {
    let diff = series::net_diff(told).map(|diff| diff + "\n").unwrap_or_default();
    let characters = count_with_name(text.chars().count(), "character", "characters");
    let mut clauses = vec![series::opening_words(told)];
    clauses.extend(series::change_facts(told));
    clauses.push(format!("{characters} of this argument are hidden"));
    clauses.push(recall.recall_clause(handle).unwrap_or_else(|| handle_clause(handle)));
    format!("{diff}[{}]", clauses.join("; "))
}

/// Writes the clause that names a text where nothing promises to bring it back.
fn handle_clause(handle: &str) -> String {
    format!("{HANDLE}{}", clip_middle(handle, NAME))
}

/// Tells whether a text is a patch, or a command that carries one.
fn is_patch(text: &str) -> bool {
    let mut lines = text.lines();
    lines.any(|line| line.trim_end() == "*** Begin Patch")
        || ["--- ", "diff --git "].iter().any(|begin| text.starts_with(begin))
}

/// Writes the note that closes a shortened text.
pub(super) fn closing_note(text: &str, notes: &[&Note], shown: bool, context: &NoteContext<'_>) -> String {
    let characters = text.chars().count();
    let recall = context.recall.recall_clause(context.handle);
    if context.style == NoteStyle::Plain {
        let recall = recall.map(|clause| format!(" - {clause}")).unwrap_or_default();
        return format!("[Tool output pruned - {}{recall}]", count_with_name(characters, "char", "chars"));
    }
    let facts: Vec<String> = notes.iter().filter_map(|note| describe_fact(note)).collect();
    let mut clauses = vec![opening_words(text, notes, shown, context)];
    clauses.extend(facts);
    let is_text = !notes.iter().any(|note| matches!(note, Note::Media { .. }));
    let is_elsewhere = matches!(
        context.reason,
        Reason::Identical { .. } | Reason::Shown { .. } | Reason::EditedOften { .. }
    );
    let has_names = notes.iter().any(|note| matches!(note, Note::Names(_)));
    if matches!(context.subject, Subject::File { .. }) && !shown && is_text && !is_elsewhere && !has_names {
        clauses.extend(preview_text(text));
    }
    // A note that points at the same text elsewhere names it in any case.
    let names_it = matches!(context.reason, Reason::Identical { .. } | Reason::EditedOften { .. });
    clauses.extend(recall.or_else(|| names_it.then(|| handle_clause(context.handle))));
    format!("[{}]", clauses.join("; "))
}

/// Writes what was there and why it is shorter. Of a file, what to do comes first.
fn opening_words(text: &str, notes: &[&Note], shown: bool, context: &NoteContext<'_>) -> String {
    if let Some(told) =
        notes.iter().find_map(|note| if let Note::Series(told) = note { Some(told) } else { None })
    {
        return series::opening_words(told);
    }
    if let (Reason::EditedOften { changes, told: Some(at), .. }, false) = (context.reason, shown) {
        return series::told_at(*changes, *at);
    }
    let size = describe_size(text, notes, context);
    let step = context.step;
    let verb = if shown { "shortened" } else { "hidden" };
    let reason = describe_reason(context.reason);
    let Subject::File { path, lines } = context.subject else {
        return format!("{} at step {step}: {size}, {verb}: {reason}", describe_subject(context));
    };
    let ShownFile { last_access, modified, copy } = context.file;
    let part = match lines {
        SubjectLines::Range { first, last: Some(last) } => format!(" lines {first}-{last}"),
        SubjectLines::All | SubjectLines::Part | SubjectLines::Range { last: None, .. } => String::new(),
    };
    let file = clip_middle(path, SUBJECT) + &part;
    let modified = if modified { "modified in this session" } else { "not modified" };
    match context.reason {
        Reason::Identical { to } => match copy.changed_at {
            None => format!("Same as at step {to}, shown there: {file} at step {step}, {size}"),
            // What is identical has the same handle.
            Some(at) => format!(
                "Shown at step {to} ({}), changed since at step {at}: {file} at step {step}, {size}",
                clip_middle(context.handle, NAME)
            ),
        },
        Reason::Shown { at, handle } => {
            let changed = copy.changed_at.map(|at| format!(", changed since at step {at}"));
            let changed = changed.unwrap_or_default();
            format!(
                "Shown at step {at} ({}){changed}: {file} at step {step}, {size}",
                clip_middle(handle, NAME)
            )
        }
        Reason::TooOld
        | Reason::Superseded { .. }
        | Reason::OverBudget
        | Reason::TooLong
        | Reason::Stale { .. }
        | Reason::ReadOften { .. }
        | Reason::EditedOften { .. }
        | Reason::Unbound { .. }
        | Reason::EarlierThought
        | Reason::Folded { .. }
        | Reason::Rewritten { .. }
        | Reason::Rule(_) => {
            let purpose = if shown { "for the rest" } else { "if you need it" };
            let copy = match context.reason {
                Reason::ReadOften { .. } => compare_copies(copy),
                _ => String::new(),
            };
            format!(
                "Read {file} again {purpose}: {size}, at step {step}, last accessed at step {last_access}, {modified}, \
                 {verb}: {reason}{copy}"
            )
        }
    }
}

/// Says whether a read among others is the same as one that is shown, and when the file was changed since.
fn compare_copies(copy: ShownCopy) -> String {
    match (copy.same_at, copy.changed_at) {
        (Some(same), None) => format!(", the same as at step {same}"),
        (Some(same), Some(at)) => format!(", the same as at step {same}, changed since at step {at}"),
        (None, Some(at)) => format!(", changed since at step {at}"),
        (None, None) => ", with other content there".to_owned(),
    }
}

fn describe_subject(context: &NoteContext<'_>) -> String {
    let tool = context.tool.map(|tool| clip_middle(tool, NAME));
    let subject = match context.subject {
        Subject::Command(words) | Subject::Query { pattern: words, .. }
            if context.kind == Some(ToolKind::Recall) =>
        {
            return format!("Recalled by `{}`", clip_middle(words, SUBJECT));
        }
        Subject::Nothing | Subject::File { .. } => None,
        Subject::Command(command) => Some(format!("`{}`", clip_middle(command, SUBJECT))),
        Subject::Query { pattern, .. } => Some(format!("\"{}\"", clip_middle(pattern, SAMPLE))),
        Subject::Directory { path: name, .. } | Subject::Url(name) => Some(clip_middle(name, SUBJECT)),
    };
    match (tool, subject) {
        (Some(tool), Some(subject)) => format!("{tool} {subject}"),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => "Text".to_owned(),
    }
}

fn describe_size(text: &str, notes: &[&Note], context: &NoteContext<'_>) -> String {
    let tokens = context.tokens.map(|tokens| format!("{} tokens", format_number(tokens)));
    if notes.iter().any(|note| matches!(note, Note::Media { .. })) {
        return tokens.unwrap_or_else(|| "not text".to_owned());
    }
    let lines = memchr::memchr_iter(b'\n', text.as_bytes()).count()
        + usize::from(!text.is_empty() && !text.ends_with('\n'));
    let mut sizes =
        vec![count_with_name(lines, "line", "lines"), count_with_name(text.chars().count(), "char", "chars")];
    sizes.extend(tokens);
    sizes.join(", ")
}

fn describe_reason(reason: &Reason) -> String {
    match reason {
        Reason::TooOld => "too old".to_owned(),
        Reason::Superseded { by } => format!("superseded by step {by}"),
        Reason::Identical { to } => format!("same as at step {to}, shown there"),
        Reason::Shown { at, handle } => format!("shown at step {at} ({})", clip_middle(handle, NAME)),
        // Reasoning goes without a word: no note stands in its place.
        Reason::OverBudget | Reason::EarlierThought => TO_FIT.to_owned(),
        Reason::TooLong => "too long".to_owned(),
        Reason::Stale { edit } | Reason::Unbound { edit } => format!("stale since the edit at step {edit}"),
        Reason::ReadOften { first, last } => format!("read often, shown at steps {first} and {last}"),
        Reason::EditedOften { changes, told: Some(at), .. } => series::told_at(*changes, *at),
        Reason::EditedOften { changes, first, last, told: None } => {
            format!("one of {changes} changes between steps {first} and {last}")
        }
        Reason::Folded { through, .. } => format!("in the summary of steps 1-{through}"),
        // What says all that it said has no note.
        Reason::Rewritten { .. } => reason.to_string(),
        Reason::Rule(name) => format!("rule {}", clip_middle(name, NAME)),
    }
}

fn preview_text(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().take(20).map(without_number).collect();
    let preview = beginning(&lines.join("\n"), PREVIEW);
    (!preview.is_empty()).then(|| format!("it began \"{preview}\""))
}

fn describe_fact(note: &Note) -> Option<String> {
    Some(match note {
        Note::Omitted { .. }
        | Note::Passing { .. }
        | Note::Shown { .. }
        | Note::Repeated { .. }
        | Note::ElementsOmitted { .. }
        | Note::Status(Outcome::Unknown) => return None,
        Note::Listing { files, directories, samples } => {
            let files = count_with_name(*files, "file", "files");
            let directories = match directories {
                0 => String::new(),
                count => format!(" in {}", count_with_name(*count, "directory", "directories")),
            };
            format!("{files}{directories}{}", samples_of(samples))
        }
        Note::RepoMap { files, samples } => {
            format!("map of {}{}", count_with_name(*files, "file", "files"), samples_of(samples))
        }
        Note::Changes { branch, staged, modified, untracked, conflicted } => {
            let counts = [
                (staged, "staged"),
                (modified, "modified"),
                (untracked, "untracked"),
                (conflicted, "conflicted"),
            ];
            let counts = join_list(
                counts.iter().filter(|(count, _)| **count > 0).map(|(count, name)| format!("{count} {name}")),
            );
            let counts = if counts.is_empty() { "nothing changed".to_owned() } else { counts };
            match branch {
                Some(branch) => format!("branch {}: {counts}", clip_middle(branch, NAME)),
                None => counts,
            }
        }
        Note::Diff { files, added, removed, samples } => {
            format!(
                "{} changed, +{added} -{removed}{}",
                count_with_name(*files, "file", "files"),
                samples_of(samples)
            )
        }
        Note::Commits { total } => count_with_name(*total, "commit", "commits"),
        Note::Matches { total, files, shown, most } => describe_matches(*total, *files, *shown, most),
        Note::Status(Outcome::Succeeded) => "succeeded".to_owned(),
        Note::Status(Outcome::Failed) => "failed".to_owned(),
        Note::Totals(totals) => {
            let counts = [
                (totals.tests, "tests"),
                (totals.passed, "passed"),
                (totals.failed, "failed"),
                (totals.errors, "errors"),
                (totals.skipped, "skipped"),
                (totals.warnings, "warnings"),
            ];
            join_list(counts.iter().filter_map(|(count, name)| Some(format!("{} {name}", (*count)?))))
        }
        Note::Shape { container, elements, shown, keys } => {
            let (name, of) = match container {
                Container::Array => ("array", count_with_name(*elements, "element", "elements")),
                Container::Object => ("object", count_with_name(*elements, "member", "members")),
            };
            let keys = match keys.len() {
                0 => String::new(),
                _ => format!(", keys {}", join_list(keys.iter().map(|key| clip_middle(key, NAME)))),
            };
            format!("{name} of {of}, {shown} shown{keys}")
        }
        Note::Frames { total, shown } => {
            format!("{}, {shown} shown", count_with_name(*total, "frame", "frames"))
        }
        Note::Definitions { total, shown } => {
            format!("{}, {shown} shown", count_with_name(*total, "definition", "definitions"))
        }
        Note::Names(names) => format!("names in it: {}", names.join(" ")),
        Note::Series(told) => return series::change_facts(told),
        Note::Intent(intent) => format!("intent: \"{}\"", clip_middle(intent, SUBJECT)),
        Note::Media { kind, bytes } => {
            format!("{}, {} bytes", clip_middle(kind, NAME), format_number(*bytes))
        }
    })
}

fn describe_matches(total: usize, files: usize, shown: usize, most: &[(String, usize)]) -> String {
    let place =
        if files > 0 { format!(" in {}", count_with_name(files, "file", "files")) } else { String::new() };
    let mut clauses = vec![count_with_name(total, "match", "matches") + &place];
    if shown < total {
        clauses.push(format!("first {shown} shown, +{} more", total - shown));
    }
    if files > 1 {
        let most = most.iter().map(|(path, hits)| format!("{} ({hits})", clip_middle(path, SAMPLE)));
        clauses.push(format!("most in {}", join_list(most)));
    }
    clauses.join(", ")
}

fn samples_of(samples: &[String]) -> String {
    match samples.len() {
        0 => String::new(),
        _ => format!(", e.g. {}", join_list(samples.iter().map(|sample| clip_middle(sample, SAMPLE)))),
    }
}

fn join_list(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}

fn line_range(first: usize, last: usize) -> String {
    number_range("line", "lines", first, last)
}

fn number_range(one: &str, many: &str, first: usize, last: usize) -> String {
    if first == last { format!("{one} {first}") } else { format!("{many} {first}-{last}") }
}
