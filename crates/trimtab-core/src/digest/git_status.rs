//! What version control says is changed, in the long or the short form. Keeps the branch and how many files are staged,
//! modified, untracked or in conflict; loses their names.

use super::{Digest, Note, Piece, Text, kept::Kept};

pub(super) const DIGEST: Digest = Digest {
    name: "git-status",
    about: "Counts staged, modified, untracked and conflicted files and names the branch.",
    shorten,
};

#[derive(Default)]
struct Counts {
    staged: usize,
    modified: usize,
    untracked: usize,
    conflicted: usize,
}

/// The list of the long form that a line stands in.
#[derive(Clone, Copy)]
enum Section {
    None,
    Staged,
    Modified,
    Untracked,
    Conflicted,
}

fn shorten(text: &Text<'_>) -> Option<Vec<Piece>> {
    let mut counts = Counts::default();
    let mut branch = None;
    let mut section = Section::None;
    for index in 0..text.len() {
        let line = text.shown(index);
        if let Some(name) = line.strip_prefix("On branch ").or_else(|| line.strip_prefix("## ")) {
            branch = Some(name.split("...").next().unwrap_or(name).trim().to_owned());
        } else if let Some(found) = heading(&line) {
            section = found;
        } else if line.starts_with('\t') || (line.starts_with("        ") && line.contains(':')) {
            counts.long(section, line.trim());
        } else {
            counts.short(&line);
        }
    }
    let Counts { staged, modified, untracked, conflicted } = counts;
    let mut kept = Kept::none(text);
    kept.fact(Note::Changes { branch, staged, modified, untracked, conflicted });
    kept.pieces()
}

fn heading(line: &str) -> Option<Section> {
    [
        ("Changes to be committed:", Section::Staged),
        ("Changes not staged for commit:", Section::Modified),
        ("Changed but not updated:", Section::Modified),
        ("Untracked files:", Section::Untracked),
        ("Unmerged paths:", Section::Conflicted),
    ]
    .into_iter()
    .find_map(|(start, section)| line.starts_with(start).then_some(section))
}

impl Counts {
    fn long(&mut self, section: Section, entry: &str) {
        match section {
            Section::Staged => self.staged += 1,
            Section::Modified => self.modified += 1,
            Section::Untracked => self.untracked += 1,
            Section::Conflicted => self.conflicted += 1,
            // A part of the output, without its headings: the word before the name tells.
            Section::None if entry.starts_with("modified:") || entry.starts_with("deleted:") => {
                self.modified += 1;
            }
            Section::None if entry.starts_with("new file:") || entry.starts_with("renamed:") => {
                self.staged += 1;
            }
            Section::None => {}
        }
    }

    /// Reads `XY path`: X is the index, Y the working tree.
    fn short(&mut self, line: &str) {
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
