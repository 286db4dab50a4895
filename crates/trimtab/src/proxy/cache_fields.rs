//! Fields for the provider's cache, in requests of clients that set none. Takes a route, a request and its plan; gives what the server is
//! known to accept ([`accepted_fields`]) and what to send with it ([`PreparedFields`]). Used by `forward` and `planning`. A server of which
//! nothing is known gets no field that its wire does not have.

use std::sync::Arc;

use bytes::Bytes;
use trimtab_core::{
    Format, History, Model, Plan, Tokens,
    account::ReturnCounts,
    markers::{AddedFields, CacheFields, MarkerField, MarkerTerms, choose_fields, place_of_next_edit},
    parse_as,
};

use super::route::Route;

/// A server that accepts fields which others of its wire may refuse.
struct FieldServer {
    host: &'static str,
    /// The name by which it is meant, whatever its address.
    name: Option<&'static str>,
    formats: &'static [Format],
    accepts: CacheFields,
}

const SERVERS: [FieldServer; 3] = [
    FieldServer {
        host: "api.openai.com",
        name: None,
        formats: &[Format::Chat, Format::Responses],
        accepts: CacheFields { marker: Some(MarkerField::Breakpoint), key: true },
    },
    FieldServer {
        host: "openrouter.ai",
        name: Some("openrouter"),
        formats: &[Format::Chat],
        accepts: CacheFields { marker: Some(MarkerField::CacheControl), key: false },
    },
    FieldServer {
        host: "api.mistral.ai",
        name: Some("mistral"),
        formats: &[Format::Chat],
        accepts: CacheFields { marker: None, key: true },
    },
];

/// A token has about four bytes, where nothing was counted.
const BYTES_PER_TOKEN: u64 = 4;

/// What is sent of a request, with what was inserted.
#[derive(Default)]
pub(crate) struct PreparedFields {
    /// The bytes; none for the unchanged request.
    pub(crate) request: Option<Bytes>,
    pub(crate) added: Arc<AddedFields>,
}

/// Returns what the server of a route accepts for the sake of its cache. Everybody who speaks Anthropic's wire knows its markers.
pub(crate) fn accepted_fields(route: &Route, format: Format) -> CacheFields {
    if format == Format::Anthropic {
        return CacheFields { marker: Some(MarkerField::CacheControl), key: false };
    }
    let (name, host) = (route.upstream.known_name(), route.upstream.host_name());
    // Under the name of the wire, an address of the user's own may be any server that speaks it.
    let is_named = |server: &&FieldServer| server.name == Some(name) || host == Some(server.host);
    let server = SERVERS.iter().find(|server| server.formats.contains(&format) && is_named(server));
    server.map_or_else(CacheFields::default, |server| server.accepts)
}

/// Inserts what lets the cache find a request that was planned for; `fitted` are its bytes where something is hidden.
pub(super) fn add_to_planned(
    accepts: CacheFields,
    model: Option<&Model>,
    returns: ReturnCounts,
    history: &History,
    plan: &Plan,
    fitted: Option<Vec<u8>>,
) -> PreparedFields {
    let blocks_after_edit = place_of_next_edit(history, plan);
    let terms = MarkerTerms { accepts, model, tokens: plan.after(), returns, blocks_after_edit };
    add_fields(&terms, history, fitted)
}

/// Inserts the same into a request for which there was no time to plan.
pub(super) fn add_to_unplanned(
    accepts: CacheFields,
    model: Option<&Model>,
    returns: ReturnCounts,
    history: &History,
    resent: Option<Vec<u8>>,
) -> PreparedFields {
    let bytes = resent.as_ref().map_or(history.bytes().len(), Vec::len);
    let tokens = Tokens(Tokens::from_len(bytes).0 / BYTES_PER_TOKEN);
    let terms = MarkerTerms { accepts, model, tokens, returns, blocks_after_edit: None };
    add_fields(&terms, history, resent)
}

/// Inserts into the bytes that are sent instead of a request, or into the request.
fn add_fields(terms: &MarkerTerms<'_>, history: &History, instead: Option<Vec<u8>>) -> PreparedFields {
    let Some(instead) = instead.map(Arc::new) else {
        let added = choose_fields(history, history, terms);
        let request = (!added.is_empty()).then(|| Bytes::from(added.write_into(history.bytes())));
        return PreparedFields { request, added: Arc::new(added) };
    };
    let sent = parse_as(Arc::clone(&instead), history.format());
    let added = sent.map(|sent| choose_fields(history, &sent, terms)).unwrap_or_default();
    let request = if added.is_empty() { Arc::unwrap_or_clone(instead) } else { added.write_into(&instead) };
    PreparedFields { request: Some(Bytes::from(request)), added: Arc::new(added) }
}
