//! The frame of a page: head, navigation, main part. Takes a title and where style and script come from; gives a whole document.
//! A page that stands alone in a file carries its own policy, which lets it ask for nothing.

use maud::{DOCTYPE, Markup, PreEscaped, html};

/// The stylesheet of all pages.
pub(crate) const STYLE: &str = include_str!("style.css");

/// Where the icon of pages with linked assets is: without one, a browser asks for `/favicon.ico`, which no page answers.
pub(crate) const ICON_PATH: &str = "/trimtab/icon.svg";

/// A frame with a part cut away.
pub(crate) const ICON: &str = r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path fill="#2563eb" d="M2 2h12v4H2zM2 7h7v3H2zM2 11h12v3H2z"/></svg>"##;

/// What surrounds the main part of a page.
pub(crate) struct PageFrame<'a> {
    pub(crate) title: &'a str,
    pub(crate) assets: PageAssets<'a>,
    /// What [`navigation`] gave; empty where there is nowhere to go.
    pub(crate) navigation: Markup,
}

/// Where a page has its style and its script from.
pub(crate) enum PageAssets<'a> {
    /// From the server that serves it, at these paths.
    Linked { style: &'a str, script: &'a str },
    /// From itself: a report in a file.
    Inline { script: Option<&'a str> },
}

/// One place to go to.
pub(crate) struct NavigationLink<'a> {
    pub(crate) name: &'a str,
    pub(crate) path: String,
    /// Whether it is the page that is shown.
    pub(crate) is_current: bool,
}

impl<'a> PageFrame<'a> {
    /// Frames a page in a file, without a script.
    pub(crate) fn standing_alone(title: &'a str) -> PageFrame<'a> {
        PageFrame {
            title,
            assets: PageAssets::Inline { script: None },
            navigation: PreEscaped(String::new()),
        }
    }
}

/// Returns a whole document.
pub(crate) fn page(frame: &PageFrame<'_>, main: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="same-origin";
                @match &frame.assets {
                    PageAssets::Linked { style, script } => {
                        link rel="stylesheet" href=(style);
                        link rel="icon" type="image/svg+xml" href=(ICON_PATH);
                        script src=(script) defer {}
                    }
                    PageAssets::Inline { script } => {
                        meta http-equiv="Content-Security-Policy" content=(inline_policy(script.is_some()));
                        style { (PreEscaped(STYLE)) }
                    }
                }
                title { (frame.title) }
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                (frame.navigation)
                main #main { (main) }
                @if let PageAssets::Inline { script: Some(script) } = &frame.assets {
                    script { (PreEscaped(script)) }
                }
            }
        }
    }
}

/// Returns the bar with the places to go to.
pub(crate) fn navigation(links: &[NavigationLink<'_>]) -> Markup {
    html! {
        header.bar {
            nav aria-label="Pages" {
                ul {
                    li.brand { "trimtab" }
                    @for link in links {
                        li { a href=(link.path) aria-current=[link.is_current.then_some("page")] { (link.name) } }
                    }
                }
            }
        }
    }
}

fn inline_policy(with_script: bool) -> &'static str {
    if with_script {
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    } else {
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_from_outside_are_never_markup() {
        let frame = PageFrame::standing_alone("</title><script>alert(1)</script>");
        let shown = page(&frame, &html! { p title=("\"><img src=x>") { ("<b>&amp;</b>") } }).into_string();
        assert!(!shown.contains("<script") && !shown.contains("<img") && !shown.contains("<b>"), "{shown}");
        assert!(shown.contains("&lt;b&gt;&amp;amp;&lt;/b&gt;"), "{shown}");
    }

    #[test]
    fn a_page_in_a_file_asks_for_nothing() {
        let shown = page(&PageFrame::standing_alone("Report"), &html! { h1 { "Report" } }).into_string();
        assert!(shown.contains("default-src 'none'") && shown.contains("--accent"));
        for outside in ["src=", "href=\"http", "url(", "@import"] {
            assert!(!shown.contains(outside), "the page asks for something: {outside}");
        }
    }
}
