//! Who may ask. Takes a request's headers; gives yes or no. Never lets a web page that points a name at this machine in, and
//! never compares a token byte by byte.

use std::net::IpAddr;

use hyper::{
    HeaderMap,
    header::{AUTHORIZATION, HOST},
};

/// Tells whether a request names this machine: by an address, as `localhost`, or by a name that was allowed.
///
/// A page on the web can make its own name point here, but it cannot make the browser send another name than its own.
pub(crate) fn names_us(headers: &HeaderMap, allowed: &[String]) -> bool {
    let mut hosts = headers.get_all(HOST).into_iter();
    let Some(first) = hosts.next() else { return true };
    let Ok(host) = first.to_str() else { return false };
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let known = name.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || allowed.iter().any(|allowed| allowed.eq_ignore_ascii_case(name));
    hosts.next().is_none() && known
}

/// Tells whether a request carries the token, where one is demanded.
pub(crate) fn has_token(headers: &HeaderMap, token: Option<&str>) -> bool {
    let Some(token) = token else { return true };
    let bearer = headers.get(AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    let own = headers.get("x-trimtab-token").map(hyper::header::HeaderValue::as_bytes);
    [bearer, own].into_iter().flatten().any(|given| same(given, token.as_bytes()))
}

/// Compares in a time that does not tell where the first difference is.
fn same(one: &[u8], other: &[u8]) -> bool {
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
