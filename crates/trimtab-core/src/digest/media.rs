//! An image or document that is not text. Keeps its type and size; shows nothing of it.

use super::{Digest, DigestText, Note, Piece, line_selection::LineSelection};

/// What the base64 of common types begins with.
const BEGINNINGS: &[(&str, &str)] = &[
    ("iVBORw0KGgo", "image/png"),
    ("/9j/", "image/jpeg"),
    ("R0lGOD", "image/gif"),
    ("UklGR", "image/webp"),
    ("JVBERi0", "application/pdf"),
];

pub(super) const DIGEST: Digest =
    Digest { name: "media", about: "Names the type and size of an image or document.", shorten };

/// Gives the pieces for an image or document of a known type and size.
pub(crate) fn media_pieces(kind: &str, bytes: u64) -> Vec<Piece> {
    vec![Piece::Note(Note::Media { kind: kind.to_owned(), bytes })]
}

fn shorten(text: &DigestText<'_>) -> Option<Vec<Piece>> {
    let (kind, base64) = read(text);
    let bytes = base64.map_or(text.whole().len(), |base64| base64.trim().len() / 4 * 3);
    let mut kept = LineSelection::none(text);
    kept.add_fact(Note::Media { kind, bytes: u64::try_from(bytes).unwrap_or(u64::MAX) });
    kept.into_pieces()
}

/// Returns the type, and the base64 where there is some.
fn read<'a>(text: &DigestText<'a>) -> (String, Option<&'a str>) {
    let whole = text.whole().trim_start();
    if let Some((kind, base64)) = whole.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) {
        return (kind.chars().take(60).collect(), Some(base64));
    }
    if let Some((_, kind)) = BEGINNINGS.iter().find(|(start, _)| whole.starts_with(start)) {
        return ((*kind).to_owned(), Some(whole));
    }
    let extension = text
        .context()
        .path
        .and_then(|path| path.rsplit_once('.'))
        .map(|(_, extension)| extension.to_ascii_lowercase());
    let kind = match extension.as_deref() {
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("gif") => "image/gif",
        Some("webp") => "image/webp",
        Some("pdf") => "application/pdf",
        _ => "application/octet-stream",
    };
    (kind.to_owned(), None)
}
