//! Segments under construction. Takes messages as JSON texts and request points, as a reader finds them; gives
//! finished segments. Never loses a message that cannot be read: it becomes a problem with its line.

use std::borrow::Cow;

use super::{Millis, Point, Problem, Segment, Start, points_of};
use crate::{
    json::{Array, Object, Value},
    wire::{Format, parse_as},
};

/// Everything a reader has found so far.
pub(super) struct Draft {
    segments: Vec<SegmentDraft>,
    problems: Vec<Problem>,
}

/// One segment so far.
pub(super) struct SegmentDraft {
    pub(super) name: Option<String>,
    pub(super) start: Start,
    pub(super) format: Format,
    /// Members of the request beside the messages, such as `system` and `tools`, with their JSON texts.
    pub(super) head: Vec<(&'static str, Vec<u8>)>,
    /// The messages' JSON texts.
    pub(super) messages: Vec<Vec<u8>>,
    /// The requests made; told from the messages where a recording has none.
    pub(super) points: Vec<Point>,
    /// The line at which it begins.
    pub(super) line: usize,
}

impl Draft {
    pub(super) fn new() -> Draft {
        Draft { segments: Vec::new(), problems: Vec::new() }
    }

    pub(super) fn push(&mut self, segment: SegmentDraft) {
        self.segments.push(segment);
    }

    pub(super) fn problem(&mut self, line: usize, what: impl Into<String>) {
        self.problems.push(Problem { line, what: what.into() });
    }

    pub(super) fn finish(self) -> (Vec<Segment>, Vec<Problem>) {
        let mut problems = self.problems;
        let mut segments = Vec::with_capacity(self.segments.len());
        for draft in self.segments {
            if draft.messages.is_empty() {
                continue;
            }
            let line = draft.line;
            match draft.finish() {
                Ok(segment) => segments.push(segment),
                Err(what) => problems.push(Problem { line, what }),
            }
        }
        (segments, problems)
    }
}

impl SegmentDraft {
    pub(super) fn new(start: Start, format: Format, line: usize) -> SegmentDraft {
        SegmentDraft {
            name: None,
            start,
            format,
            head: Vec::new(),
            messages: Vec::new(),
            points: Vec::new(),
            line,
        }
    }

    /// Notes that a request was made with the messages so far.
    pub(super) fn point(&mut self, at: Option<Millis>, model: Option<Cow<'_, str>>) -> &mut Point {
        let point =
            Point { messages: self.messages.len(), at, model: model.map(Cow::into_owned), usage: None };
        self.points.push(point);
        let last = self.points.len() - 1;
        #[expect(clippy::indexing_slicing, reason = "the point was pushed just now")]
        &mut self.points[last]
    }

    fn finish(self) -> Result<Segment, String> {
        let mut messages = Array::new();
        self.messages.iter().for_each(|message| messages.push(message));
        let model = self.points.iter().rev().find_map(|point| point.model.as_deref());
        let mut request = Object::new();
        if let Some(model) = model {
            request = request.text("model", model);
        }
        for (key, value) in &self.head {
            request = request.raw(key, value);
        }
        let request = request.raw(self.format.list_key(), &messages.end()).end();
        let history = parse_as(request, self.format).map_err(|fault| fault.to_string())?;
        let points = if self.points.is_empty() { points_of(&history) } else { self.points };
        Ok(Segment { name: self.name, start: self.start, history, points })
    }
}

/// Reads a time: RFC 3339 text (UTC where no zone is given), or milliseconds or seconds since 1970; a fraction is one of seconds.
pub(super) fn time(value: Option<Value<'_>>) -> Option<Millis> {
    let value = value?;
    if let Some(text) = value.string() {
        let zoned = text.parse::<jiff::Timestamp>();
        let local = || text.parse::<jiff::civil::DateTime>().ok()?.to_zoned(jiff::tz::TimeZone::UTC).ok();
        let instant = zoned.ok().or_else(|| local().map(|zoned| zoned.timestamp()))?;
        return Some(Millis(instant.as_millisecond()));
    }
    let seconds = || jiff::SignedDuration::try_from_secs_f64(value.float()?).ok();
    let Some(number) = value.number() else {
        return Some(Millis(i64::try_from(seconds()?.as_millis()).ok()?));
    };
    let number = i64::try_from(number).ok()?;
    // Seconds until the year 5138, milliseconds since March 1973: no recording lies outside.
    Some(Millis(if number < 100_000_000_000 { number * 1000 } else { number }))
}
