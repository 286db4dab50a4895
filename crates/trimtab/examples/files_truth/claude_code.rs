//! Which operations the calls of a Claude Code history are. Takes a history; gives, call by call, what each did to
//! files. Only the standard tools and the plainest shell commands: whoever knows more about calls does it better.

use serde_json::Value;
use trimtab::{
    Asked, Block, BlockKind, FileAction, History, Operation, Replacement, Which, shown_hits, shown_numbered,
    shown_plain,
};

/// What one call did.
pub(crate) struct Call {
    pub(crate) step: u32,
    pub(crate) call: String,
    pub(crate) operations: Vec<Operation>,
}

/// Shell words after which any file may be another one.
const CHANGES_ANYTHING: &[&str] = &[
    "checkout",
    "git restore",
    "git stash",
    "git reset",
    "git pull",
    "git merge",
    "git rebase",
    "git cherry-pick",
    "git apply",
    "git revert",
    "git switch",
    "git am",
    "go fmt",
    "gofmt -w",
    " fmt",
    "--fix",
    "--write",
    "lint:fix",
    "prettier",
    "biome",
    "go mod tidy",
    "git clean",
];

/// Shell words after which any file that the command names may be another one.
const CHANGES_NAMED: &[&str] =
    &["sed -i", "perl", "python", "node ", "awk", "mv ", "rm ", "cp ", "tee ", ">", "patch ", "ed "];

/// Returns the calls that touched files, in the order of their results.
pub(crate) fn operations(history: &History) -> impl Iterator<Item = Call> {
    let mut known: Vec<String> = Vec::new();
    let results = history.blocks().iter().filter(|block| block.kind == BlockKind::Result);
    results.filter_map(move |result| {
        let call = history.block(result.partner?)?;
        let step = history.entry_of(call)?.step;
        let operations = of_call(history, call, result, &known);
        for operation in &operations {
            if !known.contains(&operation.path) {
                known.push(operation.path.clone());
            }
        }
        let call = history.call_id(call)?.into_owned();
        (!operations.is_empty()).then_some(Call { step, call, operations })
    })
}

fn of_call(history: &History, call: &Block, result: &Block, known: &[String]) -> Vec<Operation> {
    let arguments: Value = serde_json::from_str(&history.block_text(call)).unwrap_or_default();
    let text = history.block_text(result);
    let name = history.tool_name(call).unwrap_or_default();
    let argument = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    if name == "Bash" {
        return shell(&argument("command"), &text, result.failed, known);
    }
    if result.failed || text.starts_with("<tool_use_error>") || text.starts_with("[Old tool result") {
        return Vec::new();
    }
    let path = argument("file_path");
    let one = |action| vec![Operation { path: path.clone(), action }];
    let echo = || {
        let echoed = text.contains("Here's the result of running `cat -n`");
        echoed.then(|| Operation {
            path: path.clone(),
            action: FileAction::Read(shown_numbered(&text, Asked::Part)),
        })
    };
    match name.as_ref() {
        "Read" => {
            let part = ["offset", "limit", "pages"].iter().any(|name| arguments.get(name).is_some());
            let asked = if part { Asked::Part } else { Asked::Whole };
            one(FileAction::Read(shown_numbered(&text, asked)))
        }
        "Write" => {
            let mut operations = one(FileAction::Write { content: argument("content") });
            operations.extend(echo());
            operations
        }
        "Edit" => {
            let mut operations = one(FileAction::Replace(vec![replacement(&arguments)]));
            operations.extend(echo());
            operations
        }
        "MultiEdit" => {
            let edits = arguments.get("edits").and_then(Value::as_array).cloned().unwrap_or_default();
            one(FileAction::Replace(edits.iter().map(replacement).collect()))
        }
        "NotebookEdit" => vec![Operation { path: argument("notebook_path"), action: FileAction::Changed }],
        "Grep" => searched(&arguments, &text, known),
        _ => Vec::new(),
    }
}

fn replacement(arguments: &Value) -> Replacement {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let all = arguments.get("replace_all").is_some_and(|all| all.as_bool() == Some(true));
    Replacement {
        old: text("old_string"),
        new: text("new_string"),
        which: if all { Which::All } else { Which::Only },
    }
}

fn searched(arguments: &Value, text: &str, known: &[String]) -> Vec<Operation> {
    if arguments.get("output_mode").and_then(Value::as_str) != Some("content") {
        return Vec::new();
    }
    let path =
        arguments.get("path").and_then(Value::as_str).filter(|path| known.iter().any(|file| file == path));
    let hits = shown_hits(text, path).into_iter();
    let named = hits.filter_map(|(path, shown)| {
        Some(Operation { path: full(&path, known)?, action: FileAction::Read(shown) })
    });
    named.collect()
}

/// Finds the one known file that a relative path means.
fn full(path: &str, known: &[String]) -> Option<String> {
    if path.starts_with('/') {
        return Some(path.to_owned());
    }
    let mut fitting =
        known.iter().filter(|file| file.strip_suffix(path).is_some_and(|head| head.ends_with('/')));
    let found = fitting.next()?;
    fitting.next().is_none().then(|| found.clone())
}

fn shell(command: &str, text: &str, failed: bool, known: &[String]) -> Vec<Operation> {
    let changed = |path: &String| Operation { path: path.clone(), action: FileAction::Changed };
    if CHANGES_ANYTHING.iter().any(|words| command.contains(words)) {
        return known.iter().map(changed).collect();
    }
    if CHANGES_NAMED.iter().any(|words| command.contains(words)) {
        let named = |path: &&String| command.contains(path.rsplit('/').next().unwrap_or(path));
        return known.iter().filter(named).map(changed).collect();
    }
    if failed || command.contains(['|', ';', '&', '\n', '*', '$']) {
        return Vec::new();
    }
    let words: Vec<&str> = command.split_whitespace().map(|word| word.trim_matches(['\'', '"'])).collect();
    let (range, path) = match words.as_slice() {
        ["cat", path] => (None, path),
        ["sed", "-n", range, path] => (range.strip_suffix('p').and_then(|range| range.split_once(',')), path),
        _ => return Vec::new(),
    };
    let Some(path) = full(path, known) else { return Vec::new() };
    let shown = match range {
        None if words.first() == Some(&"cat") => shown_plain(text, 1, Asked::Whole),
        None => return Vec::new(),
        Some((first, last)) => {
            let (Ok(first), Ok(last)) = (first.parse::<usize>(), last.parse::<usize>()) else {
                return Vec::new();
            };
            let shown = shown_plain(text, first, Asked::Part);
            // Claude Code trims empty lines at both ends of a command's output.
            if shown.lines.len() != (last + 1).saturating_sub(first) {
                return Vec::new();
            }
            shown
        }
    };
    vec![Operation { path, action: FileAction::Read(shown) }]
}
