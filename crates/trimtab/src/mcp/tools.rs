//! The tools of the server. Takes a tool's name and arguments as an agent writes them; gives an answer that is no longer than
//! what an agent can afford, with a sentence on how to get the rest. A message explains wrong arguments; they never cause a crash.

use anyhow::{Context, Result, bail};
use regex::Regex;
use rmcp::model::JsonObject;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use trimtab_core::{
    CountMemo, Counter, facts, files,
    files::{Existence, LineRun, changelog},
    memory::UndoWhen,
    report::{FileQuestion, FileTracker},
};
use trimtab_store::WishKind;

use super::{
    bounded_text::{LineRange, RemainingText, bound_text},
    source::{NamedConversation, ToolLibrary},
};
use crate::{
    commands::{self, file_at},
    output::on_one_line,
    pictures::{Picture, pictures_in},
};

/// What a tool answers: pictures or a text, and what is to be said about it.
#[derive(Debug)]
pub(super) struct ToolAnswer {
    pub(super) pictures: Vec<Picture>,
    pub(super) text: String,
    pub(super) note: Option<String>,
}

impl ToolAnswer {
    fn new(text: &str, note: Option<String>) -> ToolAnswer {
        ToolAnswer { pictures: Vec::new(), text: text.to_owned(), note }
    }
}

/// A tool as it is listed.
pub(super) struct ToolDescription {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// Names, types and descriptions of the arguments.
    arguments: &'static [(&'static str, &'static str, &'static str)],
    required: &'static [&'static str],
    run: fn(&ToolLibrary, usize, Value) -> Result<ToolAnswer>,
}

const LINES: (&str, &str, &str) =
    ("lines", "string", "Only these lines, counted from 1: \"40-80\", \"40-\" or \"40\".");
const SESSION: (&str, &str, &str) = (
    "session",
    "string",
    "The session: an ID as search_history gives it (\"s12\"), the client's own name for it, or a handle that a note of yours names. \
     Without it, the session of this project that was used last.",
);

const HANDLE: (&str, &str, &str) = ("handle", "string", "The 12 digits of 0-9 and a-f that the note names.");
const WISH_SESSION: (&str, &str, &str) = (
    "session",
    "string",
    "The session: an ID as search_history gives it (\"s12\"), or the client's own name for it. Without it, the session of this project \
     used last that holds the block.",
);

pub(super) const TOOLS: &[ToolDescription] = &[
    ToolDescription {
        name: "recall",
        about: "Returns the original text that a note replaces, exactly as it was. Notes in your conversation end in `trimtab recall \
                HANDLE`; give that handle. Ask for only what you need: `lines` for a range, `grep` for matching lines with \
                their numbers. A long original is returned from its beginning, with a sentence on how to read on.",
        arguments: &[
            HANDLE,
            LINES,
            (
                "grep",
                "string",
                "Only lines that match this regular expression, each with its number before it.",
            ),
            (
                "offset",
                "integer",
                "Skip this many characters of what is selected: for a line too long for one answer.",
            ),
        ],
        required: &["handle"],
        run: |library, most, arguments| recall_original(library, most, &read(arguments)?),
    },
    ToolDescription {
        name: "search_history",
        about: "Finds blocks of this project's earlier and hidden conversations that contain all of the given words, best first: tool outputs, \
                file contents, messages. Each result is a handle for `recall`, the session, the best line's number and that \
                line. Passwords and keys are covered.",
        arguments: &[
            ("text", "string", "Words that must all occur. Case does not matter."),
            ("limit", "integer", "The most results: 1 to 50. Without it, 10."),
            (
                "session",
                "string",
                "Only this session: an ID (\"s12\"), the client's own name for it, or a handle that a note of yours names. Without it, \
                 all sessions of this project.",
            ),
        ],
        required: &["text"],
        run: |library, most, arguments| search_originals(library, most, &read(arguments)?),
    },
    ToolDescription {
        name: "file_at",
        about: "Returns a file as the conversation knew it after a step, with line numbers, put together from every read, write \
                and edit up to then. Lines that were never shown are marked as unknown, never guessed. Use it to see a file \
                as it was before an edit, or one whose reads are hidden.",
        arguments: &[
            ("path", "string", "The file's path as the conversation spells it, or the end of it."),
            (
                "step",
                "integer",
                "After this step (one assistant message is one step, from 1). Without it, after the last.",
            ),
            SESSION,
            LINES,
        ],
        required: &["path"],
        run: |library, most, arguments| show_file(library, most, &read(arguments)?),
    },
    ToolDescription {
        name: "files",
        about: "Lists the files that a session read or changed, the latest first: when and how each was last accessed, how many \
                lines it has, whether the session changed it, how often it was read and changed, what that counts in tokens, \
                and how it begins. Ask for `recent`, `stale` or `modified` files alone.",
        arguments: &[
            ("recent", "integer", "Only files that were read or changed in the last so many steps."),
            (
                "stale",
                "integer",
                "Only files that were neither read nor changed for more than so many steps.",
            ),
            ("modified", "boolean", "Only files that the session changed."),
            SESSION,
            LINES,
        ],
        required: &[],
        run: |library, most, arguments| list_touched_files(library, most, &read(arguments)?),
    },
    ToolDescription {
        name: "changelog",
        about: "Lists what was done to which file in a session and why, grouped by file, with the steps: what you have changed so \
                far, also where those messages are hidden by now.",
        arguments: &[SESSION, LINES],
        required: &[],
        run: |library, most, arguments| list_changes(library, most, &read(arguments)?),
    },
    ToolDescription {
        name: "pin",
        about: "Keeps a block of your conversation from being hidden: from your next request on it is shown whole, also where a note \
                stands in its place now. For what you need again and again; everything pinned takes room, so unpin it when you are done.",
        arguments: &[HANDLE, WISH_SESSION],
        required: &["handle"],
        run: |library, _, arguments| record_wish(library, &read(arguments)?, WishKind::Pin),
    },
    ToolDescription {
        name: "unpin",
        about: "Takes a pin back, so that the block may be hidden again when the policy or a full window asks for it. Do this when you no \
                longer need what you pinned.",
        arguments: &[HANDLE, WISH_SESSION],
        required: &["handle"],
        run: |library, _, arguments| record_wish(library, &read(arguments)?, WishKind::Unpin),
    },
    ToolDescription {
        name: "undo",
        about: "Takes back that a block is hidden: it is shown whole again as soon as that costs nothing, and may be hidden again when it \
                is old. To read it right now, use recall; to keep it visible, use pin.",
        arguments: &[HANDLE, WISH_SESSION],
        required: &["handle"],
        run: |library, _, arguments| record_wish(library, &read(arguments)?, WishKind::Undo(UndoWhen::Free)),
    },
];

/// The tools that change what is kept.
const WRITING: [&str; 3] = ["pin", "unpin", "undo"];

impl ToolDescription {
    /// Returns the JSON schema of the arguments.
    pub(super) fn argument_schema(&self) -> JsonObject {
        let property = |(name, kind, about): &(&str, &str, &str)| {
            let mut property = json!({"type": kind, "description": about});
            if let ("integer", Some(property)) = (*kind, property.as_object_mut()) {
                property.insert("minimum".to_owned(), json!(u8::from(*name != "offset")));
            }
            ((*name).to_owned(), property)
        };
        let properties: JsonObject = self.arguments.iter().map(property).collect();
        let mut schema = JsonObject::new();
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("properties".to_owned(), Value::Object(properties));
        schema.insert("required".to_owned(), json!(self.required));
        schema.insert("additionalProperties".to_owned(), json!(false));
        schema
    }

    /// Tells whether the tool only reads.
    pub(super) fn is_read_only(&self) -> bool {
        !WRITING.contains(&self.name)
    }

    /// Runs the tool.
    pub(super) fn call(
        &self,
        library: &ToolLibrary,
        most: usize,
        arguments: JsonObject,
    ) -> Result<ToolAnswer> {
        (self.run)(library, most, Value::Object(arguments)).with_context(|| self.name)
    }
}

fn read<T: DeserializeOwned>(arguments: Value) -> Result<T> {
    serde_json::from_value(arguments).context("wrong arguments")
}

fn parse_range(words: Option<&str>) -> Result<LineRange> {
    let Some(words) = words else { return Ok(LineRange::ALL) };
    LineRange::parse(words).with_context(|| format!("lines {words:?}: write \"40-80\", \"40-\" or \"40\""))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RecallArguments {
    handle: String,
    lines: Option<String>,
    grep: Option<String>,
    #[serde(default)]
    offset: usize,
}

fn recall_original(library: &ToolLibrary, most: usize, asked: &RecallArguments) -> Result<ToolAnswer> {
    let original = library.original(&asked.handle)?;
    let pictures = pictures_in(&original);
    if !pictures.is_empty() && asked.lines.is_none() && asked.grep.is_none() {
        return Ok(ToolAnswer { pictures, text: String::new(), note: None });
    }
    let original = String::from_utf8_lossy(&original).into_owned();
    let range = parse_range(asked.lines.as_deref())?;
    let total = original.lines().count();
    if range.first > total.max(1) {
        bail!("the original has {total} lines: there is no line {}", range.first);
    }
    if let Some(pattern) = &asked.grep {
        return matching_lines(&original, range, pattern, asked.offset, most);
    }
    let chosen = range.lines_of(&original);
    let start = letter_offset(chosen, asked.offset);
    let (skipped, chosen) = chosen.split_at_checked(start).unwrap_or((chosen, ""));
    let first = range.first + skipped.matches('\n').count();
    let last = range.last.min(total);
    let cut = bound_text(chosen, most);
    let call = |lines: String, more: String| {
        format!(
            "[trimtab: not all of it. The original {} has {total} lines. For what follows call recall with lines=\"{lines}\"{more}; \
             grep finds single lines.]",
            asked.handle
        )
    };
    let note = match cut.rest {
        RemainingText::Nothing => None,
        RemainingText::AfterLines(count) => Some(call(format!("{}-{last}", first + count), String::new())),
        RemainingText::InLine(count) => {
            // Counted from the beginning of this line, whatever was selected before.
            let line_start = skipped.rfind('\n').map_or(0, |end| end + 1);
            let before = skipped.get(line_start..).unwrap_or_default().chars().count();
            Some(call(format!("{first}-{last}"), format!(" and offset={}", before + count)))
        }
    };
    Ok(ToolAnswer::new(cut.shown, note))
}

/// Returns where the letter with a number begins.
fn letter_offset(text: &str, count: usize) -> usize {
    text.char_indices().nth(count).map_or(text.len(), |(at, _)| at)
}

fn matching_lines(
    original: &str,
    range: LineRange,
    pattern: &str,
    offset: usize,
    most: usize,
) -> Result<ToolAnswer> {
    let pattern = Regex::new(pattern).context("grep")?;
    let lines = (1_usize..).zip(original.lines());
    let wanted =
        lines.filter(|(number, line)| (range.first..=range.last).contains(number) && pattern.is_match(line));
    let found: String = wanted.map(|(number, line)| format!("{number}: {line}\n")).collect();
    if found.is_empty() {
        return Ok(ToolAnswer::new("", Some("[trimtab: no line matches.]".to_owned())));
    }
    let found = found.get(letter_offset(&found, offset)..).unwrap_or_default();
    Ok(bound_list(found, most, |next| match next {
        RemainingText::AfterLines(_) | RemainingText::Nothing => {
            "narrow grep, or give lines from the last number on".to_owned()
        }
        RemainingText::InLine(count) => format!("give offset={} too", offset + count),
    }))
}

/// Bounds a list; `how` says how to get what does not fit.
fn bound_list(text: &str, most: usize, how: impl FnOnce(&RemainingText) -> String) -> ToolAnswer {
    let cut = bound_text(text, most);
    let note = match &cut.rest {
        RemainingText::Nothing => None,
        rest @ (RemainingText::AfterLines(_) | RemainingText::InLine(_)) => {
            Some(format!("[trimtab: there is more than fits into one answer: {}.]", how(rest)))
        }
    };
    ToolAnswer::new(cut.shown, note)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchArguments {
    text: String,
    limit: Option<usize>,
    session: Option<String>,
}

/// Results where no limit is given, and at most: a result costs about 40 tokens.
const RESULTS: usize = 10;
const MOST_RESULTS: usize = 50;

fn search_originals(library: &ToolLibrary, most: usize, asked: &SearchArguments) -> Result<ToolAnswer> {
    if !asked.text.chars().any(char::is_alphanumeric) {
        bail!("text {:?} holds no word to look for", asked.text);
    }
    let limit = asked.limit.unwrap_or(RESULTS).clamp(1, MOST_RESULTS);
    let (found, elsewhere) = library.search_blocks(&asked.text, limit, asked.session.as_deref())?;
    if found.is_empty() {
        let note = match elsewhere {
            Some(elsewhere) => {
                format!("[trimtab: no block of this project holds all of these words; {elsewhere}.]")
            }
            None => format!("[trimtab: no block holds all of these words: {}. Try fewer.]", asked.text),
        };
        return Ok(ToolAnswer::new("", Some(note)));
    }
    let rows = found.iter().map(|found| {
        let text: String = found.text.chars().take(LINE_LETTERS).collect();
        format!("{} {} line {}: {text}\n", found.handle, found.session, found.line)
    });
    Ok(bound_list(&rows.collect::<String>(), most, |_| "ask with a smaller limit or more words".to_owned()))
}

/// Letters of a found line that are shown.
const LINE_LETTERS: usize = 240;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShowFileArguments {
    path: String,
    step: Option<u32>,
    session: Option<String>,
    lines: Option<String>,
}

fn show_file(library: &ToolLibrary, most: usize, asked: &ShowFileArguments) -> Result<ToolAnswer> {
    let range = parse_range(asked.lines.as_deref())?;
    let NamedConversation { name, history, .. } = library.conversation(asked.session.as_deref())?;
    let facts = facts(&history);
    let files = files(&history, &facts);
    let last = facts.current_step();
    let step = asked.step.unwrap_or(last);
    if step > last || step == 0 {
        bail!("{name}: has no step {step}: there are the steps 1 to {last}");
    }
    let (path, state) = trimtab_core::report::file_at(&asked.path, step, &facts, &files)?;
    let about = format!(
        "[trimtab: {path} after step {step} of {name}; {}.]",
        file_at::describe_accesses(path, step, &files)
    );
    if state.existence() == Existence::Absent {
        return Ok(ToolAnswer::new("", Some(format!("{about} There is no such file then."))));
    }
    let mut text = String::new();
    for run in state.runs() {
        let wanted = |number: usize| (range.first..=range.last).contains(&number);
        match run {
            LineRun::Known { first, lines } => {
                // The text after the last line break is not a line.
                let ends = state.text().is_some() && lines.last().is_some_and(|line| line.text.is_empty());
                let numbered = (first..).zip(lines.iter().take(lines.len() - usize::from(ends)));
                numbered
                    .filter(|(number, _)| wanted(*number))
                    .for_each(|(number, line)| text += &format!("{number}\t{}\n", line.text));
            }
            LineRun::Unknown { first, count } if (first..first + count).any(wanted) => {
                text += &format!("[lines {first}-{} are unknown]\n", first + count - 1);
            }
            LineRun::Rest { first } if range.last >= first => {
                text += &format!("[unknown from line {first} on; there may be nothing]\n");
            }
            LineRun::Unknown { .. } | LineRun::Rest { .. } => {}
        }
    }
    let mut answer = bound_list(&text, most, |_| "give lines to see a part".to_owned());
    let notes = [Some(about), answer.note.take()];
    answer.note = Some(notes.into_iter().flatten().collect::<Vec<_>>().join("\n"));
    Ok(answer)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangelogArguments {
    session: Option<String>,
    lines: Option<String>,
}

fn list_changes(library: &ToolLibrary, most: usize, asked: &ChangelogArguments) -> Result<ToolAnswer> {
    let range = parse_range(asked.lines.as_deref())?;
    let NamedConversation { name, history, .. } = library.conversation(asked.session.as_deref())?;
    let files = changelog(&history, &facts(&history));
    if files.is_empty() {
        let note = format!("[trimtab: no call changed a file in {name}.]");
        return Ok(ToolAnswer::new("", Some(note)));
    }
    let mut text = String::new();
    for file in &files {
        text += &format!("{}\n", file.path);
        file.changes.iter().for_each(|changes| text += &format!("  {changes}\n"));
    }
    Ok(bound_lines("changelog", &text, range, most))
}

/// Bounds a list of lines and says how many more there are and how to get them.
fn bound_lines(tool: &str, text: &str, range: LineRange, most: usize) -> ToolAnswer {
    let shown = range.lines_of(text);
    bound_list(shown, most, |rest| match rest {
        RemainingText::AfterLines(count) => {
            let more = shown.lines().count().saturating_sub(*count);
            format!("+{more} more lines; call {tool} with lines=\"{}-\"", range.first + count)
        }
        RemainingText::InLine(_) | RemainingText::Nothing => "that line is too long to be shown".to_owned(),
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TouchedFilesArguments {
    recent: Option<u32>,
    stale: Option<u32>,
    #[serde(default)]
    modified: bool,
    session: Option<String>,
    lines: Option<String>,
}

/// Letters of a file's beginning that are shown.
const PREVIEW_LETTERS: usize = 100;

fn list_touched_files(
    library: &ToolLibrary,
    most: usize,
    asked: &TouchedFilesArguments,
) -> Result<ToolAnswer> {
    let range = parse_range(asked.lines.as_deref())?;
    let NamedConversation { name, history, points } = library.conversation(asked.session.as_deref())?;
    let model = history.model().unwrap_or_default().into_owned();
    let counts = Counter::for_model(&model).count_request(&history, &mut CountMemo::default());
    let facts = facts(&history);
    let tracker =
        FileTracker::from_conversation(&history, &facts, &files(&history, &facts), &counts, &points);
    let question = FileQuestion { recent: asked.recent, stale: asked.stale, modified: asked.modified };
    let found = tracker.find(question);
    if found.is_empty() {
        let note = format!("[trimtab: {} touched {} files; none is such a file.]", name, tracker.files.len());
        return Ok(ToolAnswer::new("", Some(note)));
    }
    let mut text = String::new();
    for file in found {
        text += &format!("{}\n  {}\n", file.path, commands::files::describe_file(file, tracker.step));
        if let Some(preview) = &file.preview {
            text += &format!("  begins: {}\n", on_one_line(preview, PREVIEW_LETTERS));
        }
    }
    Ok(bound_lines("files", &text, range, most))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WishArguments {
    handle: String,
    session: Option<String>,
}

fn record_wish(library: &ToolLibrary, asked: &WishArguments, kind: WishKind) -> Result<ToolAnswer> {
    let said = library.record_wish(&asked.handle, asked.session.as_deref(), kind)?;
    Ok(ToolAnswer::new(&format!("[trimtab: {said}.]"), None))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
