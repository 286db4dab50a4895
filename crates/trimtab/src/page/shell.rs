//! What every page shares: the frame with its places to go to, links, forms with their token, and how figures of conversations are
//! written. Takes markup; gives whole pages.

use maud::{Markup, html};
use trimtab_core::Millis;
use trimtab_store::{RequestId, SessionId};

use super::PageServer;
use crate::{
    look::{NavigationLink, PageAssets, PageFrame, navigation, page},
    output::{count_with_noun, group_thousands},
    store::format_minute,
    terminal::escape_name,
};

/// Where style and script are.
pub(super) const STYLE_PATH: &str = "/trimtab/page.css";
pub(super) const SCRIPT_PATH: &str = "/trimtab/page.js";

/// The pages in the bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BarPlace {
    Now,
    Sessions,
    Settings,
}

/// The pages of one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionTab {
    Overview,
    WhatIf,
    Files,
    Head,
}

/// Returns a whole page.
pub(super) fn whole_page(title: &str, place: BarPlace, main: &Markup) -> Markup {
    let link =
        |name, path: &str, here| NavigationLink { name, path: path.to_owned(), is_current: here == place };
    let links = [
        link("Now", "/", BarPlace::Now),
        link("Sessions", "/trimtab/sessions", BarPlace::Sessions),
        link("Settings", "/trimtab/settings", BarPlace::Settings),
    ];
    let frame = PageFrame {
        title: &format!("{title} · trimtab"),
        assets: PageAssets::Linked { style: STYLE_PATH, script: SCRIPT_PATH },
        navigation: navigation(&links),
    };
    page(&frame, main)
}

/// Returns the head of a page about a session: the way back, its title, and its other pages.
pub(super) fn session_head(id: SessionId, title: &str, tab: Option<SessionTab>) -> Markup {
    let tabs = [
        (SessionTab::Overview, "Overview", String::new()),
        (SessionTab::WhatIf, "What if", "/what-if".to_owned()),
        (SessionTab::Files, "Files", "/files".to_owned()),
        (SessionTab::Head, "Head", "/head".to_owned()),
    ];
    html! {
        p.crumbs { a href="/trimtab/sessions" { "Sessions" } " › " a href=(session_path(id)) { (id) } }
        h1.title dir="auto" { (title) }
        nav aria-label="Pages of this session" {
            ul.tabs {
                @for (this, name, end) in &tabs {
                    li { a href={ (session_path(id)) (end) } aria-current=[(tab == Some(*this)).then_some("page")] { (name) } }
                }
            }
        }
    }
}

pub(super) fn session_path(id: SessionId) -> String {
    format!("/trimtab/sessions/{id}")
}

pub(super) fn request_path(session: SessionId, request: RequestId) -> String {
    format!("{}/requests/{}", session_path(session), request.0)
}

/// Returns what people call a project: the last folder of its path.
pub(super) fn project_name(path: &str) -> String {
    let name = path.rsplit(['/', '\\']).find(|part| !part.is_empty()).unwrap_or(path);
    escape_name(name).into_owned()
}

/// Returns a time as an element that programs read too.
pub(super) fn time_of(at: Millis) -> Markup {
    let stamp = jiff::Timestamp::from_millisecond(at.0).map(|time| time.to_string()).unwrap_or_default();
    html! { time datetime=(stamp) { (format_minute(at)) } }
}

/// Returns a number with its thousands apart.
pub(super) fn number(number: u64) -> Markup {
    html! { (group_thousands(number)) }
}

/// Returns how many sessions, as words.
pub(super) fn session_count(count: u64) -> String {
    count_with_noun(usize::try_from(count).unwrap_or(usize::MAX), "session", "sessions")
}

/// Returns the links between the pages of a long list; nothing where there is one.
pub(super) fn page_links(path: &str, query: &[(&str, &str)], current: u32, pages: u32) -> Markup {
    let to = |page: u32| {
        let pairs = query.iter().filter(|(_, value)| !value.is_empty());
        let mut parts: Vec<String> =
            pairs.map(|(name, value)| format!("{name}={}", percent_encoded(value))).collect();
        parts.push(format!("page={page}"));
        format!("{path}?{}", parts.join("&"))
    };
    html! {
        @if pages > 1 {
            nav.pages aria-label="Parts of this list" {
                @if current > 1 {
                    a.button href=(to(1)) { "first" }
                    a.button href=(to(current - 1)) rel="prev" { "previous" }
                }
                span { "part " (current) " of " (pages) }
                @if current < pages {
                    a.button href=(to(current + 1)) rel="next" { "next" }
                    a.button href=(to(pages)) { "last" }
                }
            }
        }
    }
}

/// How many parts a list has, at least one.
pub(super) fn page_count(count: u64, each: u32) -> u32 {
    u32::try_from(count.div_ceil(u64::from(each.max(1)))).unwrap_or(u32::MAX).max(1)
}

/// Writes a value into an address.
pub(super) fn percent_encoded(value: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    value
        .bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// Cuts a text after so many letters, and says so.
pub(super) fn cut_text(text: &str, letters: usize) -> (String, bool) {
    let mut rest = text.chars();
    let start: String = rest.by_ref().take(letters).collect();
    (start, rest.next().is_some())
}

impl PageServer {
    /// Returns the hidden field that every form needs.
    pub(super) fn form_token(&self) -> Markup {
        html! { input type="hidden" name="token" value=(self.tokens.form()) autocomplete="off"; }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_values_in_an_address() {
        assert_eq!(percent_encoded("a b&c=é/\"<"), "a%20b%26c%3D%C3%A9/%22%3C");
        assert_eq!(page_count(0, 50), 1);
        assert_eq!((page_count(50, 50), page_count(51, 50)), (1, 2));
        assert_eq!(["/home/dev/shop/", "C:\\work\\shop", "shop"].map(project_name), ["shop"; 3]);
        assert_eq!(cut_text("äöü", 2), ("äö".to_owned(), true));
    }
}
