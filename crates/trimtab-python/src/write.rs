//! Python values as JSON. Takes dicts, lists, texts, numbers, truths and None; gives the JSON text, or says which value has
//! none. Never runs Python code while it walks a container, so that nothing changes under it.

use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple},
};

/// How deep values may stand in each other: as deep as Python's own parser reads.
pub(crate) const MOST_LEVELS: usize = 1000;

/// What came of writing a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteOutcome {
    /// The JSON was added.
    Whole,
    /// Some value is neither a container nor a scalar: an object of an SDK, perhaps.
    Foreign,
}

/// Adds a value's JSON to a text. Where a value is foreign, what was added before it stands there and must be taken away.
pub(crate) fn write_value(value: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> PyResult<WriteOutcome> {
    write_at(value, out, 0)
}

fn write_at(value: &Bound<'_, PyAny>, out: &mut Vec<u8>, level: usize) -> PyResult<WriteOutcome> {
    if level > MOST_LEVELS {
        return Err(PyValueError::new_err(format!(
            "it is nested more than {MOST_LEVELS} levels deep, or holds itself"
        )));
    }
    if let Ok(text) = value.cast::<PyString>() {
        write_text(text, out)?;
    } else if let Ok(dict) = value.cast::<PyDict>() {
        return write_dict(dict, out, level);
    } else if let Ok(list) = value.cast::<PyList>() {
        return write_items(list.iter(), out, level);
    } else if value.is_none() {
        out.extend_from_slice(b"null");
    } else if let Ok(truth) = value.cast::<PyBool>() {
        out.extend_from_slice(if truth.is_true() { b"true" } else { b"false" });
    } else if let Ok(number) = value.cast::<PyInt>() {
        write_int(number, out)?;
    } else if let Ok(number) = value.cast::<PyFloat>() {
        write_float(number, out)?;
    } else if let Ok(tuple) = value.cast::<PyTuple>() {
        return write_items(tuple.iter(), out, level);
    } else {
        return Ok(WriteOutcome::Foreign);
    }
    Ok(WriteOutcome::Whole)
}

fn write_dict(dict: &Bound<'_, PyDict>, out: &mut Vec<u8>, level: usize) -> PyResult<WriteOutcome> {
    out.push(b'{');
    for (place, (key, value)) in dict.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        let Ok(key) = key.cast::<PyString>() else {
            let kind = key.get_type();
            let kind = kind.name()?;
            return Err(PyTypeError::new_err(format!(
                "a key of a dict is of type {kind}: JSON knows texts only"
            )));
        };
        write_text(key, out)?;
        out.push(b':');
        if write_at(&value, out, level + 1)? == WriteOutcome::Foreign {
            return Ok(WriteOutcome::Foreign);
        }
    }
    out.push(b'}');
    Ok(WriteOutcome::Whole)
}

fn write_items<'py>(
    items: impl Iterator<Item = Bound<'py, PyAny>>,
    out: &mut Vec<u8>,
    level: usize,
) -> PyResult<WriteOutcome> {
    out.push(b'[');
    for (place, item) in items.enumerate() {
        if place > 0 {
            out.push(b',');
        }
        if write_at(&item, out, level + 1)? == WriteOutcome::Foreign {
            return Ok(WriteOutcome::Foreign);
        }
    }
    out.push(b']');
    Ok(WriteOutcome::Whole)
}

fn write_text(text: &Bound<'_, PyString>, out: &mut Vec<u8>) -> PyResult<()> {
    match text.to_str() {
        Ok(text) => write_quoted(text, out),
        // A lone half of a surrogate pair is no UTF-8: JSON can spell it all the same.
        Err(_) => spell_halves(text, out)?,
    }
    Ok(())
}

/// Writes a text in quotes; what JSON forbids inside is escaped, everything else copied in runs.
fn write_quoted(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut copied = 0;
    for (at, byte) in bytes.iter().enumerate() {
        if *byte >= 0x20 && *byte != b'"' && *byte != b'\\' {
            continue;
        }
        out.extend_from_slice(bytes.get(copied..at).unwrap_or_default());
        copied = at + 1;
        match byte {
            b'"' => out.extend_from_slice(br#"\""#),
            b'\\' => out.extend_from_slice(br"\\"),
            b'\n' => out.extend_from_slice(br"\n"),
            b'\r' => out.extend_from_slice(br"\r"),
            b'\t' => out.extend_from_slice(br"\t"),
            other => out.extend_from_slice(format!("\\u{other:04x}").as_bytes()),
        }
    }
    out.extend_from_slice(bytes.get(copied..).unwrap_or_default());
    out.push(b'"');
}

fn spell_halves(text: &Bound<'_, PyString>, out: &mut Vec<u8>) -> PyResult<()> {
    let units: Vec<u8> = text.call_method1("encode", ("utf-16-le", "surrogatepass"))?.extract()?;
    out.push(b'"');
    for unit in units.chunks_exact(2) {
        let unit = unit.first_chunk().map_or(0, |unit| u16::from_le_bytes(*unit));
        match u8::try_from(unit) {
            Ok(plain) if (0x20..0x7f).contains(&plain) && plain != b'"' && plain != b'\\' => out.push(plain),
            Ok(_) | Err(_) => out.extend_from_slice(format!("\\u{unit:04x}").as_bytes()),
        }
    }
    out.push(b'"');
    Ok(())
}

fn write_int(number: &Bound<'_, PyInt>, out: &mut Vec<u8>) -> PyResult<()> {
    match number.extract::<i64>() {
        Ok(small) => out.extend_from_slice(small.to_string().as_bytes()),
        Err(_) => {
            let words = number.py().get_type::<PyInt>().call_method1("__repr__", (number,))?;
            out.extend_from_slice(words.extract::<String>()?.as_bytes());
        }
    }
    Ok(())
}

fn write_float(number: &Bound<'_, PyFloat>, out: &mut Vec<u8>) -> PyResult<()> {
    if !number.value().is_finite() {
        return Err(PyValueError::new_err(format!("{} is no number that JSON knows", number.value())));
    }
    let words = number.py().get_type::<PyFloat>().call_method1("__repr__", (number,))?;
    out.extend_from_slice(words.extract::<String>()?.as_bytes());
    Ok(())
}
