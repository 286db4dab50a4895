//! Segments under construction. Takes messages as JSON texts and request points, as a reader finds them; gives
//! finished segments. Never loses a message that cannot be read: it becomes a problem with its line.

use std::borrow::Cow;

use trimtab_core::{
    Format, History, Millis,
    json::{Array, Object, Value, scan},
    usage::Point,
    wire::{WireError, parse_as},
};

use super::{Problem, Segment, SegmentStart, points_of};

/// Everything a reader has found so far.
pub(super) struct RecordingDraft {
    segments: Vec<SegmentDraft>,
    problems: Vec<Problem>,
}

/// One segment so far.
pub(super) struct SegmentDraft {
    pub(super) name: Option<String>,
    pub(super) start: SegmentStart,
    pub(super) format: Format,
    /// Members of the request beside the messages, such as `system` and `tools`, with their JSON texts.
    pub(super) head: Vec<(&'static str, Vec<u8>)>,
    /// The messages' JSON texts.
    pub(super) messages: Vec<Vec<u8>>,
    /// The requests made; guessed from the messages where a recording has none.
    pub(super) points: Vec<Point>,
    /// The line at which it begins.
    pub(super) line: usize,
}

impl RecordingDraft {
    pub(super) fn new() -> RecordingDraft {
        RecordingDraft { segments: Vec::new(), problems: Vec::new() }
    }

    pub(super) fn add_segment(&mut self, segment: SegmentDraft) {
        self.segments.push(segment);
    }

    pub(super) fn add_problem(&mut self, line: usize, what: impl Into<String>) {
        self.problems.push(Problem { line, what: what.into() });
    }

    pub(super) fn finish(self) -> (Vec<Segment>, Vec<Problem>) {
        let mut problems = self.problems;
        let mut segments = Vec::with_capacity(self.segments.len());
        for draft in self.segments {
            if draft.messages.is_empty() {
                continue;
            }
            segments.extend(draft.finish(&mut problems));
        }
        (segments, problems)
    }
}

impl SegmentDraft {
    pub(super) fn new(start: SegmentStart, format: Format, line: usize) -> SegmentDraft {
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

    /// Begins the segment that follows this one, with its name, format and head; returns the one that ends.
    pub(super) fn next(&mut self, start: SegmentStart, line: usize) -> SegmentDraft {
        let mut next = SegmentDraft::new(start, self.format, line);
        next.name.clone_from(&self.name);
        next.head.clone_from(&self.head);
        std::mem::replace(self, next)
    }

    /// Notes that a request was made with the messages so far.
    pub(super) fn add_point(&mut self, at: Option<Millis>, model: Option<Cow<'_, str>>) -> &mut Point {
        let point =
            Point { messages: self.messages.len(), at, model: model.map(Cow::into_owned), usage: None };
        self.points.push(point);
        let last = self.points.len() - 1;
        #[expect(clippy::indexing_slicing, reason = "the point was pushed just now")]
        &mut self.points[last]
    }

    fn finish(mut self, problems: &mut Vec<Problem>) -> Option<Segment> {
        let mut history = self.parse();
        if history.is_err() {
            self.leave_out_broken(problems);
            history = self.parse();
        }
        match history {
            Ok(history) => {
                let points = if self.points.is_empty() { points_of(&history) } else { self.points };
                Some(Segment { name: self.name, start: self.start, history, points })
            }
            Err(fault) => {
                problems.push(Problem { line: self.line, what: fault.to_string() });
                None
            }
        }
    }

    /// Takes out what is not JSON, so that one broken message does not cost the segment.
    fn leave_out_broken(&mut self, problems: &mut Vec<Problem>) {
        let line = self.line;
        self.head.retain(|(key, json)| {
            let whole = scan(json).is_ok();
            if !whole {
                problems.push(Problem { line, what: format!("`{key}` is not JSON: left out") });
            }
            whole
        });
        let is_broken = |index: &usize| self.messages.get(*index).is_some_and(|json| scan(json).is_err());
        let broken: Vec<usize> = (0..self.messages.len()).filter(is_broken).collect();
        for index in broken.into_iter().rev() {
            problems.push(Problem { line, what: format!("message {} is not JSON: left out", index + 1) });
            self.messages.remove(index);
            let later = self.points.iter_mut().filter(|point| point.messages > index);
            later.for_each(|point| point.messages -= 1);
        }
    }

    fn parse(&self) -> Result<History, WireError> {
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
        // What is not UTF-8 was listed when the file was read, and would cost the whole segment here.
        let request = match String::from_utf8(request) {
            Ok(text) => text.into_bytes(),
            Err(broken) => String::from_utf8_lossy(broken.as_bytes()).into_owned().into_bytes(),
        };
        parse_as(request, self.format)
    }
}

/// Reads a time: RFC 3339 text (UTC where no zone is given), or milliseconds or seconds since 1970; a fraction is one of seconds.
pub(super) fn parse_time(value: Option<Value<'_>>) -> Option<Millis> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_is_no_json_costs_no_other() {
        let mut segment = SegmentDraft::new(SegmentStart::Session, Format::Chat, 4);
        segment.head.push(("tools", b"[".to_vec()));
        let messages: [&[u8]; 3] = [
            br#"{"role":"user","content":"Hi"}"#,
            br#"{"role":"assistant","#,
            br#"{"role":"user","content":"So?"}"#,
        ];
        for message in messages {
            segment.messages.push(message.to_vec());
            segment.add_point(None, None);
        }
        let mut draft = RecordingDraft::new();
        draft.add_segment(segment);
        let (segments, problems) = draft.finish();
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            problems,
            ["line 4: `tools` is not JSON: left out", "line 4: message 2 is not JSON: left out"]
        );
        let segment = segments.first().expect("the segment is read");
        assert_eq!(segment.history.messages().len(), 2);
        assert_eq!(segment.points.iter().map(|point| point.messages).collect::<Vec<_>>(), [1, 1, 2]);
    }
}
