//! `trimtab fit`: the request that would be sent. Takes a request or a recording; gives the bytes of one request.

use anyhow::Result;

use crate::{
    args::{Fit, Policy},
    input,
    output::Output,
};

pub(crate) fn run(asked: &Fit, out: &mut Output) -> Result<()> {
    let Policy::None = asked.policy;
    let conversation = input::conversation(&asked.input)?;
    let whole = asked.input.step.is_some() || conversation.agent == "request";
    match conversation.segment.points.last() {
        // The last request of a recording does not hold its own answer.
        Some(point) if !whole => out.bytes(&conversation.segment.request(point)),
        _ => out.bytes(conversation.history.bytes()),
    }
}
