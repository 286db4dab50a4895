//! Headers on their way through. Takes what one side sent; gives what the other side should see. Never changes the spelling
//! or the order of what it leaves in.

use hyper::{
    HeaderMap,
    header::{CONNECTION, EXPECT, HOST, HeaderName, HeaderValue, TE, TRAILER, TRANSFER_ENCODING, UPGRADE},
};
use trimtab_core::{Handle, History};
use trimtab_store::{SessionLabel, name_from_headers, name_in_history, project_in_header};

/// What our own headers begin with.
pub(crate) const OWN: &str = "x-trimtab";

/// The header that pins blocks.
const PIN: &str = "x-trimtab-pin";

/// The header that names the project that the agent works in.
const PROJECT: &str = "x-trimtab-project";

/// What is taken from the headers of a client for our own use.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClientHeaders {
    /// The client's name for the conversation.
    pub(crate) name: Option<String>,
    /// The project that the agent works in.
    pub(crate) project: Option<String>,
    /// The blocks that the client asks never to hide.
    pub(crate) pins: Vec<Handle>,
}

impl ClientHeaders {
    /// Reads headers; where they name no project, it is that of the proxy.
    pub(crate) fn read(headers: &HeaderMap, project_of_proxy: Option<&str>) -> ClientHeaders {
        let texts = headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        let project = headers.get(PROJECT).and_then(|value| project_in_header(value.as_bytes()));
        ClientHeaders {
            name: name_from_headers(texts),
            project: project.or_else(|| project_of_proxy.map(str::to_owned)),
            pins: requested_pins(headers),
        }
    }

    /// Calls a function with what is known about the session of a conversation.
    pub(crate) fn with_label<T>(&self, history: &History, work: impl FnOnce(SessionLabel<'_>) -> T) -> T {
        let name = self.name.clone().or_else(|| name_in_history(history));
        work(SessionLabel { name: name.as_deref(), project: self.project.as_deref() })
    }
}

/// Headers that are between two neighbours and go no further.
const HOP_BY_HOP: [HeaderName; 7] = [
    CONNECTION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("http2-settings"),
];

/// Makes the headers of a request those that upstream should see.
pub(crate) fn to_upstream(headers: &mut HeaderMap, host: HeaderValue) {
    remove_hop_by_hop(headers);
    for name in
        [EXPECT, HeaderName::from_static("proxy-authorization"), HeaderName::from_static("proxy-connection")]
    {
        headers.remove(name);
    }
    remove_own(headers);
    headers.insert(HOST, host);
}

/// Makes the headers of an answer those that the client should see.
pub(crate) fn to_client(headers: &mut HeaderMap) {
    remove_hop_by_hop(headers);
    headers.remove("proxy-authenticate");
}

/// Tells whether the client asks to speak another protocol from here on. HTTP/2 does not count: clients offer it with ordinary
/// requests, bodies included, and go on with HTTP/1.1 where the offer is passed over.
pub(crate) fn wants_upgrade(headers: &HeaderMap) -> bool {
    let offers = headers.get_all(UPGRADE).into_iter().filter_map(|value| value.to_str().ok());
    let mut protocols = offers.flat_map(|value| value.split(',')).map(str::trim);
    protocols.any(|protocol| !protocol.is_empty() && !protocol.eq_ignore_ascii_case("h2c"))
        && named_by_connection(headers).any(|name| name.eq_ignore_ascii_case("upgrade"))
}

/// Tells whether the client asks to be left alone.
pub(crate) fn asks_off(headers: &HeaderMap) -> bool {
    headers.get(OWN).is_some_and(|value| value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"off"))
}

/// Returns the blocks that the client asks to keep visible: `x-trimtab-pin: HANDLE[, HANDLE...]`. Anything but a handle is skipped.
fn requested_pins(headers: &HeaderMap) -> Vec<Handle> {
    let values = headers.get_all(PIN).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).filter_map(|word| Handle::parse(word.trim())).collect()
}

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = named_by_connection(headers)
        .filter_map(|name| HeaderName::from_bytes(name.as_bytes()).ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

fn named_by_connection(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(CONNECTION).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

fn remove_own(headers: &mut HeaderMap) {
    let own: Vec<HeaderName> =
        headers.keys().filter(|name| name.as_str().starts_with(OWN)).cloned().collect();
    for name in own {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    fn check(sent: &[(&'static str, &'static str)], expected: &[(&'static str, &'static str)]) {
        let mut found = headers(sent);
        to_upstream(&mut found, HeaderValue::from_static("up"));
        assert_eq!(found, headers(expected));
    }

    #[test]
    fn what_is_between_neighbours_goes_no_further() {
        check(
            &[
                ("host", "me"),
                ("connection", "keep-alive, X-Once"),
                ("x-once", "1"),
                ("te", "trailers"),
                ("authorization", "k"),
            ],
            &[("host", "up"), ("authorization", "k")],
        );
    }

    #[test]
    fn our_own_headers_stay_here() {
        check(
            &[
                ("host", "me"),
                ("x-trimtab", "on"),
                ("x-trimtab-token", "t"),
                ("x-trimtab-pin", "6ca415216d72"),
                ("x-trimtab-project", "/srv/app"),
                ("x-other", "1"),
            ],
            &[("host", "up"), ("x-other", "1")],
        );
    }

    #[test]
    fn pins_are_handles_in_one_header_or_several() {
        let sent = headers(&[("x-trimtab-pin", "6ca415216d72, nothing,"), ("x-other", "6ca415216d73")]);
        assert_eq!(
            requested_pins(&sent).iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["6ca415216d72"]
        );
        let mut sent = headers(&[("x-trimtab-pin", "6ca415216d72")]);
        sent.append("x-trimtab-pin", HeaderValue::from_static("0123456789ab,6ca415216d72"));
        assert_eq!(requested_pins(&sent).len(), 3);
        assert_eq!(requested_pins(&headers(&[])), []);
    }

    #[test]
    fn a_project_is_named_by_the_request_before_the_proxy() {
        let project = |sent: &[(&'static str, &'static str)]| {
            ClientHeaders::read(&headers(sent), Some("/of/proxy")).project.expect("a project")
        };
        assert_eq!(project(&[("x-trimtab-project", "/srv/app/")]), "/srv/app");
        assert_eq!(project(&[("x-trimtab-project", " ")]), "/of/proxy");
        assert_eq!(project(&[]), "/of/proxy");
        let read = ClientHeaders::read(&headers(&[("session_id", "conv-7")]), None);
        assert_eq!((read.name.as_deref(), read.project), (Some("conv-7"), None));
    }

    #[test]
    fn an_offer_of_http_2_is_no_wish_to_leave_http() {
        let offer = |protocol| headers(&[("connection", "Upgrade, HTTP2-Settings"), ("upgrade", protocol)]);
        assert!(wants_upgrade(&offer("websocket")));
        assert!(wants_upgrade(&offer("h2c, websocket")));
        assert!(!wants_upgrade(&offer("h2c")));
        assert!(!wants_upgrade(&headers(&[("upgrade", "websocket")])), "the connection does not name it");
    }

    #[test]
    fn only_the_word_off_switches_off() {
        assert!(asks_off(&headers(&[("x-trimtab", " OFF ")])));
        assert!(!asks_off(&headers(&[("x-trimtab", "on")])));
        assert!(!asks_off(&headers(&[])));
    }
}
