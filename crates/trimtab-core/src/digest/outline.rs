//! Finds the definitions of a source file by keywords and indentation. Takes a text; gives the lines that define something,
//! the outermost first where there are too many. Never parses: one look at each line, whatever the language.

use super::text::{DigestText, without_number};

/// An outline shows one line for every so many of the file ...
const LINES_PER_DEFINITION: usize = 40;
/// ... and never more than this: with its gaps about 500 tokens.
const MOST: usize = 20;
/// Longer lines are no headings.
const LONGEST: usize = 200;

/// Words that begin a definition in common languages.
const KEYWORDS: &[&str] = &[
    "fn", "def", "class", "func", "function", "struct", "enum", "trait", "impl", "interface", "type",
    "module", "mod", "namespace", "object", "record", "protocol", "extension", "sub", "proc", "defmodule",
    "defp", "macro_rules!", "union", "contract", "package", "template", "fun", "data", "instance", "library",
];

/// Words that may precede those.
const MODIFIERS: &[&str] = &[
    "pub", "pub(crate)", "pub(super)", "export", "default", "async", "static", "public", "private",
    "protected", "internal", "abstract", "final", "override", "virtual", "inline", "const", "unsafe",
    "extern", "sealed", "partial", "open", "declare", "suspend", "companion", "case", "local",
];

/// Which lines define something.
#[derive(Debug, Default)]
pub(super) struct DefinitionLines {
    /// How many there are.
    pub(super) total: usize,
    /// Those to show, in order.
    pub(super) shown: Vec<usize>,
}

/// Finds the definitions of a source file. Of too many, the outermost are shown; of too many equally deep ones, some from
/// everywhere in the file.
pub(super) fn find_definitions(text: &DigestText<'_>) -> DefinitionLines {
    let mut found: Vec<(usize, usize)> =
        (0..text.len()).filter_map(|index| Some((definition_depth(text.line(index))?, index))).collect();
    found.sort_unstable();
    let total = found.len();
    let most = (text.len() / LINES_PER_DEFINITION).min(MOST);
    let mut shown: Vec<usize> = Vec::new();
    for level in found.chunk_by(|(one, _), (other, _)| one == other) {
        let room = (most - shown.len()).min(level.len());
        shown.extend((0..room).filter_map(|at| level.get(at * level.len() / room)).map(|(_, index)| *index));
    }
    shown.sort_unstable();
    DefinitionLines { total, shown }
}

/// Returns how deep the definition on a line is indented; nothing where it defines nothing.
fn definition_depth(line: &str) -> Option<usize> {
    let line = without_number(line);
    (line.len() <= LONGEST).then_some(())?;
    let inner = line.trim_start();
    let depth = line.len() - inner.len();
    let mut words = inner.split_ascii_whitespace().skip_while(|word| MODIFIERS.contains(word));
    let first = words.next()?;
    let keyword = first.split(['<', '(']).next().unwrap_or(first);
    let punctuated = inner.contains(['(', '{', ':', '=', ';', '<'])
        || inner.ends_with(" do")
        || inner.split(' ').count() <= 2;
    let named = words.next().is_some_and(is_name);
    let defines = KEYWORDS.contains(&keyword) && named && punctuated && !inner.ends_with('.');
    (defines || is_assigned_function(inner)).then_some(depth)
}

fn is_name(word: &str) -> bool {
    word.starts_with(|letter: char| {
        letter.is_alphabetic() || matches!(letter, '_' | '(' | '<' | '*' | '&' | '$' | '{' | '\'')
    })
}

/// Tells `const name = (…) => {` and `name = function (…) {`.
fn is_assigned_function(inner: &str) -> bool {
    let declared = ["const ", "let ", "var ", "export const "].iter().any(|start| inner.starts_with(start));
    declared && (inner.contains("=> {") || inner.contains("= function") || inner.contains("= async ("))
}

#[cfg(test)]
mod tests {
    use super::definition_depth;

    #[test]
    fn definitions_of_common_languages_are_found() {
        for line in [
            "fn main() {",
            "    pub(crate) async fn run(self) -> Result<()> {",
            "impl<T> Display for Wrapper<T> {",
            "def main():",
            "    async def fetch(self):",
            "class Agent(Base):",
            "func (s *Server) Run() error {",
            "export default class App {",
            "export async function load(x) {",
            "const load = async (x) => {",
            "public static class Builder {",
            "type Name struct {",
            "defmodule App do",
            "   12→def main():",
        ] {
            assert!(definition_depth(line).is_some(), "{line}");
        }
    }

    #[test]
    fn prose_and_calls_define_nothing() {
        for line in [
            "", "type of thing, mostly", "    return function(x)", "the class of 1990", "x = 3",
            "package.json", "# class A",
        ] {
            assert!(definition_depth(line).is_none(), "{line}");
        }
    }
}
