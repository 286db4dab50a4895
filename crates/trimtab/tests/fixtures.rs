//! The shipped files. Every recording and request is read and written back, every broken file is refused or read
//! with its problems, and two texts beside this file show what comes out. `TRIMTAB_BLESS=1` rewrites those.

#![expect(clippy::expect_used, reason = "a test stops at what must not happen")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use trimtab::{BlockKind, Format, Segment, agents, parse, parse_as, read, write};

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
                let request = segment.request(point);
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
