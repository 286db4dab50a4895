//! Whether a message is what it was. Takes a message; gives its leaves: the texts and numbers in it, which cannot change, and
//! the shape of the containers around them, which can. A message whose leaves are the same objects in the same shape says the
//! same, so it need not be read again. Never compares contents.

use pyo3::{
    prelude::*,
    types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple},
};

use crate::write::MOST_LEVELS;

/// A step of the walk through a message.
#[derive(Debug)]
enum MessageNode {
    /// A value that cannot change. It is kept alive, so that its address is not another's meanwhile.
    Value(Py<PyAny>),
    Dict(usize),
    List(usize),
    /// An object with fields, of this class.
    Object(Py<PyAny>),
}

/// A message as it was looked at.
#[derive(Debug)]
pub(crate) struct MessageLeaves(Vec<MessageNode>);

impl MessageLeaves {
    /// Notes the leaves of a message; nothing where something in it cannot be looked into.
    pub(crate) fn from_message(message: &Bound<'_, PyAny>) -> Option<MessageLeaves> {
        let mut leaves = Vec::new();
        let whole = walk_value(message, 0, &mut |step| {
            leaves.push(match step {
                BorrowedNode::Value(value) => MessageNode::Value(value.clone().unbind()),
                BorrowedNode::Dict(length) => MessageNode::Dict(length),
                BorrowedNode::List(length) => MessageNode::List(length),
                BorrowedNode::Object(class) => MessageNode::Object(class.clone().unbind()),
            });
            true
        });
        leaves.shrink_to_fit();
        whole.then_some(MessageLeaves(leaves))
    }

    /// Tells whether a message has these leaves.
    pub(crate) fn are_of(&self, message: &Bound<'_, PyAny>) -> bool {
        let mut known = self.0.iter();
        let whole = walk_value(message, 0, &mut |step| match (known.next(), step) {
            (Some(MessageNode::Value(known)), BorrowedNode::Value(now))
            | (Some(MessageNode::Object(known)), BorrowedNode::Object(now)) => known.is(now),
            (Some(MessageNode::Dict(known)), BorrowedNode::Dict(now))
            | (Some(MessageNode::List(known)), BorrowedNode::List(now)) => *known == now,
            (
                Some(
                    MessageNode::Value(_)
                    | MessageNode::Dict(_)
                    | MessageNode::List(_)
                    | MessageNode::Object(_),
                )
                | None,
                _,
            ) => false,
        });
        whole && known.next().is_none()
    }
}

enum BorrowedNode<'a, 'py> {
    Value(&'a Bound<'py, PyAny>),
    Dict(usize),
    List(usize),
    Object(&'a Bound<'py, PyAny>),
}

/// Walks through a value as long as `visit` agrees; tells whether it came to the end.
fn walk_value(
    value: &Bound<'_, PyAny>,
    level: usize,
    visit: &mut dyn FnMut(BorrowedNode<'_, '_>) -> bool,
) -> bool {
    if level > MOST_LEVELS {
        return false;
    }
    if value.is_instance_of::<PyString>() || value.is_none() {
        return visit(BorrowedNode::Value(value));
    }
    if let Ok(dict) = value.cast::<PyDict>() {
        return walk_dict(dict, level, visit);
    }
    if let Ok(list) = value.cast::<PyList>() {
        return visit(BorrowedNode::List(list.len()))
            && list.iter().all(|item| walk_value(&item, level + 1, visit));
    }
    if let Ok(tuple) = value.cast::<PyTuple>() {
        return visit(BorrowedNode::List(tuple.len()))
            && tuple.iter().all(|item| walk_value(&item, level + 1, visit));
    }
    let is_scalar = value.is_instance_of::<PyInt>()
        || value.is_instance_of::<PyFloat>()
        || value.is_instance_of::<PyBool>()
        || value.is_instance_of::<PyBytes>();
    if is_scalar {
        return visit(BorrowedNode::Value(value));
    }
    walk_object(value, level, visit)
}

fn walk_dict(
    dict: &Bound<'_, PyDict>,
    level: usize,
    visit: &mut dyn FnMut(BorrowedNode<'_, '_>) -> bool,
) -> bool {
    visit(BorrowedNode::Dict(dict.len()))
        && dict
            .iter()
            .all(|(key, item)| visit(BorrowedNode::Value(&key)) && walk_value(&item, level + 1, visit))
}

/// Looks into a model of pydantic: its fields, and those that it does not know.
fn walk_object(
    object: &Bound<'_, PyAny>,
    level: usize,
    visit: &mut dyn FnMut(BorrowedNode<'_, '_>) -> bool,
) -> bool {
    let class = object.get_type();
    let Ok(extra) = object.getattr("__pydantic_extra__") else { return false };
    let fields = object.getattr("__dict__").ok().and_then(|fields| fields.cast_into::<PyDict>().ok());
    let Some(fields) = fields else { return false };
    visit(BorrowedNode::Object(class.as_any()))
        && walk_dict(&fields, level, visit)
        && walk_value(&extra, level + 1, visit)
}
