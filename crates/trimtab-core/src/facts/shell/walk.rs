//! The simple commands of a script, in the order in which they stand. Takes a script and the directory it starts in;
//! gives each command with wrappers taken off, scripts inside it laid out and the directory it runs in. Never tells
//! what a command does.

use super::{
    super::{
        subject::join_path,
        windows::{is_msys, is_windows},
    },
    split::{self, PathStyle, Redirect},
    wrap::{self, WrappedCommand},
};

/// How deep scripts inside scripts are read (`bash -lc "docker exec … sh -c …"`).
const MAX_DEPTH: usize = 4;

/// Programs that run a command on other files than those of the session.
const ELSEWHERE: &[&str] = &["ssh", "docker", "podman", "docker-compose", "kubectl"];

/// Words that make it uncertain whether, or how often, a command runs.
const BRANCHES: &[&str] = &["if", "then", "else", "elif", "while", "until", "do", "case"];

/// One simple command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SimpleCommand {
    /// Its words, unquoted.
    pub(crate) words: Vec<String>,
    pub(crate) redirects: Vec<Redirect>,
    /// The here-document's text.
    pub(crate) input: Option<String>,
    /// Whether the shell puts nothing into that text.
    pub(crate) verbatim: bool,
    /// Whether it reads what the command before it writes.
    pub(crate) piped: bool,
    /// Whether something else decides if it runs.
    pub(crate) unsure: bool,
    /// Whether it works on other files than those of the session.
    pub(crate) elsewhere: bool,
    /// The directory it runs in, where that is known.
    pub(crate) cwd: Option<String>,
}

/// Lays out a script; also gives the directory it ends in.
pub(crate) fn walk_script(script: &str, cwd: Option<&str>) -> (Vec<SimpleCommand>, Option<String>) {
    let mut walker = CommandWalker { cwd: cwd.map(str::to_owned), found: Vec::new() };
    walker.walk_script(script, 0);
    (walker.found, walker.cwd)
}

struct CommandWalker {
    cwd: Option<String>,
    found: Vec<SimpleCommand>,
}

impl CommandWalker {
    fn walk_script(&mut self, script: &str, depth: usize) {
        // Directories to go back to when a parenthesis closes.
        let mut outside: Vec<(usize, Option<String>)> = Vec::new();
        for command in split::split_script(script, paths_of(script, self.cwd.as_deref())) {
            while outside.last().is_some_and(|(inside, _)| *inside > command.depth) {
                self.cwd = outside.pop().and_then(|(_, cwd)| cwd);
            }
            if command.depth > outside.last().map_or(0, |(inside, _)| *inside) {
                outside.push((command.depth, self.cwd.clone()));
            }
            self.walk_command(command, depth);
        }
        if let Some((_, cwd)) = outside.into_iter().next() {
            self.cwd = cwd;
        }
    }

    fn walk_command(&mut self, command: split::SplitCommand, depth: usize) {
        let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
        let first = self.found.len();
        let elsewhere = words.iter().any(|word| ELSEWHERE.contains(word));
        let unsure = command.otherwise || words.first().is_some_and(|word| BRANCHES.contains(word));
        let (directory, words) = match wrap::unwrap_command(&words) {
            WrappedCommand::Script(script) => {
                if depth < MAX_DEPTH {
                    self.walk_script(&script, depth + 1);
                }
                if let Some(inner) = self.found.get_mut(first) {
                    inner.piped = command.piped;
                }
                if let Some(inner) = self.found.last_mut().filter(|_| depth < MAX_DEPTH) {
                    inner.redirects.extend(command.redirects);
                }
                for inner in self.found.iter_mut().skip(first) {
                    inner.elsewhere |= elsewhere;
                    inner.unsure |= unsure;
                }
                return;
            }
            WrappedCommand::In(directory, words) => (Some(directory), words),
            WrappedCommand::Words(words) => (None, words),
        };
        if let ["cd" | "pushd" | "Set-Location", rest @ ..] = words.as_slice() {
            let target = rest.iter().find(|word| !word.starts_with('-') || **word == "-").copied();
            if words.first() != Some(&"pushd") || target.is_some() {
                self.cwd = resolve_directory(self.cwd.as_deref(), target.unwrap_or("~"));
            }
            return;
        }
        let cwd = directory.map_or_else(|| self.cwd.clone(), |to| resolve_directory(self.cwd.as_deref(), to));
        self.found.push(SimpleCommand {
            words: words.into_iter().map(str::to_owned).collect(),
            redirects: command.redirects,
            input: command.input,
            verbatim: command.verbatim,
            piped: command.piped,
            unsure,
            elsewhere,
            cwd,
        });
    }
}

/// Tells which paths the shell of a script takes: by the directory it starts in, or one that it goes to.
fn paths_of(script: &str, cwd: Option<&str>) -> PathStyle {
    let is_ours = |path: &str| is_windows(path) || is_msys(path);
    let target = |rest: &str| {
        let word = rest.trim_start_matches([' ', '"', '\'']);
        is_ours(word.split([' ', '"', '\'', ';', '&', '\n']).next().unwrap_or_default())
    };
    let goes_there =
        || script.match_indices("cd ").any(|(at, mark)| script.get(at + mark.len()..).is_some_and(target));
    if script.contains('\\') && (cwd.is_some_and(is_ours) || goes_there()) {
        PathStyle::Windows
    } else {
        PathStyle::Posix
    }
}

fn resolve_directory(from: Option<&str>, target: &str) -> Option<String> {
    if target == "-" || target.starts_with('$') {
        return None;
    }
    Some(join_path(from.unwrap_or_default(), target))
}
