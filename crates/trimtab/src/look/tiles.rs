//! Tiles: the few figures that answer the question of a page, in large letters. Takes figures with their labels; gives a list.

use maud::{Markup, html};

/// A figure and what it is.
pub(crate) struct FigureTile {
    value: String,
    label: String,
    /// A smaller line below: an interval, a comparison, a caveat.
    note: Option<String>,
    tone: TileTone,
    /// What the script replaces when the figure changes.
    live: Option<&'static str>,
}

/// Whether a figure is good news. The words and the sign say so too: colour is never the only difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TileTone {
    Plain,
    Good,
    Bad,
}

impl FigureTile {
    pub(crate) fn new(value: impl Into<String>, label: impl Into<String>) -> FigureTile {
        FigureTile { value: value.into(), label: label.into(), note: None, tone: TileTone::Plain, live: None }
    }

    pub(crate) fn with_note(mut self, note: impl Into<String>) -> FigureTile {
        self.note = Some(note.into());
        self
    }

    pub(crate) fn with_tone(mut self, tone: TileTone) -> FigureTile {
        self.tone = tone;
        self
    }

    /// Names the figure for a test or a script that reads it.
    pub(crate) fn with_name(mut self, name: &'static str) -> FigureTile {
        self.live = Some(name);
        self
    }
}

/// Letters of a figure that are written smaller, so that it stays on one line.
const LONG_VALUE: usize = 10;

/// How many tiles stand beside each other where there is room, so that no row has one alone.
fn columns_class(count: usize) -> &'static str {
    match count {
        0..=3 | 6 => "by-three",
        4 | 7 | 8 => "by-four",
        _ => "by-five",
    }
}

/// Returns tiles, side by side where there is room.
pub(crate) fn tiles(tiles: &[FigureTile]) -> Markup {
    html! {
        ul class={ "tiles " (columns_class(tiles.len())) } {
            @for tile in tiles {
                li.good[tile.tone == TileTone::Good].bad[tile.tone == TileTone::Bad] {
                    b.long[tile.value.chars().count() > LONG_VALUE] data-figure=[tile.live] { (tile.value) }
                    span { (tile.label) }
                    @if let Some(note) = &tile.note { small { (note) } }
                }
            }
        }
    }
}
