//! Programs that run another one. Takes a command's words; gives those of the program inside (`sudo`,
//! `timeout 60`, `uv run`), or the script inside (`bash -lc "…"`). Never looks at what that program does.

use super::arguments::ProgramArguments;
use crate::facts::tables::wrappers;

/// What is inside.
pub(super) enum WrappedCommand<'a> {
    Words(Vec<&'a str>),
    /// Words run in another directory.
    In(&'a str, Vec<&'a str>),
    Script(String),
}

/// Words that precede a command without being one.
const KEYWORDS: &[&str] = &["if", "then", "else", "elif", "while", "until", "do", "!", "{", "}"];

/// How many wrappers around one program are taken off.
const MAX_WRAPPERS: usize = 8;

/// Takes assignments, keywords and wrappers off.
pub(super) fn unwrap_command<'a>(words: &[&'a str]) -> WrappedCommand<'a> {
    let mut words = words.to_vec();
    let mut directory = None;
    for _ in 0..MAX_WRAPPERS {
        let kept = words.iter().position(|word| !is_assignment(word) && !KEYWORDS.contains(word));
        words.drain(..kept.unwrap_or(words.len()));
        if let Some(script) = inner_script(&words) {
            return WrappedCommand::Script(script);
        }
        directory = directory.or_else(|| directory_option(&words));
        let Some(inner) = unwrap_once(&words) else { break };
        words = inner;
    }
    match directory {
        Some(directory) => WrappedCommand::In(directory, words),
        None => WrappedCommand::Words(words),
    }
}

fn unwrap_once<'a>(words: &[&'a str]) -> Option<Vec<&'a str>> {
    let wrapper = wrappers()
        .iter()
        .find(|wrapper| words.len() > wrapper.words.len() && words.starts_with(&wrapper.words))?;
    let rest = words.get(wrapper.words.len()..)?;
    let rest = skip_options(rest, &wrapper.with_value);
    let rest = rest.get(wrapper.operands..)?;
    let rest = if rest.first() == Some(&"--") { rest.get(1..)? } else { rest };
    (!rest.is_empty()).then(|| rest.to_vec())
}

/// Returns the words after leading options.
pub(super) fn skip_options<'a, 'b>(words: &'b [&'a str], with_value: &[&str]) -> &'b [&'a str] {
    let mut rest = words;
    while let [first, tail @ ..] = rest {
        if *first == "--" {
            return tail;
        }
        if !first.starts_with('-') && !is_assignment(first) {
            break;
        }
        rest = if with_value.contains(first) { tail.get(1..).unwrap_or_default() } else { tail };
    }
    rest
}

/// Returns the script of `bash -lc "…"`, `eval …` and `sh -c …`.
fn inner_script(words: &[&str]) -> Option<String> {
    let (program, rest) = words.split_first()?;
    let program = program.rsplit('/').next()?;
    if program == "eval" {
        return Some(rest.join(" "));
    }
    let is_shell = matches!(program, "bash" | "sh" | "zsh" | "dash" | "ash" | "fish" | "pwsh" | "powershell");
    if !is_shell {
        return None;
    }
    let arguments = ProgramArguments::split_words(rest, &["-o"]);
    let runs_text = arguments.has_option(&["-c", "-Command", "-command"])
        || arguments
            .options
            .iter()
            .any(|(name, _)| !name.starts_with("--") && name.len() < 6 && name.ends_with('c'));
    runs_text.then(|| arguments.operands.first().map(|script| (*script).to_owned()))?
}

/// Returns the directory that an option sets for the program inside.
fn directory_option<'a>(words: &[&'a str]) -> Option<&'a str> {
    match words {
        ["uv", "run", rest @ ..] => {
            ProgramArguments::split_words(rest, &["--directory"]).option_value(&["--directory"])
        }
        ["env", "-C", directory, ..] => Some(directory),
        _ => None,
    }
}

fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    !name.is_empty()
        && !name.starts_with(|letter: char| letter.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'+')
}
