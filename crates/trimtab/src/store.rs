//! The store as the commands use it. Takes the place that was named, or the usual one; gives a store, and sessions of it as
//! recordings. Says once where conversations are kept.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::Arc,
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use trimtab_core::{ChainHash, History, Millis, Point, parse_as};
use trimtab_replay::{Recording, Segment, SegmentStart};
use trimtab_store::{
    ForgetSelection, RequestId, RequestInfo, Retention, RunMode, SessionId, Sqlite, Store, StoreError,
    default_path,
};

use crate::{args::StorePathArgs, output};

/// Returns the file that is meant.
pub(crate) fn path(place: &StorePathArgs) -> Result<PathBuf> {
    let named = place.path.clone().or_else(default_path);
    let path =
        named.context("no home folder is known to keep conversations in: name a file with --store PATH")?;
    if path.is_dir() {
        bail!("{}: is a folder: name a file in it with --store PATH", path.display());
    }
    Ok(path)
}

/// Opens the store to write to it; says where it is when it is made.
pub(crate) fn open_or_create(place: &StorePathArgs) -> Result<Sqlite> {
    let path = path(place)?;
    let is_new = !path.exists();
    let store = Sqlite::open(&path)?;
    if is_new {
        output::print_note(format_args!(
            "sessions are stored in {}; `trimtab forget` deletes them, --no-store stores nothing",
            path.display()
        ));
    }
    Ok(store)
}

/// Puts together what is appended in small pieces, and forgets what is no longer to be kept, now and then and off the way of any
/// request, until the store is closed.
pub(crate) fn tidy_now_and_then(store: &Arc<Sqlite>, retention: Retention) {
    let store = Arc::downgrade(store);
    let tidying = move || {
        for round in 0_u64.. {
            {
                let Some(store) = store.upgrade() else { return };
                if round.is_multiple_of(ROUNDS_PER_FORGETTING) && !retention.keeps_all() {
                    // What cannot be forgotten now is forgotten another time.
                    let _ = store.forget(&ForgetSelection::Beyond(retention, current_time()), RunMode::Do);
                }
                if round > 0 {
                    // What cannot be tidied is whole all the same; another time it may be.
                    let _ = store.tidy();
                }
            }
            thread::sleep(BETWEEN_TIDYING);
        }
    };
    // Without the thread the store only takes more space.
    let _ = thread::Builder::new().name("tidy".to_owned()).spawn(tidying);
}

/// How long small pieces wait: an agent makes a few requests in this time.
const BETWEEN_TIDYING: Duration = Duration::from_secs(60);

/// Every so many rounds, what is no longer to be kept is forgotten: at the start and every hour. Looking for it reads a row of
/// every block.
const ROUNDS_PER_FORGETTING: u64 = 60;

/// Opens a store that is there already. Where it may be written to, it is, so that searching can make its index.
pub(crate) fn open_existing(place: &StorePathArgs) -> Result<Sqlite> {
    let path = path(place)?;
    if !path.exists() {
        bail!(
            "{}: nothing is stored yet; `trimtab wrap` and `trimtab proxy` store the sessions that they serve",
            path.display()
        );
    }
    match Sqlite::open(&path) {
        // What may not be written to, or not grow, can still be read.
        Err(StoreError::ReadOnly | StoreError::Full) => Ok(Sqlite::open_to_read(&path)?),
        opened => Ok(opened?),
    }
}

/// Reads a session as a recording: one segment for each way that it took, with the requests that were made on it as points.
pub(crate) fn session_as_recording(store: &dyn Store, session: SessionId) -> Result<Recording> {
    let mut left = store.requests(session)?;
    let name = store.session(session)?.name;
    let mut segments: Vec<(RequestId, Segment)> = Vec::new();
    // The newest request holds those that it goes on from; others went another way.
    while let Some(newest) = left.last() {
        let (id, format) = (newest.id, newest.format);
        let bytes = store.request(id)?.bytes;
        let history = parse_as(bytes, format).with_context(|| session.to_string())?;
        let carried = messages_by_chain(&history);
        let on_the_way = |request: &RequestInfo| request.id == id || carried.contains_key(&request.tip);
        let (own, others): (Vec<_>, Vec<_>) = left.into_iter().partition(on_the_way);
        left = others;
        let points = own.iter().map(|request| point_of(&history, &carried, request)).collect();
        let first = own.first().map_or(id, |request| request.id);
        segments.push((first, Segment { name: name.clone(), start: SegmentStart::Branch, history, points }));
    }
    segments.sort_by_key(|(first, _)| *first);
    let mut segments: Vec<Segment> = segments.into_iter().map(|(_, segment)| segment).collect();
    segments.first_mut().with_context(|| format!("{session}: has no requests"))?.start =
        SegmentStart::Session;
    Ok(Recording { agent: "request", segments, problems: Vec::new() })
}

/// Returns the requests of a session that the latest one goes on from, and itself, as points of a recording.
pub(crate) fn points_on_the_way(history: &History, requests: &[RequestInfo]) -> Vec<Point> {
    let carried = messages_by_chain(history);
    let own = requests.iter().filter(|request| carried.contains_key(&request.tip));
    own.map(|request| point_of(history, &carried, request)).collect()
}

fn point_of(history: &History, carried: &HashMap<ChainHash, usize>, request: &RequestInfo) -> Point {
    Point {
        messages: carried.get(&request.tip).copied().unwrap_or(history.messages().len()),
        at: Some(request.at),
        model: request.model.clone(),
        usage: request.usage,
    }
}

/// Returns how many messages a request carried that ended in each message's last block.
fn messages_by_chain(history: &History) -> HashMap<ChainHash, usize> {
    let head = history.entries().len() - history.messages().len();
    let blocks = history.blocks().iter().zip(history.chain());
    // Later blocks of a message take the place of earlier ones: only whole messages make a request.
    let last_of: BTreeMap<u32, ChainHash> = blocks.map(|(block, hash)| (block.entry.0, hash)).collect();
    let count = |entry: u32| usize::try_from(entry).ok()?.checked_sub(head).map(|index| index + 1);
    last_of.into_iter().filter_map(|(entry, hash)| Some((hash, count(entry)?))).collect()
}

/// Returns the time.
pub(crate) fn current_time() -> Millis {
    Millis(jiff::Timestamp::now().as_millisecond())
}

/// Returns a time for people: in UTC, to the minute.
pub(crate) fn format_minute(time: Millis) -> String {
    let time = jiff::Timestamp::from_millisecond(time.0).map(|time| time.to_string()).unwrap_or_default();
    let minute: String = time.chars().take(16).collect();
    minute.replace('T', " ")
}

/// Returns a number of bytes for people: `1.2 MB`.
pub(crate) fn format_size(bytes: u64) -> String {
    let tenths = |unit: u64| format!("{}.{}", bytes / unit, bytes % unit * 10 / unit);
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} kB", tenths(1_000)),
        1_000_000..1_000_000_000 => format!("{} MB", tenths(1_000_000)),
        1_000_000_000.. => format!("{} GB", tenths(1_000_000_000)),
    }
}

/// Returns which share of the tokens was not sent, in percent.
pub(crate) fn percent_saved(before: u64, after: u64) -> u64 {
    before.saturating_sub(after) * 100 / before.max(1)
}

#[cfg(test)]
mod tests {
    use trimtab_core::{Policy, Settings, fit, parse};
    use trimtab_store::{Append, Appended, SessionLabel};

    use super::*;

    /// Keeps requests of these words, said in turns; gives the session of the last as a recording.
    fn check(conversations: &[&[&str]]) -> Vec<(SegmentStart, Vec<usize>)> {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Sqlite::open(&folder.path().join("trimtab.db")).expect("a store");
        let settings = Settings::new(Policy::find_shipped("none").expect("a policy"));
        let mut last = SessionId(0);
        let mut sent = Vec::new();
        for (at, words) in (1..).zip(conversations) {
            let role = |index: usize| if index.is_multiple_of(2) { "user" } else { "assistant" };
            let message =
                |(index, word): (usize, &&str)| format!(r#"{{"role":"{}","content":"{word}"}}"#, role(index));
            let messages: Vec<String> = words.iter().enumerate().map(message).collect();
            let request =
                format!(r#"{{"system":"s","model":"m","messages":[{}]}}"#, messages.join(",")).into_bytes();
            let known = store
                .recognize(&parse(request.clone()).expect("a request"), SessionLabel::default())
                .expect("the store");
            let fitted = fit(request.clone(), &known.memory, &settings, Millis(at)).expect("a plan");
            let kept = store
                .append_request(&Append::new(&fitted.history, &fitted.plan, &known, Millis(at)))
                .expect("the store");
            let Appended::Stored { session, .. } = kept else { panic!("nobody else writes") };
            (last, sent) = (session, [sent, vec![request]].concat());
        }
        let recording = session_as_recording(&store, last).expect("a session");
        for segment in &recording.segments {
            for point in &segment.points {
                let index = usize::try_from(point.at.expect("a time").0).expect("small") - 1;
                let request = String::from_utf8_lossy(&segment.request_at(point)).into_owned();
                assert_eq!(request, String::from_utf8_lossy(&sent[index]), "what was sent at a point");
            }
        }
        let points = |segment: &Segment| segment.points.iter().map(|point| point.messages).collect();
        recording.segments.iter().map(|segment| (segment.start, points(segment))).collect()
    }

    #[test]
    fn every_request_of_a_session_is_a_point_where_it_was_made() {
        let all = ["Hi", "Ho", "And?", "So.", "Bye"];
        let found = check(&[&all[..1], &all[..3], &all]);
        assert_eq!(found, [(SegmentStart::Session, vec![1, 3, 5])]);
    }

    #[test]
    fn another_way_is_a_segment_of_its_own() {
        let left = ["Hi", "Ho", "left", "l", "on"];
        let right = ["Hi", "Ho", "right"];
        let found = check(&[&left[..1], &left[..3], &left, &right]);
        // The beginning belongs to whoever came last; the way not taken keeps its own requests.
        assert_eq!(found, [(SegmentStart::Session, vec![1, 3]), (SegmentStart::Branch, vec![3, 5])]);
    }
}
