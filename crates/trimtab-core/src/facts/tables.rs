//! The tables of names: tools (`tools.tsv`), programs (`shell/programs.tsv`) and programs that run another (`shell/wrappers.tsv`).
//! `names` and `shell` look names up in them, `digest` asks for the digest of a tool's results. Each table is read once.

use std::{collections::HashMap, sync::LazyLock};

use super::{
    names::{CallManner, fold_name},
    tool::ToolKind,
};

/// One row of the table of tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ToolRow {
    /// As agents spell it, in lower case.
    pub(super) name: &'static str,
    /// How its calls are read; none where arguments and words tell.
    pub(super) manner: Option<CallManner>,
    /// The name of the digest that its results get; none where the content tells.
    pub(super) digest: Option<&'static str>,
}

/// How a command line is read that begins with a program of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProgramReading {
    /// It does nothing worth a row.
    Silent,
    /// Python.
    Python,
    /// A runner of JavaScript and TypeScript.
    Script,
    /// A package manager with tasks.
    Package,
    /// A build tool of the Java world.
    Java,
    /// Targets or tasks by name.
    Target,
    /// The first word says what is done.
    Verb,
    /// A build of many packages.
    Monorepo,
    /// An installer of an environment.
    Environment,
    /// It fetches.
    Web,
    /// Version control.
    Git,
    /// It tests.
    Test,
    /// It builds, checks, formats or installs.
    Build,
    /// Another agent.
    SubAgent,
}

/// A program that runs another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WrapperProgram {
    /// The words that it begins with.
    pub(super) words: Vec<&'static str>,
    /// Its options that take a value.
    pub(super) with_value: Vec<&'static str>,
    /// How many words follow before the program inside.
    pub(super) operands: usize,
}

const TOOLS: &str = include_str!("tools.tsv");
const PROGRAMS: &str = include_str!("shell/programs.tsv");
const WRAPPERS: &str = include_str!("shell/wrappers.tsv");

/// Stands in a column for nothing.
const NOTHING: &str = "-";

/// Finds how calls of a tool are read, by its name as [`fold_name`] writes it.
pub(super) fn find_manner(folded_name: &str) -> Option<CallManner> {
    static BY_NAME: LazyLock<HashMap<String, CallManner>> = LazyLock::new(|| {
        let rows = rows_of(TOOLS).filter_map(parse_tool);
        rows.filter_map(|row| Some((fold_name(row.name), row.manner?))).collect()
    });
    BY_NAME.get(folded_name).copied()
}

/// Finds the digest that results of a tool get by its name, whatever the case.
pub(crate) fn find_digest_of_tool(name: &str) -> Option<&'static str> {
    static BY_NAME: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
        rows_of(TOOLS).filter_map(parse_tool).filter_map(|row| Some((row.name, row.digest?))).collect()
    });
    BY_NAME.get(name.to_ascii_lowercase().as_str()).copied()
}

/// Returns how a program is read, and what else counts where its name is that of a module, script or task; nothing for an unknown one.
pub(super) fn readings_of_program(name: &str) -> &'static [ProgramReading] {
    static BY_NAME: LazyLock<HashMap<&str, Vec<ProgramReading>>> =
        LazyLock::new(|| rows_of(PROGRAMS).filter_map(parse_program).collect());
    BY_NAME.get(name).map_or(&[], Vec::as_slice)
}

/// Returns the programs that run another one, in the order in which they are tried.
pub(super) fn wrappers() -> &'static [WrapperProgram] {
    static ALL: LazyLock<Vec<WrapperProgram>> =
        LazyLock::new(|| rows_of(WRAPPERS).filter_map(parse_wrapper).collect());
    &ALL
}

/// Returns the rows of a table: no comments, and no head.
fn rows_of(table: &'static str) -> impl Iterator<Item = &'static str> {
    table.lines().filter(|line| !line.starts_with('#')).skip(1)
}

fn parse_tool(row: &'static str) -> Option<ToolRow> {
    let mut columns = row.split('\t');
    let (name, reading, digest) = (columns.next()?, columns.next()?, columns.next()?);
    let manner = match reading {
        NOTHING => None,
        "shell" => Some(CallManner::Shell),
        "lasting-shell" => Some(CallManner::LastingShell),
        "session" => Some(CallManner::Session),
        "editor" => Some(CallManner::Editor),
        "patch" => Some(CallManner::Patch),
        kind => Some(CallManner::Plain(*ToolKind::ALL.iter().find(|known| known.name() == kind)?)),
    };
    Some(ToolRow { name, manner, digest: Some(digest).filter(|digest| *digest != NOTHING) })
}

fn parse_program(row: &'static str) -> Option<(&'static str, Vec<ProgramReading>)> {
    let (name, readings) = row.split_once('\t')?;
    let readings: Option<Vec<ProgramReading>> = readings.split(',').map(parse_reading).collect();
    Some((name, readings?))
}

fn parse_reading(word: &str) -> Option<ProgramReading> {
    Some(match word {
        "silent" => ProgramReading::Silent,
        "python" => ProgramReading::Python,
        "script" => ProgramReading::Script,
        "package" => ProgramReading::Package,
        "java" => ProgramReading::Java,
        "target" => ProgramReading::Target,
        "verb" => ProgramReading::Verb,
        "monorepo" => ProgramReading::Monorepo,
        "environment" => ProgramReading::Environment,
        "web" => ProgramReading::Web,
        "git" => ProgramReading::Git,
        "test" => ProgramReading::Test,
        "build" => ProgramReading::Build,
        "sub-agent" => ProgramReading::SubAgent,
        _ => return None,
    })
}

fn parse_wrapper(row: &'static str) -> Option<WrapperProgram> {
    let mut columns = row.split('\t');
    let (words, options, operands) = (columns.next()?, columns.next()?, columns.next()?);
    let with_value = options.split(' ').filter(|option| *option != NOTHING).collect();
    Some(WrapperProgram { words: words.split(' ').collect(), with_value, operands: operands.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_row_of_every_table_is_read() {
        for row in rows_of(TOOLS) {
            assert!(parse_tool(row).is_some() && row.split('\t').count() == 3, "tools.tsv: {row}");
        }
        for row in rows_of(PROGRAMS) {
            assert!(parse_program(row).is_some(), "programs.tsv: {row}");
        }
        for row in rows_of(WRAPPERS) {
            assert!(parse_wrapper(row).is_some() && row.split('\t').count() == 3, "wrappers.tsv: {row}");
        }
    }

    #[test]
    fn a_name_is_in_its_table_once() {
        for table in [TOOLS, PROGRAMS, WRAPPERS] {
            let mut seen = HashSet::new();
            for row in rows_of(table) {
                let name = row.split('\t').next().unwrap();
                assert!(seen.insert(name), "{name}");
            }
        }
    }

    #[test]
    fn spellings_of_one_tool_are_read_alike() {
        for row in rows_of(TOOLS).filter_map(parse_tool) {
            assert_eq!(row.name, row.name.to_ascii_lowercase());
            assert_eq!(find_manner(&fold_name(row.name)), row.manner, "{}", row.name);
        }
    }

    #[test]
    fn the_longer_name_of_a_wrapper_comes_first() {
        for (index, longer) in wrappers().iter().enumerate() {
            let hidden =
                wrappers().iter().take(index).find(|wrapper| longer.words.starts_with(&wrapper.words));
            assert_eq!(hidden, None, "{:?}", longer.words);
        }
    }
}
