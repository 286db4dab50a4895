//! From a request to a page: [`PageServer::answer`]. Takes a method, a path and a form; gives a page under a strict policy. The store
//! is asked on threads that may wait.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Either, Full, Limited};
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode,
    body::Body,
    header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, SET_COOKIE},
};
use maud::{Markup, html};
use trimtab_store::{RequestId, SessionId};

use super::{
    EventBody, PageServer, access,
    events::NewsMark,
    shell::{self, BarPlace},
};
use crate::{look, proxy::route::percent_decoded};

/// The body of an answer to a browser.
pub(crate) type PageBody = Either<Full<Bytes>, EventBody>;

/// Bytes of a form: a handle, a policy's name, a token.
const FORM_BYTES: usize = 16 * 1024;

/// What a page may do: nothing but show itself, with the style and the script of this server.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; \
                      base-uri 'none'; frame-ancestors 'none'";

const SCRIPT: &str = include_str!("page.js");

/// Tells whether somebody who opens the proxy's address wants a page: browsers say so, programs take anything.
pub(crate) fn wants_page(headers: &HeaderMap) -> bool {
    let mut accepted = headers.get_all(ACCEPT).into_iter();
    accepted.any(|value| value.to_str().is_ok_and(|value| value.contains("text/html")))
}

/// Tells whether a path below `/trimtab/` is a page's.
pub(crate) fn is_page_path(path: &str) -> bool {
    let Some(rest) = path.strip_prefix("/trimtab/") else { return false };
    let first = rest.split('/').next().unwrap_or_default();
    matches!(first, "sessions" | "settings" | "events" | "login" | "page.css" | "page.js" | "icon.svg")
}

/// What was asked, with its fields.
pub(super) struct PageQuery {
    pairs: Vec<(String, String)>,
}

/// What a page is answered with.
pub(super) enum PageAnswer {
    Page(Markup),
    Error(StatusCode, String),
    /// Somewhere else, which is asked for with GET.
    SeeOther(String),
}

impl PageQuery {
    /// Reads `name=value&name=value`, as addresses and forms have it.
    pub(super) fn parse(text: &str) -> PageQuery {
        let decoded = |text: &str| percent_decoded(&text.replace('+', " "));
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), decoded(value))
        });
        PageQuery { pairs: pairs.collect() }
    }

    /// Returns a field; empty where it is not there.
    pub(super) fn get(&self, name: &str) -> &str {
        self.pairs.iter().find(|(found, _)| found == name).map_or("", |(_, value)| value)
    }

    /// Returns all values of a field.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.pairs.iter().filter(move |(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// Returns which part of a list is asked for, counted from 1.
    pub(super) fn page(&self) -> u32 {
        self.get("page").parse().unwrap_or(1).max(1)
    }
}

impl PageServer {
    /// Answers a request. Whether its host and its origin may ask at all was decided before.
    pub(crate) async fn answer<B>(self: &Arc<PageServer>, request: Request<B>) -> Response<PageBody>
    where
        B: Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>>,
    {
        let (parts, body) = request.into_parts();
        let path = parts.uri.path();
        match path {
            shell::STYLE_PATH => return asset("text/css; charset=utf-8", look::STYLE),
            shell::SCRIPT_PATH => return asset("text/javascript; charset=utf-8", SCRIPT),
            look::ICON_PATH => return asset("image/svg+xml", look::ICON),
            _ => {}
        }
        let query = PageQuery::parse(parts.uri.query().unwrap_or_default());
        let form = match parts.method {
            Method::GET | Method::HEAD => None,
            Method::POST => match Limited::new(body, FORM_BYTES).collect().await {
                Ok(form) => Some(PageQuery::parse(&String::from_utf8_lossy(&form.to_bytes()))),
                Err(_) => return error_page(StatusCode::PAYLOAD_TOO_LARGE, "this form is too long"),
            },
            _ => {
                return error_page(
                    StatusCode::METHOD_NOT_ALLOWED,
                    "pages are read with GET; forms are sent with POST",
                );
            }
        };
        let token = self.options.token.as_deref();
        if path == "/trimtab/login" {
            return self.log_in(&parts.headers, form.as_ref());
        }
        if !self.tokens.may_look(&parts.headers, token) {
            return page_response(StatusCode::UNAUTHORIZED, login_page(None));
        }
        if let Some(form) = &form
            && (!access::may_change(&parts.headers) || !self.tokens.is_own_form(form.get("token")))
        {
            return error_page(
                StatusCode::FORBIDDEN,
                "this form is not of a page that this process made: open the page again and repeat what you did",
            );
        }
        if path == "/trimtab/events" {
            return self.answer_events(NewsMark::parse(query.get("shown")));
        }
        let Ok(_turn) = self.rendering.acquire().await else {
            return error_page(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping");
        };
        let (server, path) = (Arc::clone(self), path.to_owned());
        let rendered = tokio::task::spawn_blocking(move || server.render(&path, &query, form.as_ref())).await;
        match rendered {
            Ok(Ok(PageAnswer::Page(page))) => page_response(StatusCode::OK, page),
            Ok(Ok(PageAnswer::Error(status, words))) => error_page(status, &words),
            Ok(Ok(PageAnswer::SeeOther(path))) => see_other(&path),
            Ok(Err(error)) => error_page(StatusCode::NOT_FOUND, &format!("{error:#}")),
            Err(_) => error_page(
                StatusCode::INTERNAL_SERVER_ERROR,
                "this page could not be made: an error in trimtab",
            ),
        }
    }

    /// Finds the page and makes it.
    fn render(
        self: &Arc<PageServer>,
        path: &str,
        query: &PageQuery,
        form: Option<&PageQuery>,
    ) -> Result<PageAnswer> {
        let path = path.trim_end_matches('/');
        let segments: Vec<&str> = path.split('/').skip(1).collect();
        let page = match (segments.as_slice(), form) {
            ([] | [""], None) => self.now_page()?,
            (["trimtab", "sessions"], None) => self.session_list_page(query)?,
            (["trimtab", "settings"], None) => self.settings_page(),
            (["trimtab", "sessions", session], None) => self.session_page(session_id(session)?, query)?,
            (["trimtab", "sessions", session, "requests", request], None) => {
                self.request_page(session_id(session)?, request_id(request)?, query)?
            }
            (["trimtab", "sessions", session, "requests", request, "blocks", block], None) => self
                .block_page(
                    session_id(session)?,
                    request_id(request)?,
                    block.parse().context("no such block")?,
                    query,
                )?,
            (["trimtab", "sessions", session, "files"], None) => {
                self.files_page(session_id(session)?, query)?
            }
            (["trimtab", "sessions", session, "head"], None) => self.head_page(session_id(session)?)?,
            (["trimtab", "sessions", session, "what-if"], None) => self.what_if_page(session_id(session)?)?,
            (["trimtab", "sessions", session, "what-if"], Some(form)) => {
                return self.start_what_if(session_id(session)?, form);
            }
            (["trimtab", "sessions", session, "wish"], Some(form)) => {
                self.wish_page(session_id(session)?, form)?
            }
            _ => return Ok(PageAnswer::Error(StatusCode::NOT_FOUND, "there is no such page".to_owned())),
        };
        Ok(PageAnswer::Page(page))
    }

    fn answer_events(&self, shown: Option<NewsMark>) -> Response<PageBody> {
        let Some(events) = self.begin_events(shown) else {
            return error_page(StatusCode::SERVICE_UNAVAILABLE, "too many pages listen");
        };
        let mut response = Response::new(Either::Right(events));
        add_headers(response.headers_mut(), HeaderValue::from_static("text/event-stream"));
        response
    }

    /// Takes the token that a browser shows, and gives it a cookie.
    fn log_in(&self, headers: &HeaderMap, form: Option<&PageQuery>) -> Response<PageBody> {
        let Some(form) = form else { return page_response(StatusCode::OK, login_page(None)) };
        let mut shown = HeaderMap::new();
        if let Ok(token) = HeaderValue::from_str(form.get("access")) {
            shown.insert("x-trimtab-token", token);
        }
        let token = self.options.token.as_deref();
        if !access::may_change(headers) || !crate::proxy::guard::has_token(&shown, token) {
            return page_response(StatusCode::UNAUTHORIZED, login_page(Some("This token is wrong.")));
        }
        let mut response = see_other("/");
        if let Ok(cookie) = HeaderValue::from_str(&self.tokens.cookie()) {
            response.headers_mut().insert(SET_COOKIE, cookie);
        }
        response
    }
}

fn session_id(word: &str) -> Result<SessionId> {
    SessionId::parse_name(word)
        .with_context(|| format!("{word} names no session: they are called s1, s2 and so on"))
}

fn request_id(word: &str) -> Result<RequestId> {
    let Ok(number) = word.parse() else { bail!("{word} is no number of a request") };
    Ok(RequestId(number))
}

fn login_page(fault: Option<&str>) -> Markup {
    let main = html! {
        h1 { "This page needs the token" }
        p { "Other machines can reach this address. Enter the token that the program was started with (" code { "--token" } ")." }
        @if let Some(fault) = fault { p.frame.warn role="alert" { (fault) } }
        form.controls method="post" action="/trimtab/login" {
            label { "Token " input type="password" name="access" autocomplete="current-password" required; }
            button type="submit" { "Show the page" }
        }
    };
    shell::whole_page("Token", BarPlace::Now, &main)
}

fn error_page(status: StatusCode, words: &str) -> Response<PageBody> {
    let main = html! {
        h1 { (status.canonical_reason().unwrap_or("Error")) }
        p { (words) }
        p { a href="/" { "To the first page" } }
    };
    page_response(status, shell::whole_page("Error", BarPlace::Now, &main))
}

fn see_other(path: &str) -> Response<PageBody> {
    let mut response = full(StatusCode::SEE_OTHER, Bytes::new());
    if let Ok(path) = HeaderValue::from_str(path) {
        response.headers_mut().insert(LOCATION, path);
    }
    response
}

fn asset(kind: &'static str, text: &'static str) -> Response<PageBody> {
    let mut response = full(StatusCode::OK, Bytes::from_static(text.as_bytes()));
    add_headers(response.headers_mut(), HeaderValue::from_static(kind));
    response
}

fn page_response(status: StatusCode, page: Markup) -> Response<PageBody> {
    let mut response = full(status, Bytes::from(page.into_string()));
    add_headers(response.headers_mut(), HeaderValue::from_static("text/html; charset=utf-8"));
    response
}

fn full(status: StatusCode, body: Bytes) -> Response<PageBody> {
    let mut response = Response::new(Either::Left(Full::new(body)));
    *response.status_mut() = status;
    response
}

fn add_headers(headers: &mut HeaderMap, kind: HeaderValue) {
    headers.insert(CONTENT_TYPE, kind);
    // What is shown is private, and stale a moment later.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    for (name, value) in [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
    ] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_as_browsers_write_them() {
        let query = PageQuery::parse("a=1+2&b=%3Cx%3E&a=3&&c");
        assert_eq!((query.get("a"), query.get("b"), query.get("c"), query.get("d")), ("1 2", "<x>", "", ""));
        assert_eq!(query.all("a").collect::<Vec<_>>(), ["1 2", "3"]);
        assert_eq!(PageQuery::parse("page=0").page(), 1);
        assert_eq!(PageQuery::parse("page=7").page(), 7);
    }

    #[test]
    fn paths_of_pages_are_told_from_those_of_the_proxy() {
        for path in ["/trimtab/sessions", "/trimtab/sessions/s1/files", "/trimtab/page.css"] {
            assert!(is_page_path(path), "{path}");
        }
        for path in
            ["/trimtab/health", "/trimtab/metrics", "/trimtab/fit", "/trimtab/sessionsx", "/v1/messages"]
        {
            assert!(!is_page_path(path), "{path}");
        }
    }

    #[test]
    fn the_script_writes_no_markup() {
        for word in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
            assert!(!SCRIPT.contains(word), "{word}");
        }
    }
}
