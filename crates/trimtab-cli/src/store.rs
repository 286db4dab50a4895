//! The store as the commands use it. Takes the place that was named, or the usual one; gives a store, and sessions of it as
//! recordings. Says once where conversations are kept.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use trimtab::{Millis, Point, Recording, Segment, Start, parse_as};
use trimtab_store::{SessionId, Sqlite, Store, default_path};

use crate::{args::StorePlace, output};

/// Returns the file that is meant.
pub(crate) fn path(place: &StorePlace) -> Result<PathBuf> {
    let named = place.path.clone().or_else(default_path);
    named.context("no home folder is known to keep conversations in: name a file with --store PATH")
}

/// Opens the store to write to it; says where it is when it is made.
pub(crate) fn open(place: &StorePlace) -> Result<Sqlite> {
    let path = path(place)?;
    let is_new = !path.exists();
    let store = Sqlite::open(&path)?;
    if is_new {
        output::note(format_args!(
            "conversations are kept in {}; `trimtab forget` removes them, --no-store keeps none",
            path.display()
        ));
    }
    Ok(store)
}

/// Opens a store that is there already. Where it may be written to, it is, so that searching can make its index.
pub(crate) fn open_existing(place: &StorePlace) -> Result<Sqlite> {
    let path = path(place)?;
    if !path.exists() {
        bail!("{}: nothing is kept yet: `trimtab fit --store PATH` keeps what it hides", path.display());
    }
    let writable = path.metadata().is_ok_and(|about| !about.permissions().readonly());
    let store = if writable { Sqlite::open(&path) } else { Sqlite::open_to_read(&path) };
    Ok(store?)
}

/// Reads a session as a recording of one segment: its last request, with all requests as points.
pub(crate) fn recording(place: &StorePlace, session: SessionId) -> Result<Recording> {
    let store = open_existing(place)?;
    let requests = store.requests(session)?;
    let last = requests.last().with_context(|| format!("{session}: has no requests"))?;
    let stored = store.request(last.id)?;
    let history = parse_as(stored.bytes, last.format).with_context(|| session.to_string())?;
    let name = store.sessions()?.into_iter().find(|info| info.id == session).and_then(|info| info.name);
    let all = history.messages().len();
    let points = requests.iter().map(|request| Point {
        messages: all,
        at: Some(request.at),
        model: request.model.clone(),
        usage: request.usage,
    });
    let points = points.collect();
    let segment = Segment { name, start: Start::Session, history, points };
    Ok(Recording { agent: "request", segments: vec![segment], problems: Vec::new() })
}

/// Returns the time.
pub(crate) fn now() -> Millis {
    Millis(jiff::Timestamp::now().as_millisecond())
}

/// Returns a time for people: in UTC, to the minute.
pub(crate) fn minute(time: Millis) -> String {
    let time = jiff::Timestamp::from_millisecond(time.0).map(|time| time.to_string()).unwrap_or_default();
    let minute: String = time.chars().take(16).collect();
    minute.replace('T', " ")
}

/// Returns a number of bytes for people: `1.2 MB`.
pub(crate) fn size(bytes: u64) -> String {
    let tenths = |unit: u64| format!("{}.{}", bytes / unit, bytes % unit * 10 / unit);
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} kB", tenths(1_000)),
        1_000_000..1_000_000_000 => format!("{} MB", tenths(1_000_000)),
        1_000_000_000.. => format!("{} GB", tenths(1_000_000_000)),
    }
}

/// Returns which share of the tokens was not sent, in percent.
pub(crate) fn saved(before: u64, after: u64) -> u64 {
    before.saturating_sub(after) * 100 / before.max(1)
}
