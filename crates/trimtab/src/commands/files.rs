//! `trimtab files`: every file that a conversation touched, the latest first. Takes a request or a recording and which
//! files are asked for; gives when and how each was last accessed, its lines, its reads and changes, and how it begins.

use anstyle::Style;
use anyhow::Result;
use serde::Serialize;
use trimtab_core::{
    Counter, Memo, Millis, facts, files,
    report::{FilePart, FileQuestion, FileTracker},
};

use crate::{
    args::TouchedFiles,
    input::{self, Conversation},
    output::{Output, grouped, on_one_line},
    store::minute,
};

/// Columns of the page: a preview is cut there.
const WIDTH: usize = 100;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

#[derive(Serialize)]
struct Report<'a> {
    step: u32,
    files: Vec<&'a FilePart>,
}

pub(crate) fn run(asked: &TouchedFiles, out: &mut Output) -> Result<()> {
    let conversation = input::conversation(&asked.input)?;
    let tracker = track(&conversation);
    let question = FileQuestion { recent: asked.recent, stale: asked.stale, modified: asked.modified };
    let files = tracker.find(question);
    if asked.json {
        return out.json(&Report { step: tracker.step, files });
    }
    if files.is_empty() {
        let all = tracker.files.len();
        return match all {
            0 => out.line(format_args!("{}: no call touched a file", conversation.name)),
            all => out
                .line(format_args!("{}: none of the {all} files touched is such a file", conversation.name)),
        };
    }
    for file in files {
        out.line(format_args!("{BOLD}{}{BOLD:#}", on_one_line(&file.path, out.width())))?;
        out.line(format_args!("  {}", about(file, tracker.step)))?;
        if let Some(preview) = &file.preview {
            let width = out.width().min(WIDTH).saturating_sub(2);
            out.line(format_args!("  {DIM}{}{DIM:#}", on_one_line(preview, width)))?;
        }
    }
    Ok(())
}

fn track(conversation: &Conversation) -> FileTracker {
    let history = &conversation.history;
    let named = history.model().map(std::borrow::Cow::into_owned);
    let model = named.or_else(|| input::recorded_model(conversation)).unwrap_or_default();
    let counts = Counter::for_model(&model).request(history, &mut Memo::default());
    let facts = facts(history);
    let files = files(history, &facts);
    FileTracker::of(history, &facts, &files, &counts, &conversation.segment.points)
}

/// Says in one line what is known of a file at a step.
pub(crate) fn about(file: &FilePart, step: u32) -> String {
    let count = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    let ago = match step.saturating_sub(file.last_access_step) {
        0 => String::new(),
        ago => format!(" ({} ago)", count(usize::try_from(ago).unwrap_or(usize::MAX), "step")),
    };
    let mut clauses = vec![format!("{} at step {}{ago}", past(file.operation), file.last_access_step)];
    clauses.extend(file.last_access_time.map(|time| format!("{} UTC", minute(Millis(time)))));
    clauses.extend((file.exists == Some(false)).then(|| "no longer there".to_owned()));
    clauses.extend(file.line_count.map(|lines| count(lines, "line")));
    clauses.push(if file.modified { "modified" } else { "not modified" }.to_owned());
    clauses.push(format!("{}, {}", count(file.reads, "read"), count(file.changes, "change")));
    clauses.push(format!("{} tokens", grouped(file.tokens.0)));
    clauses.join("; ")
}

fn past(operation: &str) -> &str {
    match operation {
        "create" => "written",
        "edit" => "edited",
        "delete" => "deleted",
        other => other,
    }
}
