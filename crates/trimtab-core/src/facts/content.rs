//! What kind of content a result holds. Takes the kind and subject of its call and its text; gives one word. Never reads
//! more than the beginning of the text: the kind of a call says most, and the first lines say the rest.

use super::{subject::Subject, text_head, tool::ToolKind};

/// What a text is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum ContentKind {
    /// Nothing.
    #[default]
    Empty,
    /// Source code or another file shown as it is.
    Code,
    /// Prose: sentences of a model, a person or a document.
    Prose,
    /// What a test run printed.
    TestLog,
    /// What a build, check or installation printed.
    BuildLog,
    /// What any other program printed.
    Log,
    /// A diff or patch.
    Diff,
    /// Names of files or directories.
    Listing,
    /// Lines found by a search.
    Hits,
    /// JSON.
    Json,
    /// A web page.
    Page,
    /// A stack trace.
    Trace,
    /// A table or CSV.
    Table,
    /// An image.
    Image,
    /// A short confirmation of a change.
    Receipt,
}

impl ContentKind {
    /// Returns the name used in pictures and reports.
    pub fn name(self) -> &'static str {
        match self {
            ContentKind::Empty => "empty",
            ContentKind::Code => "code",
            ContentKind::Prose => "prose",
            ContentKind::TestLog => "test log",
            ContentKind::BuildLog => "build log",
            ContentKind::Log => "log",
            ContentKind::Diff => "diff",
            ContentKind::Listing => "listing",
            ContentKind::Hits => "hits",
            ContentKind::Json => "json",
            ContentKind::Page => "page",
            ContentKind::Trace => "trace",
            ContentKind::Table => "table",
            ContentKind::Image => "image",
            ContentKind::Receipt => "receipt",
        }
    }
}

/// How much of a text is looked at, in bytes.
const WINDOW: usize = 2000;

/// Tells the content of a result.
pub(crate) fn of_result(kind: ToolKind, subject: &Subject, text: &str) -> ContentKind {
    let head = text_head(text, WINDOW);
    let body = without_header(head).trim_start();
    if body.is_empty() {
        return ContentKind::Empty;
    }
    match kind {
        ToolKind::Test => ContentKind::TestLog,
        ToolKind::Build => ContentKind::BuildLog,
        ToolKind::Search => ContentKind::Hits,
        ToolKind::List => ContentKind::Listing,
        ToolKind::Read => file_content(subject, body),
        ToolKind::Web if is_json(body, text) => ContentKind::Json,
        ToolKind::Web => ContentKind::Page,
        ToolKind::Git | ToolKind::Write | ToolKind::Edit | ToolKind::Delete if is_diff(body) => {
            ContentKind::Diff
        }
        ToolKind::Write | ToolKind::Edit | ToolKind::Delete | ToolKind::Todo => ContentKind::Receipt,
        ToolKind::Ask | ToolKind::SubAgent | ToolKind::Think => ContentKind::Prose,
        ToolKind::Git | ToolKind::Run | ToolKind::Recall | ToolKind::Other => by_text(body, text),
    }
}

/// Tells the content of a text that answers no call.
pub(crate) fn of_text(text: &str) -> ContentKind {
    let head = text_head(text, WINDOW).trim_start();
    match () {
        () if head.is_empty() => ContentKind::Empty,
        () if is_diff(head) => ContentKind::Diff,
        () if is_json(head, text) => ContentKind::Json,
        () if is_trace(head) => ContentKind::Trace,
        () => ContentKind::Prose,
    }
}

fn file_content(subject: &Subject, body: &str) -> ContentKind {
    let extension =
        subject.path().and_then(|path| path.rsplit_once('.')).map_or("", |(_, extension)| extension);
    match extension {
        "md" | "txt" | "rst" | "adoc" | "org" => ContentKind::Prose,
        "json" | "jsonl" | "ipynb" => ContentKind::Json,
        "csv" | "tsv" => ContentKind::Table,
        "html" | "htm" => ContentKind::Page,
        "diff" | "patch" => ContentKind::Diff,
        "log" | "out" => ContentKind::Log,
        "png" | "jpg" | "jpeg" | "gif" | "webp" => ContentKind::Image,
        _ if is_diff(body) => ContentKind::Diff,
        _ => ContentKind::Code,
    }
}

fn by_text(body: &str, text: &str) -> ContentKind {
    match () {
        () if is_diff(body) => ContentKind::Diff,
        () if is_json(body, text) => ContentKind::Json,
        () if is_trace(body) => ContentKind::Trace,
        () if body.starts_with("<!DOCTYPE") || body.starts_with("<html") => ContentKind::Page,
        () if is_table(body) => ContentKind::Table,
        () => ContentKind::Log,
    }
}

/// Leaves out what harnesses print before the output itself.
fn without_header(head: &str) -> &str {
    for mark in ["\nOutput:\n", "<output>\n", "\nStdout:", "OBSERVATION:\n"] {
        if let Some((before, body)) = head.split_once(mark)
            && before.len() < 400
        {
            return body.trim_end().strip_suffix("</output>").unwrap_or(body);
        }
    }
    head
}

fn is_diff(body: &str) -> bool {
    body.starts_with("diff --git ")
        || body.starts_with("*** Begin Patch")
        || (body.starts_with("--- ") && body.contains("\n+++ "))
        || (body.contains("\ndiff --git ") && body.contains("\n@@ "))
}

fn is_json(body: &str, text: &str) -> bool {
    let opens = body.starts_with(['{', '[']) && body.contains('"');
    opens && text.trim_end().trim_end_matches("</output>").trim_end().ends_with(['}', ']'])
}

fn is_trace(body: &str) -> bool {
    body.contains("Traceback (most recent call last)")
        || body.contains("\n    at ") && body.contains("Error")
        || body.contains("panicked at ")
        || body.contains("goroutine 1 [")
}

/// Tells a table: at least three of the first lines have the same number, two or more, of commas, bars or tabs.
fn is_table(body: &str) -> bool {
    ['|', '\t', ','].iter().any(|mark| {
        let mut counts = body.lines().take(4).map(|line| line.matches(*mark).count());
        let Some(first) = counts.next().filter(|count| *count >= 2) else { return false };
        let rest: Vec<usize> = counts.collect();
        rest.len() >= 2 && rest.iter().take(2).all(|count| *count == first)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: ToolKind, path: &str, text: &str, expected: ContentKind) {
        assert_eq!(of_result(kind, &Subject::file(path), text), expected, "{text}");
    }

    #[test]
    fn the_call_says_most_and_the_text_the_rest() {
        check(ToolKind::Read, "a.rs", "fn main() {}", ContentKind::Code);
        check(ToolKind::Read, "README.md", "# Title", ContentKind::Prose);
        check(ToolKind::Read, "a.json", "{}", ContentKind::Json);
        check(ToolKind::Read, "a.csv", "a,b", ContentKind::Table);
        check(ToolKind::Test, "", "1 passed", ContentKind::TestLog);
        check(ToolKind::Build, "", "warning: unused", ContentKind::BuildLog);
        check(ToolKind::Search, "", "a.rs:1:fn main", ContentKind::Hits);
        check(ToolKind::List, "", "a.rs\nb.rs", ContentKind::Listing);
        check(ToolKind::Git, "", "diff --git a/x b/x\n--- a/x", ContentKind::Diff);
        check(ToolKind::Git, "", "On branch main", ContentKind::Log);
        check(ToolKind::Web, "", "<html>", ContentKind::Page);
        check(ToolKind::Web, "", "{\"ok\": true}", ContentKind::Json);
        check(ToolKind::Edit, "a.rs", "The file a.rs has been updated.", ContentKind::Receipt);
        check(ToolKind::Run, "", "[{\"id\": 1}]", ContentKind::Json);
        check(ToolKind::Run, "", "Traceback (most recent call last):\n  File", ContentKind::Trace);
        check(ToolKind::Run, "", "name|age|city\nA|1|x\nB|2|y\n", ContentKind::Table);
        check(ToolKind::Run, "", "done", ContentKind::Log);
        check(ToolKind::Run, "", "<returncode>0</returncode>\n<output>\n</output>", ContentKind::Empty);
        check(ToolKind::Run, "", "  \n", ContentKind::Empty);
    }
}
