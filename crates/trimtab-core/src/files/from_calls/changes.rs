//! What a command may change. Takes one command of a script; gives the files it writes, with their text where the command
//! line spells it out, or says that any file may be another one. Never runs anything.

use super::{
    super::{
        operation::{FileAction, FileOperation},
        patch::{codex_patch, unified_diff},
        timeline::FileTimeline,
    },
    AnsweredCall, CallEffect, tools,
};
use crate::facts::{RedirectDirection, SimpleCommand, Subject, ToolKind, actions_of};

/// Returns what one command changes.
pub(super) fn command_changes(
    answer: &AnsweredCall<'_>,
    script: &str,
    command: &SimpleCommand,
    known: &FileTimeline,
) -> Vec<CallEffect> {
    let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
    let cwd = command.cwd.as_deref();
    if let Some(operations) = written_operations(answer, command, &words) {
        return operations.into_iter().map(CallEffect::Operation).collect();
    }
    if rewrites_what_it_is_fed(&words) {
        return vec![CallEffect::Anything];
    }
    if matches!(words.as_slice(), ["patch", ..] | ["git", "apply", ..]) {
        return patched_files(answer, cwd);
    }
    if changes_anything(&words) {
        let named = named_files(answer, &words, cwd, known);
        if named.is_empty() {
            return vec![CallEffect::Anything];
        }
        return named.into_iter().map(changed_file).collect();
    }
    let mut done: Vec<CallEffect> = Vec::new();
    for action in actions_of(command).iter().filter(|action| action.kind.changes_files()) {
        match &action.subject {
            Subject::File { path, .. } if is_pattern(path) => done.push(CallEffect::Anything),
            Subject::File { path, .. } => {
                let path = answer.facts.file_key(path).into_owned();
                let action =
                    if action.kind == ToolKind::Delete { FileAction::Delete } else { FileAction::Changed };
                done.push(CallEffect::Operation(FileOperation { path, action }));
            }
            Subject::Directory { path, .. } if words.first() != Some(&"mkdir") => {
                let place = answer.facts.file_key(path).into_owned();
                if place == "." {
                    done.push(CallEffect::Anything);
                    continue;
                }
                let below =
                    |file: &&str| file.strip_prefix(place.as_str()).is_some_and(|rest| rest.starts_with('/'));
                done.extend(known.paths().filter(below).map(|path| changed_file(path.to_owned())));
            }
            Subject::Directory { .. }
            | Subject::Command(_)
            | Subject::Query { .. }
            | Subject::Url(_)
            | Subject::Nothing => {}
        }
    }
    done.extend(redirected_writes(answer, command));
    done.extend(code_changes(answer, script, &words, command, known));
    done
}

/// Tells whether a command rewrites files whose names another one hands it: `… | xargs sed -i`, `find … -exec sed -i`.
fn rewrites_what_it_is_fed(words: &[&str]) -> bool {
    let rest = match words {
        ["xargs" | "parallel", rest @ ..] => rest,
        ["find", tests @ ..] => {
            let exec = tests.iter().position(|word| matches!(*word, "-exec" | "-execdir"));
            exec.and_then(|at| tests.get(at + 1..)).unwrap_or_default()
        }
        _ => return false,
    };
    let in_place =
        |word: &&str| word.starts_with("--in-place") || (word.starts_with('-') && word.contains('i'));
    let program = rest.iter().position(|word| {
        let rewrites = ["sed", "gsed", "perl", "ruby", "rm", "mv", "tee", "cp"].contains(word);
        rewrites || REWRITERS.iter().any(|(name, _)| name == word)
    });
    let Some(inner) = program.and_then(|at| rest.get(at..)) else { return false };
    match inner {
        ["sed" | "gsed" | "perl" | "ruby", options @ ..] => options.iter().any(in_place),
        ["rm" | "mv" | "tee" | "cp", ..] => true,
        inner => changes_anything(inner),
    }
}

/// Reads the files that `patch` says it changed; any, where it does not say.
fn patched_files(answer: &AnsweredCall<'_>, cwd: Option<&str>) -> Vec<CallEffect> {
    let named = answer.text.lines().filter_map(|line| line.strip_prefix("patching file "));
    let done: Vec<CallEffect> =
        named.map(|path| changed_file(answer.file_key(cwd, path.trim_matches('\'')))).collect();
    if done.is_empty() { vec![CallEffect::Anything] } else { done }
}

fn changed_file(path: String) -> CallEffect {
    CallEffect::Operation(FileOperation { path, action: FileAction::Changed })
}

/// Tells a word that the shell replaces by others.
pub(super) fn is_pattern(word: &str) -> bool {
    word.contains(['*', '?', '$', '`', '{'])
}

fn redirected_writes(answer: &AnsweredCall<'_>, command: &SimpleCommand) -> Vec<CallEffect> {
    let writes = command.redirects.iter().filter(|redirect| redirect.to != RedirectDirection::In);
    let target = |target: &str| match is_pattern(target) {
        true => CallEffect::Anything,
        false => changed_file(answer.file_key(command.cwd.as_deref(), target)),
    };
    writes.map(|redirect| target(&redirect.target)).collect()
}

/// Reads a command that spells out what it writes.
fn written_operations(
    answer: &AnsweredCall<'_>,
    command: &SimpleCommand,
    words: &[&str],
) -> Option<Vec<FileOperation>> {
    let cwd = command.cwd.as_deref();
    let target = || match command.redirects.as_slice() {
        [redirect] if !is_pattern(&redirect.target) => Some((redirect.to, redirect.target.as_str())),
        _ => None,
    };
    let put = |to: RedirectDirection, path: &str, content: String| {
        let action = match to {
            RedirectDirection::Append => FileAction::Append { content },
            RedirectDirection::Out | RedirectDirection::In => FileAction::Write { content },
        };
        vec![FileOperation { path: answer.file_key(cwd, path), action }]
    };
    match words {
        ["cat"] | ["cat", "-"] if !command.piped => {
            let (to, path) = target()?;
            Some(put(to, path, literal_input(command)?))
        }
        ["tee", rest @ ..] if !command.piped => {
            let (to, path) = match rest {
                ["-a" | "--append", path] => (RedirectDirection::Append, path),
                [path] => (RedirectDirection::Out, path),
                _ => return None,
            };
            (!is_pattern(path)).then_some(())?;
            Some(put(to, path, literal_input(command)?))
        }
        ["echo", rest @ ..] if !command.piped => {
            let (to, path) = target()?;
            let text = rest.join(" ");
            let is_plain = !text.starts_with('-') && !text.contains(['$', '`', '\\', '*', '?']);
            is_plain.then(|| put(to, path, text + "\n"))
        }
        ["mv" | "git", ..] => {
            let rest = words.strip_prefix(&["git", "mv"]).or_else(|| words.strip_prefix(&["mv"]))?;
            let paths: Vec<&str> = rest.iter().copied().filter(|word| !word.starts_with('-')).collect();
            let [from, to] = paths.as_slice() else { return None };
            let into_folder = to.ends_with('/') || !to.rsplit('/').next()?.contains('.');
            if into_folder || is_pattern(from) || is_pattern(to) {
                return None;
            }
            let action = FileAction::Rename { to: answer.file_key(cwd, to) };
            Some(vec![FileOperation { path: answer.file_key(cwd, from), action }])
        }
        ["apply_patch" | "applypatch", rest @ ..] => {
            let text = command.input.as_deref().or(rest.first().copied())?;
            let operations = codex_patch(text).into_iter();
            Some(operations.map(|operation| tools::with_session_names(answer, cwd, operation)).collect())
        }
        ["patch", rest @ ..]
            if !rest.iter().any(|word| matches!(*word, "-R" | "--dry-run" | "--reverse")) =>
        {
            let operations = unified_diff(command.input.as_deref()?).into_iter();
            Some(operations.map(|operation| tools::with_session_names(answer, cwd, operation)).collect())
        }
        _ => None,
    }
}

/// Returns the here-document where the shell puts nothing into it.
fn literal_input(command: &SimpleCommand) -> Option<String> {
    let input = command.input.as_deref()?;
    (command.verbatim || !input.contains(['$', '`', '\\'])).then(|| input.to_owned())
}

/// Programs that rewrite files in place if given one of these words; always, where there is none.
const REWRITERS: &[(&str, &[&str])] = &[
    ("black", &[]),
    ("isort", &[]),
    ("rustfmt", &[]),
    ("gofmt", &["-w"]),
    ("gofumpt", &["-w"]),
    ("goimports", &["-w"]),
    ("prettier", &["--write", "-w"]),
    ("eslint", &["--fix"]),
    ("stylelint", &["--fix"]),
    ("oxlint", &["--fix"]),
    ("biome", &["--write", "--apply", "--fix", "--apply-unsafe"]),
    ("dprint", &["fmt"]),
    ("ruff", &["--fix", "format"]),
    ("autopep8", &["-i", "--in-place"]),
    ("yapf", &["-i", "--in-place"]),
    ("clang-format", &["-i"]),
    ("shfmt", &["-w"]),
    ("rubocop", &["-a", "-A", "--autocorrect"]),
    ("golangci-lint", &["--fix", "fmt"]),
    ("cargo", &["fmt", "fix", "--fix", "add", "remove"]),
    ("go", &["fmt", "generate", "get"]),
    ("pre-commit", &["run"]),
    ("mix", &["format"]),
    ("dart", &["format"]),
    ("dotnet", &["format"]),
    ("terraform", &["fmt"]),
    ("buf", &["generate", "format"]),
    ("swiftformat", &[]),
    ("ktlint", &["-F", "--format"]),
    ("php-cs-fixer", &["fix"]),
    ("rsync", &[]),
    ("unzip", &[]),
    ("tar", &["-xf", "xf", "-xzf", "xzf", "-x"]),
];

/// Words that make a rewriting program only look.
const ONLY_LOOKS: &[&str] = &[
    "--check", "--dry-run", "--diff", "--check-only", "-d", "-l", "--list-different", "--help", "--version",
];

/// Words in the name of a task that rewrites files (`npm run lint:fix`, `make generate`).
const REWRITING_TASKS: &[&str] =
    &["fmt", "format", "fix", "tidy", "generate", "codegen", "prettier", "biome", "bless", "snapshot"];

/// Tells whether any file may be another one after a command.
fn changes_anything(words: &[&str]) -> bool {
    let Some((first, rest)) = words.split_first() else { return false };
    let program = first.rsplit('/').next().unwrap_or(first);
    if rest.iter().any(|word| ONLY_LOOKS.contains(word)) && program != "git" {
        return false;
    }
    let runs_task = matches!(
        program,
        "npm"
            | "pnpm"
            | "yarn"
            | "bun"
            | "make"
            | "just"
            | "task"
            | "mise"
            | "npx"
            | "lefthook"
            | "turbo"
            | "nx"
    );
    match program {
        "git" => git_changes_anything(rest),
        "gh" | "glab" | "hub" => rest.contains(&"checkout") || rest.contains(&"sync"),
        "jj" | "hg" | "svn" => !matches!(rest.first(), Some(&("log" | "st" | "status" | "diff" | "show"))),
        "npm" | "pnpm" | "yarn" | "bun" if rest.iter().any(|word| matches!(*word, "check" | "lint")) => true,
        _ if runs_task => rest.iter().any(|word| {
            let word = word.to_ascii_lowercase();
            REWRITING_TASKS.iter().any(|task| word.split([':', '-', '_']).any(|part| part == *task))
        }),
        "go" if rest.starts_with(&["mod"]) => true,
        _ => REWRITERS.iter().any(|(name, marks)| {
            *name == program && (marks.is_empty() || marks.iter().any(|mark| rest.contains(mark)))
        }),
    }
}

/// Words in which formatters and hooks say that they rewrote files.
const REWROTE: &[&str] = &[
    "files were modified by this hook",
    "file reformatted",
    "files reformatted",
    "\nreformatted ",
    "Running formatting",
    "[STARTED] Applying modifications",
    "Applying modifications from tasks",
];

/// Tells whether an output says that files were rewritten: `Fixed 2 files.`, `Formatted 3 files`.
pub(super) fn says_rewritten(text: &str) -> bool {
    let counts = |line: &str| {
        ["Fixed ", "Formatted "].iter().any(|verb| {
            let rest = line.split_once(verb).map_or("", |(_, rest)| rest);
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            digits > 0 && rest.get(digits..).is_some_and(|rest| rest.starts_with(" file"))
        })
    };
    REWROTE.iter().any(|words| text.contains(words)) || text.lines().rev().take(40).any(counts)
}

fn git_changes_anything(words: &[&str]) -> bool {
    let words: Vec<&str> = match words {
        ["-C" | "-c", _, rest @ ..] => rest.to_vec(),
        words => words.iter().copied().skip_while(|word| word.starts_with('-')).collect(),
    };
    let Some((verb, rest)) = words.split_first() else { return false };
    let has = |names: &[&str]| rest.iter().any(|word| names.contains(word));
    match *verb {
        "checkout" => !has(&["-b", "-B", "--orphan"]) || rest.len() > 2,
        "switch" => !has(&["-c", "-C", "--create"]) || rest.len() > 2,
        "restore" => !has(&["--staged", "-S"]) || has(&["--worktree", "-W"]),
        "reset" => has(&["--hard", "--merge", "--keep"]),
        "stash" => !matches!(rest.first(), Some(&("list" | "show" | "drop" | "clear"))),
        "clean" => !has(&["-n", "--dry-run"]),
        "pull" | "merge" | "rebase" | "cherry-pick" | "revert" | "am" | "read-tree" | "submodule" | "lfs" => {
            true
        }
        _ => false,
    }
}

/// Returns the known files that a command names, where it names nothing but files.
fn named_files(
    answer: &AnsweredCall<'_>,
    words: &[&str],
    cwd: Option<&str>,
    known: &FileTimeline,
) -> Vec<String> {
    let is_file = |word: &&&str| {
        let name = word.rsplit('/').next().unwrap_or(word);
        !word.starts_with('-')
            && name.contains('.')
            && !matches!(name, "." | "..")
            && !name.ends_with("...")
            && !is_pattern(word)
    };
    let named: Vec<String> =
        words.iter().skip(1).filter(is_file).map(|word| answer.file_key(cwd, word)).collect();
    let known = |path: &String| !known.accesses(path).is_empty() || path.contains('.');
    if named.iter().all(known) { named } else { Vec::new() }
}

/// Ways in which a program given as text writes a file.
const WRITING: &[&str] = &[
    ".write(", ".writelines(", ".write_text(", ".write_bytes(", "writeFile", "appendFile", "shutil.",
    "os.rename", "os.replace", "os.remove", "os.system", ".unlink(", ".rename(", "fileinput", "subprocess",
    "execSync", "File.write", "file_put_contents", "json.dump(", "Bun.write",
];

/// Returns the files that a program given as text, or written earlier in the session, may change: those it names.
fn code_changes(
    answer: &AnsweredCall<'_>,
    text: &str,
    words: &[&str],
    command: &SimpleCommand,
    known: &FileTimeline,
) -> Vec<CallEffect> {
    let program = words.first().map_or("", |first| first.rsplit('/').next().unwrap_or(first));
    let runs_code =
        ["python", "node", "ruby", "perl", "php", "bun", "deno", "tsx", "bash", "sh", "awk", "ts-node"]
            .iter()
            .any(|name| program.starts_with(name));
    if !runs_code {
        return Vec::new();
    }
    // What it runs may stand in the same command line, as a here-document that another command wrote.
    let mut code = text.to_owned();
    let script = words.iter().skip(1).find(|word| !word.starts_with('-'));
    let written =
        script.and_then(|path| known.file_state_at(&answer.file_key(command.cwd.as_deref(), path), u32::MAX));
    code += &written.and_then(|state| state.text()).unwrap_or_default();
    if !WRITING.iter().any(|mark| code.contains(mark)) {
        return Vec::new();
    }
    let is_named = |path: &&str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        name.len() > 2 && code.contains(name)
    };
    let named: Vec<CallEffect> =
        known.paths().filter(is_named).map(|path| changed_file(path.to_owned())).collect();
    // It writes something, and nothing tells what.
    let hides = code.contains("glob")
        || code.contains("os.walk")
        || code.contains("rglob")
        || code.contains("sys.argv");
    if hides { vec![CallEffect::Anything] } else { named }
}
