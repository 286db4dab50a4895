//! What a program does. Takes its words, wrappers taken off, and its here-document; gives its actions, or nothing
//! for a program that only prepares others (`echo`, `export`, `sleep`). Never fails: a program that is not in
//! the table is one that is run.

use super::{arguments::ProgramArguments, command_subject, files, listings};
use crate::facts::{
    patch,
    subject::{Subject, SubjectLines},
    tables::{ProgramReading, readings_of_program},
    tool::{Action, ToolKind},
};

/// Commands of trimtab by which an agent gets back what was hidden or said before.
const RECALLS: &[&str] = &["recall", "search", "file-at", "changelog", "files", "restore"];

/// Reads a command; none where it only prepares others.
pub(super) fn actions_of(words: &[&str], input: Option<&str>) -> Option<Vec<Action>> {
    let (first, rest) = words.split_first()?;
    let program = first.rsplit('/').next().unwrap_or(first);
    let is_path = *first != program;
    if !is_path && counts_as(program, ProgramReading::Silent) {
        return None;
    }
    if let Some(actions) = files::actions_of(program, words) {
        return Some(actions);
    }
    let run = |kind| Some(vec![Action::new(kind, command_subject(words))]);
    match program {
        "apply_patch" | "applypatch" => {
            Some(patch::patch_actions(input.or(rest.first().copied()).unwrap_or_default()))
        }
        "patch" => Some(patch_program(words, input)),
        "git" => Some(git(words)),
        "cargo" => run(cargo(rest)),
        "go" => run(go(rest)),
        "mise" | "asdf" => run(match rest {
            ["run" | "r", task, ..] => task_kind(task),
            [task, ..] if task.contains(':') => task_kind(task),
            _ => ToolKind::Build,
        }),
        "docker" | "podman" | "docker-compose"
            if rest.iter().any(|word| matches!(*word, "build" | "buildx")) =>
        {
            run(ToolKind::Build)
        }
        "playwright" if !rest.contains(&"test") => run(ToolKind::Run),
        "trimtab" | "trimtab.exe" if rest.iter().any(|word| RECALLS.contains(word)) => run(ToolKind::Recall),
        "submit" => Some(vec![Action::new(ToolKind::Ask, Subject::Nothing)]),
        _ => Some(by_table(program, words, input)),
    }
}

/// Reads a command as the table says of its program.
fn by_table(program: &str, words: &[&str], input: Option<&str>) -> Vec<Action> {
    let rest = words.get(1..).unwrap_or_default();
    // A path to a program of that name: the shell's own word is another one.
    let reading = readings_of_program(program).iter().find(|reading| **reading != ProgramReading::Silent);
    let kind = match reading {
        Some(ProgramReading::Python) => return python(words, input),
        Some(ProgramReading::Script) => return script_runner(words, input),
        Some(ProgramReading::Web) => return fetch_address(words),
        Some(ProgramReading::Package) => package_task(rest),
        Some(ProgramReading::Java) => java_task(rest),
        Some(ProgramReading::Target) => target_kind(rest),
        Some(ProgramReading::Verb) => verb_kind(rest),
        Some(ProgramReading::Monorepo) => match verb_kind(rest) {
            ToolKind::Run => ToolKind::Build,
            kind => kind,
        },
        Some(ProgramReading::Git) => ToolKind::Git,
        Some(ProgramReading::Test) => ToolKind::Test,
        Some(ProgramReading::Environment | ProgramReading::Build) => ToolKind::Build,
        Some(ProgramReading::SubAgent) => ToolKind::SubAgent,
        Some(ProgramReading::Silent) | None if program.starts_with("python3.") => {
            return python(words, input);
        }
        Some(ProgramReading::Silent) | None if is_test_script(program) => ToolKind::Test,
        Some(ProgramReading::Silent) | None => ToolKind::Run,
    };
    vec![Action::new(kind, command_subject(words))]
}

/// Tells whether a name counts as that of such a program.
fn counts_as(name: &str, reading: ProgramReading) -> bool {
    readings_of_program(name).contains(&reading)
}

/// Tells what a task of that name is for: `test:unit`, `lint`, `dev`.
pub(super) fn task_kind(name: &str) -> ToolKind {
    let name = name.to_ascii_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    if has(&["test", "spec", "e2e", "coverage", "verify"]) {
        return ToolKind::Test;
    }
    let builds = [
        "build", "lint", "check", "compile", "type", "format", "fmt", "install", "bundle", "generate",
        "codegen", "gen", "vet", "clean", "tsc", "biome", "prettier", "fix", "ci", "dist", "pack", "tidy",
        "validate", "all", "docs",
    ];
    if has(&builds) { ToolKind::Build } else { ToolKind::Run }
}

fn target_kind(words: &[&str]) -> ToolKind {
    let arguments = ProgramArguments::split_words(words, &["-C", "-f", "-j", "--directory", "--file"]);
    let kinds = || arguments.operands.iter().filter(|word| !word.contains('=')).map(|word| task_kind(word));
    if kinds().any(|kind| kind == ToolKind::Test || kind == ToolKind::Run) {
        return kinds().find(|kind| *kind != ToolKind::Build).unwrap_or(ToolKind::Build);
    }
    ToolKind::Build
}

fn verb_kind(words: &[&str]) -> ToolKind {
    let verb = words.iter().find(|word| !word.starts_with('-'));
    verb.map_or(ToolKind::Run, |verb| task_kind(verb))
}

fn package_task(words: &[&str]) -> ToolKind {
    const WITH_VALUE: &[&str] = &["-w", "--workspace", "--filter", "-F", "--prefix", "-C", "--dir", "--cwd"];
    let arguments = ProgramArguments::split_words(words, WITH_VALUE);
    let mut operands = arguments.operands.iter().copied();
    match operands.next() {
        Some("run" | "run-script" | "workspace" | "workspaces" | "recursive" | "-r") => {
            operands.next().map_or(ToolKind::Run, task_kind)
        }
        Some("test" | "t" | "tst") => ToolKind::Test,
        Some(
            "start" | "dev" | "create" | "view" | "info" | "config" | "login" | "whoami" | "ls" | "list"
            | "why" | "outdated" | "audit",
        ) => ToolKind::Run,
        Some("install" | "i" | "ci" | "add" | "remove" | "update" | "upgrade" | "link" | "publish")
        | None => ToolKind::Build,
        Some(task) if counts_as(task, ProgramReading::Test) => ToolKind::Test,
        Some(task) if counts_as(task, ProgramReading::Build) => ToolKind::Build,
        Some(task) => task_kind(task),
    }
}

fn cargo(words: &[&str]) -> ToolKind {
    let verb = words.iter().find(|word| !word.starts_with(['-', '+']));
    match verb.copied() {
        Some("test" | "t" | "nextest" | "insta" | "miri" | "llvm-cov" | "tarpaulin" | "mutants") => {
            ToolKind::Test
        }
        Some("run" | "r" | "metadata" | "tree" | "search" | "info" | "locate-project" | "bench") => {
            ToolKind::Run
        }
        Some(_) | None => ToolKind::Build,
    }
}

fn go(words: &[&str]) -> ToolKind {
    match words.iter().find(|word| !word.starts_with('-')).copied() {
        Some("test") => ToolKind::Test,
        Some("run" | "env" | "version" | "list" | "doc" | "help") => ToolKind::Run,
        Some("tool") if words.contains(&"cover") => ToolKind::Test,
        Some(_) | None => ToolKind::Build,
    }
}

fn java_task(words: &[&str]) -> ToolKind {
    let mut tasks = words.iter().filter(|word| !word.starts_with('-')).map(|word| word.to_ascii_lowercase());
    let is_test = |task: String| task.contains("test") || task.ends_with("verify") || task.ends_with("check");
    if tasks.any(is_test) { ToolKind::Test } else { ToolKind::Build }
}

fn is_test_script(name: &str) -> bool {
    let Some((stem, extension)) = name.rsplit_once('.') else { return false };
    let is_script = matches!(extension, "py" | "sh" | "js" | "mjs" | "ts" | "rb" | "bash" | "php");
    is_script
        && (stem.starts_with("test_")
            || stem.ends_with("_test")
            || stem.ends_with(".test")
            || stem == "test"
            || stem == "tests")
}

fn python(words: &[&str], input: Option<&str>) -> Vec<Action> {
    let arguments =
        ProgramArguments::split_words(words.get(1..).unwrap_or_default(), &["-c", "-m", "-W", "-X"]);
    if let Some(module) = arguments.option_value(&["-m"]) {
        let at = words.iter().position(|word| *word == module).unwrap_or_default();
        let mut inner = vec![module.split('.').next().unwrap_or(module)];
        inner.extend(words.iter().skip(at + 1));
        let of_module = actions_of(&inner, None).unwrap_or_default();
        // A module is a program of its name; an unknown one is shown with its interpreter.
        if of_module.iter().any(|action| action.kind != ToolKind::Run) {
            return of_module
                .into_iter()
                .map(|action| Action { subject: command_subject(words), ..action })
                .collect();
        }
        return vec![Action::new(ToolKind::Run, command_subject(words))];
    }
    let code = arguments.option_value(&["-c"]).or(input);
    if let Some(code) = code {
        return code_actions(words, code);
    }
    let Some(script) = arguments.operands.first() else {
        return vec![Action::new(ToolKind::Run, command_subject(words))];
    };
    let name = script.rsplit('/').next().unwrap_or(script);
    let arguments: Vec<&str> = words.iter().copied().skip_while(|word| word != script).skip(1).collect();
    let kind = match name {
        "manage.py" | "setup.py" => verb_kind(&arguments),
        name if counts_as(name, ProgramReading::Test) || is_test_script(name) => ToolKind::Test,
        "test" | "runtests" => ToolKind::Test,
        _ => ToolKind::Run,
    };
    vec![Action::new(kind, command_subject(words))]
}

fn script_runner(words: &[&str], input: Option<&str>) -> Vec<Action> {
    let rest = words.get(1..).unwrap_or_default();
    let arguments = ProgramArguments::split_words(
        rest,
        &["-e", "--eval", "-p", "--filter", "--cwd", "--import", "--loader", "-r"],
    );
    if let Some(code) = arguments.option_value(&["-e", "--eval", "-p"]).or(input) {
        return code_actions(words, code);
    }
    let is_runner = matches!(words.first(), Some(&("bun" | "deno")));
    let mut operands = arguments.operands.iter().copied();
    let kind = match operands.next() {
        Some("x") if is_runner => {
            let inner: Vec<&str> = operands.collect();
            return actions_of(&inner, None).unwrap_or_default();
        }
        Some("run" | "task") if is_runner => operands.next().map_or(ToolKind::Run, |task| {
            if task.contains('.') { script_kind(task) } else { task_kind(task) }
        }),
        Some("test") if is_runner => ToolKind::Test,
        Some("build" | "install" | "i" | "add" | "remove" | "fmt" | "lint" | "check" | "compile")
            if is_runner =>
        {
            ToolKind::Build
        }
        Some(script) => script_kind(script),
        None if arguments.has_option(&["--test"]) => ToolKind::Test,
        None => ToolKind::Run,
    };
    let kind = if arguments.has_option(&["--test"]) { ToolKind::Test } else { kind };
    vec![Action::new(kind, command_subject(words))]
}

fn script_kind(script: &str) -> ToolKind {
    let name = script.rsplit('/').next().unwrap_or(script);
    let stem = name.split('.').next().unwrap_or(name);
    let is_known_as = |reading| counts_as(stem, reading) || counts_as(name, reading);
    match () {
        () if is_test_script(name) || is_known_as(ProgramReading::Test) => ToolKind::Test,
        () if is_known_as(ProgramReading::Build) => ToolKind::Build,
        () => ToolKind::Run,
    }
}

/// Reads a program given as text: it is run, and it changes the files that it opens for writing.
fn code_actions(words: &[&str], code: &str) -> Vec<Action> {
    let mut actions: Vec<Action> =
        written_files(code).into_iter().map(|path| Action::edit_file(&path)).collect();
    if actions.is_empty() {
        let mut line: Vec<&str> = words.to_vec();
        if !words.contains(&code) {
            line.push(code);
        }
        actions.push(Action::new(ToolKind::Run, command_subject(&line)));
    }
    actions
}

/// Finds the literal paths that a Python or JavaScript text opens for writing.
fn written_files(code: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut note = |path: &str| {
        let is_path = !path.is_empty() && !path.contains(['\n', '{', '%']) && path.len() < 300;
        if is_path && !found.iter().any(|known| known == path) {
            found.push(path.to_owned());
        }
    };
    for (at, _) in code.match_indices("open(") {
        let rest = code.get(at + 5..).unwrap_or_default();
        let Some((path, behind)) = take_literal(rest) else { continue };
        let mode = behind.trim_start().strip_prefix(',').and_then(|mode| take_literal(mode.trim_start()));
        if mode.is_some_and(|(mode, _)| mode.len() < 4 && mode.contains(['w', 'a', '+'])) {
            note(path);
        }
    }
    for mark in ["writeFileSync(", "appendFileSync("] {
        for (at, _) in code.match_indices(mark) {
            if let Some((path, _)) = take_literal(code.get(at + mark.len()..).unwrap_or_default()) {
                note(path);
            }
        }
    }
    if code.contains(".write_text(") {
        for (at, _) in code.match_indices("Path(") {
            if let Some((path, _)) = take_literal(code.get(at + 5..).unwrap_or_default()) {
                note(path);
            }
        }
    }
    found.into_iter().filter(|path| path.contains(['.', '/'])).collect()
}

/// Reads a quoted text at the start of `text`; also gives what follows it.
fn take_literal(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let quote = text.chars().next().filter(|letter| matches!(letter, '"' | '\'' | '`'))?;
    let inner = text.get(1..)?;
    let end = inner.find(quote)?;
    Some((inner.get(..end)?, inner.get(end + 1..)?))
}

fn git(words: &[&str]) -> Vec<Action> {
    let mut rest = words.get(1..).unwrap_or_default();
    let mut place = None;
    while let [first, tail @ ..] = rest {
        match *first {
            "-C" | "-c" | "--git-dir" | "--work-tree" => {
                place = place.or(tail.first().copied().filter(|_| *first == "-C"));
                rest = tail.get(1..).unwrap_or_default();
            }
            option if option.starts_with('-') => rest = tail,
            _ => break,
        }
    }
    if let ["grep", ..] = rest {
        let found = files::actions_of("grep", rest).unwrap_or_default();
        return found.into_iter().map(|action| action.with_place(place)).collect();
    }
    if let ["ls-files" | "ls-tree", tail @ ..] = rest {
        return listings::tracked_files(tail, place);
    }
    let mut line = vec!["git"];
    line.extend(place.map(|_| "-C"));
    line.extend(place);
    line.extend(rest);
    vec![Action::new(ToolKind::Git, command_subject(&line))]
}

fn fetch_address(words: &[&str]) -> Vec<Action> {
    const WITH_VALUE: &[&str] = &[
        "-o", "-O", "-H", "-X", "-d", "-F", "-u", "-A", "-e", "-b", "-c", "-w", "-m", "--header", "--data",
        "--data-raw", "--request", "--output", "--user", "--max-time", "--retry", "--url", "--data-binary",
        "-T", "-x", "-L0", "--cookie", "--connect-timeout", "--timeout", "--tries", "-P", "--write-out",
        "--json", "--form", "--proxy", "--post-data",
    ];
    let is_curl = words.first().is_some_and(|program| program.ends_with("curl"));
    // `curl -O` names nothing, `wget -O` names the file.
    let with_value: Vec<&str> =
        WITH_VALUE.iter().copied().filter(|name| !(is_curl && *name == "-O")).collect();
    let arguments = ProgramArguments::split_words(words.get(1..).unwrap_or_default(), &with_value);
    let is_url =
        |word: &&&str| word.contains("://") || word.starts_with("localhost") || word.starts_with('$');
    let url = arguments.option_value(&["--url"]).or_else(|| arguments.operands.iter().find(is_url).copied());
    let url = url.or(arguments.operands.last().copied());
    let mut actions = vec![Action::new(
        ToolKind::Web,
        url.map_or_else(|| command_subject(words), |url| Subject::Url(url.into())),
    )];
    let saved = arguments
        .option_value(&["-o", "--output", "-O"])
        .filter(|path| *path != "-" && !path.starts_with("/dev/"));
    actions.extend(saved.map(|path| Action::new(ToolKind::Write, Subject::file(path))));
    if saved.is_some() {
        // The page went into a file.
        actions.rotate_left(1);
    }
    actions
}

fn patch_program(words: &[&str], input: Option<&str>) -> Vec<Action> {
    if let Some(text) = input {
        let changed = patch::patch_actions(text);
        if changed.iter().any(|action| action.subject != Subject::Nothing) {
            return changed;
        }
    }
    let operands =
        ProgramArguments::split_words(words.get(1..).unwrap_or_default(), &["-i", "-d", "-p"]).operands;
    match operands.first() {
        Some(path) => vec![Action::new(ToolKind::Edit, Subject::lines_of(path, SubjectLines::Part))],
        // The files stand in a patch that is not shown; `patch` names them in its output.
        None => vec![Action::new(ToolKind::Edit, Subject::Nothing)],
    }
}
