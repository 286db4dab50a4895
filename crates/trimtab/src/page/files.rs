//! The files of a session: every one that it touched, the state of any at any step as `trimtab file-at` tells it, and its changes.

use anyhow::Result;
use maud::{Markup, html};
use trimtab_core::{
    files,
    files::{Existence, FileState, FileTimeline, LineRun, changelog},
    report::{FilePart, FileTracker, file_at},
};
use trimtab_store::SessionId;

use super::{
    PageServer,
    conversation::SessionContext,
    route::PageQuery,
    shell::{
        self, BarPlace, SessionTab, cut_text, number, page_count, page_links, percent_encoded, session_head,
        session_path,
    },
};
use crate::{
    commands::{file_at::describe_accesses, files::past_tense},
    look::{TableColumn, table},
    output::count_with_noun,
    store,
    terminal::escape_name,
};

/// Files of one part of the list, and lines of one part of a file.
const FILES: u32 = 200;
const LINES: u32 = 1_000;

/// Letters of a line that is shown.
const LINE_LETTERS: usize = 2_000;

/// Lines of a file as rows: a number and a text, or what is not known.
enum FileRow {
    Line(usize, String),
    Unknown(usize, usize),
    Rest(usize),
}

impl PageServer {
    pub(super) fn files_page(&self, id: SessionId, query: &PageQuery) -> Result<Markup> {
        let scope = self.scope()?;
        let info = scope.own_session(id)?;
        let context = self.conversations.read(&scope, id)?;
        let latest = &context.latest;
        let timeline = files(&latest.history, &latest.facts);
        let part = match query.get("path") {
            "" => self.file_list(id, &context, &timeline, query),
            path => self.file_state(id, path, &context, &timeline, query)?,
        };
        let main = html! {
            (session_head(id, &self.session_title(&scope, &info), Some(SessionTab::Files)))
            (part)
        };
        Ok(shell::whole_page("Files", BarPlace::Sessions, &main))
    }

    fn file_list(
        &self,
        id: SessionId,
        context: &SessionContext,
        timeline: &FileTimeline,
        query: &PageQuery,
    ) -> Markup {
        let latest = &context.latest;
        let points = store::points_on_the_way(&latest.history, &context.requests);
        let tracker =
            FileTracker::from_conversation(&latest.history, &latest.facts, timeline, &latest.counts, &points);
        let mut list: Vec<&FilePart> = tracker.files.iter().collect();
        list.sort_by_key(|file| std::cmp::Reverse(file.last_access_step));
        let pages = page_count(u64::try_from(list.len()).unwrap_or(u64::MAX), FILES);
        let skip = usize::try_from((query.page() - 1).saturating_mul(FILES)).unwrap_or_default();
        let count = |count: usize| number(u64::try_from(count).unwrap_or(u64::MAX));
        let rows: Vec<Vec<Markup>> = list
            .iter()
            .skip(skip)
            .take(usize::try_from(FILES).unwrap_or_default())
            .map(|file| {
                vec![
                    html! { a.title dir="auto" href={ (session_path(id)) "/files?path=" (percent_encoded(&file.path)) } { (escape_name(&file.path)) } },
                    html! { (past_tense(file.operation)) " in step " (file.last_access_step) @if file.exists == Some(false) { ", no longer there" } },
                    html! { @match file.line_count { Some(lines) => (count(lines)), None => span.soft { "–" } } },
                    count(file.reads),
                    count(file.changes),
                    number(file.tokens.0),
                ]
            })
            .collect();
        let columns = [
            TableColumn::text("file"),
            TableColumn::text("last access"),
            TableColumn::number("lines").with_about("Where all of it is known"),
            TableColumn::number("reads"),
            TableColumn::number("changes"),
            TableColumn::number("tokens").with_about("Of the calls about it and their results"),
        ];
        let changes = changelog(&latest.history, &latest.facts);
        html! {
            @if rows.is_empty() { p { "No call touched a file." } }
            @else {
                (table("Files, the one used last first", &columns, &rows))
                (page_links(&format!("{}/files", session_path(id)), &[], query.page(), pages))
            }
            @if !changes.is_empty() {
                h2 { "Changes" }
                @for file in changes.iter().take(usize::try_from(FILES).unwrap_or_default()) {
                    h3.title dir="auto" { (escape_name(&file.path)) }
                    ul { @for change in &file.changes { li.title dir="auto" { (self.shown_text(&change.to_string())) } } }
                }
            }
            p.soft.small { "The same at the command line: " code { "trimtab files " (id) } ", " code { "trimtab changelog " (id) } }
        }
    }

    fn file_state(
        &self,
        id: SessionId,
        asked: &str,
        context: &SessionContext,
        timeline: &FileTimeline,
        query: &PageQuery,
    ) -> Result<Markup> {
        let facts = &context.latest.facts;
        let last = facts.current_step();
        let step = query.get("step").parse().unwrap_or(last).min(last);
        let (path, state) = file_at(asked, step, facts, timeline)?;
        let rows = rows_of(&state);
        let pages = page_count(u64::try_from(rows.len()).unwrap_or(u64::MAX), LINES);
        let current = query.page().min(pages);
        let skip = usize::try_from((current - 1) * LINES).unwrap_or_default();
        let shown = rows.iter().skip(skip).take(usize::try_from(LINES).unwrap_or_default());
        let lines = state.line_count().map_or_else(
            || "an unknown number of lines".to_owned(),
            |lines| count_with_noun(lines, "line", "lines"),
        );
        let place = format!("{}/files", session_path(id));
        let step_words = step.to_string();
        let accesses = timeline.accesses(path);
        Ok(html! {
            p { a href=(place) { "All files" } }
            h2.title dir="auto" { (escape_name(path)) }
            form.controls action=(place) {
                input type="hidden" name="path" value=(path);
                label { "After step " input type="number" name="step" min="1" max=(last) value=(step); }
                button type="submit" { "Show" }
                @if let Some(before) = accesses.iter().rev().find(|access| access.step < step) {
                    a.button href={ (place) "?path=" (percent_encoded(path)) "&step=" (before.step) } { "previous access" }
                }
                @if let Some(after) = accesses.iter().find(|access| access.step > step) {
                    a.button href={ (place) "?path=" (percent_encoded(path)) "&step=" (after.step) } { "next access" }
                }
            }
            @if state.existence() == Existence::Absent { p { "After step " (step) " there is no such file." } }
            @else { p { "After step " (step) ": " (lines) ", " (state.known_lines()) " of them known." } }
            p.soft { (describe_accesses(path, step, timeline)) }
            @if !rows.is_empty() {
                div.text.file-lines tabindex="0" role="region" aria-label="Lines of the file" {
                    @for row in shown {
                        @match row {
                            FileRow::Line(number, text) => { span.at { (number) } span dir="auto" { (self.shown_line(text)) } }
                            FileRow::Unknown(first, count) => { span.at { (first) } span.soft { "[" (count_with_noun(*count, "unknown line", "unknown lines")) "]" } }
                            FileRow::Rest(first) => { span.at { (first) } span.soft { "[unknown from here on; there may be nothing]" } }
                        }
                    }
                }
            }
            (page_links(&place, &[("path", path), ("step", step_words.as_str())], current, pages))
            p.soft.small { "The same at the command line: " code { "trimtab file-at " (id) " " (escape_name(path)) " --step " (step) } }
        })
    }

    fn shown_line(&self, text: &str) -> String {
        let (start, is_cut) = cut_text(text, LINE_LETTERS);
        self.shown_text(&start) + if is_cut { "…" } else { "" }
    }
}

fn rows_of(state: &FileState) -> Vec<FileRow> {
    let mut rows = Vec::new();
    for run in state.runs() {
        match run {
            LineRun::Known { first, lines } => {
                // An empty text after the last line break is no line.
                let is_last = state.text().is_some() && lines.last().is_some_and(|line| line.text.is_empty());
                let shown = lines.len() - usize::from(is_last);
                rows.extend(
                    (first..)
                        .zip(lines.iter().take(shown))
                        .map(|(at, line)| FileRow::Line(at, line.text.to_owned())),
                );
            }
            LineRun::Unknown { first, count } => rows.push(FileRow::Unknown(first, count)),
            LineRun::Rest { first } => rows.push(FileRow::Rest(first)),
        }
    }
    rows
}
