//! What an action is about. Takes paths, ranges and words as calls spell them; gives subjects that compare
//! equal when they mean the same. Never looks at a disk: a path is text, and `..` is resolved as text.

use std::fmt;

use super::windows;

/// Which lines of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SubjectLines {
    /// The whole file.
    All,
    /// From `first` (counted from 1) to `last`, both included; to the end where `last` is none.
    Range {
        /// The first line.
        first: u32,
        /// The last line.
        last: Option<u32>,
    },
    /// Some lines; nobody knows which.
    Part,
}

impl SubjectLines {
    /// Returns the lines from `offset` on, `limit` of them where there is a limit.
    pub(crate) fn from_offset(offset: Option<u64>, limit: Option<u64>) -> SubjectLines {
        let first = offset.map_or(1, |offset| offset.max(1));
        let last = limit.map(|limit| first.saturating_add(limit).saturating_sub(1));
        SubjectLines::from_bounds(first, last)
    }

    /// Returns the lines from `first` to `last`; all of them where that is the whole file.
    pub(crate) fn from_bounds(first: u64, last: Option<u64>) -> SubjectLines {
        let first = u32::try_from(first.max(1)).unwrap_or(u32::MAX);
        match last {
            None if first == 1 => SubjectLines::All,
            last => {
                SubjectLines::Range { first, last: last.map(|last| u32::try_from(last).unwrap_or(u32::MAX)) }
            }
        }
    }

    /// Tells whether everything in `other` is in these lines too.
    pub fn covers(self, other: SubjectLines) -> bool {
        match (self, other) {
            (SubjectLines::All, _) => true,
            (
                SubjectLines::Range { first, last },
                SubjectLines::Range { first: other_first, last: other_last },
            ) => {
                let ends_later = match (last, other_last) {
                    (None, _) => true,
                    (Some(_), None) => false,
                    (Some(last), Some(other_last)) => last >= other_last,
                };
                first <= other_first && ends_later
            }
            (SubjectLines::Range { .. } | SubjectLines::Part, SubjectLines::All | SubjectLines::Part)
            | (SubjectLines::Part, SubjectLines::Range { .. }) => false,
        }
    }

    /// Returns the first `count` of these lines.
    pub(crate) fn first_lines(self, count: u64) -> SubjectLines {
        match self {
            SubjectLines::All => SubjectLines::from_bounds(1, Some(count)),
            SubjectLines::Range { first, last } => {
                let end = u64::from(first).saturating_add(count).saturating_sub(1);
                SubjectLines::from_bounds(
                    u64::from(first),
                    Some(last.map_or(end, |last| end.min(u64::from(last)))),
                )
            }
            SubjectLines::Part => SubjectLines::Part,
        }
    }

    /// Returns the lines `first` to `last` of these, counted within them.
    pub(crate) fn select_within(self, first: u64, last: Option<u64>) -> SubjectLines {
        let base = match self {
            SubjectLines::All => 0,
            SubjectLines::Range { first, .. } => u64::from(first).saturating_sub(1),
            SubjectLines::Part => return SubjectLines::Part,
        };
        let limit = match self {
            SubjectLines::Range { last, .. } => last.map(u64::from),
            SubjectLines::All | SubjectLines::Part => None,
        };
        let end = last.map(|last| last.saturating_add(base));
        let end = match (end, limit) {
            (Some(end), Some(limit)) => Some(end.min(limit)),
            (end, limit) => end.or(limit),
        };
        SubjectLines::from_bounds(first.saturating_add(base), end)
    }
}

impl fmt::Display for SubjectLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SubjectLines::All => Ok(()),
            SubjectLines::Range { first, last: Some(last) } => write!(f, ":{first}-{last}"),
            SubjectLines::Range { first, last: None } => write!(f, ":{first}-"),
            SubjectLines::Part => f.write_str(":part"),
        }
    }
}

/// How much of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DirectoryReach {
    /// What stands directly in it.
    Children,
    /// All that is below it.
    Everything,
}

/// What an action is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Subject {
    /// A file, or lines of it.
    File {
        /// The normalized path.
        path: Box<str>,
        /// The lines.
        lines: SubjectLines,
    },
    /// A directory.
    Directory {
        /// The normalized path.
        path: Box<str>,
        /// How far down.
        reach: DirectoryReach,
    },
    /// A command line, without what only limits or colours its output.
    Command(Box<str>),
    /// Something searched for, in a place where one is named.
    Query {
        /// The pattern or the words.
        pattern: Box<str>,
        /// The file or directory searched.
        place: Option<Box<str>>,
    },
    /// An address.
    Url(Box<str>),
    /// Nothing that could be named.
    #[default]
    Nothing,
}

impl Subject {
    pub(crate) fn file(path: &str) -> Subject {
        Subject::File { path: normalize_path(path).into(), lines: SubjectLines::All }
    }

    pub(crate) fn lines_of(path: &str, lines: SubjectLines) -> Subject {
        Subject::File { path: normalize_path(path).into(), lines }
    }

    pub(crate) fn directory(path: &str) -> Subject {
        Subject::Directory { path: normalize_path(path).into(), reach: DirectoryReach::Children }
    }

    pub(crate) fn everything_below(path: &str) -> Subject {
        Subject::Directory { path: normalize_path(path).into(), reach: DirectoryReach::Everything }
    }

    pub(crate) fn query(pattern: &str, place: Option<&str>) -> Subject {
        Subject::Query { pattern: pattern.into(), place: place.map(|place| normalize_path(place).into()) }
    }

    /// Returns the path of a file or directory, or the place of a query.
    pub fn path(&self) -> Option<&str> {
        match self {
            Subject::File { path, .. } | Subject::Directory { path, .. } => Some(path),
            Subject::Query { place, .. } => place.as_deref(),
            Subject::Command(_) | Subject::Url(_) | Subject::Nothing => None,
        }
    }

    /// Returns the lines, where it is a file.
    pub fn lines(&self) -> Option<SubjectLines> {
        match self {
            Subject::File { lines, .. } => Some(*lines),
            Subject::Directory { .. }
            | Subject::Command(_)
            | Subject::Query { .. }
            | Subject::Url(_)
            | Subject::Nothing => None,
        }
    }

    /// Gives the subject with its path seen from a working directory.
    pub(crate) fn seen_from(self, cwd: Option<&str>) -> Subject {
        let Some(cwd) = cwd else { return self };
        let join = |path: Box<str>| join_path(cwd, &path).into();
        match self {
            Subject::File { path, lines } => Subject::File { path: join(path), lines },
            Subject::Directory { path, reach } => Subject::Directory { path: join(path), reach },
            Subject::Query { pattern, place } => Subject::Query { pattern, place: place.map(join) },
            other @ (Subject::Command(_) | Subject::Url(_) | Subject::Nothing) => other,
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::File { path, lines } => write!(f, "{path}{lines}"),
            Subject::Directory { path, reach: DirectoryReach::Children } => {
                write!(f, "{}/", path.trim_end_matches('/'))
            }
            Subject::Directory { path, reach: DirectoryReach::Everything } => {
                write!(f, "{}/**", path.trim_end_matches('/'))
            }
            Subject::Command(command) => write!(f, "$ {command}"),
            Subject::Query { pattern, place: Some(place) } => write!(f, "'{pattern}' in {place}"),
            Subject::Query { pattern, place: None } => write!(f, "'{pattern}'"),
            Subject::Url(url) => f.write_str(url),
            Subject::Nothing => f.write_str("-"),
        }
    }
}

/// Returns a path without `.`, `..`, doubled slashes, a trailing slash or `file://`. One on a Windows drive keeps the
/// separators with which it is written.
pub(crate) fn normalize_path(path: &str) -> String {
    let path = path.trim();
    let path = path.strip_prefix("file://").unwrap_or(path);
    let path = path.strip_prefix('/').filter(|path| windows::starts_with_drive(path)).unwrap_or(path);
    if windows::is_windows(path) {
        return windows::tidy_path(path);
    }
    let absolute = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != ".." && *last != "~") => {
                parts.pop();
            }
            ".." if absolute => {}
            part => parts.push(part),
        }
    }
    let joined = parts.join("/");
    match (absolute, joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".to_owned(),
        (false, false) => joined,
    }
}

/// Returns a path as seen from a directory.
pub(crate) fn join_path(directory: &str, path: &str) -> String {
    if is_absolute(path) || directory.is_empty() || directory == "." {
        return normalize_path(path);
    }
    let on_windows = windows::is_windows(directory) || (windows::is_msys(directory) && path.contains('\\'));
    if on_windows {
        return windows::joined_on_windows(directory, path);
    }
    normalize_path(&format!("{directory}/{path}"))
}

pub(crate) fn is_absolute(path: &str) -> bool {
    path.starts_with(['/', '~', '$']) || path.starts_with("file://") || windows::is_windows(path)
}

/// Returns the path as seen from the root, where it lies below it.
pub(crate) fn relative_to_root<'a>(root: Option<&str>, path: &'a str) -> &'a str {
    let Some(rest) = root.and_then(|root| path.strip_prefix(root)) else { return path };
    match rest.strip_prefix('/') {
        Some(inner) => inner,
        None if rest.is_empty() => ".",
        None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expected: &str) {
        assert_eq!(normalize_path(path), expected, "{path}");
    }

    #[test]
    fn spellings_of_one_path_become_one() {
        check("./a/../b.rs", "b.rs");
        check("a//b/./c/", "a/b/c");
        check("/a/b/../../c", "/c");
        check("../x", "../x");
        check("~/notes/../x.md", "~/x.md");
        check("file:///srv/app/main.go", "/srv/app/main.go");
        check("C:\\work\\.\\a.cs", "C:\\work\\a.cs");
        check(".", ".");
        check("/", "/");
    }

    #[test]
    fn a_path_is_seen_from_its_directory_and_below_its_root() {
        assert_eq!(join_path("/srv/app", "src/a.rs"), "/srv/app/src/a.rs");
        assert_eq!(join_path("sub", "../a.rs"), "a.rs");
        assert_eq!(join_path("/srv", "/etc/hosts"), "/etc/hosts");
        assert_eq!(join_path("/d/proj", "D:\\proj\\src\\a.go"), "D:\\proj\\src\\a.go");
        assert_eq!(join_path("/d/proj", "d:/proj/src/a.go"), "d:/proj/src/a.go");
        assert_eq!(join_path("/d/proj", "src\\a.go"), "/d/proj/src/a.go");
        assert_eq!(join_path("D:\\proj", "src/../a.go"), "D:\\proj\\a.go");
        assert_eq!(join_path("D:/proj", "src\\a.go"), "D:/proj/src/a.go");
        assert_eq!(join_path("\\\\server\\share", "a.go"), "\\\\server\\share\\a.go");
        assert_eq!(join_path("/srv", "we\\ird"), "/srv/we\\ird");
        assert_eq!(relative_to_root(Some("/srv/app"), "/srv/app/src/a.rs"), "src/a.rs");
        assert_eq!(relative_to_root(Some("/srv/app"), "/srv/apple/a.rs"), "/srv/apple/a.rs");
        assert_eq!(relative_to_root(Some("/srv/app"), "/srv/app"), ".");
    }

    #[test]
    fn lines_cover_what_they_hold() {
        let range = |first, last| SubjectLines::Range { first, last };
        assert!(SubjectLines::All.covers(SubjectLines::Part));
        assert!(range(1, Some(200)).covers(range(50, Some(100))));
        assert!(range(10, None).covers(range(50, Some(100))));
        assert!(!range(10, Some(99)).covers(range(50, Some(100))));
        assert!(!range(1, Some(500)).covers(SubjectLines::All));
        assert!(!SubjectLines::Part.covers(SubjectLines::Part));
        assert_eq!(SubjectLines::All.select_within(10, Some(20)), range(10, Some(20)));
        assert_eq!(range(100, None).first_lines(50), range(100, Some(149)));
        assert_eq!(SubjectLines::from_offset(None, None), SubjectLines::All);
    }
}
