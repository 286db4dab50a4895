//! Which repository a session worked in: [`repository_name`], by the folder that its recording names first. Looks at bytes, not at
//! formats: every agent names its folder in one of a few ways.

use memchr::memmem;
use trimtab_core::json::scan_first;

/// How agents call the folder in which they work.
const KEYS: [&str; 5] =
    ["\"cwd\"", "\"gitRoot\"", "\"directory\"", "\"working_dir\"", "\"workingDirectory\""];

/// Folders that agents make inside a repository for each task: what precedes them is the repository.
const WORKTREES: [&str; 3] = ["/.worktrees/", "/.claude/worktrees/", "/.trees/"];

/// Returns the name of the folder that a recording names first; nothing where it names none.
pub fn repository_name(recording: &[u8]) -> Option<String> {
    let found = KEYS.iter().filter_map(|key| {
        let ends = memmem::find_iter(recording, key).map(|at| at + key.len());
        ends.into_iter().find_map(|end| Some((end, read_text(recording.get(end..)?)?)))
    });
    let (_, folder) = found.min_by_key(|(at, _)| *at)?;
    let folder = folder.replace('\\', "/");
    let whole = WORKTREES.iter().fold(folder.as_str(), |folder, inside| {
        folder.split_once(inside).map_or(folder, |(repository, _)| repository)
    });
    let name = whole.trim_end_matches('/').rsplit('/').next()?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// Reads the text after a key.
fn read_text(rest: &[u8]) -> Option<String> {
    let value = rest.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    let (tape, _) = scan_first(value).ok()?;
    Some(tape.root(value)?.string()?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_that_is_named_first_gives_the_repository_its_name() {
        for (recording, name) in [
            (r#"{"type":"user","cwd":"/home/me/app"}{"cwd":"/tmp"}"#, Some("app")),
            (r#"{"cwd" : "C:\\Users\\me\\app\\"}"#, Some("app")),
            (r#"{"payload":{"cwd":"/home/me/app/.worktrees/fix-1/src"}}"#, Some("app")),
            (r#"{"text":"{\"cwd\":\"/wrong\"}","directory":"/home/me/other"}"#, Some("other")),
            (r#"{"cwd":3,"gitRoot":"/r/x"}"#, Some("x")),
            (r#"{"cwd":"/"}"#, None),
            (r#"{"messages":[]}"#, None),
        ] {
            assert_eq!(repository_name(recording.as_bytes()).as_deref(), name, "{recording}");
        }
    }
}
