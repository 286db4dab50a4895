//! Who may ask. Takes a request's headers; gives yes or no. Never lets a web page that points a name at this machine in, and
//! never compares a token byte by byte.

use std::net::IpAddr;

use hyper::{
    HeaderMap,
    header::{AUTHORIZATION, HOST, HeaderValue, ORIGIN},
};

/// Tells whether a request names this machine: by an address, as `localhost`, or by a name that was allowed.
///
/// A page on the web can make its own name point here, but it cannot make the browser send another name than its own.
pub(crate) fn names_us(headers: &HeaderMap, allowed: &[String]) -> bool {
    let mut hosts = headers.get_all(HOST).into_iter();
    let Some(first) = hosts.next() else { return true };
    let Ok(host) = first.to_str() else { return false };
    let name = without_port(host);
    let known = name.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || allowed.iter().any(|allowed| allowed.eq_ignore_ascii_case(name));
    hosts.next().is_none() && known
}

/// Tells whether a web page of another site sent a request. Browsers say so in headers that no page can change; programs
/// that are no browser send neither header.
///
/// Pages that this machine serves and the panels of VS Code are local tools. `null` is what any page can make itself.
pub(crate) fn is_cross_site(headers: &HeaderMap, allowed: &[String]) -> bool {
    let mut origins = headers.get_all(ORIGIN).into_iter().peekable();
    if origins.peek().is_some() {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        let is_local = |origin: &HeaderValue| {
            origin.to_str().is_ok_and(|origin| is_local_origin(origin, host) || is_listed(origin, allowed))
        };
        return !origins.all(is_local);
    }
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    matches!(site, Some(site) if site != b"none" && site != b"same-origin")
}

fn is_listed(origin: &str, allowed: &[String]) -> bool {
    allowed.iter().any(|allowed| allowed.trim_end_matches('/').eq_ignore_ascii_case(origin))
}

fn is_local_origin(origin: &str, host: Option<&str>) -> bool {
    let Some((scheme, place)) = origin.split_once("://") else { return false };
    if scheme.eq_ignore_ascii_case("vscode-webview") {
        return true;
    }
    let name = without_port(place);
    let is_loopback = name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    ["http", "https"].iter().any(|web| scheme.eq_ignore_ascii_case(web))
        && (is_loopback || host.is_some_and(|host| host.eq_ignore_ascii_case(place)))
}

fn without_port(host: &str) -> &str {
    match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    }
}

/// Tells whether a request carries the token, where one is demanded.
pub(crate) fn has_token(headers: &HeaderMap, token: Option<&str>) -> bool {
    let Some(token) = token else { return true };
    let bearer = headers.get(AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    let own = headers.get("x-trimtab-token").map(HeaderValue::as_bytes);
    [bearer, own].into_iter().flatten().any(|given| equal_in_constant_time(given, token.as_bytes()))
}

/// Compares in a time that does not tell where the first difference is.
pub(crate) fn equal_in_constant_time(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |sum, (one, other)| sum | (one ^ other)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(host: &str, expected: bool) {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        assert_eq!(names_us(&headers, &["box.lan".to_owned()]), expected, "{host}");
    }

    #[test]
    fn addresses_localhost_and_allowed_names_are_ours() {
        for host in ["127.0.0.1:8790", "localhost:1", "LOCALHOST", "[::1]:8790", "10.1.2.3", "Box.lan:80"] {
            check(host, true);
        }
    }

    #[test]
    fn names_on_the_web_are_not() {
        for host in ["evil.example", "127.0.0.1.evil.example:8790", "localhost.evil.example", "", "[evil]"] {
            check(host, false);
        }
    }

    fn check_origin(pairs: &[(&'static str, &'static str)], expected: bool) {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_static("127.0.0.1:8790"));
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        assert_eq!(is_cross_site(&headers, &["https://chat.example".to_owned()]), expected, "{pairs:?}");
    }

    #[test]
    fn pages_of_other_sites_are_told_by_their_headers() {
        check_origin(&[("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")], true);
        check_origin(&[("origin", "http://localhost.evil.example")], true);
        check_origin(&[("origin", "null")], true);
        check_origin(&[("origin", "file://")], true);
        check_origin(&[("sec-fetch-site", "cross-site")], true);
        check_origin(&[("sec-fetch-site", "same-site")], true);
        check_origin(&[("origin", "http://localhost:3000"), ("origin", "https://evil.example")], true);
    }

    #[test]
    fn programs_and_pages_of_this_machine_are_let_in() {
        check_origin(&[], false);
        check_origin(&[("sec-fetch-site", "none")], false);
        check_origin(&[("origin", "http://localhost:3000"), ("sec-fetch-site", "same-site")], false);
        check_origin(&[("origin", "http://[::1]:3000")], false);
        check_origin(&[("origin", "vscode-webview://0abc"), ("sec-fetch-site", "cross-site")], false);
        check_origin(&[("origin", "https://chat.example"), ("sec-fetch-site", "cross-site")], false);
    }

    #[test]
    fn a_token_is_needed_where_there_is_one() {
        let mut headers = HeaderMap::new();
        assert!(has_token(&headers, None));
        assert!(!has_token(&headers, Some("secret")));
        headers.insert(AUTHORIZATION, "Bearer secret".parse().unwrap());
        assert!(has_token(&headers, Some("secret")));
        assert!(!has_token(&headers, Some("secrets")));
    }
}
