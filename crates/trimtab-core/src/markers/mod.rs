//! Fields that let a provider's cache find a conversation whose client sets none. [`choose_fields`] takes a request, what its server
//! accepts ([`CacheFields`]) and what is known of the session ([`MarkerTerms`]); gives [`AddedFields`], which the proxy inserts into the
//! bytes it sends and keeps with the request. Clients that set a field of this kind keep exactly theirs. Never changes or removes a byte.

mod insert;
mod next_edit;
mod places;

pub use insert::{AddedFields, Insertion, write_insertions};
pub use next_edit::place_of_next_edit;

use crate::{
    account::ReturnCounts,
    history::{Block, BlockKind, History, Role},
    identity::chain,
    json::{scan, widen},
    prices::{CacheLanding, CacheRules, Model},
    units::Tokens,
};

/// What a server accepts in requests for the sake of its cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheFields {
    /// The field that marks a block.
    pub marker: Option<MarkerField>,
    /// Whether it takes `prompt_cache_key`, by which it finds requests that begin alike.
    pub key: bool,
}

/// How a block says that the cache may end after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkerField {
    /// `cache_control`, without which Anthropic caches nothing.
    CacheControl,
    /// `prompt_cache_breakpoint`, beside the one that OpenAI sets itself at the end of a request from GPT-5.6 on.
    Breakpoint,
}

/// What is known of a request whose client set no marker.
#[derive(Debug, Clone, Copy)]
pub struct MarkerTerms<'a> {
    /// What its server accepts.
    pub accepts: CacheFields,
    /// Its model, with prices and the rules of its cache; nothing where it is not known.
    pub model: Option<&'a Model>,
    /// What is sent.
    pub tokens: Tokens,
    /// How soon the session's requests followed each other.
    pub returns: ReturnCounts,
    /// How many blocks follow the place before the next expected edit: [`place_of_next_edit`].
    pub blocks_after_edit: Option<usize>,
}

/// The most markers that a request may carry (Anthropic).
pub(crate) const MOST_MARKERS: usize = 4;

/// The name of Anthropic's marker, as it is written.
const CACHE_CONTROL: &str = "\"cache_control\"";

/// Letters of the hash in a key: as many as never meet by chance.
const KEY_DIGITS: usize = 32;

/// Chooses what to insert into a request, given as its client sent it and as it is to be sent.
///
/// ```
/// use trimtab_core::{Tokens, account::ReturnCounts, find_model, markers::{CacheFields, MarkerField, MarkerTerms, choose_fields}, parse_as, Format};
///
/// let accepts = CacheFields { marker: Some(MarkerField::CacheControl), key: false };
/// let model = find_model("claude-opus-5")?;
/// let returns = ReturnCounts::default();
/// let terms = MarkerTerms { accepts, model: Some(&model), tokens: Tokens(9000), returns, blocks_after_edit: None };
/// let text = "Look at the importer. ".repeat(100); // shorter ones are not cached
/// let request = format!(r#"{{"max_tokens":9,"tools":[{{"name":"ls","input_schema":{{}}}}],"messages":[{{"role":"user","content":"{text}"}}]}}"#);
/// let request = parse_as(request.into_bytes(), Format::Anthropic)?;
/// let added = choose_fields(&request, &request, &terms);
/// assert_eq!(added.markers(), 1);
/// let sent = String::from_utf8(added.write_into(request.bytes()))?;
/// assert!(sent.ends_with(r#","cache_control":{"type":"ephemeral"}}]}]}"#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn choose_fields(client: &History, sent: &History, terms: &MarkerTerms<'_>) -> AddedFields {
    let MarkerTerms { accepts, model, tokens, .. } = *terms;
    let rules = model.map_or(CacheRules::COMMON, |model| model.cache);
    let mut added = AddedFields::default();
    if tokens < rules.minimum {
        return added;
    }
    match (accepts.marker, rules.landing) {
        (Some(MarkerField::CacheControl), CacheLanding::Breakpoints { look_back }) => {
            let pays = model.is_some_and(|model| markers_pay(client, model, terms.returns));
            if pays && !has_cache_control(client) {
                for place in places::marker_places(sent, terms.blocks_after_edit, &rules, look_back) {
                    added.mark(sent, place, MarkerField::CacheControl);
                }
            }
        }
        (Some(MarkerField::Breakpoint), CacheLanding::RequestEnds { .. }) => {
            let own = ["\"prompt_cache_breakpoint\"", "\"prompt_cache_options\""];
            if !own.iter().any(|name| names_member(client.bytes(), name))
                && let Some(place) = places::end_of_instructions(sent, rules.minimum)
            {
                added.mark(sent, place, MarkerField::Breakpoint);
            }
        }
        (_, _) => {}
    }
    if accepts.key && client.field("prompt_cache_key").is_none() {
        added.add_key(sent, cache_key(client).as_deref());
    }
    added.sort();
    added
}

/// Tells whether JSON has a member of this name, given in quotes, anywhere. In a string the quotes would have backslashes before them.
fn names_member(json: &[u8], name: &str) -> bool {
    memchr::memmem::find(json, name.as_bytes()).is_some()
}

/// Tells whether a client sets a marker: for the whole request, on a block, or on a part of a result.
fn has_cache_control(client: &History) -> bool {
    let is_marked = |block: &Block| {
        let parts = block.body.bytes_in(client.bytes());
        block.marked || block.kind == BlockKind::Result && names_member(parts, CACHE_CONTROL)
    };
    client.field("cache_control").is_some() || client.blocks().iter().any(is_marked)
}

/// Tells whether writing a conversation to the cache is expected to pay. A write costs more than plain input by a part of the prefix,
/// and the next request gets most of the price back if it comes while the cache lives: so the chance of that must exceed the ratio of
/// both, 28 % at 1.25 for writes and .1 for reads.
fn markers_pay(client: &History, model: &Model, returns: ReturnCounts) -> bool {
    let Some((for_it, against)) = expectation(client) else { return false };
    let prices = model.prices;
    if prices.input <= prices.cache_read {
        return false;
    }
    let needed = (prices.cache_write - prices.input) / (prices.input - prices.cache_read);
    let (in_time, late) = (Tokens(returns.in_time).to_float(), Tokens(returns.late).to_float());
    (in_time + for_it) / (in_time + late + for_it + against) >= needed
}

/// Returns how often, before anything is known, another request follows in time and how often not: twice as often as not where a model
/// may call tools, equally often in a chat that went on. Nothing where a single answer is asked for: the first request of a chat, or one
/// that must call a tool, as programs ask for values in a given form.
fn expectation(client: &History) -> Option<(f64, f64)> {
    let has_tools = client.entries().iter().any(|entry| entry.role == Role::Tools && entry.blocks > 0);
    if has_tools && !is_call_forced(client) {
        return Some((1.0, 0.5));
    }
    let went_on = client.messages().iter().any(|entry| entry.role == Role::Assistant);
    went_on.then_some((1.0, 1.0))
}

fn is_call_forced(client: &History) -> bool {
    let Some(raw) = client.field("tool_choice") else { return false };
    let Ok(tape) = scan(raw) else { return false };
    let Some(choice) = tape.root(raw) else { return false };
    let kind = choice.string().or_else(|| choice.text("type"));
    kind.is_some_and(|kind| matches!(&*kind, "any" | "tool" | "required" | "function"))
}

/// Returns the key of a session: a hash of everything up to the user's first message, which all of its requests begin with.
fn cache_key(client: &History) -> Option<String> {
    let first = client.messages().iter().find(|entry| entry.role == Role::User)?;
    let last = widen(first.first_block + first.blocks).checked_sub(1)?;
    let hash = blake3::hash(&chain(client).get(last)?.0).to_hex();
    Some(format!("trimtab-{}", hash.get(..KEY_DIGITS)?))
}
