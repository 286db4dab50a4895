//! Patches as text to operations. Takes codex patches, unified diffs and SEARCH/REPLACE blocks; gives what they do
//! to each file. Never applies anything: [`hunks`](super::hunks) does.

use super::operation::{FileAction, FileOperation, Occurrences, Replacement};
use crate::facts::HunkHeader;

/// Some lines of a patch that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hunk {
    /// Where it belongs.
    pub(crate) place: HunkPlace,
    /// Its lines in order.
    pub(crate) lines: Vec<HunkLine>,
}

/// How a patch says where a hunk belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HunkPlace {
    /// After the hunk before it and after these lines, as codex does.
    Behind {
        /// Lines to be found one after the other first.
        anchors: Vec<String>,
        /// Whether it belongs at the end of the file.
        at_end: bool,
    },
    /// At a line of the file as it was before the patch, counted from 1.
    Line(usize),
}

/// One line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HunkLine {
    /// It was there and stays.
    Keep(String),
    /// It was there.
    Remove(String),
    /// It is there now.
    Add(String),
}

impl Hunk {
    pub(crate) fn old_lines(&self) -> Vec<&str> {
        let old = |line| match line {
            &HunkLine::Keep(ref text) | &HunkLine::Remove(ref text) => Some(text.as_str()),
            &HunkLine::Add(_) => None,
        };
        self.lines.iter().filter_map(old).collect()
    }

    pub(super) fn new_lines(&self) -> Vec<&str> {
        let new = |line| match line {
            &HunkLine::Keep(ref text) | &HunkLine::Add(ref text) => Some(text.as_str()),
            &HunkLine::Remove(_) => None,
        };
        self.lines.iter().filter_map(new).collect()
    }
}

/// Reads a patch in the format of codex's `apply_patch`, wherever in a text it begins; nothing where there is none.
pub(crate) fn codex_patch(text: &str) -> Vec<FileOperation> {
    let mut operations = Vec::new();
    let mut file: Option<CodexFile> = None;
    let begin = |line: &&str| line.trim() != "*** Begin Patch";
    for line in text.lines().skip_while(begin).skip(1) {
        if line.trim() == "*** End Patch" {
            break;
        }
        let header = |name: &str| line.trim_start().strip_prefix(name).map(|path| path.trim().to_owned());
        if let Some(path) = header("*** Add File: ") {
            finish_file(&mut file, &mut operations);
            file = Some(CodexFile::Add { path, content: String::new() });
        } else if let Some(path) = header("*** Delete File: ") {
            finish_file(&mut file, &mut operations);
            operations.push(FileOperation { path, action: FileAction::Delete });
        } else if let Some(path) = header("*** Update File: ") {
            finish_file(&mut file, &mut operations);
            file = Some(CodexFile::Update { path, to: None, hunks: Vec::new() });
        } else if let Some(file) = &mut file {
            file.add_line(line);
        }
    }
    finish_file(&mut file, &mut operations);
    operations
}

enum CodexFile {
    Add { path: String, content: String },
    Update { path: String, to: Option<String>, hunks: Vec<Hunk> },
}

impl CodexFile {
    fn add_line(&mut self, line: &str) {
        match self {
            CodexFile::Add { content, .. } => {
                if let Some(text) = line.strip_prefix('+') {
                    content.push_str(text);
                    content.push('\n');
                }
            }
            CodexFile::Update { to, hunks, .. } => {
                if let Some(path) = line.strip_prefix("*** Move to: ") {
                    *to = Some(path.trim().to_owned());
                } else if let Some(anchor) = line.strip_prefix("@@") {
                    codex_anchor(anchor, hunks);
                } else {
                    codex_line(line, hunks);
                }
            }
        }
    }
}

fn codex_anchor(anchor: &str, hunks: &mut Vec<Hunk>) {
    let anchor = anchor.strip_prefix(' ').unwrap_or(anchor);
    // Several anchors before the first line narrow the same hunk down.
    let open = hunks.last_mut().filter(|hunk| hunk.lines.is_empty());
    let anchors = (!anchor.trim().is_empty()).then(|| anchor.to_owned());
    match open.map(|hunk| &mut hunk.place) {
        Some(HunkPlace::Behind { anchors: known, .. }) => known.extend(anchors),
        Some(HunkPlace::Line(_)) | None => {
            let place = HunkPlace::Behind { anchors: anchors.into_iter().collect(), at_end: false };
            hunks.push(Hunk { place, lines: Vec::new() });
        }
    }
}

fn codex_line(line: &str, hunks: &mut Vec<Hunk>) {
    if hunks.is_empty() {
        let place = HunkPlace::Behind { anchors: Vec::new(), at_end: false };
        hunks.push(Hunk { place, lines: Vec::new() });
    }
    let Some(hunk) = hunks.last_mut() else { return };
    if line.trim_end() == "*** End of File" {
        if let HunkPlace::Behind { at_end, .. } = &mut hunk.place {
            *at_end = true;
        }
        return;
    }
    hunk.lines.extend(hunk_line(line));
}

fn finish_file(file: &mut Option<CodexFile>, operations: &mut Vec<FileOperation>) {
    match file.take() {
        None => {}
        Some(CodexFile::Add { path, content }) => {
            operations.push(FileOperation { path, action: FileAction::Write { content } });
        }
        Some(CodexFile::Update { path, to, mut hunks }) => {
            hunks.retain(|hunk| !hunk.lines.is_empty());
            operations.push(FileOperation { path: path.clone(), action: FileAction::Patch(hunks) });
            operations.extend(to.map(|to| FileOperation { path, action: FileAction::Rename { to } }));
        }
    }
}

/// Reads a line of a hunk. An empty line is an empty line that stays: its blank was trimmed away.
fn hunk_line(line: &str) -> Option<HunkLine> {
    let Some(first) = line.chars().next() else { return Some(HunkLine::Keep(String::new())) };
    let text = line.get(first.len_utf8()..).unwrap_or_default().to_owned();
    match first {
        ' ' => Some(HunkLine::Keep(text)),
        '-' => Some(HunkLine::Remove(text)),
        '+' => Some(HunkLine::Add(text)),
        _ => None,
    }
}

/// Reads a unified diff of one or more files, as `git diff` and `diff -u` write it.
pub(crate) fn unified_diff(text: &str) -> Vec<FileOperation> {
    let mut diff = DiffParser::default();
    for line in text.lines() {
        diff.add_line(line);
    }
    diff.finish_file();
    diff.operations
}

#[derive(Default)]
struct DiffParser {
    operations: Vec<FileOperation>,
    old: Option<String>,
    new: Option<String>,
    hunks: Vec<Hunk>,
    /// How many old and new lines the open hunk still has.
    left: (usize, usize),
    /// Which sides of the open hunk end without a line break.
    unbroken: (bool, bool),
    renamed: Option<String>,
}

impl DiffParser {
    fn add_line(&mut self, line: &str) {
        if let Some(rest) = line.strip_prefix('\\') {
            self.no_line_break(rest);
        } else if self.left != (0, 0) {
            self.hunk_line(line);
        } else if line.starts_with("@@ ") {
            self.close_hunk();
            self.begin_hunk(line);
        } else if line.starts_with("diff --git ") {
            self.finish_file();
        } else if let Some(path) = line.strip_prefix("--- ") {
            if !self.hunks.is_empty() {
                self.finish_file();
            }
            self.old = diff_path(path);
        } else if let Some(path) = line.strip_prefix("+++ ") {
            self.new = diff_path(path);
        } else if let Some(path) = line.strip_prefix("rename from ") {
            self.renamed = Some(path.to_owned());
        } else if let (Some(path), Some(from)) = (line.strip_prefix("rename to "), self.renamed.take()) {
            self.operations
                .push(FileOperation { path: from, action: FileAction::Rename { to: path.to_owned() } });
        }
    }

    fn begin_hunk(&mut self, header: &str) {
        let Some(HunkHeader { old: (start, old), new: (_, new) }) = HunkHeader::parse(header) else { return };
        // A hunk without old lines names the line it follows.
        let start = if old == 0 { start + 1 } else { start };
        self.hunks.push(Hunk { place: HunkPlace::Line(start), lines: Vec::new() });
        self.left = (old, new);
        self.unbroken = (false, false);
    }

    fn hunk_line(&mut self, line: &str) {
        let Some(line) = hunk_line(line) else {
            self.left = (0, 0);
            return;
        };
        let (old, new) = match line {
            HunkLine::Keep(_) => (1, 1),
            HunkLine::Remove(_) => (1, 0),
            HunkLine::Add(_) => (0, 1),
        };
        self.left = (self.left.0.saturating_sub(old), self.left.1.saturating_sub(new));
        if let Some(hunk) = self.hunks.last_mut() {
            hunk.lines.push(line);
        }
    }

    fn no_line_break(&mut self, rest: &str) {
        if !rest.starts_with(" No newline") {
            return;
        }
        match self.hunks.last().and_then(|hunk| hunk.lines.last()) {
            Some(HunkLine::Keep(_)) => self.unbroken = (true, true),
            Some(HunkLine::Remove(_)) => self.unbroken.0 = true,
            Some(HunkLine::Add(_)) => self.unbroken.1 = true,
            None => {}
        }
    }

    /// A side that ends in a line break where the other one does not has one more line, an empty one.
    fn close_hunk(&mut self) {
        let Some(hunk) = self.hunks.last_mut() else { return };
        match std::mem::take(&mut self.unbroken) {
            (true, false) => hunk.lines.push(HunkLine::Add(String::new())),
            (false, true) => hunk.lines.push(HunkLine::Remove(String::new())),
            (true, true) | (false, false) => {}
        }
    }

    fn finish_file(&mut self) {
        // The text of a new file ends in a line break unless it is said not to.
        let unbroken = self.unbroken.1;
        let (old, new) = (self.old.take(), self.new.take());
        if old.is_some() && new.is_some() {
            self.close_hunk();
        }
        self.left = (0, 0);
        self.unbroken = (false, false);
        let hunks = std::mem::take(&mut self.hunks);
        let operation = match (old, new) {
            (None, Some(path)) => {
                let mut content = hunks.iter().flat_map(Hunk::new_lines).collect::<Vec<_>>().join("\n");
                if !unbroken && !hunks.is_empty() {
                    content.push('\n');
                }
                FileOperation { path, action: FileAction::Write { content } }
            }
            (Some(path), None) => FileOperation { path, action: FileAction::Delete },
            (Some(_), Some(path)) if !hunks.is_empty() => {
                FileOperation { path, action: FileAction::Patch(hunks) }
            }
            (Some(_), Some(_)) | (None, None) => return,
        };
        self.operations.push(operation);
    }
}

/// Reads a path of a diff's head: without git's prefix, quotes and the time after it; none for no file.
fn diff_path(path: &str) -> Option<String> {
    let path = path.split('\t').next().unwrap_or(path).trim_end();
    let path = path.strip_prefix('"').and_then(|path| path.strip_suffix('"')).unwrap_or(path);
    if path == "/dev/null" {
        return None;
    }
    let bare = path.strip_prefix("a/").or_else(|| path.strip_prefix("b/"));
    Some(bare.unwrap_or(path).to_owned())
}

/// Reads SEARCH/REPLACE blocks as aider and Cline write them, each with the path that stands above it, if any.
pub(crate) fn search_replace_blocks(text: &str) -> Vec<(Option<String>, Replacement)> {
    let mut blocks = Vec::new();
    let mut path = None;
    let mut open: Option<(String, Option<String>)> = None;
    for line in text.lines() {
        let mark = line.trim_end();
        let starts = is_mark(mark, &['<', '-'], "SEARCH");
        match &mut open {
            None if starts => open = Some((String::new(), None)),
            None if !mark.is_empty() && !mark.starts_with("```") => path = Some(mark.trim().to_owned()),
            None => {}
            Some((_, new @ None)) if mark.len() >= 5 && mark.bytes().all(|byte| byte == b'=') => {
                *new = Some(String::new());
            }
            Some((old, Some(new))) if is_mark(mark, &['>', '+'], "REPLACE") => {
                let replacement = Replacement {
                    old: std::mem::take(old),
                    new: std::mem::take(new),
                    which: Occurrences::First,
                };
                blocks.push((path.clone(), replacement));
                open = None;
            }
            Some((old, new)) => {
                let side = new.as_mut().unwrap_or(old);
                side.push_str(line);
                side.push('\n');
            }
        }
    }
    blocks
}

fn is_mark(line: &str, signs: &[char], word: &str) -> bool {
    let Some(rest) = line.strip_suffix(word) else { return false };
    let rest = rest.trim_end();
    signs.iter().any(|sign| rest.len() >= 5 && rest.chars().all(|letter| letter == *sign))
}
