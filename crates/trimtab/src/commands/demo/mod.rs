//! `trimtab demo`: the main job without a key or a network. Plays a recorded session through the real proxy and a store in a
//! temporary folder, to a scripted provider on this machine; prints turn by turn what the window holds and what is hidden, recalls
//! one original and ends with what was saved. Prints the same every time.

mod play;
mod provider;
mod session;
mod story;

use anyhow::Result;

use self::{play::play_session, session::DemoSession, story::Story};
use crate::{args::Demo, output::Output, proxy};

pub(crate) fn run(asked: &Demo, out: &mut Output) -> Result<()> {
    let session = DemoSession::load()?;
    let runtime = proxy::start_runtime()?;
    if asked.json {
        let played = runtime.block_on(play_session(&session, asked.budget, |_, _| Ok(())))?;
        return out.write_json(&played);
    }
    let mut story = Story::print_beginning(&session, asked.budget, out)?;
    let played = runtime
        .block_on(play_session(&session, asked.budget, |number, turn| story.tell_turn(number, turn)))?;
    story.end(&played)
}
