//! The shipped files. Every recording and request is read and written back, every broken file is refused or read
//! with its problems, and two texts beside this file show what comes out. `TRIMTAB_BLESS=1` rewrites those.

#![expect(clippy::expect_used, reason = "a test stops at what must not happen")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;
use trimtab_core::{BlockKind, Format, parse, parse_as, write};
use trimtab_replay::{Recording, Segment, agents, read};

/// Every agent but Cline's extension, which keeps a folder, has files that begin with its name.
fn agent_of(path: &str) -> &'static str {
    let known = agents().map(|(name, _)| name).filter(|name| path.starts_with(name));
    known.max_by_key(|name| name.len()).unwrap_or("request")
}

/// What Cline keeps beside its conversation; such files say where the conversation is.
const BESIDE: [&str; 2] = ["ui_messages.json", "task_metadata.json"];

#[test]
fn every_recording_is_read_by_its_agent_and_its_requests_are_written_back() {
    let mut picture = String::new();
    for (path, bytes) in below("recordings") {
        if BESIDE.iter().any(|name| path.ends_with(name)) {
            continue;
        }
        let recording = read(&bytes).unwrap_or_else(|fault| panic!("{path}: {fault}"));
        assert_eq!(recording.agent, agent_of(&path), "{path}");
        assert_eq!(recording.problems, [], "{path}");
        picture.push_str(&format!("{path}\n"));
        for segment in &recording.segments {
            for point in &segment.points {
                let request = segment.request_at(point);
                let history = parse_as(request.clone(), segment.history.format()).expect(&path);
                assert_eq!(history.messages().len(), point.messages, "{path}");
                assert!(write(&history, &[]) == request, "{path}: not the same bytes");
            }
            picture.push_str(&format!("    {}\n", summary(segment)));
        }
    }
    compare("recordings.txt", &picture);
}

#[test]
fn every_request_is_read_as_the_format_in_its_name_and_written_back() {
    for (path, bytes) in below("requests") {
        let name = path.trim_start_matches("nasty/");
        let format = [
            ("anthropic", Format::Anthropic),
            ("openai-chat", Format::Chat),
            ("openai-responses", Format::Responses),
            ("gemini", Format::Gemini),
        ];
        let (_, format) = format.iter().find(|(start, _)| name.starts_with(start)).expect(&path);
        let history = parse(bytes.clone()).unwrap_or_else(|fault| panic!("{path}: {fault}"));
        assert_eq!(history.format(), *format, "{path}");
        assert!(write(&history, &[]) == bytes, "{path}: not the same bytes");
        assert_eq!(read(&bytes).expect(&path).agent, "request", "{path}");
    }
}

#[test]
fn every_broken_file_says_what_was_expected() {
    let beside =
        below("recordings").into_iter().filter(|(path, _)| BESIDE.iter().any(|name| path.ends_with(name)));
    let mut messages = String::new();
    for (path, bytes) in below("broken").into_iter().chain(beside).chain(cut_files()) {
        messages.push_str(&format!("{path}\n"));
        match read(&bytes) {
            Err(fault) => messages.push_str(&format!("    {fault}\n")),
            Ok(recording) => {
                let segments = recording.segments.iter().map(summary);
                let problems = recording.problems.iter().map(ToString::to_string);
                messages.push_str(&format!("    read as {}\n", recording.agent));
                segments.chain(problems).for_each(|line| messages.push_str(&format!("    {line}\n")));
            }
        }
    }
    compare("messages.txt", &messages);
}

/// What one field is broken to.
const BREAKS: [&str; 5] = ["null", "7", r#""{\"cut\":""#, "{}", "[]"];

/// The most texts that may be lost with one field: those of one answer with its calls and their results.
const MOST_LOST: usize = 8;

/// One field in a file: its line, and the keys and places that lead to it.
struct Field {
    line: usize,
    path: Vec<Step>,
}

#[derive(Clone)]
enum Step {
    Key(String),
    Place(usize),
}

/// A file with one broken field gives nearly all that the whole file gives: what stands in the field's own message may be
/// lost, and nothing else. Every kind of field is broken in one place and in one way, by turns; `TRIMTAB_CASES=2000` or more
/// breaks it at its first place and in the middle, in all ways.
#[test]
fn one_broken_field_loses_no_session() {
    let cases = std::env::var("TRIMTAB_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(0_usize);
    let (mut turn, mut broken_fields) = (0, 0);
    let mut faults: Vec<String> = Vec::new();
    for (path, bytes) in below("recordings") {
        if BESIDE.iter().any(|name| path.ends_with(name)) {
            continue;
        }
        let lines = json_lines(&bytes);
        let written = lines.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("\n");
        let whole = read(written.as_bytes()).expect(&path);
        let texts = texts_of(&whole);
        let requests = requests_of(&whole);
        for field in fields(&lines) {
            turn += 1;
            if cases < 2000 && turn % 2 == 0 {
                continue;
            }
            for (index, broken) in std::iter::once(None).chain(BREAKS.into_iter().map(Some)).enumerate() {
                if cases < 2000 && (turn / 2) % (BREAKS.len() + 1) != index {
                    continue;
                }
                let Some(file) = with_broken(&lines, &field, broken) else { continue };
                let what = format!("{path}, line {}: {} as {broken:?}", field.line + 1, name_of(&field.path));
                broken_fields += 1;
                let recording = match read(file.as_bytes()) {
                    Ok(recording) => recording,
                    Err(fault) => {
                        faults.push(format!("{what}: {fault}"));
                        continue;
                    }
                };
                let lost = texts.difference(&texts_of(&recording)).count();
                let left = requests_of(&recording);
                if lost > MOST_LOST.max(texts.len() / 20) || left + 1 < requests && left * 10 < requests * 8 {
                    faults.push(format!(
                        "{what}: read as {}, {lost} of {} texts are lost, {left} of {requests} requests left",
                        recording.agent,
                        texts.len(),
                    ));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(broken_fields > 300, "{broken_fields} fields were broken");
}

/// Returns the lines of a file as JSON values with their texts; a document is one line.
fn json_lines(bytes: &[u8]) -> Vec<(Value, String)> {
    let text = std::str::from_utf8(bytes).expect("UTF-8");
    let values: Vec<Value> = match serde_json::from_str(text) {
        Ok(document) => vec![document],
        Err(_) => text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect(),
    };
    values.into_iter().map(|value| (value.clone(), value.to_string())).collect()
}

/// Returns the fields to break: of each kind the first and the middle one. A value of more than a fiftieth of the file is
/// not one field.
fn fields(lines: &[(Value, String)]) -> Vec<Field> {
    let sizes = lines.iter().map(|(_, text)| text.len());
    let most = 200.max(sizes.sum::<usize>() / 50);
    let mut kinds: BTreeMap<String, Vec<Field>> = BTreeMap::new();
    for (line, (value, _)) in lines.iter().enumerate() {
        collect_fields(value, &mut Vec::new(), line, most, &mut kinds);
    }
    let chosen = kinds.into_values().flat_map(|mut fields| {
        let middle = fields.len() / 2;
        let second = (middle > 0).then(|| fields.swap_remove(middle));
        fields.into_iter().take(1).chain(second)
    });
    chosen.collect()
}

fn collect_fields(
    value: &Value,
    path: &mut Vec<Step>,
    line: usize,
    most: usize,
    kinds: &mut BTreeMap<String, Vec<Field>>,
) {
    let members: Vec<(Step, &Value)> = match value {
        Value::Object(members) => {
            members.iter().map(|(key, value)| (Step::Key(key.clone()), value)).collect()
        }
        Value::Array(items) => {
            items.iter().enumerate().map(|(place, item)| (Step::Place(place), item)).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    for (step, value) in members {
        path.push(step);
        if value.to_string().len() <= most {
            kinds.entry(name_of(path)).or_default().push(Field { line, path: path.clone() });
        }
        collect_fields(value, path, line, most, kinds);
        path.pop();
    }
}

/// Names a kind of field: the keys that lead to it.
fn name_of(path: &[Step]) -> String {
    let steps = path.iter().map(|step| match step {
        Step::Key(key) => format!(".{key}"),
        Step::Place(_) => "[]".to_owned(),
    });
    steps.collect()
}

/// Writes the file with one field replaced, or taken out.
fn with_broken(lines: &[(Value, String)], field: &Field, broken: Option<&str>) -> Option<String> {
    let mut line = lines.get(field.line)?.0.clone();
    let (last, way) = field.path.split_last()?;
    let parent = way.iter().try_fold(&mut line, |value, step| match step {
        Step::Key(key) => value.get_mut(key),
        Step::Place(place) => value.get_mut(place),
    })?;
    match (last, broken) {
        (Step::Key(key), None) => drop(parent.as_object_mut()?.remove(key)),
        (Step::Place(place), None) => drop(parent.as_array_mut()?.remove(*place)),
        (Step::Key(key), Some(broken)) => *parent.get_mut(key)? = serde_json::from_str(broken).ok()?,
        (Step::Place(place), Some(broken)) => *parent.get_mut(place)? = serde_json::from_str(broken).ok()?,
    }
    let broken = line.to_string();
    let written = lines.iter().enumerate();
    let written = written.map(|(number, (_, text))| if number == field.line { &broken } else { text });
    Some(written.map(String::as_str).collect::<Vec<_>>().join("\n"))
}

/// Returns all that was said, called and answered.
fn texts_of(recording: &Recording) -> BTreeSet<String> {
    let histories = recording.segments.iter().map(|segment| &segment.history);
    let texts = histories.flat_map(|history| {
        history.blocks().iter().map(|block| history.block_text(block).into_owned()).collect::<Vec<_>>()
    });
    texts.filter(|text| !text.is_empty()).collect()
}

fn requests_of(recording: &Recording) -> usize {
    recording.segments.iter().map(|segment| segment.points.len()).sum()
}

/// Files cut as a closed pipe or a full disk does it, in the middle of what they hold.
fn cut_files() -> Vec<(String, Vec<u8>)> {
    let cut = |(path, mut bytes): (String, Vec<u8>)| {
        bytes.truncate(65_536.min(bytes.len() / 2));
        (format!("{path}, its first {} bytes", bytes.len()), bytes)
    };
    below("recordings").into_iter().filter(|(path, _)| !path.contains('/')).map(cut).collect()
}

/// Describes a segment in one line.
fn summary(segment: &Segment) -> String {
    let history = &segment.history;
    let alone = |kind: BlockKind, words: &str| {
        let blocks = history.blocks().iter().filter(|block| block.kind == kind && block.partner.is_none());
        Some(blocks.count()).filter(|count| *count > 0).map(|count| format!(", {words}: {count}"))
    };
    let usage = segment.points.iter().rev().find_map(|point| point.usage);
    format!(
        "{} {}, messages: {}, blocks: {}{}{}, requests: {}{}",
        segment.start.name(),
        history.format(),
        history.messages().len(),
        history.blocks().len(),
        alone(BlockKind::Call, "calls without result").unwrap_or_default(),
        alone(BlockKind::Result, "results without call").unwrap_or_default(),
        segment.points.len(),
        usage.map_or(String::new(), |usage| {
            format!(", last saw {} tokens, {} of them cached", usage.total_input(), usage.cache_read)
        }),
    )
}

/// Returns the files below a folder of the fixtures with their paths in it, less those that only describe.
fn below(folder: &str) -> Vec<(String, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(folder);
    let mut paths = Vec::new();
    collect(&root, &mut paths);
    paths.sort();
    let files = paths.into_iter().filter(|path| path.extension().is_none_or(|extension| extension != "md"));
    files
        .map(|path| {
            let name =
                path.strip_prefix(&root).expect("below the folder").to_string_lossy().replace('\\', "/");
            (name, fs::read(&path).expect("a readable file"))
        })
        .collect()
}

fn collect(path: &Path, paths: &mut Vec<PathBuf>) {
    if path.is_file() {
        paths.push(path.to_owned());
        return;
    }
    for entry in fs::read_dir(path).expect("a folder") {
        collect(&entry.expect("an entry").path(), paths);
    }
}

fn compare(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    if std::env::var_os("TRIMTAB_BLESS").is_some() {
        fs::write(&path, text).expect("a file to write");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "TRIMTAB_BLESS=1 rewrites {name}");
}
