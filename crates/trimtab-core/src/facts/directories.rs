//! Where a session works. Takes what texts, calls and results say about directories; gives the working directory and the
//! root from which all spellings of a path become one. Never guesses twice: the first root found is kept.

use std::borrow::Cow;

use super::{
    subject::{is_absolute, normalize_path, relative_to_root},
    supersede::KnownSubjects,
    text_head, text_tail,
    windows::{self, Drives},
};
use crate::history::BlockId;

/// The directories known so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownDirectories {
    root: Option<(BlockId, String)>,
    /// Working directories with the block that named each; the last one counts.
    cwds: Vec<(BlockId, String)>,
    /// The block that showed that the session runs on Windows.
    windows: Option<BlockId>,
    /// The block that showed that the session names Windows drives from WSL.
    wsl: Option<BlockId>,
    /// The block that said that the session runs in WSL; nothing of it matters before a drive is named.
    wsl_told: Option<BlockId>,
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

impl KnownDirectories {
    pub(crate) fn root(&self) -> Option<&str> {
        self.root.as_ref().map(|(_, root)| root.as_str())
    }

    /// Returns the last block from which the names of all paths depend.
    pub(crate) fn names_known_at(&self) -> Option<BlockId> {
        let root = self.root.as_ref().map(|(known_at, _)| *known_at);
        root.max(self.windows).max(self.wsl).max(self.wsl_told)
    }

    /// Returns what decides about the names of paths, as one text that compares.
    pub(crate) fn naming_key(&self) -> String {
        format!("{} {:?}", self.root().unwrap_or_default(), self.drives())
    }

    /// Tells whether a block is where the names of later paths come from: it moved to another folder, or named the root.
    pub(crate) fn is_named_by(&self, block: BlockId) -> bool {
        let is_move = || self.cwds.binary_search_by_key(&block, |(moved, _)| *moved).is_ok();
        self.names_known_at() == Some(block) || is_move()
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
    pub(crate) fn path_key<'a>(&self, path: &'a str) -> Cow<'a, str> {
        match windows::one_name(path, self.drives()) {
            Cow::Borrowed(name) => Cow::Borrowed(relative_to_root(self.root(), name)),
            Cow::Owned(name) => Cow::Owned(relative_to_root(self.root(), &name).to_owned()),
        }
    }

    fn drives(&self) -> Drives {
        Drives { on_windows: self.windows.is_some(), on_wsl: self.wsl.is_some() }
    }

    /// Looks for a directory in what a model reads before its first step.
    pub(crate) fn told_by(&mut self, text: &str, block: BlockId, known: &mut KnownSubjects) {
        if self.wsl_told.is_none() && text.contains("microsoft-standard-WSL") {
            self.wsl_told = Some(block);
        }
        if self.windows.is_none() && text.contains("Platform: win32") {
            self.windows = Some(block);
            self.rename_known(known);
        }
        if self.root.is_some() {
            return;
        }
        let found = TELLERS.iter().find_map(|(mark, ends)| {
            let (_, rest) = text.split_once(mark)?;
            let path = rest.split(*ends).next()?.trim().trim_matches('`');
            (is_rooted(path) && path.len() < 300).then(|| path.to_owned())
        });
        if let Some(found) = found {
            self.set_root(&found, block, known);
        }
    }

    /// Notes the directory that a shell moved to, and the one that a call names as its own.
    pub(crate) fn record_directory(
        &mut self,
        block: BlockId,
        cwd: Option<String>,
        own: Option<&str>,
        known: &mut KnownSubjects,
    ) {
        if let Some(told) = own.or(cwd.as_deref()) {
            self.set_root(told, block, known);
        }
        if let Some(cwd) = cwd.filter(|cwd| self.cwd() != Some(cwd)) {
            self.learn_drives(&cwd, block, known);
            self.cwds.push((block, cwd));
        }
    }

    /// Looks for the working directory that a harness prints at the end of a result.
    pub(crate) fn told_by_result(&mut self, text: &str, block: BlockId) {
        let marks = [
            "(Current directory: ", "[Current working directory: ", "Shell cwd was reset to ",
            "Current working directory: ",
        ];
        let tail = text_tail(text, 600);
        let found = marks.iter().find_map(|mark| tail.rsplit_once(mark)).map(|(_, rest)| rest);
        let Some(path) = found.and_then(|rest| rest.split([')', ']', '\n']).next()) else { return };
        let path = normalize_path(text_head(path, 300));
        if is_rooted(&path) && self.cwd() != Some(&path) {
            self.cwds.push((block, path));
        }
    }

    /// Tells the root from two spellings of one path.
    pub(crate) fn learn_root(&mut self, path: &str, block: BlockId, known: &mut KnownSubjects) {
        self.learn_drives(path, block, known);
        if self.root.is_some() {
            return;
        }
        let path = &self.path_key(path).into_owned();
        let root = |absolute: &str, relative: &str| {
            let root = absolute.strip_suffix(relative)?.strip_suffix('/')?;
            (relative.contains('/') && !relative.starts_with("..")).then(|| root.to_owned())
        };
        let mut roots: Vec<String> = match is_absolute(path) {
            true => known
                .known_files()
                .filter(|known| !is_absolute(known))
                .filter_map(|known| root(path, known))
                .collect(),
            false => known
                .known_files()
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

    pub(crate) fn forget_from(&mut self, from: BlockId) {
        self.cwds.retain(|(block, _)| *block < from);
    }

    fn set_root(&mut self, path: &str, block: BlockId, known: &mut KnownSubjects) {
        let path = normalize_path(path);
        if self.root.is_some() || !is_rooted(&path) {
            return;
        }
        self.learn_drives(&path, block, known);
        let name = windows::one_name(&path, self.drives()).into_owned();
        if name.trim_end_matches('/').trim_end_matches(':').len() < 2 {
            return;
        }
        self.root = Some((block, name));
        self.rename_known(known);
    }

    /// Learns from a path whether the session runs on Windows, and whether it names drives from WSL too.
    fn learn_drives(&mut self, path: &str, block: BlockId, known: &mut KnownSubjects) {
        let before = self.drives();
        if self.windows.is_none() && windows::is_windows(path) {
            self.windows = Some(block);
        }
        if self.windows.is_some()
            && self.wsl.is_none()
            && (self.wsl_told.is_some() || self.shows_wsl(path, known))
        {
            self.wsl = Some(block);
        }
        if self.drives() != before {
            self.rename_known(known);
        }
    }

    /// Tells whether a path has the name on the other side of WSL of something known: a file, or what lies below the root
    /// or a working directory.
    fn shows_wsl(&self, path: &str, known: &KnownSubjects) -> bool {
        let Some(other) = windows::other_side_of_wsl(path) else { return false };
        let name = |path: &str| windows::one_name(path, self.drives()).into_owned();
        let other = name(&other);
        let is_below =
            |directory: &str| directory.len() > 3 && relative_to_root(Some(directory), &other) != other;
        self.root().is_some_and(is_below)
            || self.cwd().is_some_and(|cwd| is_below(&name(cwd)))
            || known.knows_file(&self.path_key(&other))
    }

    /// Gives everything known the name that it has now.
    fn rename_known(&mut self, known: &mut KnownSubjects) {
        let drives = self.drives();
        if let Some((_, root)) = &mut self.root {
            *root = windows::one_name(root, drives).into_owned();
        }
        known.rename_all(|key| self.path_key(key).into());
    }
}

/// Tells whether a path begins at the root of a file system.
fn is_rooted(path: &str) -> bool {
    path.starts_with('/') || windows::is_windows(path)
}
