//! Where a session works. Takes what texts, calls and results say about directories; gives the working directory and the
//! root from which all spellings of a path become one. Never guesses twice: the first root that is told stays.

use std::borrow::Cow;

use super::{
    subject::{below, is_absolute, normalized},
    supersede::Known,
    text_head, text_tail,
};
use crate::history::BlockId;

/// The directories known so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    root: Option<(BlockId, String)>,
    /// Working directories with the block that told of each; the last one counts.
    cwds: Vec<(BlockId, String)>,
}

/// How harnesses tell a model where it works.
const TELLERS: &[(&str, &[char])] = &[
    ("<cwd>", &['<', '\n']),
    ("Primary working directory: ", &['\n']),
    ("Working directory: ", &['\n', '<']),
    ("Current working directory: ", &['\n', '<']),
    ("Current Working Directory (", &[')']),
    ("AGENTS.md instructions for ", &['\n']),
    ("Workspace Directories:**\n  - ", &['\n']),
    ("<uploaded_files>\n", &['\n']),
    ("cwd: ", &['\n', ' ', ',']),
];

impl Places {
    pub(crate) fn root(&self) -> Option<&str> {
        self.root.as_ref().map(|(_, root)| root.as_str())
    }

    pub(crate) fn root_known_at(&self) -> Option<BlockId> {
        self.root.as_ref().map(|(known_at, _)| *known_at)
    }

    pub(crate) fn cwd(&self) -> Option<&str> {
        self.cwds.last().map(|(_, cwd)| cwd.as_str())
    }

    /// Returns the working directory in which a call is made.
    pub(crate) fn cwd_before(&self, call: BlockId) -> Option<&str> {
        let count = self.cwds.partition_point(|(block, _)| *block < call);
        self.cwds.get(count.checked_sub(1)?).map(|(_, cwd)| cwd.as_str())
    }

    /// Returns the one name of a path.
    pub(crate) fn key<'a>(&self, path: &'a str) -> Cow<'a, str> {
        Cow::Borrowed(below(self.root(), path))
    }

    /// Looks for a directory in what a model is told before its first step.
    pub(crate) fn told_by(&mut self, text: &str, block: BlockId, known: &mut Known) {
        if self.root.is_some() {
            return;
        }
        let found = TELLERS.iter().find_map(|(mark, ends)| {
            let (_, rest) = text.split_once(mark)?;
            let path = rest.split(*ends).next()?.trim().trim_matches('`');
            (path.starts_with('/') && path.len() < 300).then(|| path.to_owned())
        });
        if let Some(found) = found {
            self.set_root(&found, block, known);
        }
    }

    /// Notes the directory that a shell moved to, and the one that a call names as its own.
    pub(crate) fn moved(
        &mut self,
        block: BlockId,
        cwd: Option<String>,
        own: Option<&str>,
        known: &mut Known,
    ) {
        if let Some(told) = own.or(cwd.as_deref()) {
            self.set_root(told, block, known);
        }
        if let Some(cwd) = cwd.filter(|cwd| self.cwd() != Some(cwd)) {
            self.cwds.push((block, cwd));
        }
    }

    /// Looks for the working directory that a harness prints at the end of a result.
    pub(crate) fn told_by_result(&mut self, text: &str, block: BlockId) {
        let marks = [
            "(Current directory: ",
            "[Current working directory: ",
            "Shell cwd was reset to ",
            "Current working directory: ",
        ];
        let tail = text_tail(text, 600);
        let found = marks.iter().find_map(|mark| tail.rsplit_once(mark)).map(|(_, rest)| rest);
        let Some(path) = found.and_then(|rest| rest.split([')', ']', '\n']).next()) else { return };
        let path = normalized(text_head(path, 300));
        if path.starts_with('/') && self.cwd() != Some(&path) {
            self.cwds.push((block, path));
        }
    }

    /// Tells the root from two spellings of one path.
    pub(crate) fn seen(&mut self, path: &str, block: BlockId, known: &mut Known) {
        if self.root.is_some() {
            return;
        }
        let root = |absolute: &str, relative: &str| {
            let root = absolute.strip_suffix(relative)?.strip_suffix('/')?;
            (relative.contains('/') && !relative.starts_with("..")).then(|| root.to_owned())
        };
        let mut roots: Vec<String> = match is_absolute(path) {
            true => known
                .files()
                .filter(|known| !is_absolute(known))
                .filter_map(|known| root(path, known))
                .collect(),
            false => known
                .files()
                .filter(|known| is_absolute(known))
                .filter_map(|known| root(known, path))
                .collect(),
        };
        // Of several that fit, the same one must be taken whatever order the map has.
        roots.sort_unstable();
        if let Some(found) = roots.into_iter().next() {
            self.set_root(&found, block, known);
        }
    }

    pub(crate) fn forget(&mut self, from: BlockId) {
        self.cwds.retain(|(block, _)| *block < from);
    }

    fn set_root(&mut self, path: &str, block: BlockId, known: &mut Known) {
        let path = normalized(path);
        if self.root.is_some() || !path.starts_with('/') || path.len() < 2 {
            return;
        }
        known.rename(|key| below(Some(&path), key).into());
        self.root = Some((block, path));
    }
}
