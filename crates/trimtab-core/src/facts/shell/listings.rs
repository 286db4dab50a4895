//! Programs that list files. Takes a program's name and words; gives its actions, with how much of a directory each shows:
//! hidden files, ignored ones, details, levels, filters. Never guesses that a listing shows more than it was asked for.

use super::arguments::ProgramArguments;
use crate::facts::{
    coverage::Coverage,
    subject::Subject,
    tool::{Action, ToolKind},
};

/// Reads `ls`, `tree`, `du` and their kin.
pub(super) fn list_files(program: &str, words: &[&str]) -> Vec<Action> {
    let with_value = [
        "-L", "-I", "-P", "--level", "--max-depth", "-d", "--depth", "-Filter", "-Include", "-Exclude",
        "-Depth", "-Path", "--ignore", "-t",
    ];
    // `ls -d` and `ls -t` take no value; `du -d 1` and `tree -L 2` do.
    let with_value: &[&str] =
        if words.first() == Some(&"ls") { &["-I", "--ignore", "--hide"] } else { &with_value };
    let arguments = ProgramArguments::split_words(words.get(1..).unwrap_or_default(), with_value);
    let is_powershell = matches!(program, "Get-ChildItem" | "gci" | "dir");
    let letter = |letter: char| !is_powershell && arguments.has_letter(letter);
    let levels = arguments.option_value(&["-L", "--level", "-d", "--max-depth", "--depth", "-Depth"]);
    let goes_down = matches!(program, "tree" | "du") && levels.is_none() && !arguments.has_option(&["-s"])
        || letter('R')
        || arguments.has_option(&["--recursive", "-Recurse"])
        || (letter('T') && levels.is_none() && matches!(program, "exa" | "eza"));
    let coverage = Coverage {
        hidden: letter('a')
            || letter('A')
            || matches!(program, "la" | "ll")
            || arguments.has_option(&["--all", "--almost-all", "-Force"]),
        ignored: !arguments.has_option(&["--gitignore", "--git-ignore"]),
        details: letter('l') || program == "ll" || arguments.has_option(&["--long"]),
        depth: levels.and_then(|levels| levels.parse().ok()),
        filter: list_filter(program, &arguments).into(),
        ..Coverage::default()
    };
    let listing = |path: &str| {
        let subject = if goes_down { Subject::everything_below(path) } else { Subject::directory(path) };
        Action { coverage: coverage.clone(), ..Action::new(ToolKind::List, subject) }
    };
    let named = arguments.option_value(&["-Path"]);
    if arguments.operands.is_empty() {
        return vec![listing(named.unwrap_or("."))];
    }
    arguments.operands.iter().map(|path| listing(path)).collect()
}

/// Returns the options that leave entries out, in one order.
fn list_filter(program: &str, arguments: &ProgramArguments<'_>) -> String {
    const FILTERS: &[&str] = &[
        "-I", "--ignore", "--hide", "-P", "-B", "-Filter", "-Include", "-Exclude", "-Directory", "-File",
        "-Name", "--ignore-glob", "-D", "--only-dirs", "--only-files",
    ];
    let mut filters: Vec<String> = Vec::new();
    for (name, value) in &arguments.options {
        let only_directories = matches!(*name, "-d") && value.is_none();
        // `du` shows sizes, and what it is asked for decides of what.
        if FILTERS.contains(name) || only_directories || program == "du" {
            filters.push(value.map_or_else(|| (*name).to_owned(), |value| format!("{name} {value}")));
        }
    }
    if program == "du" {
        filters.push(program.to_owned());
    }
    filters.sort_unstable();
    filters.join(" ")
}

/// Reads `find`.
pub(super) fn find(words: &[&str]) -> Vec<Action> {
    let rest = words.get(1..).unwrap_or_default();
    let from = rest.iter().position(|word| !matches!(*word, "-L" | "-H" | "-P" | "-E")).unwrap_or(rest.len());
    let tests = rest.get(from..).unwrap_or_default();
    let is_place = |word: &&&str| !word.starts_with('-') && !matches!(**word, "(" | "!");
    let places: Vec<&str> = tests.iter().take_while(is_place).copied().collect();
    let tests = tests.get(places.len()..).unwrap_or_default();
    let place = places.first().copied().unwrap_or(".");
    let value = |names: &[&str]| {
        let at = tests.iter().position(|word| names.contains(word))?;
        tests.get(at + 1).copied()
    };
    if let Some(at) = tests.iter().position(|word| matches!(*word, "-exec" | "-execdir" | "-ok")) {
        let inner: Vec<&str> =
            tests.iter().skip(at + 1).copied().filter(|word| !matches!(*word, "{}" | ";" | "+")).collect();
        let inner = super::programs::actions_of(&inner, None).unwrap_or_default();
        let inner: Vec<Action> = inner.into_iter().filter(|action| action.kind != ToolKind::Run).collect();
        if !inner.is_empty() {
            return inner.into_iter().map(|action| action.with_place(Some(place))).collect();
        }
        // A reader that `find` hands its files to names no file itself.
        if matches!(tests.get(at + 1), Some(&("cat" | "head" | "tail" | "sed" | "nl"))) {
            let pattern = value(&["-name", "-iname", "-path"]).unwrap_or("*");
            return vec![Action::new(ToolKind::Read, Subject::query(pattern, Some(place)))];
        }
    }
    if tests.contains(&"-delete") {
        return vec![Action::new(ToolKind::Delete, Subject::directory(place))];
    }
    let levels = value(&["-maxdepth", "-depth"]);
    let coverage = Coverage {
        hidden: true,
        ignored: true,
        depth: levels.and_then(|levels| levels.parse().ok()),
        filter: find_filter(tests).into(),
        ..Coverage::default()
    };
    let pattern = value(&["-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex"]);
    let listing = |place: &str| {
        let subject = match pattern {
            Some(pattern) => Subject::query(pattern, Some(place)),
            None if levels.is_some() => Subject::directory(place),
            None => Subject::everything_below(place),
        };
        Action { coverage: coverage.clone(), ..Action::new(ToolKind::List, subject) }
    };
    if places.is_empty() { vec![listing(".")] } else { places.into_iter().map(listing).collect() }
}

/// Returns the tests of `find` that leave files out.
fn find_filter(tests: &[&str]) -> String {
    let mut filter: Vec<&str> = Vec::new();
    let mut words = tests.iter();
    while let Some(word) = words.next() {
        match *word {
            "-maxdepth" | "-depth" => {
                words.next();
            }
            "-print" | "-print0" | "-noleaf" => {}
            word => filter.push(word),
        }
    }
    filter.join(" ")
}

/// Reads `fd`.
pub(super) fn fd(words: &[&str]) -> Vec<Action> {
    let with_value =
        ["-e", "-t", "-d", "-E", "--extension", "--type", "--max-depth", "--exclude", "-g", "-S", "--size"];
    let arguments = ProgramArguments::split_words(words.get(1..).unwrap_or_default(), &with_value);
    let mut operands = arguments.operands.iter().copied();
    let pattern = arguments.option_value(&["-g"]).or_else(|| operands.next());
    let subject = match pattern.or(arguments.option_value(&["-e", "--extension"])) {
        Some(pattern) => Subject::query(pattern, operands.next()),
        None => Subject::everything_below("."),
    };
    let mut filter = pattern.map(|pattern| vec![pattern.to_owned()]).unwrap_or_default();
    let limits = |name: &str| !matches!(name, "-d" | "--max-depth" | "-g");
    let valued = arguments.options.iter().filter(|(name, value)| value.is_some() && limits(name));
    filter.extend(valued.filter_map(|(name, value)| Some(format!("{name} {}", (*value)?))));
    let unrestricted = arguments.has_option(&["-u", "-uu", "--unrestricted"]);
    let coverage = Coverage {
        hidden: arguments.has_option(&["-H", "--hidden"]) || arguments.has_letter('H') || unrestricted,
        ignored: arguments.has_option(&["-I", "--no-ignore"]) || arguments.has_letter('I') || unrestricted,
        depth: arguments.option_value(&["-d", "--max-depth"]).and_then(|levels| levels.parse().ok()),
        filter: filter.join(" ").into(),
        ..Coverage::default()
    };
    vec![Action { coverage, ..Action::new(ToolKind::List, subject) }]
}

/// Reads `rg --files`.
pub(super) fn searched_files(arguments: &ProgramArguments<'_>) -> Vec<Action> {
    let place = arguments.operands.first().copied();
    let limits = ["-g", "--glob", "--iglob", "-t", "--type", "-T", "--type-not"];
    let filter: Vec<String> = arguments
        .options
        .iter()
        .filter(|(name, _)| limits.contains(name))
        .filter_map(|(name, value)| Some(format!("{name} {}", (*value)?)))
        .collect();
    let subject = match arguments.option_value(&["-g", "--glob"]) {
        Some(glob) => Subject::query(glob, place),
        None => Subject::everything_below(place.unwrap_or(".")),
    };
    let coverage = Coverage {
        hidden: arguments.has_option(&["--hidden", "-.", "-uu", "-uuu"]),
        ignored: arguments.has_option(&["--no-ignore", "-u", "-uu", "-uuu"]),
        depth: arguments.option_value(&["--max-depth", "-d"]).and_then(|levels| levels.parse().ok()),
        filter: filter.join(" ").into(),
        ..Coverage::default()
    };
    vec![Action { coverage, ..Action::new(ToolKind::List, subject) }]
}

/// Reads `git ls-files` and `git ls-tree`, in a place where one is named.
pub(super) fn tracked_files(words: &[&str], place: Option<&str>) -> Vec<Action> {
    let paths = ProgramArguments::split_words(words, &["-x"]).operands;
    let subject = match paths.last().filter(|path| path.contains('*')) {
        Some(pattern) => Subject::query(pattern, place),
        None => Subject::everything_below(
            paths.last().copied().filter(|path| *path != "HEAD").or(place).unwrap_or("."),
        ),
    };
    let coverage = Coverage {
        hidden: true,
        filter: format!("tracked {}", words.join(" ")).into(),
        ..Coverage::default()
    };
    vec![Action { coverage, ..Action::new(ToolKind::List, subject) }]
}
