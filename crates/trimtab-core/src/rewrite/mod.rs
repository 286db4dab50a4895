//! Says the same in fewer tokens: [`RewriteForm`], a way to write a text again, and [`rewrite_as`], which takes a result's text and
//! gives it in that form. No content is lost: where the new text itself says how to undo it (`padding`, `paths`), a text is only
//! rewritten if undoing gives every byte back; of the others (`ansi`, `json`) only what a terminal does not show and what no JSON
//! reader sees is gone. The original stays under its handle in any case.
//!
//! A form is one file. A form never adds a note: the text is plain to whoever reads it.

mod ansi;
mod compact_json;
mod padding;
mod paths;
#[cfg(test)]
mod tests;

use std::fmt;

use crate::{
    history::WrappedResult,
    json::encode,
    notes::{holds_note, is_foreign_placeholder},
};

/// A way to write a text again that says the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RewriteForm {
    /// Line numbers without the blanks or zeros before them.
    Padding,
    /// Lines as a terminal shows them: no colours, and of a progress display its last state.
    Ansi,
    /// A path once above the search hits of its file, as `rg --heading` prints them.
    Paths,
    /// JSON without the blanks between its tokens.
    Json,
}

impl RewriteForm {
    /// Every form, in the order in which they are taken.
    pub const ALL: [RewriteForm; 4] =
        [RewriteForm::Padding, RewriteForm::Ansi, RewriteForm::Paths, RewriteForm::Json];

    /// Returns the form in a word, as policies spell it.
    pub fn word(self) -> &'static str {
        match self {
            RewriteForm::Padding => "padding",
            RewriteForm::Ansi => "ansi",
            RewriteForm::Paths => "paths",
            RewriteForm::Json => "json",
        }
    }

    /// Returns what is written otherwise, in words.
    pub fn about(self) -> &'static str {
        match self {
            RewriteForm::Padding => "line numbers without padding",
            RewriteForm::Ansi => "no terminal codes",
            RewriteForm::Paths => "each path once",
            RewriteForm::Json => "compact JSON",
        }
    }

    /// Tells whether every line is still the line of its number: only then may a note elsewhere name lines of the text.
    pub(crate) fn keeps_lines(self) -> bool {
        match self {
            RewriteForm::Padding | RewriteForm::Ansi => true,
            RewriteForm::Paths | RewriteForm::Json => false,
        }
    }

    fn rewrite_plain(self, text: &str) -> Option<String> {
        match self {
            RewriteForm::Padding => padding::strip_padding(text),
            RewriteForm::Ansi => ansi::strip_codes(text),
            RewriteForm::Paths => paths::group_hits(text),
            RewriteForm::Json => compact_json::strip_blanks(text),
        }
    }
}

impl fmt::Display for RewriteForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Returns a result's text in a form; nothing where that is not smaller in bytes, or where the text was shortened before. Where a
/// client wrapped the text in JSON, what its strings say is rewritten and the JSON around them stays.
pub(crate) fn rewrite_as(text: &str, form: RewriteForm) -> Option<String> {
    if holds_note(text) || is_foreign_placeholder(text) {
        return None;
    }
    let wrapped = if form == RewriteForm::Json { None } else { WrappedResult::find_leaves(text) };
    let rewritten = match wrapped {
        Some(wrapped) => rewrite_leaves(text, &wrapped, form)?,
        None => form.rewrite_plain(text)?,
    };
    (rewritten.len() < text.len()).then_some(rewritten)
}

fn rewrite_leaves(json: &str, wrapped: &WrappedResult, form: RewriteForm) -> Option<String> {
    let mut written = Vec::with_capacity(json.len());
    let mut at = 0;
    for leaf in &wrapped.leaves {
        let said = wrapped.text.get(leaf.bytes.clone())?;
        // A client may wrap what was wrapped before it.
        let Some(rewritten) = rewrite_as(said, form) else { continue };
        written.extend_from_slice(json.get(at..leaf.span.start)?.as_bytes());
        encode(&rewritten, &mut written);
        at = leaf.span.end;
    }
    if at == 0 {
        return None;
    }
    written.extend_from_slice(json.get(at..)?.as_bytes());
    String::from_utf8(written).ok()
}
