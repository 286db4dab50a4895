//! What version control says is changed, in the long or the short form. Keeps the branch and how many files are staged,
//! modified, untracked or in conflict; loses their names.

use super::{Digest, DigestText, Note, Piece, line_selection::LineSelection};

pub(super) const DIGEST: Digest = Digest {
    name: "git-status",
    about: "Counts staged, modified, untracked and conflicted files and names the branch.",
    shorten,
};

#[derive(Default)]
struct StatusCounts {
    staged: usize,
    modified: usize,
    untracked: usize,
    conflicted: usize,
}

/// The list of the long form that a line stands in.
#[derive(Clone, Copy)]
enum StatusSection {
    None,
    Staged,
    Modified,
    Untracked,
    Conflicted,
}

fn shorten(text: &DigestText<'_>) -> Option<Vec<Piece>> {
    let mut counts = StatusCounts::default();
    let mut branch = None;
    let mut section = StatusSection::None;
    for index in 0..text.len() {
        let line = text.terminal_line(index);
        if let Some(name) = line.strip_prefix("On branch ").or_else(|| line.strip_prefix("## ")) {
            branch = Some(name.split("...").next().unwrap_or(name).trim().to_owned());
        } else if let Some(found) = section_of_heading(&line) {
            section = found;
        } else if line.starts_with('\t') || (line.starts_with("        ") && line.contains(':')) {
            counts.count_long(section, line.trim());
        } else {
            counts.count_short(&line);
        }
    }
    let StatusCounts { staged, modified, untracked, conflicted } = counts;
    let mut kept = LineSelection::none(text);
    kept.add_fact(Note::Changes { branch, staged, modified, untracked, conflicted });
    kept.into_pieces()
}

fn section_of_heading(line: &str) -> Option<StatusSection> {
    [
        ("Changes to be committed:", StatusSection::Staged),
        ("Changes not staged for commit:", StatusSection::Modified),
        ("Changed but not updated:", StatusSection::Modified),
        ("Untracked files:", StatusSection::Untracked),
        ("Unmerged paths:", StatusSection::Conflicted),
    ]
    .into_iter()
    .find_map(|(start, section)| line.starts_with(start).then_some(section))
}

impl StatusCounts {
    fn count_long(&mut self, section: StatusSection, entry: &str) {
        match section {
            StatusSection::Staged => self.staged += 1,
            StatusSection::Modified => self.modified += 1,
            StatusSection::Untracked => self.untracked += 1,
            StatusSection::Conflicted => self.conflicted += 1,
            // A part of the output, without its headings: the word before the name tells.
            StatusSection::None if entry.starts_with("modified:") || entry.starts_with("deleted:") => {
                self.modified += 1;
            }
            StatusSection::None if entry.starts_with("new file:") || entry.starts_with("renamed:") => {
                self.staged += 1;
            }
            StatusSection::None => {}
        }
    }

    /// Reads `XY path`: X is the index, Y the working tree.
    fn count_short(&mut self, line: &str) {
        let mut letters = line.chars();
        let (Some(index), Some(tree), Some(' ')) = (letters.next(), letters.next(), letters.next()) else {
            return;
        };
        let known = |letter: char| matches!(letter, ' ' | 'M' | 'A' | 'D' | 'R' | 'C' | 'T');
        match (index, tree) {
            ('?', '?') => self.untracked += 1,
            ('U', _) | (_, 'U') | ('A', 'A') | ('D', 'D') => self.conflicted += 1,
            (index, tree) if known(index) && known(tree) && (index, tree) != (' ', ' ') => {
                self.staged += usize::from(index != ' ');
                self.modified += usize::from(tree != ' ');
            }
            _ => {}
        }
    }
}
