//! Shell text to simple commands. Takes a command line or script; gives its commands in order, each with its
//! words unquoted, its redirections, its here-document and its place in a pipeline. Never runs or expands
//! anything: variables, globs and substitutions are left unchanged.

use super::super::windows::starts_with_drive;

/// One simple command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SplitCommand {
    pub(super) words: Vec<String>,
    pub(super) redirects: Vec<Redirect>,
    /// The here-documents' text.
    pub(super) input: Option<String>,
    /// Whether the shell puts nothing into that text: the end mark is quoted and no tabs are stripped.
    pub(super) verbatim: bool,
    /// Whether it runs only if the command before it fails.
    pub(super) otherwise: bool,
    /// Whether it reads what the command before it writes.
    pub(super) piped: bool,
    /// How many parentheses stand around it.
    pub(super) depth: usize,
}

/// One redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Redirect {
    pub(crate) to: RedirectDirection,
    pub(crate) target: String,
}

/// Where a redirection leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RedirectDirection {
    In,
    Out,
    Append,
}

/// Which paths a shell takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum PathStyle {
    /// A backslash takes the meaning from the letter after it.
    #[default]
    Posix,
    /// A backslash before a letter or digit separates names, as in `src\a.go`.
    Windows,
}

/// Splits a script into its commands.
pub(super) fn split_script(script: &str, paths: PathStyle) -> Vec<SplitCommand> {
    let mut splitter = CommandSplitter { text: script, at: 0, paths, ..CommandSplitter::default() };
    splitter.split_all();
    splitter.commands
}

#[derive(Default)]
struct CommandSplitter<'a> {
    text: &'a str,
    at: usize,
    commands: Vec<SplitCommand>,
    current: SplitCommand,
    /// Here-documents whose text begins after the next line break: end mark, whether tabs are stripped, and
    /// the number of the command they belong to.
    waiting: Vec<(String, bool, usize)>,
    depth: usize,
    paths: PathStyle,
}

impl CommandSplitter<'_> {
    fn split_all(&mut self) {
        while let Some(letter) = self.peek() {
            match letter {
                ' ' | '\t' | '\r' => self.at += 1,
                '\n' => self.line_break(),
                '\\' if self.remaining().starts_with("\\\n") => self.at += 2,
                '#' => self.skip_line(),
                '&' if self.remaining().starts_with("&&") => self.take_separator(2),
                '&' if self.remaining().starts_with("&>") => self.read_redirect(),
                ';' | '&' => self.take_separator(1),
                '|' => self.take_pipe(),
                '(' => {
                    self.take_separator(1);
                    self.depth += 1;
                }
                ')' => {
                    self.take_separator(1);
                    self.depth = self.depth.saturating_sub(1);
                }
                '<' | '>' => self.read_redirect(),
                _ => self.word_or_descriptor(),
            }
        }
        self.end_command();
    }

    fn remaining(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.remaining().chars().next()
    }

    fn take_separator(&mut self, length: usize) {
        self.end_command();
        self.at += length;
    }

    fn take_pipe(&mut self) {
        let length = if self.remaining().starts_with("||") {
            self.take_separator(2);
            self.current.otherwise = true;
            return;
        } else if self.remaining().starts_with("|&") {
            2
        } else {
            1
        };
        self.end_command();
        self.at += length;
        self.current.piped = true;
    }

    fn end_command(&mut self) {
        let mut command = std::mem::take(&mut self.current);
        if command.words.is_empty() && command.redirects.is_empty() {
            // A pipe may stand at the end of its line, or before an opening parenthesis.
            self.current.piped = command.piped;
            return;
        }
        command.depth = self.depth;
        self.commands.push(command);
    }

    fn line_break(&mut self) {
        self.end_command();
        self.at += 1;
        for (mark, strip, owner) in std::mem::take(&mut self.waiting) {
            let document = self.here_document(&mark, strip);
            if let Some(command) = self.commands.get_mut(owner) {
                command.input.get_or_insert_default().push_str(&document);
            }
        }
    }

    fn here_document(&mut self, mark: &str, strip: bool) -> String {
        let mut document = String::new();
        while self.at < self.text.len() {
            let rest = self.remaining();
            let length = memchr::memchr(b'\n', rest.as_bytes()).map_or(rest.len(), |end| end + 1);
            let line = rest.get(..length).unwrap_or_default();
            let bare = line.trim_end_matches(['\n', '\r']);
            let bare = if strip { bare.trim_start_matches('\t') } else { bare };
            let ends = bare == mark;
            if !ends {
                document.push_str(line);
            }
            self.at += length;
            if ends {
                break;
            }
        }
        document
    }

    fn skip_line(&mut self) {
        let rest = self.remaining();
        self.at += memchr::memchr(b'\n', rest.as_bytes()).unwrap_or(rest.len());
    }

    /// Reads a redirection at `<`, `>` or `&>`.
    fn read_redirect(&mut self) {
        const FORMS: [(&str, Option<RedirectDirection>); 12] = [
            ("<<<", None),
            ("<<-", None),
            ("<<", None),
            ("<(", None),
            (">(", None),
            ("&>>", Some(RedirectDirection::Append)),
            (">>", Some(RedirectDirection::Append)),
            ("&>", Some(RedirectDirection::Out)),
            (">|", Some(RedirectDirection::Out)),
            (">&", Some(RedirectDirection::Out)),
            (">", Some(RedirectDirection::Out)),
            ("<", Some(RedirectDirection::In)),
        ];
        let rest = self.remaining();
        let Some((form, direction)) = FORMS.iter().find(|(form, _)| rest.starts_with(form)) else {
            self.at += 1;
            return;
        };
        if form.ends_with('(') {
            let word = self.read_word();
            self.current.words.push(word);
            return;
        }
        self.at += form.len();
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.at += 1;
        }
        let is_quoted = matches!(self.peek(), Some('\'' | '"' | '\\'));
        let target = self.read_word();
        match direction {
            Some(to) if !is_descriptor(&target) => self.current.redirects.push(Redirect { to: *to, target }),
            None if *form == "<<" || *form == "<<-" => {
                self.current.verbatim = is_quoted && *form == "<<";
                self.waiting.push((target, *form == "<<-", self.commands.len()));
            }
            Some(_) | None => {}
        }
    }

    /// Reads a word; one that is a number right before a redirection belongs to that.
    fn word_or_descriptor(&mut self) {
        let word = self.read_word();
        let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        if is_number && matches!(self.peek(), Some('<' | '>')) {
            let before = self.current.redirects.len();
            self.read_redirect();
            if word != "1" && word != "0" {
                // What goes to another descriptor than the output is no content of interest.
                self.current.redirects.truncate(before);
            }
            return;
        }
        self.current.words.push(word);
    }

    /// Reads one word, unquoting as it goes.
    fn read_word(&mut self) -> String {
        let mut word = String::new();
        let start = self.at;
        while let Some(letter) = self.peek() {
            match letter {
                '\'' => self.single_quoted(&mut word),
                '"' => self.double_quoted(&mut word),
                '\\' if self.is_path_separator(&word) => {
                    let end = self.remaining().starts_with("\\\\") && word.is_empty();
                    self.copy_text(1 + usize::from(end), &mut word);
                }
                '\\' => {
                    self.at += 1;
                    if let Some(escaped) = self.peek() {
                        self.at += escaped.len_utf8();
                        if escaped != '\n' {
                            word.push(escaped);
                        }
                    }
                }
                '$' if self.remaining().starts_with("$(") || self.remaining().starts_with("${") => {
                    self.copy_nested(1, &mut word);
                }
                '$' if self.remaining().starts_with("$'") => self.at += 1,
                '<' | '>' if self.at == start && self.remaining().get(1..2) == Some("(") => {
                    self.copy_nested(1, &mut word);
                }
                '`' => {
                    let end = self.remaining().get(1..).and_then(|rest| rest.find('`')).map(|end| end + 2);
                    self.copy_text(end.unwrap_or(self.remaining().len()), &mut word);
                }
                ' ' | '\t' | '\r' | '\n' | ';' | '&' | '|' | '<' | '>' | ')' => break,
                '(' if self.at == start => break,
                '(' => self.copy_nested(0, &mut word),
                letter => {
                    self.at += letter.len_utf8();
                    word.push(letter);
                }
            }
        }
        if self.at == start {
            self.at += self.peek().map_or(0, char::len_utf8);
        }
        word
    }

    /// Tells whether the backslash here separates the names of a Windows path: after a drive, before a server, or, where the
    /// shell takes such paths, before a name.
    fn is_path_separator(&self, word: &str) -> bool {
        let mut behind = self.remaining().chars().skip(1);
        let next = behind.next();
        if next.is_none_or(|next| "\n|&;<>()$*?\"'`".contains(next)) {
            return false;
        }
        let path = word.rsplit('=').next().unwrap_or(word);
        let on_drive = path.get(..2).is_some_and(starts_with_drive);
        let is_name =
            |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
        let at_server = || {
            let server = self.remaining().strip_prefix("\\\\").filter(|_| word.is_empty());
            server.and_then(|server| server.split_once('\\')).is_some_and(|(server, share)| {
                !server.is_empty()
                    && server
                        .chars()
                        .all(|letter| letter.is_alphanumeric() || matches!(letter, '.' | '-' | '_'))
                    && is_name(share.chars().next())
            })
        };
        let in_server = || word.starts_with("\\\\") && is_name(next);
        on_drive || at_server() || in_server() || (self.paths == PathStyle::Windows && is_name(next))
    }

    fn single_quoted(&mut self, word: &mut String) {
        self.at += 1;
        let rest = self.remaining();
        let length = rest.find('\'').unwrap_or(rest.len());
        self.copy_text(length, word);
        self.at += 1;
        self.at = self.at.min(self.text.len());
    }

    fn double_quoted(&mut self, word: &mut String) {
        self.at += 1;
        while let Some(letter) = self.peek() {
            match letter {
                '"' => {
                    self.at += 1;
                    return;
                }
                '\\' => {
                    self.at += 1;
                    let Some(escaped) = self.peek() else { return };
                    self.at += escaped.len_utf8();
                    match escaped {
                        '"' | '\\' | '$' | '`' => word.push(escaped),
                        '\n' => {}
                        escaped => word.extend(['\\', escaped]),
                    }
                }
                '$' if self.remaining().starts_with("$(") => self.copy_nested(1, word),
                letter => {
                    self.at += letter.len_utf8();
                    word.push(letter);
                }
            }
        }
    }

    /// Copies a bracketed piece unchanged, here-documents and quotes in it included.
    fn copy_nested(&mut self, before: usize, word: &mut String) {
        let open = self.remaining().as_bytes().get(before).copied().unwrap_or(b'(');
        let close = if open == b'{' { b'}' } else { b')' };
        let mut depth = 0_usize;
        let mut quote = 0_u8;
        let mut length = 0;
        for byte in self.remaining().bytes().skip(before) {
            length += 1;
            if quote != 0 {
                quote = if byte == quote { 0 } else { quote };
            } else if byte == b'\'' || byte == b'"' {
                quote = byte;
            } else if byte == open {
                depth += 1;
            } else if byte == close {
                depth -= 1;
                if depth == 0 {
                    break;
                }
            }
        }
        self.copy_text(before + length, word);
    }

    fn copy_text(&mut self, length: usize, word: &mut String) {
        word.push_str(self.remaining().get(..length).unwrap_or_default());
        self.at = (self.at + length).min(self.text.len());
    }
}

fn is_descriptor(target: &str) -> bool {
    target.is_empty()
        || target == "-"
        || target.starts_with('&')
        || target.bytes().all(|byte| byte.is_ascii_digit())
        || target.starts_with("/dev/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(script: &str, expected: &[&str]) {
        let picture = |command: &SplitCommand| {
            let pipe = if command.piped { "| " } else { "" };
            let arrows = command.redirects.iter().map(|redirect| match redirect.to {
                RedirectDirection::In => format!(" <{}", redirect.target),
                RedirectDirection::Out => format!(" >{}", redirect.target),
                RedirectDirection::Append => format!(" >>{}", redirect.target),
            });
            let input =
                command.input.as_ref().map(|input| format!(" «{}»", input.trim_end())).unwrap_or_default();
            format!("{pipe}{}{}{input}", command.words.join("·"), arrows.collect::<String>())
        };
        assert_eq!(
            split_script(script, PathStyle::Posix).iter().map(picture).collect::<Vec<_>>(),
            expected,
            "{script}"
        );
    }

    #[test]
    fn words_are_unquoted() {
        check(r#"grep -n "a b" 'c d' e\ f "x\"y" $'q'"#, &["grep·-n·a b·c d·e f·x\"y·q"]);
        check("echo 'it'\"'\"'s'", &["echo·it's"]);
        check("echo $(ls | wc -l) `date +%s`", &["echo·$(ls | wc -l)·`date +%s`"]);
        check("echo \"unfinished", &["echo·unfinished"]);
    }

    #[test]
    fn a_backslash_separates_names_on_a_drive_and_where_the_shell_is_one_of_windows() {
        check("cat D:\\proj\\.git\\a.go x\\ y", &["cat·D:\\proj\\.git\\a.go·x y"]);
        check("cd d:\\proj && ls", &["cd·d:\\proj", "ls"]);
        check("cmd --file=D:\\a\\b \\\\server\\share\\x", &["cmd·--file=D:\\a\\b·\\\\server\\share\\x"]);
        check("cat src\\a.go | grep \\\\bx", &["cat·srca.go", "| grep·\\bx"]);
        let words = |script: &str| {
            split_script(script, PathStyle::Windows).first().map(|command| command.words.join("·"))
        };
        assert_eq!(words("cat src\\a.go x\\ y").as_deref(), Some("cat·src\\a.go·x y"));
        assert_eq!(words("find . -name \\*.go").as_deref(), Some("find·.·-name·*.go"));
    }

    #[test]
    fn operators_end_commands_and_pipes_join_them() {
        check("cd a && ls; pwd || true & wait", &["cd·a", "ls", "pwd", "true", "wait"]);
        check("cat f | head -5 |\n wc -l", &["cat·f", "| head·-5", "| wc·-l"]);
        check("(cd x; make) 2>&1 | tail", &["cd·x", "make", "| tail"]);
        check("ls # files\npwd", &["ls", "pwd"]);
        check("a \\\n  b", &["a·b"]);
    }

    #[test]
    fn redirections_are_taken_out_of_the_words() {
        check("go test ./... >out.txt 2>&1", &["go·test·./... >out.txt"]);
        check("sort < in >> out 2>/dev/null", &["sort <in >>out"]);
        check("make &> log", &["make >log"]);
        check("cmd 2>err.txt", &["cmd"]);
        check("diff <(sort a) <(sort b)", &["diff·<(sort a)·<(sort b)"]);
    }

    #[test]
    fn here_documents_belong_to_their_command() {
        check("cat > f <<'EOF'\nline; one\nEOF\nls", &["cat >f «line; one»", "ls"]);
        check("cat <<EOF | tee x\na\nEOF", &["cat «a»", "| tee·x"]);
        check("python - <<PY && ls\nprint(1)\nPY\npwd", &["python·- «print(1)»", "ls", "pwd"]);
        check("cat <<-\tEND\n\ta\n\tEND\npwd", &["cat «\ta»", "pwd"]);
        check("cat <<EOF\nnever ends", &["cat «never ends»"]);
        check("grep x <<< text", &["grep·x"]);
    }
}
