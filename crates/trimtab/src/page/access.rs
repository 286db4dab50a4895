//! Who may look, and who may change something: [`PageTokens`], [`may_change`]. A browser shows its token once and gets a cookie; every
//! form carries a second token that only pages of this process know.

use anyhow::{Context, Result};
use hyper::{
    HeaderMap,
    header::{COOKIE, HOST, ORIGIN},
};

use crate::proxy::guard::{equal_in_constant_time, has_token};

/// The name of the cookie of a browser that has shown the token.
const COOKIE_NAME: &str = "trimtab_page";

/// Secrets of one process, made when it starts.
pub(super) struct PageTokens {
    /// What every form carries.
    form: String,
    /// What the cookie of a browser holds that has shown the token.
    visit: String,
}

impl PageTokens {
    /// Draws both.
    pub(super) fn new() -> Result<PageTokens> {
        Ok(PageTokens { form: draw_token()?, visit: draw_token()? })
    }

    /// Returns what a form carries.
    pub(super) fn form(&self) -> &str {
        &self.form
    }

    /// Tells whether a form was made by this process.
    pub(super) fn is_own_form(&self, token: &str) -> bool {
        equal_in_constant_time(token.as_bytes(), self.form.as_bytes())
    }

    /// Tells whether somebody may look: nobody else can reach this machine, or the token was shown.
    pub(super) fn may_look(&self, headers: &HeaderMap, token: Option<&str>) -> bool {
        if has_token(headers, token) {
            return true;
        }
        let cookies = headers.get_all(COOKIE).into_iter().filter_map(|cookies| cookies.to_str().ok());
        let mut pairs =
            cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(name, value)| {
            name == COOKIE_NAME && equal_in_constant_time(value.as_bytes(), self.visit.as_bytes())
        })
    }

    /// Returns the header that a browser keeps after it has shown the token.
    pub(super) fn cookie(&self) -> String {
        format!("{COOKIE_NAME}={}; Path=/; HttpOnly; SameSite=Strict", self.visit)
    }
}

/// Tells whether a request that changes something comes from a page of the same origin: browsers say so in headers that no page can
/// change.
pub(super) fn may_change(headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let is_same = |origin: &str| {
        origin
            .split_once("://")
            .is_some_and(|(_, place)| host.is_some_and(|host| host.eq_ignore_ascii_case(place)))
    };
    let origins_fit = headers.get_all(ORIGIN).into_iter().all(|origin| origin.to_str().is_ok_and(is_same));
    let site = headers.get("sec-fetch-site").map(hyper::header::HeaderValue::as_bytes);
    origins_fit && site.is_none_or(|site| site == b"same-origin")
}

/// Draws 128 bits, written in hexadecimal digits.
fn draw_token() -> Result<String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).ok().context("the system gives no random numbers")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, "127.0.0.1:8790".parse().unwrap());
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn only_the_own_origin_may_change_something() {
        assert!(may_change(&headers(&[])));
        assert!(may_change(&headers(&[
            ("origin", "http://127.0.0.1:8790"),
            ("sec-fetch-site", "same-origin")
        ])));
        for other in ["http://localhost:3000", "http://127.0.0.1:8791", "null", "https://evil.example"] {
            assert!(!may_change(&headers(&[("origin", other)])), "{other}");
        }
        for site in ["cross-site", "same-site", "none"] {
            assert!(!may_change(&headers(&[("sec-fetch-site", site)])), "{site}");
        }
    }

    #[test]
    fn a_browser_looks_with_its_cookie_once_the_token_was_shown() {
        let tokens = PageTokens::new().unwrap();
        assert!(tokens.may_look(&headers(&[]), None), "nobody else can ask");
        assert!(!tokens.may_look(&headers(&[]), Some("secret")));
        assert!(tokens.may_look(&headers(&[("authorization", "Bearer secret")]), Some("secret")));
        let cookie = tokens.cookie();
        let pair = cookie.split(';').next().unwrap();
        assert!(tokens.may_look(&headers(&[("cookie", &format!("a=b; {pair}"))]), Some("secret")));
        assert!(!tokens.may_look(&headers(&[("cookie", "trimtab_page=0")]), Some("secret")));
        let other = PageTokens::new().unwrap();
        assert!(!other.is_own_form(tokens.form()) && tokens.is_own_form(tokens.form()));
    }
}
