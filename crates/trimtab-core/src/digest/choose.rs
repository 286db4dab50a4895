//! Picks the digest for a text. Takes what is known about it and its first lines; gives one of the list. Never tries digests
//! out: the caller's word first, then names of tools and commands, then how the text looks.

use super::{
    Digest, DigestText, diff, errors, file, find_digest, git_log, git_status, json, listing, log, media,
    other, page, repo_map, search, shell, text::without_number, totals, trace, tree,
};
use crate::facts::{ContentKind, ToolKind, find_digest_of_tool, read_totals};

/// How many lines are looked at.
const LOOKED_AT: usize = 40;

/// Picks the digest for a text.
pub(crate) fn choose_digest(text: &DigestText<'_>) -> &'static Digest {
    if let Some(digest) = by_exact_name(text) {
        return digest;
    }
    match text.context().content {
        ContentKind::Prose | ContentKind::Table if text.context().kind == Some(ToolKind::Read) => {
            &file::DIGEST
        }
        ContentKind::Empty | ContentKind::Prose | ContentKind::Table => by_tool(text)
            .or_else(|| by_command(text))
            .or_else(|| by_look(text))
            .unwrap_or_else(|| by_path(text)),
        ContentKind::Code => &file::DIGEST,
        ContentKind::Listing if looks_like_tree(text) => &tree::DIGEST,
        ContentKind::Listing => &listing::DIGEST,
        ContentKind::Diff => &diff::DIGEST,
        ContentKind::Hits => &search::DIGEST,
        ContentKind::Log => by_command(text).or_else(|| by_look(text)).unwrap_or(&shell::DIGEST),
        ContentKind::TestLog | ContentKind::BuildLog => &log::DIGEST,
        ContentKind::Json => &json::DIGEST,
        ContentKind::Trace => &trace::DIGEST,
        ContentKind::Page => &page::DIGEST,
        ContentKind::Image => &media::DIGEST,
        ContentKind::Receipt => by_look(text).unwrap_or(&other::DIGEST),
    }
}

/// Tells whether a text may be a file as it is: nothing says that it is something else.
pub(crate) fn may_be_file(text: &DigestText<'_>) -> bool {
    let may = matches!(
        text.context().content,
        ContentKind::Empty
            | ContentKind::Code
            | ContentKind::Prose
            | ContentKind::Table
            | ContentKind::Receipt
    );
    may && by_exact_name(text).is_none()
}

/// Returns the digest of commands and tools whose name says more than the kind of content does.
fn by_exact_name(text: &DigestText<'_>) -> Option<&'static Digest> {
    let about = text.context();
    match (about.command.unwrap_or_default(), about.tool) {
        (command, _) if command.starts_with("git status") => Some(&git_status::DIGEST),
        (command, _) if command.starts_with("git log") => Some(&git_log::DIGEST),
        (_, Some("tree")) => Some(&tree::DIGEST),
        (_, Some("get_repo_map" | "repo_map")) => Some(&repo_map::DIGEST),
        (_, Some("code_structure")) => Some(&repo_map::STRUCTURE),
        _ => None,
    }
}

/// Returns the digest that the table of tools names.
fn by_tool(text: &DigestText<'_>) -> Option<&'static Digest> {
    let digest = find_digest_of_tool(text.context().tool?)?;
    if digest == shell::DIGEST.name {
        return by_command(text).or_else(|| by_look(text)).or(Some(&shell::DIGEST));
    }
    find_digest(digest)
}

fn by_command(text: &DigestText<'_>) -> Option<&'static Digest> {
    let command = text.context().command?;
    // What counts is the last command of a chain, and the first of a pipeline.
    let last = command.rsplit(['\n', ';']).map(str::trim).find(|part| !part.is_empty())?;
    let last = last.rsplit("&&").next()?.trim();
    let mut words = last
        .split_ascii_whitespace()
        .skip_while(|word| word.contains('=') || matches!(*word, "sudo" | "env" | "time"));
    let program = words.next()?.rsplit('/').next()?;
    let second = words.clone().find(|word| !word.starts_with('-')).unwrap_or_default();
    Some(match (program, second) {
        ("git", "status") => &git_status::DIGEST,
        ("git", "diff" | "show") => &diff::DIGEST,
        ("git", "log" | "reflog") => &git_log::DIGEST,
        ("git", "grep") | ("grep" | "rg" | "ag" | "ack" | "Select-String", _) => &search::DIGEST,
        ("git", "ls-files") | ("ls" | "find" | "fd" | "dir" | "Get-ChildItem", _) => &listing::DIGEST,
        ("tree", _) => &tree::DIGEST,
        ("cat" | "head" | "tail" | "sed" | "nl" | "bat" | "Get-Content", _) => &file::DIGEST,
        (
            "pytest" | "tox" | "jest" | "vitest" | "mocha" | "make" | "ninja" | "mvn" | "gradle" | "tsc"
            | "eslint",
            _,
        )
        | (
            "cargo" | "go" | "npm" | "pnpm" | "yarn" | "dotnet",
            "test" | "build" | "check" | "clippy" | "install" | "run" | "nextest",
        ) => &log::DIGEST,
        _ => return None,
    })
}

fn by_look(text: &DigestText<'_>) -> Option<&'static Digest> {
    let whole = text.whole().trim();
    let start = whole.get(..whole.floor_char_boundary(400)).unwrap_or(whole);
    let share = |is: &dyn Fn(&str) -> bool| {
        let lines = || text.lines().take(LOOKED_AT).filter(|line| !line.trim().is_empty());
        let (all, hits) = (lines().count(), lines().filter(|line| is(line)).count());
        if all >= 4 { hits * 100 / all } else { 0 }
    };
    let any = |is: &dyn Fn(&str) -> bool| text.lines().take(LOOKED_AT).any(is);
    if whole.starts_with("data:image/")
        || ["iVBORw0KGgo", "/9j/", "JVBERi0", "R0lGOD"].iter().any(|mark| whole.starts_with(mark))
    {
        return Some(&media::DIGEST);
    }
    if whole.starts_with(['{', '['])
        && whole.ends_with(['}', ']'])
        && crate::json::scan(whole.as_bytes()).is_ok()
    {
        return Some(&json::DIGEST);
    }
    if start.starts_with("diff --git ") || (start.starts_with("--- ") && start.contains("\n+++ ")) {
        return Some(&diff::DIGEST);
    }
    if start.starts_with("On branch ") || start.starts_with("HEAD detached") {
        return Some(&git_status::DIGEST);
    }
    if start.starts_with("commit ") && start.contains("\nAuthor: ") || share(&git_log::is_short) > 80 {
        return Some(&git_log::DIGEST);
    }
    if looks_like_tree(text) {
        return Some(&tree::DIGEST);
    }
    if start.starts_with("<!DOCTYPE") || start.starts_with("<html") {
        return Some(&page::DIGEST);
    }
    if share(&|line| without_number(line).len() < line.len()) > 80 {
        return Some(&file::DIGEST);
    }
    if any(&|line| line.starts_with("Traceback (most recent call last)")) || share(&trace::is_frame) > 50 {
        return Some(&trace::DIGEST);
    }
    let log =
        |line: &str| errors::is_error_line(line) || totals::is_passing(line) || read_totals(line).is_some();
    if share(&log) > 20 || (0..text.len()).rev().take(5).any(|index| read_totals(text.line(index)).is_some())
    {
        return Some(&log::DIGEST);
    }
    if share(&is_hit) > 60 {
        return Some(&search::DIGEST);
    }
    (share(&is_path) > 90).then_some(&listing::DIGEST)
}

fn by_path(text: &DigestText<'_>) -> &'static Digest {
    match text.context() {
        about if about.path.is_some() => &file::DIGEST,
        about if about.command.is_some() => &shell::DIGEST,
        _ => &other::DIGEST,
    }
}

fn looks_like_tree(text: &DigestText<'_>) -> bool {
    text.lines()
        .take(LOOKED_AT)
        .filter(|line| line.contains("├─") || line.contains("└─") || line.contains("|-- "))
        .count()
        >= 2
}

fn is_hit(line: &str) -> bool {
    let mut parts = line.splitn(3, ':');
    let (Some(path), Some(number), Some(_)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    !path.contains(' ') && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_path(line: &str) -> bool {
    let line = line.trim();
    !line.contains([' ', '(', '{', ';', '"', '='])
        && (line.contains('/') || line.rsplit_once('.').is_some_and(|(_, end)| (1..=5).contains(&end.len())))
}
