//! The list of sessions: by project, page by page, and found by words as `trimtab search` finds them.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use anyhow::Result;
use maud::{Markup, html};
use trimtab_store::{SessionId, SessionInfo, SessionPageQuery, Store};

use super::{
    PageServer,
    route::PageQuery,
    shell::{
        self, BarPlace, cut_text, number, page_count, page_links, project_name, session_count, session_path,
    },
};
use crate::{
    commands::sessions::{ago, title_of},
    look::{TableColumn, percent, table, tokens_short},
    prices,
    proxy::metrics::float,
    scope::StoreScope,
    store,
    terminal::escape_name,
};

/// Sessions of one part of the list: titles are read from their first requests.
const EACH: u32 = 50;

/// Blocks that a search shows.
const FOUND: usize = 50;

/// Titles that are kept, most of them of a hundred letters.
const TITLES: usize = 5_000;

/// Titles that were read, by session and the time of its beginning: numbers of forgotten sessions may be given again.
#[derive(Default)]
pub(super) struct TitleCache {
    known: Mutex<HashMap<(SessionId, i64), String>>,
}

/// Letters of a title, and of a line that was found.
const TITLE_LETTERS: usize = 120;
const LINE_LETTERS: usize = 300;

impl PageServer {
    pub(super) fn session_list_page(&self, query: &PageQuery) -> Result<Markup> {
        let mark = self.news_mark();
        let scope = self.scope()?;
        let words = query.get("q").trim().to_owned();
        let project = query.get("project").to_owned();
        let asked = SessionPageQuery {
            scope: None,
            project: Some(project.as_str()).filter(|project| !project.is_empty()),
            skip: (query.page() - 1).saturating_mul(EACH),
            most: EACH,
        };
        let page = scope.session_page(&asked)?;
        let pages = page_count(page.count, EACH);
        let main = html! {
            div data-follow=(mark) {
                h1 { "Sessions" }
                p.soft.small { (session_count(page.count)) " · " span data-live="" { "load again for newer ones" } }
                form.controls role="search" action="/trimtab/sessions" {
                    label { "Words in their texts " input type="search" name="q" value=(words) maxlength="400"; }
                    button type="submit" { "Search" }
                    @if !words.is_empty() || !project.is_empty() { a href="/trimtab/sessions" { "all sessions" } }
                }
                @if !project.is_empty() { p { "Of the project " b.title dir="auto" { (escape_name(&project)) } } }
                @if words.is_empty() {
                    @if page.sessions.is_empty() { p { "No session is stored here." } }
                    @else { (self.session_table(&scope, &page.sessions)) }
                    (page_links("/trimtab/sessions", &[("project", project.as_str())], query.page(), pages))
                } @else {
                    (self.search_results(&scope, &words)?)
                }
                @if let Some(note) = scope.about_others(usize::try_from(page.others).unwrap_or(usize::MAX)) { p.soft { (note) } }
            }
        };
        Ok(shell::whole_page("Sessions", BarPlace::Sessions, &main))
    }

    /// Returns a table of sessions.
    pub(super) fn session_table(&self, scope: &StoreScope, sessions: &[SessionInfo]) -> Markup {
        let columns = [
            TableColumn::text("session"),
            TableColumn::text("title"),
            TableColumn::text("project"),
            TableColumn::text("model"),
            TableColumn::number("requests"),
            TableColumn::number("last request, tokens").with_about(
                "Tokens of the last request before trimming, and its share of the model's window",
            ),
            TableColumn::number("not sent").with_about("The share of all tokens that was not sent"),
            TableColumn::text("used"),
        ];
        let rows: Vec<Vec<Markup>> =
            sessions.iter().map(|session| self.session_row(scope, session)).collect();
        table("Sessions, the one used last first", &columns, &rows)
    }

    fn session_row(&self, scope: &StoreScope, session: &SessionInfo) -> Vec<Markup> {
        let path = session_path(session.id);
        let model = session.model.as_deref();
        let size = scope.store().first_and_last(session.id).map_or(0, |(_, last)| last.tokens_before);
        let window = model.and_then(|model| prices::find_model(model).ok()).map(|model| model.window.0);
        let share = window.map(|window| percent(float(size) / float(window.max(1))));
        let title = self.session_title(scope, session);
        vec![
            html! { a href=(path) { (session.id) } },
            html! { a.title dir="auto" href=(path) { (title) } },
            html! {
                @match &session.project {
                    Some(project) => bdi title=(escape_name(project)) { (project_name(project)) },
                    None => span.soft { "–" },
                }
            },
            html! { @match model { Some(model) => (escape_name(model)), None => span.soft { "–" } } " " span.tag { (session.format.name()) } },
            number(u64::from(session.requests)),
            html! { (tokens_short(size)) @if let Some(share) = share { " (" (share) ")" } },
            html! { (store::percent_saved(session.tokens_before, session.tokens_after)) " %" },
            html! { time title=(store::format_minute(session.last)) { (ago(store::current_time().0 - session.last.0)) } },
        ]
    }

    /// Returns the user's first words, else the client's name for the session. Its first request is read once.
    pub(super) fn session_title(&self, scope: &StoreScope, session: &SessionInfo) -> String {
        let key = (session.id, session.first.0);
        let known = || self.titles.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(title) = known().get(&key) {
            return title.clone();
        }
        let title = self.read_title(scope, session);
        let mut known = known();
        if known.len() >= TITLES {
            known.clear();
        }
        known.insert(key, title.clone());
        title
    }

    fn read_title(&self, scope: &StoreScope, session: &SessionInfo) -> String {
        let title = title_of(scope.store(), session, &self.options.secrets);
        let title = title.or_else(|| session.name.clone()).unwrap_or_else(|| "without words".to_owned());
        let one_line: String = title.split_whitespace().collect::<Vec<_>>().join(" ");
        let (start, is_cut) = cut_text(&one_line, TITLE_LETTERS);
        format!("{}{}", escape_name(&start), if is_cut { "…" } else { "" })
    }

    fn search_results(&self, scope: &StoreScope, words: &str) -> Result<Markup> {
        let (found, elsewhere) = scope.search_blocks(words, FOUND, None, &self.options.secrets)?;
        let title = |session| match scope.own_session(session) {
            Ok(info) => self.session_title(scope, &info),
            Err(_) => session.to_string(),
        };
        let rows: Vec<Vec<Markup>> = found
            .iter()
            .map(|hit| {
                let (line, is_cut) = cut_text(&hit.text, LINE_LETTERS);
                vec![
                    html! { span.title dir="auto" { (escape_name(&line)) @if is_cut { "…" } } },
                    html! { a.title dir="auto" href=(session_path(hit.session)) { (title(hit.session)) } },
                    number(u64::try_from(hit.line).unwrap_or(u64::MAX)),
                    html! { code { (hit.handle) } },
                ]
            })
            .collect();
        let columns = [
            TableColumn::text("text"),
            TableColumn::text("session"),
            TableColumn::number("line of its block"),
            TableColumn::text("handle").with_about("trimtab recall HANDLE prints the whole block"),
        ];
        Ok(html! {
            @if found.is_empty() {
                p { "No block of this project holds all of these words." }
                @if let Some(note) = elsewhere { p.soft { (note) } }
            } @else {
                (table("Blocks that hold all words, the best first", &columns, &rows))
            }
            p.soft.small { "The same at the command line: " code { "trimtab search " (escape_name(words)) } }
        })
    }
}
