//! A file as the JSON values in it. Takes bytes: one JSON document, or one value a line; gives the values with
//! their lines. Never stops at a bad line: it is listed as a problem.

use trimtab_core::json::{JsonError, Tape, Value, scan, scan_first};

use super::{Problem, ReadError};

/// The JSON values of a file.
pub(super) struct RecordingSource<'a> {
    rows: Vec<SourceRow<'a>>,
    pub(super) problems: Vec<Problem>,
}

struct SourceRow<'a> {
    line: usize,
    text: &'a [u8],
    tape: Tape,
}

impl<'a> RecordingSource<'a> {
    pub(super) fn read_file(file: &'a [u8]) -> Result<RecordingSource<'a>, ReadError> {
        if file.iter().all(u8::is_ascii_whitespace) {
            return Err(ReadError::Empty);
        }
        match scan(file) {
            Ok(tape) => Ok(RecordingSource {
                rows: vec![SourceRow { line: 1, text: file, tape }],
                problems: Vec::new(),
            }
            .with_utf8_checked()),
            Err(fault) => RecordingSource::read_lines(file, fault),
        }
    }

    /// Reads one value a line. `fault` is why the whole is not one document.
    fn read_lines(file: &'a [u8], fault: JsonError) -> Result<RecordingSource<'a>, ReadError> {
        // What is right up to its end is a document that was cut, whatever single lines of it look like.
        if fault.found.is_none() {
            return Err(ReadError::NotJson(fault));
        }
        let mut source = RecordingSource { rows: Vec::new(), problems: Vec::new() };
        for (index, text) in file.split(|byte| *byte == b'\n').enumerate() {
            if text.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            source.read_line(index + 1, text);
        }
        if source.values().any(|(_, value)| value.is_object()) {
            Ok(source.with_utf8_checked())
        } else {
            Err(ReadError::NotJson(fault))
        }
    }

    /// Reads the values of a line: two writers may have left theirs on one.
    fn read_line(&mut self, line: usize, mut text: &'a [u8]) {
        while !text.iter().all(u8::is_ascii_whitespace) {
            match scan_first(text) {
                Ok((tape, end)) => {
                    let (value, rest) = text.split_at_checked(end).unwrap_or((text, &[]));
                    self.rows.push(SourceRow { line, text: value, tape });
                    text = rest;
                }
                Err(fault) => {
                    self.problems.push(Problem { line, what: describe_fault(&fault) });
                    return;
                }
            }
        }
    }

    fn with_utf8_checked(mut self) -> RecordingSource<'a> {
        for row in &self.rows {
            if let Err(fault) = simdutf8::compat::from_utf8(row.text) {
                let place = JsonError::from_offset(row.text, fault.valid_up_to(), "UTF-8");
                let what = format!("not UTF-8: column {}; read as U+FFFD", place.column);
                self.problems.push(Problem { line: row.line + place.line - 1, what });
            }
        }
        self
    }

    /// Returns the values with their lines.
    pub(super) fn values(&self) -> impl Iterator<Item = (usize, Value<'_>)> {
        self.rows.iter().filter_map(|row| Some((row.line, row.tape.root(row.text)?)))
    }

    /// Returns the value of a file that is one document.
    pub(super) fn document(&self) -> Option<Value<'_>> {
        let mut values = self.values();
        values.next().filter(|_| values.next().is_none()).map(|(_, value)| value)
    }

    /// Tells whether one of the first values fits.
    pub(super) fn any_of_first(&self, fits: impl Fn(Value<'_>) -> bool) -> bool {
        const LOOKED_AT: usize = 50;
        self.values().take(LOOKED_AT).any(|(_, value)| fits(value))
    }
}

fn describe_fault(fault: &JsonError) -> String {
    let JsonError { column, expected, found, .. } = fault;
    match found {
        None => format!("not JSON: it breaks off at column {column}, where {expected} was expected"),
        Some(found) => format!("not JSON: column {column}: expected {expected}, found {found}"),
    }
}
