//! `trimtab files`: every file that a conversation touched, the latest first. Takes a request or a recording and which
//! files are asked for; gives when and how each was last accessed, its lines, its reads and changes, and how it begins.

use anstyle::Style;
use anyhow::Result;
use serde::Serialize;
use trimtab_core::{
    CountMemo, Counter, Millis, facts, files,
    report::{FilePart, FileQuestion, FileTracker},
};

use crate::{
    args::TouchedFilesArgs,
    input::{self, Conversation},
    output::{Output, group_thousands, on_one_line, wrap_text},
    store::format_minute,
};

/// Columns of the page: a preview is cut there.
const WIDTH: usize = 100;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

#[derive(Serialize)]
struct TrackerReport<'a> {
    step: u32,
    files: Vec<&'a FilePart>,
}

pub(crate) fn run(asked: &TouchedFilesArgs, out: &mut Output) -> Result<()> {
    let conversation = input::read_conversation(&asked.input)?;
    let tracker = track_files(&conversation);
    let question = FileQuestion { recent: asked.recent, stale: asked.stale, modified: asked.modified };
    let files = tracker.find(question);
    if asked.json {
        return out.write_json(&TrackerReport { step: tracker.step, files });
    }
    if files.is_empty() {
        let all = tracker.files.len();
        return match all {
            0 => out.write_line(format_args!("{}: no call touched a file", conversation.name)),
            all => out.write_line(format_args!(
                "{}: none of the {all} files touched is such a file",
                conversation.name
            )),
        };
    }
    for file in files {
        out.write_line(format_args!("{BOLD}{}{BOLD:#}", on_one_line(&file.path, out.width())))?;
        let about = describe_file(file, tracker.step);
        let width = if out.is_terminal() { out.width().saturating_sub(4) } else { usize::MAX };
        wrap_text(&about, width).into_iter().try_for_each(|line| out.write_line(line))?;
        if let Some(preview) = &file.preview {
            let width = out.width().min(WIDTH).saturating_sub(2);
            out.write_line(format_args!("  {DIM}{}{DIM:#}", on_one_line(preview, width)))?;
        }
    }
    Ok(())
}

fn track_files(conversation: &Conversation) -> FileTracker {
    let history = &conversation.history;
    let named = history.model().map(std::borrow::Cow::into_owned);
    let model = named.or_else(|| input::recorded_model(conversation)).unwrap_or_default();
    let counts = Counter::for_model(&model).count_request(history, &mut CountMemo::default());
    let facts = facts(history);
    let files = files(history, &facts);
    FileTracker::from_conversation(history, &facts, &files, &counts, &conversation.segment.points)
}

/// Says in one line what is known of a file at a step.
pub(crate) fn describe_file(file: &FilePart, step: u32) -> String {
    let count = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    let ago = match step.saturating_sub(file.last_access_step) {
        0 => String::new(),
        ago => format!(" ({} ago)", count(usize::try_from(ago).unwrap_or(usize::MAX), "step")),
    };
    // A search or a listing shows a file that nobody reads.
    let is_read = file.reads + file.changes > 0 || file.operation != "read";
    let verb = if is_read { past_tense(file.operation) } else { "seen" };
    let mut clauses = vec![format!("{verb} at step {}{ago}", file.last_access_step)];
    clauses.extend(file.last_access_time.map(|time| format!("{} UTC", format_minute(Millis(time)))));
    clauses.extend((file.exists == Some(false)).then(|| "no longer there".to_owned()));
    clauses.extend(file.line_count.map(|lines| count(lines, "line")));
    clauses.push(if file.modified { "modified" } else { "not modified" }.to_owned());
    clauses.extend((file.reads > 0).then(|| count(file.reads, "read")));
    clauses.extend((file.changes > 0).then(|| count(file.changes, "change")));
    clauses.extend((file.tokens.0 > 0).then(|| format!("{} tokens", group_thousands(file.tokens.0))));
    clauses.join(", ")
}

pub(crate) fn past_tense(operation: &str) -> &str {
    match operation {
        "create" => "written",
        "edit" => "edited",
        "delete" => "deleted",
        other => other,
    }
}
