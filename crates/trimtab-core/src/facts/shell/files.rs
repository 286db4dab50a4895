//! Programs that show, search, list and change files. Takes a program's name and words; gives its actions with
//! paths and line ranges. Never guesses a range: unknown lines are a part.

use super::{arguments::ProgramArguments, command_subject, listings};
use crate::facts::{
    coverage::{Coverage, OutputPart},
    subject::{Subject, SubjectLines},
    tool::{Action, ToolKind},
    windows,
};

/// How many lines `head` and `tail` show by default.
const DEFAULT_LINES: u64 = 10;

/// Reads a program that works on files; none for every other program.
pub(super) fn actions_of(program: &str, words: &[&str]) -> Option<Vec<Action>> {
    Some(match program {
        "cat" | "bat" | "batcat" | "nl" | "less" | "more" | "tac" | "zcat" | "gzcat" | "pygmentize"
        | "Get-Content" | "gc" | "glow" => {
            read_files(words, &["-l", "-r", "--line-range", "-TotalCount", "-b", "-w", "-s", "-v"])
        }
        "xxd" | "hexdump" | "od" | "strings" | "objdump" | "readelf" | "nm" | "pdftotext" | "cut"
        | "sort" | "uniq" | "column" | "fold" | "tr" | "base64" | "rev" | "paste" | "iconv" => {
            read_parts(words, &["-n", "-s", "-l", "-t", "-k", "-d", "-f", "-c", "-w", "-j", "-N", "-A"])
        }
        "head" => head(words),
        "tail" => tail(words),
        "sed" | "gsed" => sed(words),
        "awk" | "gawk" | "mawk" => awk(words),
        "perl" | "ruby" if in_place(words) => change_in_place(words),
        "jq" | "yq" | "tomlq" | "xq" | "dasel" | "fx" => query_json(words),
        "grep" | "egrep" | "fgrep" | "zgrep" | "rg" | "ag" | "ack" | "ugrep" | "findstr" | "ripgrep" => {
            search_files(program, words)
        }
        "Select-String" | "sls" => select_string(words),
        "ast-grep" | "sg" | "comby" | "semgrep" => search_structure(words),
        "search_dir" | "search_file" => swe_search(words),
        "find_file" => swe_find(words),
        "ls" | "ll" | "la" | "dir" | "exa" | "eza" | "lsd" | "tree" | "Get-ChildItem" | "gci" | "du" => {
            listings::list_files(program, words)
        }
        "find" | "gfind" => listings::find(words),
        "fd" | "fdfind" => listings::fd(words),
        "wc" | "stat" | "file" | "realpath" | "readlink" | "md5sum" | "sha256sum" | "shasum" | "cksum"
        | "md5" | "lsattr" => measure_files(words),
        "diff" | "cmp" | "comm" | "delta" | "colordiff" | "difft" => compare_files(words),
        "rm" | "rmdir" | "unlink" | "shred" | "trash" | "Remove-Item" | "del" => operands(words, &[])
            .iter()
            .map(|path| Action::new(ToolKind::Delete, place_subject(path)))
            .collect(),
        "mkdir" => operands(words, &["-m"])
            .iter()
            .map(|path| Action::new(ToolKind::Write, Subject::directory(path)))
            .collect(),
        "touch" | "truncate" => {
            operands(words, &["-s", "-t", "-d", "-r"]).iter().map(|path| Action::edit_file(path)).collect()
        }
        "tee" => tee(words),
        "cp" | "install" | "ln" | "Copy-Item" => copy_files(words),
        "mv" | "Move-Item" | "rename" => rename_files(words),
        "chmod" | "chown" | "chgrp" => vec![Action::new(ToolKind::Run, command_subject(words))],
        "open" | "create" | "goto" | "scroll_up" | "scroll_down" => swe_editor(program, words),
        "insert" | "edit" => vec![Action::new(ToolKind::Edit, Subject::Nothing)],
        _ => return None,
    })
}

/// Narrows what a pipeline read so far to what its next command leaves of it.
pub(super) fn narrow_read(read: &mut Action, words: &[&str]) {
    let Subject::File { path, lines } = &mut read.subject else { return };
    let (program, rest) = words.split_first().map_or(("", words), |(first, rest)| (*first, rest));
    match program.rsplit('/').next().unwrap_or_default() {
        "cat" | "nl" | "less" | "more" | "bat" | "tee" => {}
        "head" => *lines = count_of(rest).map_or(SubjectLines::Part, |count| lines.first_lines(count)),
        "tail" => {
            *lines = tail_start(rest).map_or(SubjectLines::Part, |first| lines.select_within(first, None));
        }
        "sed" => {
            *lines =
                sed_range(rest).map_or(SubjectLines::Part, |(first, last)| lines.select_within(first, last));
        }
        "awk" => {
            *lines =
                awk_range(rest).map_or(SubjectLines::Part, |(first, last)| lines.select_within(first, last));
        }
        "grep" | "egrep" | "fgrep" | "rg" | "ag" | "ack" => {
            let place = path.to_string();
            let found = search_files(program, words).into_iter().next();
            let pattern = match found.map(|action| action.subject) {
                Some(Subject::Query { pattern, .. }) => pattern.to_string(),
                _ => String::new(),
            };
            *read = Action::new(ToolKind::Search, Subject::query(&pattern, Some(&place)));
        }
        _ => *lines = SubjectLines::Part,
    }
}

/// Narrows the view of what a pipeline shows to what its next command leaves of it.
pub(super) fn narrow_coverage(coverage: &mut Coverage, words: &[&str]) {
    let (program, rest) = words.split_first().map_or(("", words), |(first, rest)| (*first, rest));
    let count = |names: &[&str]| {
        let arguments = ProgramArguments::split_words(rest, &["-First", "-Last", "-first", "-last", "-Skip"]);
        arguments.option_value(names).and_then(|count| count.parse().ok())
    };
    let output = match program.rsplit('/').next().unwrap_or_default() {
        "cat" | "nl" | "less" | "more" | "bat" | "tee" | "sort" | "Out-String" | "Out-Host" | "" => {
            Some(OutputPart::Whole)
        }
        "head" => count_of(rest).map(OutputPart::First),
        "tail" if tail_start(rest).is_none() => count_of(rest).map(OutputPart::Last),
        "Select-Object" | "select" => count(&["-Last", "-last"])
            .map(OutputPart::Last)
            .or(count(&["-First", "-first"]).map(OutputPart::First)),
        _ => None,
    };
    match output {
        Some(output) => coverage.limit_output(output),
        None => coverage.add_filter(&words.join(" ")),
    }
}

/// Returns a subject for a path that may be a directory: one with a slash at its end or without a dot.
pub(super) fn place_subject(path: &str) -> Subject {
    let name = windows::file_name(path);
    let is_directory = windows::ends_as_directory(path)
        || matches!(name, "" | "." | "..")
        || (!name.contains('.') && !is_bare_file(name));
    if is_directory { Subject::directory(path) } else { Subject::file(path) }
}

/// Names that files have although there is no dot in them.
fn is_bare_file(name: &str) -> bool {
    let upper = name.chars().filter(char::is_ascii_uppercase).count();
    upper > 0
        && matches!(
            name,
            "Makefile"
                | "Dockerfile"
                | "Rakefile"
                | "Gemfile"
                | "Procfile"
                | "Justfile"
                | "Taskfile"
                | "Jenkinsfile"
        )
        || (upper > 2 && upper == name.chars().filter(char::is_ascii_alphabetic).count())
}

fn operands<'a>(words: &[&'a str], with_value: &[&str]) -> Vec<&'a str> {
    ProgramArguments::split_words(words.get(1..).unwrap_or_default(), with_value).operands
}

fn read_files(words: &[&str], with_value: &[&str]) -> Vec<Action> {
    let arguments = ProgramArguments::split_words(words.get(1..).unwrap_or_default(), with_value);
    let range = arguments.option_value(&["-r", "--line-range"]).and_then(|range| {
        let (first, last) = range.split_once(':')?;
        Some(SubjectLines::from_bounds(first.parse().unwrap_or(1), last.parse().ok()))
    });
    let total = arguments.option_value(&["-TotalCount"]).and_then(|count| count.parse().ok());
    let lines = range
        .or_else(|| total.map(|count| SubjectLines::All.first_lines(count)))
        .unwrap_or(SubjectLines::All);
    let files = arguments.operands.iter().filter(|path| **path != "-");
    files.map(|path| Action::new(ToolKind::Read, Subject::lines_of(path, lines))).collect()
}

fn read_parts(words: &[&str], with_value: &[&str]) -> Vec<Action> {
    operands(words, with_value)
        .iter()
        .filter(|path| **path != "-")
        .map(|path| Action::read_part(path))
        .collect()
}

fn head(words: &[&str]) -> Vec<Action> {
    let rest = words.get(1..).unwrap_or_default();
    let lines = count_of(rest).map_or(SubjectLines::Part, |count| SubjectLines::All.first_lines(count));
    let files = ProgramArguments::split_words(rest, &["-n", "-c", "--lines", "--bytes"]).operands;
    files.iter().map(|path| Action::new(ToolKind::Read, Subject::lines_of(path, lines))).collect()
}

/// Returns the number of lines that `head` is asked for; none where it counts otherwise.
fn count_of(words: &[&str]) -> Option<u64> {
    let arguments = ProgramArguments::split_words(words, &["-n", "-c", "--lines", "--bytes"]);
    if arguments.has_option(&["-c", "--bytes"]) {
        return None;
    }
    if let Some(count) = arguments.option_value(&["-n", "--lines"]) {
        return count.parse().ok();
    }
    let bare = arguments.options.iter().find_map(|(name, _)| name.strip_prefix('-')?.parse().ok());
    Some(bare.unwrap_or(DEFAULT_LINES))
}

fn tail(words: &[&str]) -> Vec<Action> {
    let rest = words.get(1..).unwrap_or_default();
    let lines = tail_start(rest).map_or(SubjectLines::Part, |first| SubjectLines::from_bounds(first, None));
    let files =
        ProgramArguments::split_words(rest, &["-n", "-c", "--lines", "--bytes", "-s", "--pid"]).operands;
    let files = files.iter().filter(|path| !path.starts_with('+'));
    files.map(|path| Action::new(ToolKind::Read, Subject::lines_of(path, lines))).collect()
}

/// Returns the line from which `tail -n +N` shows a file.
fn tail_start(words: &[&str]) -> Option<u64> {
    let arguments = ProgramArguments::split_words(words, &["-n", "-c", "--lines", "--bytes"]);
    let asked = arguments.option_value(&["-n", "--lines"]);
    let asked = asked.or_else(|| arguments.operands.iter().find(|word| word.starts_with('+')).copied());
    asked?.strip_prefix('+')?.parse().ok()
}

fn in_place(words: &[&str]) -> bool {
    words.iter().skip(1).any(|word| {
        word.starts_with("--in-place")
            || (word.starts_with('-')
                && !word.starts_with("--")
                && word.len() < 8
                && word.contains('i')
                && !word.contains('I'))
    })
}

fn sed(words: &[&str]) -> Vec<Action> {
    let rest = words.get(1..).unwrap_or_default();
    let arguments = ProgramArguments::split_words(rest, &["-e", "-f", "--expression", "--file", "-l"]);
    let has_script = arguments.has_option(&["-e", "-f", "--expression", "--file"]);
    if in_place(words) {
        return change_in_place(words);
    }
    let files = arguments.operands.iter().skip(usize::from(!has_script));
    let lines =
        sed_range(rest).map_or(SubjectLines::Part, |(first, last)| SubjectLines::from_bounds(first, last));
    let lines = if arguments.has_letter('n') { lines } else { SubjectLines::Part };
    files.map(|path| Action::new(ToolKind::Read, Subject::lines_of(path, lines))).collect()
}

/// Reads a program that changes files in place: its first operand is a script, unless an option gave one.
fn change_in_place(words: &[&str]) -> Vec<Action> {
    let rest = words.get(1..).unwrap_or_default();
    let has_script = rest.iter().any(|word| {
        matches!(*word, "-e" | "-f" | "--expression")
            || (word.starts_with('-') && !word.starts_with("--") && word.len() < 8 && word.contains('e'))
    });
    let with_value: &[&str] = if rest.contains(&"-e") { &["-e", "-f"] } else { &["-f"] };
    let arguments = ProgramArguments::split_words(rest, with_value);
    // `perl -pi -e script file`: where `e` stands among other letters its script is the first operand.
    let glued = has_script && !rest.iter().any(|word| matches!(*word, "-e" | "-f" | "--expression"));
    let skipped = usize::from(!has_script || glued);
    let is_suffix = |word: &&&str| !word.is_empty() && **word != "''";
    arguments.operands.iter().filter(is_suffix).skip(skipped).map(|path| Action::edit_file(path)).collect()
}

/// Returns the range of `sed -n 'A,Bp'`.
fn sed_range(words: &[&str]) -> Option<(u64, Option<u64>)> {
    let script = words.iter().find(|word| !word.starts_with('-'))?;
    let ranges = script.split(';').map(str::trim).filter(|part| !part.is_empty());
    let mut found: Option<(u64, Option<u64>)> = None;
    for part in ranges {
        let Some(range) = part.strip_suffix('p') else { continue };
        let (first, last) = range.split_once(',').unwrap_or((range, range));
        let first: u64 = first.trim().parse().ok()?;
        let last = match last.trim() {
            "$" => None,
            plus if plus.starts_with('+') => Some(first + plus.get(1..)?.parse::<u64>().ok()?),
            last => Some(last.parse().ok()?),
        };
        if found.is_some() {
            // Several ranges are no one range.
            return None;
        }
        found = Some((first, last));
    }
    found
}

fn awk(words: &[&str]) -> Vec<Action> {
    let rest = words.get(1..).unwrap_or_default();
    let arguments = ProgramArguments::split_words(rest, &["-F", "-v", "-f"]);
    let files = arguments.operands.iter().skip(usize::from(!arguments.has_option(&["-f"])));
    let lines =
        awk_range(rest).map_or(SubjectLines::Part, |(first, last)| SubjectLines::from_bounds(first, last));
    files.map(|path| Action::new(ToolKind::Read, Subject::lines_of(path, lines))).collect()
}

/// Returns the range of `awk 'NR>=A && NR<=B'`; none where the program does more than show lines.
fn awk_range(words: &[&str]) -> Option<(u64, Option<u64>)> {
    let arguments = ProgramArguments::split_words(words, &["-F", "-v", "-f"]);
    let script: String =
        arguments.operands.first()?.chars().filter(|letter| !letter.is_whitespace()).collect();
    let script = ["{print}", "{print$0}"].iter().find_map(|end| script.strip_suffix(end)).unwrap_or(&script);
    let (mut first, mut last) = (1, None);
    if let Some((from, to)) = script.split_once(',') {
        let line = |text: &str| text.strip_prefix("NR==")?.parse::<u64>().ok();
        return Some((line(from)?, Some(line(to)?)));
    }
    for condition in script.split("&&") {
        let condition = condition.strip_prefix("NR")?;
        let digits = condition.find(|letter: char| letter.is_ascii_digit())?;
        let (sign, number) = condition.split_at_checked(digits)?;
        let line: u64 = number.parse().ok()?;
        match sign {
            "==" => (first, last) = (line, Some(line)),
            ">=" => first = line,
            ">" => first = line + 1,
            "<=" => last = Some(line),
            "<" => last = Some(line.saturating_sub(1)),
            _ => return None,
        }
    }
    Some((first, last))
}

fn query_json(words: &[&str]) -> Vec<Action> {
    let arguments = ProgramArguments::split_words(
        words.get(1..).unwrap_or_default(),
        &["-f", "-p", "-o", "--indent", "-I"],
    );
    let takes_names = arguments.has_option(&["--arg", "--argjson", "--slurpfile", "--args"]);
    let skipped = if takes_names { 3 } else { usize::from(!arguments.has_option(&["-f"])) };
    let files = arguments.operands.iter().skip(skipped);
    files.map(|path| Action::read_part(path)).collect()
}

fn search_files(program: &str, words: &[&str]) -> Vec<Action> {
    const WITH_VALUE: &[&str] = &[
        "-e", "-f", "-A", "-B", "-C", "-m", "-g", "-t", "-T", "--include", "--exclude", "--exclude-dir",
        "--glob", "--type", "--type-not", "--max-count", "--context", "--after-context", "--before-context",
        "--color", "-M", "--max-columns", "--sort", "--iglob", "-G", "--ignore", "--file", "--regexp", "-j",
        "--threads", "--max-depth", "-d", "-E", "--colors", "-r", "--replace",
    ];
    // `-E`, `-r` and `-d` take no value in grep: there they stand for expressions and recursion.
    let is_grep = program.contains("grep") && program != "ugrep" && program != "ripgrep";
    let with_value: Vec<&str> = WITH_VALUE
        .iter()
        .copied()
        .filter(|name| !is_grep || !matches!(*name, "-E" | "-r" | "-T" | "-M" | "-g" | "-t" | "-G"))
        .collect();
    let arguments = ProgramArguments::split_words(words.get(1..).unwrap_or_default(), &with_value);
    let given = arguments.option_value(&["-e", "--regexp"]);
    let mut operands = arguments.operands.iter();
    if arguments.has_option(&["--files"]) {
        return listings::searched_files(&arguments);
    }
    let Some(pattern) = given.or_else(|| operands.next().copied()) else { return Vec::new() };
    let subject = Subject::query(pattern, operands.next().copied());
    vec![Action::new(ToolKind::Search, subject)]
}

fn select_string(words: &[&str]) -> Vec<Action> {
    let arguments =
        ProgramArguments::split_words(words.get(1..).unwrap_or_default(), &["-Pattern", "-Path", "-Context"]);
    let mut operands = arguments.operands.iter().copied();
    let pattern = arguments.option_value(&["-Pattern"]).or_else(|| operands.next()).unwrap_or_default();
    let place = arguments.option_value(&["-Path"]).or_else(|| operands.next());
    vec![Action::new(ToolKind::Search, Subject::query(pattern, place))]
}

fn search_structure(words: &[&str]) -> Vec<Action> {
    let arguments = ProgramArguments::split_words(
        words.get(1..).unwrap_or_default(),
        &["-p", "--pattern", "-l", "--lang", "-r"],
    );
    let Some(pattern) = arguments.option_value(&["-p", "--pattern"]) else {
        return vec![Action::new(ToolKind::Search, command_subject(words))];
    };
    let place = arguments.operands.iter().find(|word| !matches!(**word, "run" | "scan")).copied();
    vec![Action::new(ToolKind::Search, Subject::query(pattern, place))]
}

fn measure_files(words: &[&str]) -> Vec<Action> {
    let paths = operands(words, &["-c", "-f", "--format", "-a"]);
    paths
        .iter()
        .map(|path| Action::new(ToolKind::List, Subject::lines_of(path, SubjectLines::Part)))
        .collect()
}

fn compare_files(words: &[&str]) -> Vec<Action> {
    let paths = operands(words, &["-U", "-C", "--label", "-x", "-I"]);
    let paths = paths.iter().filter(|path| !path.starts_with("<("));
    let read: Vec<Action> = paths.map(|path| Action::read_part(path)).collect();
    if read.is_empty() { vec![Action::new(ToolKind::Run, command_subject(words))] } else { read }
}

fn tee(words: &[&str]) -> Vec<Action> {
    let arguments = ProgramArguments::split_words(words.get(1..).unwrap_or_default(), &[]);
    let appends = arguments.has_option(&["-a", "--append"]);
    let change = |path: &&str| if appends { Action::edit_file(path) } else { Action::write_file(path) };
    arguments.operands.iter().filter(|path| !path.starts_with("/dev/")).map(change).collect()
}

fn copy_files(words: &[&str]) -> Vec<Action> {
    let paths = operands(words, &["-m", "-o", "-g", "-t", "-S"]);
    let Some((target, sources)) = paths.split_last() else { return Vec::new() };
    if sources.len() == 1
        && !windows::ends_as_directory(target)
        && place_subject(target) == Subject::file(target)
    {
        return vec![Action::write_file(target)];
    }
    sources.iter().map(|source| Action::write_file(&path_inside(target, source))).collect()
}

fn rename_files(words: &[&str]) -> Vec<Action> {
    let mut actions = copy_files(words);
    let paths = operands(words, &["-t", "-S"]);
    let sources = paths.split_last().map(|(_, sources)| sources).unwrap_or_default();
    actions.extend(sources.iter().map(|path| Action::new(ToolKind::Delete, place_subject(path))));
    actions
}

fn path_inside(directory: &str, source: &str) -> String {
    let name = windows::file_name(source);
    if place_subject(directory) == Subject::directory(directory) {
        format!("{directory}/{name}")
    } else {
        directory.to_owned()
    }
}

fn swe_search(words: &[&str]) -> Vec<Action> {
    let mut operands = words.iter().skip(1).copied();
    let pattern = operands.next().unwrap_or_default();
    vec![Action::new(ToolKind::Search, Subject::query(pattern, operands.next()))]
}

fn swe_find(words: &[&str]) -> Vec<Action> {
    let mut operands = words.iter().skip(1).copied();
    let pattern = operands.next().unwrap_or_default();
    vec![Action::new(ToolKind::List, Subject::query(pattern, operands.next()))]
}

/// Reads the commands of SWE-agent's editor; the result says which file is open.
fn swe_editor(program: &str, words: &[&str]) -> Vec<Action> {
    let path = words.get(1).copied();
    let (kind, subject) = match (program, path) {
        ("open", Some(path)) => (ToolKind::Read, Subject::lines_of(path, SubjectLines::Part)),
        ("create", Some(path)) => (ToolKind::Write, Subject::file(path)),
        _ => (ToolKind::Read, Subject::Nothing),
    };
    vec![Action::new(kind, subject)]
}
